/*
 * address.c - where a process listens
 */
#define _GNU_SOURCE
#include "wire/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/say.h"

static void from_socket(const struct sockaddr *s, struct address *out)
{
    *out = (struct address){ 0 };
    if (s->sa_family == AF_INET) {
        const struct sockaddr_in *const in = (const void *)s;
        out->family = 4;
        memcpy(out->at, &in->sin_addr, 4);
        out->port = ntohs(in->sin_port);
    } else if (s->sa_family == AF_INET6) {
        const struct sockaddr_in6 *const in = (const void *)s;
        out->family = 6;
        memcpy(out->at, &in->sin6_addr, 16);
        out->port = ntohs(in->sin6_port);
    }
}

/* getaddrinfo() takes any number, and keeps 16 bits of it. */
static bool is_port(const char *text)
{
    const size_t n = strspn(text, "0123456789");
    return n && n <= 5 && !text[n] && strtoul(text, NULL, 10) <= 65535;
}

bool address_parse(const char *text, struct address *out)
{
    char host[256] = "127.0.0.1";
    const char *port = strrchr(text, ':');
    const size_t n = port ? (size_t)(port - text) : 0;
    if (n && n < sizeof host) {
        const bool brackets = text[0] == '[' && text[n - 1] == ']' && n > 2;
        memcpy(host, text + brackets, n - 2 * (size_t)brackets);
        host[n - 2 * (size_t)brackets] = '\0';
    }
    port = port ? port + 1 : text;
    const struct addrinfo wanted = { .ai_flags = AI_NUMERICSERV,
                                     .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    const int wrong = n < sizeof host && is_port(port)
                          ? getaddrinfo(host, port, &wanted, &found)
                          : EAI_NONAME;
    if (wrong)
        return refuse("'%s' is not an address: %s; expected HOST:PORT, "
                      "[HOST]:PORT or PORT",
                      text, gai_strerror(wrong));
    from_socket(found->ai_addr, out);
    freeaddrinfo(found);
    return out->family || refuse("'%s' is not an address", text);
}

void address_text(const struct address *a, char out[ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "?";
    inet_ntop(a->family == 6 ? AF_INET6 : AF_INET, a->at, host, sizeof host);
    snprintf(out, ADDRESS_TEXT, a->family == 6 ? "[%s]:%u" : "%s:%u", host,
             (unsigned)a->port);
}

socklen_t address_socket(const struct address *a, struct sockaddr_storage *to)
{
    memset(to, 0, sizeof *to);
    if (a->family == 6) {
        struct sockaddr_in6 *const in = (void *)to;
        in->sin6_family = AF_INET6;
        memcpy(&in->sin6_addr, a->at, 16);
        in->sin6_port = htons(a->port);
        return sizeof *in;
    }
    struct sockaddr_in *const in = (void *)to;
    in->sin_family = AF_INET;
    memcpy(&in->sin_addr, a->at, 4);
    in->sin_port = htons(a->port);
    return sizeof *in;
}

bool address_of_socket(int fd, struct address *out)
{
    struct sockaddr_storage s;
    socklen_t n = sizeof s;
    if (getsockname(fd, (struct sockaddr *)&s, &n))
        return false;
    from_socket((struct sockaddr *)&s, out);
    return out->family != 0;
}

int address_listen(const char *address, struct address *at)
{
    struct sockaddr_storage s;
    const char *const text = address ? address : "0";
    if (!address_parse(text, at))
        return -1;
    const socklen_t n = address_socket(at, &s);
    const int fd =
        socket(s.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int one = 1;
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, (struct sockaddr *)&s, n) || listen(fd, 256) ||
        !address_of_socket(fd, at)) {
        fail("%s: %s", text, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

/*
 * udp_send.c - packets of UDP as fast as the kernel takes them
 *
 *     build/bench/udp_send ADDRESS BYTES SECONDS
 *
 * For bench/router.py: prints how many were taken.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"

#define BATCH 64

int main(int argc, char **argv)
{
    static unsigned char bytes[65536];
    struct sockaddr_in6 to = { .sin6_family = AF_INET6,
                               .sin6_port = htons(7000) };
    const size_t n = argc == 4 ? (size_t)strtoul(argv[2], NULL, 10) : 0;
    if (argc != 4 || n > sizeof bytes ||
        inet_pton(AF_INET6, argv[1], &to.sin6_addr) != 1) {
        fprintf(stderr, "udp_send ADDRESS BYTES SECONDS\n");
        return 2;
    }
    const int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0) {
        perror("udp_send");
        return 2;
    }
    struct iovec part = { bytes, n };
    struct mmsghdr all[BATCH];
    memset(all, 0, sizeof all);
    for (unsigned i = 0; i < BATCH; i++)
        all[i].msg_hdr = (struct msghdr){ .msg_iov = &part, .msg_iovlen = 1 };
    unsigned long long sent = 0;
    const double end = clock_seconds() + strtod(argv[3], NULL);
    while (clock_seconds() < end) {
        const int k = sendmmsg(fd, all, BATCH, 0);
        sent += k > 0 ? (unsigned long long)k : 0;
    }
    printf("%llu\n", sent);
    return 0;
}

/*
 * host_names.c - names of hosts: one form, and the names above one
 *
 * A label that is not ASCII is folded to lower case and written in Punycode
 * (RFC 3492) behind "xn--". Folding is that of single characters, as for keys
 * of filters, but for the final sigma, which is a letter of its own in names
 * since 2008. Text is taken to be composed (NFC), as keyboards, browsers and
 * published lists have it; what is not becomes another name, in the list as in
 * the question.
 */
#define _GNU_SOURCE /* stpcpy */
#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <bloomery.h>

#include "apps/urls/host_names.h"
#include "report/show.h"

#define LABEL_MOST 63

/* -------------------------------------------------------------- addresses */

static bool address6_canonical(const char *host, size_t n, char *to,
                               size_t *len)
{
    char text[INET6_ADDRSTRLEN + 1], shown[INET6_ADDRSTRLEN];
    struct in6_addr a;
    if (n < 4 || n - 2 >= sizeof text || host[0] != '[' || host[n - 1] != ']')
        return false;
    memcpy(text, host + 1, n - 2);
    text[n - 2] = '\0';
    if (strlen(text) != n - 2 || inet_pton(AF_INET6, text, &a) != 1 ||
        !inet_ntop(AF_INET6, &a, shown, sizeof shown))
        return false;
    *to = '[';
    char *const end = stpcpy(to + 1, shown);
    *end = ']';
    *len = (size_t)(end - to) + 1;
    return true;
}

bool address_canonical(const char *host, size_t n, char *to, size_t *len)
{
    char text[64];
    struct in_addr a;
    if (n && host[0] == '[')
        return address6_canonical(host, n, to, len);
    /* inet_aton() takes blanks behind an address, and whatever follows. */
    if (!n || n >= sizeof text || host[0] < '0' || host[0] > '9')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!host[i] || !strchr("0123456789abcdefABCDEFxX.", host[i]))
            return false;
    memcpy(text, host, n);
    text[n] = '\0';
    char shown[INET_ADDRSTRLEN];
    if (!inet_aton(text, &a) || !inet_ntop(AF_INET, &a, shown, sizeof shown))
        return false;
    *len = strlen(shown);
    memcpy(to, shown, *len);
    return true;
}

/* --------------------------------------------------------------- A-labels */

/* Letters of names, in ASCII. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Code points of a label, folded; 0 if it is not UTF-8, has too many, or has
 * such as no name has. */
static size_t label_points(const char *label, size_t n,
                           uint32_t out[LABEL_MOST])
{
    size_t npoints = 0;
    while (n) {
        const size_t len = utf8_length((const unsigned char *)label, n);
        if (!len || npoints == LABEL_MOST || (len == 1 && !is_letter(*label)))
            return 0;
        char room[BLY_KEY_ROOM(4)];
        bly_bytes c = { label, len };
        if (len != 2 || memcmp(label, "\xcf\x82", 2) != 0) /* final sigma */
            c = bly_key_normalise(BLY_KEYS_FOLDED, c, room);
        const unsigned char *const p = c.ptr;
        uint32_t point = c.len == 1 ? p[0] : p[0] & (0xffu >> (c.len + 1));
        for (size_t i = 1; i < c.len; i++)
            point = point << 6 | (p[i] & 0x3f);
        out[npoints++] = point;
        label += len;
        n -= len;
    }
    return npoints;
}

static uint32_t punycode_adapt(uint32_t delta, uint32_t npoints, bool first)
{
    uint32_t k = 0;
    delta = first ? delta / 700 : delta / 2;
    delta += delta / npoints;
    for (; delta > 455; k += 36)
        delta /= 35;
    return k + 36 * delta / (delta + 38);
}

/* "xn--" and these points in Punycode: the length, or 0 if that is not a label.
 */
static size_t punycode(const uint32_t *points, size_t npoints,
                       char out[LABEL_MOST])
{
    size_t len = 4, basic = 0;
    memcpy(out, "xn--", 4);
    for (size_t i = 0; i < npoints && len < LABEL_MOST; i++)
        if (points[i] < 128) {
            out[len++] = (char)points[i];
            basic++;
        }
    if (basic && len < LABEL_MOST)
        out[len++] = '-';
    /* At most 63 points below 2^21 each: nothing overflows 32 bits. */
    uint32_t n = 128, delta = 0, bias = 72;
    for (size_t done = basic; done < npoints; n++, delta++) {
        uint32_t next = UINT32_MAX;
        for (size_t i = 0; i < npoints; i++)
            if (points[i] >= n && points[i] < next)
                next = points[i];
        delta += (next - n) * (uint32_t)(done + 1);
        n = next;
        for (size_t i = 0; i < npoints; i++) {
            if (points[i] < n)
                delta++;
            if (points[i] != n)
                continue;
            uint32_t q = delta;
            for (uint32_t k = 36;; k += 36) {
                const uint32_t t = k <= bias        ? 1
                                   : k >= bias + 26 ? 26
                                                    : k - bias;
                const uint32_t digit = q < t ? q : t + (q - t) % (36 - t);
                if (len == LABEL_MOST)
                    return 0;
                out[len++] =
                    (char)(digit < 26 ? 'a' + digit : '0' + digit - 26);
                if (q < t)
                    break;
                q = (q - t) / (36 - t);
            }
            bias = punycode_adapt(delta, (uint32_t)done + 1, done == basic);
            delta = 0;
            done++;
        }
    }
    return len;
}

static bool is_ascii(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] > 127)
            return false;
    return true;
}

size_t name_dots(char *name, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        const bool dot =
            n - i >= 3 && (memcmp(name + i, "\xe3\x80\x82", 3) == 0 ||
                           memcmp(name + i, "\xef\xbc\x8e", 3) == 0 ||
                           memcmp(name + i, "\xef\xbd\xa1", 3) == 0);
        name[len++] = dot ? '.' : name[i];
        i += dot ? 2 : 0;
    }
    return len;
}

size_t name_to_ascii(char *name, size_t n)
{
    if (is_ascii(name, n))
        return n;
    /* What is there moves to the end of the room, and labels come back. */
    const char *const from = memmove(name + 3 * n, name, n);
    size_t len = 0;
    for (size_t i = 0; i <= n;) {
        size_t end = i;
        while (end < n && from[end] != '.')
            end++;
        uint32_t points[LABEL_MOST];
        char label[LABEL_MOST];
        size_t got = 0;
        if (!is_ascii(from + i, end - i))
            got = label_points(from + i, end - i, points);
        got = got ? punycode(points, got, label) : 0;
        memmove(name + len, got ? label : from + i, got ? got : end - i);
        len += got ? got : end - i;
        if (end < n)
            name[len++] = '.';
        i = end + 1;
    }
    return len;
}

/* ------------------------------------------------------------------- names */

size_t name_labels(const char *name, size_t n)
{
    size_t labels = 1;
    for (size_t i = 0; i < n; i++)
        labels += name[i] == '.';
    return labels;
}

static bool name_letters(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_letter(name[i]) && name[i] != '.')
            return false;
    return true;
}

size_t name_canonical(const char *name, size_t n, char room[NAME_ROOM],
                      bool *address, const char **why)
{
    char text[4 * NAME_ROOM + 64];
    size_t len = 0, label = 0;
    *address = false;
    *why = "a name of more than 253 bytes";
    if (n > NAME_ROOM)
        return 0;
    for (size_t i = 0; i < n; i++)
        text[i] =
            name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
    n = name_dots(text, n);
    n -= n && text[n - 1] == '.';
    *why = "an empty name";
    if (!n)
        return 0;
    /* Before labels are looked at: 0x7f.1 is an address, and would pass for
     * a name. */
    if (address_canonical(text, n, room, &len)) {
        *address = true;
        return len;
    }
    len = name_to_ascii(text, n);
    *why = "a name of more than 253 bytes";
    if (len > NAME_MOST)
        return 0;
    *why = "not a name: letters, digits, '-', '_' and single dots are right";
    if (!name_letters(text, len))
        return 0;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && text[i] != '.')
            continue;
        if (i == label)
            return 0;
        if (i - label > LABEL_MOST) {
            *why = "a label of more than 63 bytes";
            return 0;
        }
        label = i + 1;
    }
    memcpy(room, text, len);
    return len;
}

/*
 * print.c - snprintf for the lines of messages
 *
 * What the library's messages use and no more: s, c, d, u, x, g and f, with
 * a width, zeros, a precision, and the lengths l, ll and z. JavaScript writes
 * reals. Anything else ends the line, where a test sees it.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The digits of a real as %g (or %f) gives them, to 32 bytes; how many. */
__attribute__((import_module("js"), import_name("real"))) uint32_t
js_real(double value, uint32_t precision, uint32_t fixed, char *to);

struct line {
    char *at;
    size_t room, len;
};

static void put(struct line *l, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++, l->len++)
        if (l->len + 1 < l->room)
            l->at[l->len] = text[i];
}

static size_t digits(uint64_t value, unsigned base, char *end)
{
    size_t n = 0;
    do {
        end[-++n] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    return n;
}

int vsnprintf(char *to, size_t room, const char *format, va_list args)
{
    struct line l = { to, room, 0 };
    for (const char *p = format; *p; p++) {
        if (*p != '%' || *++p == '%') {
            put(&l, p, 1);
            continue;
        }
        char text[40], *const end = text + sizeof text;
        const char *from = text;
        size_t n = 0, width = 0;
        int precision = -1, longs = 0;
        bool hash = *p == '#', zeros = false;
        p += hash;
        zeros = *p == '0';
        for (; *p >= '0' && *p <= '9'; p++)
            width = 10 * width + (size_t)(*p - '0');
        if (*p == '.') {
            precision = 0;
            if (*++p == '*') {
                precision = va_arg(args, int);
                p++;
            }
            for (; *p >= '0' && *p <= '9'; p++)
                precision = 10 * precision + (*p - '0');
        }
        for (; *p == 'l' || *p == 'z'; p++)
            longs += *p == 'l';
        if (*p == 's') {
            from = va_arg(args, const char *);
            n = precision < 0 ? strlen(from) : strnlen(from, (size_t)precision);
        } else if (*p == 'c') {
            text[0] = (char)va_arg(args, int);
            n = 1;
        } else if (*p == 'g' || *p == 'f') {
            n = js_real(va_arg(args, double),
                        precision < 0 ? 6 : (uint32_t)precision, *p == 'f',
                        text);
        } else if (*p == 'd' || *p == 'u' || *p == 'x') {
            const bool is_signed = *p == 'd';
            uint64_t v = longs > 1   ? va_arg(args, uint64_t)
                         : is_signed ? (uint64_t)(int64_t)va_arg(args, int)
                                     : va_arg(args, uint32_t);
            const bool minus = is_signed && (int64_t)v < 0;
            n = digits(minus ? -v : v, *p == 'x' ? 16 : 10, end);
            if (minus)
                end[-++n] = '-';
            if (hash)
                put(&l, "0x", 2);
            from = end - n;
        } else {
            break;
        }
        for (; n < width; width--)
            put(&l, zeros ? "0" : " ", 1);
        put(&l, from, n);
    }
    if (room)
        to[l.len < room ? l.len : room - 1] = 0;
    return (int)l.len;
}

int snprintf(char *to, size_t room, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(to, room, format, args);
    va_end(args);
    return n;
}

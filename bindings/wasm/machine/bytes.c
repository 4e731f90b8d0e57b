/*
 * bytes.c - the C library's functions for bytes and text, of few bytes
 *
 * Copying and filling are instructions of WebAssembly; those of wasi-libc are
 * loops that were unrolled for machines without them.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    return __builtin_memcpy(to, from, n);
}

void *memmove(void *to, const void *from, size_t n)
{
    return __builtin_memmove(to, from, n);
}

void *memset(void *to, int byte, size_t n)
{
    return __builtin_memset(to, byte, n);
}

void *memchr(const void *at, int byte, size_t n)
{
    const unsigned char *p = at;
    for (; n--; p++)
        if (*p == (unsigned char)byte)
            return (void *)p;
    return NULL;
}

size_t strnlen(const char *text, size_t n)
{
    size_t len = 0;
    while (len < n && text[len])
        len++;
    return len;
}

size_t strlen(const char *text)
{
    size_t len = 0;
    while (text[len])
        len++;
    return len;
}

char *strchr(const char *text, int c)
{
    for (; *text != (char)c; text++)
        if (!*text)
            return NULL;
    return (char *)text;
}

int strncmp(const char *a, const char *b, size_t n)
{
    for (; n && *a == *b && *a; a++, b++)
        n--;
    return n ? *(const unsigned char *)a - *(const unsigned char *)b : 0;
}

char *strncpy(char *restrict to, const char *restrict from, size_t n)
{
    const size_t len = strnlen(from, n);
    memcpy(to, from, len);
    memset(to + len, 0, n - len);
    return to;
}

/* Heap sort: the children of element i are 2 i + 1 and 2 i + 2. */
typedef int compare_fn(const void *a, const void *b);

static void swap_bytes(char *a, char *b, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        const char c = a[i];
        a[i] = b[i];
        b[i] = c;
    }
}

static void sift(char *at, size_t i, size_t n, size_t width,
                 compare_fn *compare)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n &&
            compare(at + child * width, at + (child + 1) * width) < 0)
            child++;
        if (compare(at + i * width, at + child * width) >= 0)
            return;
        swap_bytes(at + i * width, at + child * width, width);
    }
}

void qsort(void *at, size_t n, size_t width, compare_fn *compare)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(at, i, n, width, compare);
    while (n-- > 1) {
        swap_bytes(at, (char *)at + n * width, width);
        sift(at, 0, n, width, compare);
    }
}

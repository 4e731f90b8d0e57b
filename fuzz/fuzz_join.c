/*
 * fuzz_join.c - both ends of a remote join, with peers that say anything
 *
 * The first byte chooses the end and the form of the rows. For the end that
 * serves, the rest is a request on standard input. For the end that asks, it is
 * an answer; where the byte says so, the totals behind the rows are made right,
 * so that what follows is looked at, too: the shape of rows, and rows that fit
 * none. Hello and frames are always right; fuzz_session.c has others.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/join/join.h"
#include "apps/join/wire.h"
#include "base/byte_order.h"
#include "io/varint.h"
#include "report/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bits of the first byte. */
#define SERVES 1
#define RIGHTLY 2 /* with their totals */
#define FORM(x) ((x) >> 2 & 3)
#define TYPE(x) ((x) >> 4 & 3)

static const char rows[] = "key,x\n1,a\n2,\"b,\"\"c\"\n3,{}\n7\t8\t9\n"
                           "{\"key\":\"1\",\"x\":[2]}\n";
static int file = -1; /* with these rows */
static int said = -1; /* what the other end says */
static char command[64], path[64];

static int memory_file(const char *name)
{
    const int fd = memfd_create(name, 0);
    if (fd < 0)
        abort();
    return fd;
}

static void begin(void)
{
    file = memory_file("rows");
    said = memory_file("said");
    if (write(file, rows, sizeof rows - 1) != (ssize_t)(sizeof rows - 1))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (!freopen("/dev/null", "w", stdout)) /* what the end that serves says */
        abort();
    /* The shell's own descriptors are others: memfds are inherited. */
    snprintf(command, sizeof command, "exec cat /proc/self/fd/%d", said);
    quiet = true;
}

/* Bytes that were said, as frames: to the end that reads them. */
static void say(const void *bytes, size_t n)
{
    static const unsigned char hello[SECURE_HELLO] = JOIN_PROTOCOL "0";
    static unsigned char out[JOIN_FRAME + FRAME_OVERHEAD];
    const unsigned char *at = bytes;
    if (write(said, hello, sizeof hello) != (ssize_t)sizeof hello)
        abort();
    for (uint32_t i = 0;; i++) {
        const size_t some = n < 1000 ? n : 1000;
        const struct frame f = { .type = 1, .request = i };
        if (some)
            memcpy(out + FRAME_HEAD, at, some);
        const size_t all = frame_close(out, some, &f);
        if (write(said, out, all) != (ssize_t)all)
            abort();
        if (!some)
            return;
        at += some;
        n -= some;
    }
}

/* Where the shape and the rows of an answer end, and how many rows there are;
 * false if they do not end. */
static bool read_answer(const unsigned char *at, const unsigned char *end,
                        const unsigned char **rows_end, uint64_t *n)
{
    uint64_t number, nheader, nkey, nrest;
    if (end - at < 3)
        return false;
    at += 3;
    if (!varint_get(&at, end, &number) || !varint_get(&at, end, &number) ||
        !varint_get(&at, end, &nheader) || nheader > (uint64_t)(end - at))
        return false;
    at += nheader;
    for (*n = 0; varint_get(&at, end, &nkey) && nkey; ++*n) {
        const unsigned char *row = at;
        if (!varint_get(&row, end, &nrest) ||
            nkey - 1 > (uint64_t)(end - row) ||
            nrest > (uint64_t)(end - row) - (nkey - 1))
            return false;
        at = row + nkey - 1 + nrest;
    }
    *rows_end = at;
    return true;
}

/* Say the answer, up to the 0 behind its rows, and the totals. */
static bool say_rightly(const uint8_t *data, size_t size)
{
    const unsigned char *rows_end = data;
    uint64_t n;
    unsigned char end[1 + 3 * 8] = { 0 };
    if (!read_answer(data, data + size, &rows_end, &n))
        return false;
    put_le(end + 1, n, 8);
    put_le(end + 17, n, 8);
    size_t nrows = (size_t)(rows_end - data);
    nrows -= nrows && !data[nrows - 1]; /* the 0 is written here */
    unsigned char *const all = malloc(nrows + sizeof end);
    if (!all)
        abort();
    memcpy(all, data, nrows);
    memcpy(all + nrows, end, sizeof end);
    say(all, nrows + sizeof end);
    free(all);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *names[] = { path };
    if (file < 0)
        begin();
    if (!size)
        return 0;
    const uint8_t how = *data++;
    size--;
    if (ftruncate(said, 0) != 0 || lseek(said, 0, SEEK_SET) != 0)
        abort();
    const bool summed = !(how & SERVES) && how & RIGHTLY;
    if (!summed)
        say(data, size);
    else if (!say_rightly(data, size))
        return 0;
    struct join_args args = { .type = TYPE(how),
                              .serve = how & SERVES,
                              .remote = how & SERVES ? NULL : command,
                              .memory = JOIN_MEMORY_LEAST,
                              .threads = 1 };
    struct selection *const by = &args.keys.select;
    by->csv = FORM(how) == 1 ? "key" : NULL;
    by->field = FORM(how) == 2 ? "1" : NULL;
    by->jsonl = FORM(how) == 3 ? "key" : NULL;
    by->skip_bad = true;
    if (lseek(said, 0, SEEK_SET) != 0 || (how & SERVES && dup2(said, 0) < 0))
        abort();
    const struct list operands = { .at = (const char **)names, .n = 1 };
    join(&args, &operands);
    return 0;
}

/*
 * fuzz_join.c - both ends of a remote join, with peers that say anything
 *
 * The first byte chooses the end and the form of the rows. For the end that
 * serves, the rest is a request on standard input. For the end that asks, it is
 * an answer; where the byte says so, the totals behind the rows and the
 * checksum are made right, so that what an honest checksum protects is looked
 * at, too: the shape of rows, and rows that fit none.
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
#define RIGHTLY 2 /* summed up */
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
    /* The shell's own descriptors are others: memfds are inherited. */
    snprintf(command, sizeof command, "exec cat /proc/self/fd/%d", said);
    quiet = true;
}

static uint64_t sum_more(uint64_t sum, bly_bytes text, const uint64_t *at,
                         size_t n)
{
    unsigned char bytes[5 * 8];
    for (size_t i = 0; i < n; i++)
        put_le(bytes + 8 * i, at[i], 8);
    return wire_sum(sum, text, (bly_bytes){ bytes, 8 * n });
}

/* Where the shape and the rows of an answer end, their sum, and how many rows
 * there are; false if they do not end. */
static bool read_answer(const unsigned char *at, const unsigned char *end,
                        const unsigned char **rows_end, uint64_t *sum,
                        uint64_t *n)
{
    uint64_t numbers[5], nheader, nkey, nrest;
    if (end - at < WIRE_MAGIC + 3)
        return false;
    at += WIRE_MAGIC;
    for (size_t i = 0; i < 3; i++)
        numbers[i] = *at++;
    if (!varint_get(&at, end, &numbers[3]) ||
        !varint_get(&at, end, &numbers[4]) || !varint_get(&at, end, &nheader) ||
        nheader > (uint64_t)(end - at))
        return false;
    *sum = sum_more(0, (bly_bytes){ at, (size_t)nheader }, numbers, 5);
    at += nheader;
    for (*n = 0; varint_get(&at, end, &nkey) && nkey; ++*n) {
        const unsigned char *row = at;
        if (!varint_get(&row, end, &nrest) ||
            nkey - 1 > (uint64_t)(end - row) ||
            nrest > (uint64_t)(end - row) - (nkey - 1))
            return false;
        *sum = wire_sum(*sum, (bly_bytes){ row, (size_t)nkey - 1 },
                        (bly_bytes){ row + nkey - 1, (size_t)nrest });
        at = row + nkey - 1 + nrest;
    }
    *rows_end = at;
    return true;
}

/* Write the answer, up to the 0 behind its rows, and the totals. */
static bool say_rightly(const uint8_t *data, size_t size)
{
    const unsigned char *rows_end = data;
    uint64_t sum, n;
    unsigned char end[1 + 4 * 8] = { 0 };
    if (!read_answer(data, data + size, &rows_end, &sum, &n))
        return false;
    const uint64_t totals[] = { n, 0, n };
    for (size_t i = 0; i < 3; i++)
        put_le(end + 1 + 8 * i, totals[i], 8);
    put_le(end + 1 + 24, sum_more(sum, (bly_bytes){ NULL, 0 }, totals, 3), 8);
    size_t nrows = (size_t)(rows_end - data);
    nrows -= nrows && !data[nrows - 1]; /* the 0 is written here */
    return write(said, data, nrows) == (ssize_t)nrows &&
           write(said, end, sizeof end) == (ssize_t)sizeof end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = { "inner", "left", "semi", "anti" };
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
    if (summed ? !say_rightly(data, size)
               : write(said, data, size) != (ssize_t)size)
        return 0;
    struct join_args args = { .type = types[TYPE(how)],
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

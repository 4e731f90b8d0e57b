/*
 * cmd_raw.c - the bits of a filter and nothing else, out and in
 *
 * The bits say nothing of kind and parameters, so a filter that has them is
 * named in both directions. Input is read whole before anything changes, and
 * one byte more or less than the filter has is an error.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/hex.h"
#include "io/paths.h"

static struct {
    const char *output, *set;
    bool hex, json;
} raw_args;

struct raw_bits {
    const char *path; /* of the filter */
    const char *file, *kind;
    uint64_t bytes;
    bool set;
    bool said;         /* why it failed */
    unsigned char *at; /* what is written, or was read: n bytes */
    size_t n;
};

static bool raw_room(struct raw_bits *bits, size_t n)
{
    free(bits->at);
    bits->at = malloc(n);
    bits->n = n;
    if (!bits->at)
        fail("out of memory: %zu bytes", n);
    return bits->at;
}

/* Does f have a raw form? Told of in the report. */
static bool raw_is(const bly_filter *f, struct raw_bits *bits)
{
    bly_stats s;
    bly_peek(f, &s);
    bits->kind = s.kind;
    bits->bytes = bly_raw_bytes(f);
    return filter_can(f, bits->path, BLY_CAN(RAW));
}

/* -------------------------------------------------------------------- out */

static bly_status raw_write(const void *what, bly_put *put, void *ctx)
{
    const struct raw_bits *const bits = what;
    return put(ctx, bits->at, bits->n) ? BLY_OK : BLY_EIO;
}

/* The bits of f; with --hex as digits, and the end of a line. The digits are
 * made from the last byte on, since they are in its place. */
static bool raw_get(const bly_filter *f, struct raw_bits *bits)
{
    const size_t n = (size_t)bits->bytes;
    if (!raw_room(bits, raw_args.hex ? 2 * n + 1 : n))
        return false;
    if (bly_raw_get(f, bits->at, n)) {
        fail("%s: %s", bits->path, bly_error());
        return false;
    }
    for (size_t i = n; raw_args.hex && i-- > 0;) {
        const unsigned char byte = bits->at[i];
        hex_put(&byte, 1, (char *)bits->at + 2 * i);
    }
    if (raw_args.hex)
        bits->at[2 * n] = '\n';
    return true;
}

static int raw_out(struct raw_bits *bits)
{
    const bly_access how = { .blind = true, .checking = BLY_CHECK_ALL };
    bly_filter *const f = filter_map(bits->path, &how);
    int status = TROUBLE;
    if (!f)
        return TROUBLE;
    if (raw_is(f, bits) && raw_get(f, bits))
        status = file_save(bits->file, raw_write, bits);
    bly_free(f);
    return status;
}

/* --------------------------------------------------------------------- in */

/* All of the file, or more than `most` bytes if it has more. */
static bool raw_read(const char *path, struct raw_bits *bits, size_t most)
{
    const int fd =
        is_dash(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fail_path(path, errno);
        return false;
    }
    const bool room = raw_room(bits, most + 1);
    const int64_t n = room ? read_all(fd, bits->at, most + 1) : -1;
    const int error = errno;
    if (fd != STDIN_FILENO)
        close(fd);
    if (n < 0 && room)
        fail_path(path, error);
    bits->n = n < 0 ? 0 : (size_t)n;
    return n >= 0;
}

/* Digits, and perhaps the end of a line, become bytes in their place. */
static bool raw_unspell(const char *path, struct raw_bits *bits)
{
    const char *const digits = (const char *)bits->at;
    size_t n = bits->n;
    if (n && digits[n - 1] == '\n')
        n -= n > 1 && digits[n - 2] == '\r' ? 2 : 1;
    bool right = n % 2 == 0;
    for (size_t i = 0; i < n / 2 && right; i++)
        right = hex_read(digits + 2 * i, 1, &bits->at[i]);
    bits->n = n / 2;
    if (!right)
        fail("%s: not hexadecimal digits, two for each byte", path);
    return right;
}

static bly_status raw_take(bly_filter *f, void *ctx)
{
    struct raw_bits *const bits = ctx;
    const char *const from = raw_args.set;
    bits->said = true;
    if (!raw_is(f, bits))
        return BLY_ENOTSUP;
    const size_t n = (size_t)bits->bytes;
    if (!raw_read(from, bits, raw_args.hex ? 2 * n + 2 : n) ||
        (raw_args.hex && !raw_unspell(from, bits)))
        return BLY_EINVAL;
    if (bits->n != n) {
        fail("%s: has %s%zu bytes, the raw form of %s has %zu", from,
             bits->n > n ? "more than " : "", bits->n > n ? n : bits->n,
             bits->path, n);
        return BLY_EINVAL;
    }
    if (bly_raw_set(f, bits->at, n)) {
        fail("%s: %s", from, bly_error());
        return BLY_EFORMAT;
    }
    bits->said = false;
    return BLY_OK;
}

static int raw_in(struct raw_bits *bits)
{
    const bly_access blind = { .blind = true, .wait = wait_for_lock };
    if (is_same_file(bits->file, bits->path)) {
        if (bly_update(bits->path, &blind, raw_take, bits) == BLY_OK)
            return YES;
        return bits->said ? TROUBLE : fail_library();
    }
    bly_filter *const f = filter_open(bits->path, &blind);
    if (!f)
        return TROUBLE;
    const int status = raw_take(f, bits) ? TROUBLE : filter_save(f, bits->file);
    bly_free(f);
    return status;
}

/* ---------------------------------------------------------------- command */

static const struct field raw_fields[] = {
    FIELD(struct raw_bits, file, NONE, "what was written"),
    FIELD(struct raw_bits, kind, NONE, "the kind of the filter"),
    FIELD(struct raw_bits, bytes, BYTES, "of its raw form"),
    FIELD(struct raw_bits, set, NONE,
          "whether the file is a filter that was given bits, and not the bits "
          "of one"),
    { 0 },
};

static int raw_run(struct list *operands)
{
    if (operands->n != 1)
        return fail("the bits of one filter at a time, not of %zu",
                    operands->n);
    struct raw_bits bits = { .path = operands->at[0],
                             .set = raw_args.set != NULL };
    bits.file = raw_args.output ? raw_args.output : bits.set ? bits.path : "-";
    if (bits.set && is_stdin(raw_args.set) && is_stdin(bits.path))
        return fail("standard input cannot be both the filter and its bits");
    const bool in_place = bits.set && is_same_file(bits.file, bits.path);
    if (in_place ? !can_change(bits.path)
                 : !output_works(bits.file, raw_args.json) ||
                       !output_spares(bits.file, &bits.path, 1))
        return TROUBLE;
    if (!output_spares(bits.file, &raw_args.set, 1))
        return TROUBLE;
    FILE *const to = report_to(bits.file);
    const int status = bits.set ? raw_in(&bits) : raw_out(&bits);
    free(bits.at);
    if (status == YES && !quiet && (bits.set || !is_dash(bits.file)))
        report(to, raw_args.json, raw_fields, &bits,
               "{file}: [{?set}a {kind} filter with the {bytes} given|{bytes}, "
               "the bits of a {kind} filter]\n");
    return status;
}

static const struct opt raw_options[] = {
    { "output", 'o', OPT_TEXT, &raw_args.output, "FILE",
      "write the bits, or with --set the filter, to FILE; - is standard "
      "output" },
    { "set", 0, OPT_TEXT, &raw_args.set, "FILE",
      "give FILTER the bits in FILE; - is standard input" },
    FLAG("hex", 0, raw_args.hex, "the bits are hexadecimal digits, and a line"),
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(raw_args),
    { 0 },
};

static const struct example raw_examples[] = {
    { "bloomery build -k generalized -n 15 -b 256 -O k0=2 -O k1=2 -o way.bly",
      "an empty filter of 256 bits: both ends have it" },
    { "bloomery raw --hex way.bly", "the 32 bytes that a packet carries" },
    { "bloomery raw --set packet.bin -o seen.bly way.bly",
      "the filter that came with a packet" },
    { "head -c 32 /dev/zero | bloomery raw --set - way.bly",
      "start again from given bits, in place" },
    { 0 },
};

const struct command cmd_raw = {
    .name = "raw",
    .usage = "[-o FILE] [--set FILE] [OPTION]... FILTER",
    .summary = "give and take the bits of a filter, without a header",
    .about =
        "Writes the bits of FILTER and nothing else: no header, no checksum. "
        "What a packet or a row carries is of one kind and size, and both ends "
        "know it. Bit j is bit j mod 8 of byte j / 8, and a page of the kind "
        "says what it stands for. bloomery kinds says which kinds have a raw "
        "form: those that are bits and nothing else.\n\n"
        "With --set, FILTER gets the bits in a file in place of its own; with "
        "-o it stays as it is, and the result is written there. There must be "
        "exactly as many bytes as FILTER has, and no bit set past its last "
        "one. Any other bits are taken, also those that no key has set. "
        "Nobody can tell whether they were made by a filter of this kind, "
        "these parameters and this seed: that is up to you.",
    .options = raw_options,
    .examples = raw_examples,
    .reports = REPORTS({ "", raw_fields, ONE }),
    .run = raw_run,
};

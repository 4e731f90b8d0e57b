/*
 * digest_read.c - what a proxy has, or was asked for, according to its files
 *
 * A file that begins as swap.state does is one; all others are lines, and each
 * line says by itself whether it is of a log or of a list. Standard input and
 * pipes are lines.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/digest/jobs.h"
#include "base/grow.h"
#include "io/paths.h"
#include "report/say.h"
#include "report/show.h"

struct reading {
    digest_each *each;
    void *ctx;
    const char *name; /* of the lines that are read */
    struct input in;
    uint64_t number; /* of the line */
    struct digest_counts *counts;
    bool strict;
    bool said;  /* what ended it was told already */
    char *room; /* for digest_line_read() */
    size_t room_bytes;
};

/* ------------------------------------------------------------- swap.state */

static bool swap_key(void *ctx, bly_bytes key)
{
    struct reading *const r = ctx;
    const struct digest_line line = {
        .form = DIGEST_URL,
        .key = key,
        .url = key,
        .is_asked = true,
        .is_kept = true,
    };
    r->said = !r->each(r->ctx, &line, key);
    return !r->said;
}

/* All of a swap.state whose first n bytes are in piece. */
static int swap_read(struct reading *r, const char *name, struct source *s,
                     unsigned char *piece, size_t room, ptrdiff_t n)
{
    struct digest_swap swap = { 0 };
    bool right = true;
    while (right && n > 0) {
        right = digest_swap_add(&swap, piece, (size_t)n);
        if (right)
            n = source_read(s, piece, room);
    }
    int status = n < 0 ? fail("%s: %s", name, source_error(s)) : YES;
    if (status == YES && right)
        right = digest_swap_end(&swap, swap_key, r);
    if (status == YES && !right)
        status = r->said ? TROUBLE : fail("%s: %s", name, swap.error);
    if (status == YES && swap.npart && !quiet)
        warn("%s: ends within a record, which is ignored", name);
    r->counts->lines += swap.nrecords;
    digest_swap_free(&swap);
    return status;
}

/* ----------------------------------------------------------------- lines */

static bool line_take(void *ctx, bly_bytes text)
{
    struct reading *const r = ctx;
    struct digest_line line;
    if (++r->number % 1024 == 0)
        progress_at(r->counts->lines, r->in.bytes_done, r->in.bytes_all);
    if (!GROW(&r->room, &r->room_bytes, text.len + 8))
        return fail("out of memory") == YES;
    digest_line_read(text.ptr, text.len, r->room, &line);
    r->counts->lines += line.form != DIGEST_EMPTY;
    r->counts->cut += line.is_cut;
    if (line.form == DIGEST_EMPTY)
        return true;
    if (line.form != DIGEST_UNKNOWN)
        return r->each(r->ctx, &line, text);
    r->counts->unknown++;
    if (r->strict)
        fail("%s:%llu: '%s': neither a URL, METHOD URL, an MD5 nor a line of "
             "access.log",
             is_dash(r->name) ? "standard input" : r->name,
             (unsigned long long)r->number, show_text(text.ptr, text.len));
    return !r->strict;
}

static int lines_read(struct reading *r, const char *name)
{
    r->name = name;
    r->number = 0;
    input_files(&r->in, &name, 1, false);
    r->in.normal.no_cr = true; /* no part of a URL */
    int status = input_each(&r->in, line_take, r) ? YES : TROUBLE;
    progress_clear();
    if (r->in.error[0])
        status = fail("%s", r->in.error);
    input_close(&r->in);
    return status;
}

static int file_read(struct reading *r, const char *name)
{
    unsigned char piece[64 * 1024];
    struct stat st;
    /* What can be read once alone is lines. */
    if (is_dash(name) || (stat(name, &st) == 0 && !S_ISREG(st.st_mode)))
        return lines_read(r, name);
    struct source *const s = source_open(name, -1, SOURCE_ANY);
    if (!s)
        return fail_path(name, errno);
    const ptrdiff_t n = source_read(s, piece, sizeof piece);
    int status = YES;
    const bool is_swap = n > 0 && digest_is_swap(piece, (size_t)n);
    if (is_swap)
        status = swap_read(r, name, s, piece, sizeof piece, n);
    source_close(s);
    return is_swap ? status : lines_read(r, name);
}

int digest_read(const struct list *names, bool strict, digest_each *each,
                void *ctx, struct digest_counts *counts)
{
    struct reading r = {
        .each = each, .ctx = ctx, .counts = counts, .strict = strict
    };
    int status = YES;
    progress_start(false);
    progress_unit("lines");
    if (names->n == 0)
        status = lines_read(&r, "-");
    for (size_t i = 0; i < names->n && status == YES; i++)
        status = file_read(&r, names->at[i]);
    free(r.room);
    return status;
}

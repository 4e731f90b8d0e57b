/*
 * input.c - files as a stream of blocks of whole lines
 *
 * A block is what was read, behind the start of a line that the read before it
 * cut in two, up to the last separator in it; the rest is kept as the tail for
 * the next block.
 *
 *     tail | read ....................... \n ......
 *     `------------- block ------------------'`-- the next tail
 *
 * A file is read until the block is full. A pipe is read once, if that brings a
 * separator: so lines are answered one by one while they trickle in, and a
 * block at a time while they flow. Where no line ends in a full block, it
 * doubles, up to max_line.
 *
 * The first reading of documents marks where blocks begin, so that a later one
 * can leave some out.
 */
#define _GNU_SOURCE /* memrchr */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/search.h"
#include "io/cutter.h"
#include "io/files.h"
#include "io/input.h"
#include "io/paths.h"
#include "io/picker.h"
#include "io/source.h"
#include "io/warc.h"
#include "report/say.h"

/* A block is read, cut, hashed and written by one thread, so it should still be
 * in that core's cache at the end. */
#define BLOCK_BYTES ((size_t)INPUT_LINE_LEAST)

/* ------------------------------------------------------------------ blocks */

void block_free(struct block *b)
{
    free(b->at);
    warc_free(b->warc);
    *b = (struct block){ 0 };
}

bool block_fit(struct block *b, size_t n)
{
    if (b->at && n <= b->room)
        return true;
    char *const more = realloc(b->at, n + 1 + BLOCK_SLACK);
    if (!more)
        return false;
    b->at = more;
    b->room = n;
    return true;
}

bool block_put(struct block *b, const void *bytes, size_t n)
{
    if (b->room - b->len < n && !block_fit(b, (b->len + n) * 2))
        return false;
    if (n)
        memcpy(b->at + b->len, bytes, n);
    b->len += n;
    return true;
}

bool memory_spares(uint64_t n)
{
    static _Atomic uint64_t quarter;
    if (!quarter)
        quarter = bly_memory_limit() / 4;
    return n <= quarter;
}

/* ------------------------------------------------------------------- files */

/* Several workers may fail at once; only one of them is reported. */
static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;

bool input_fail(struct input *in, const char *format, ...)
{
    va_list ap;
    pthread_mutex_lock(&failing);
    va_start(ap, format);
    if (!in->error[0])
        vsnprintf(in->error, sizeof in->error, format, ap);
    va_end(ap);
    pthread_mutex_unlock(&failing);
    return false;
}

static bool input_failed(struct input *in)
{
    pthread_mutex_lock(&failing);
    const bool failed = in->error[0];
    pthread_mutex_unlock(&failing);
    return failed;
}

const char *input_name(const struct input *in, const struct input_file *f)
{
    return !f                                   ? "the command line"
           : is_dash(f->name) && !in->documents ? "standard input"
                                                : f->name;
}

/* Can it be read again? *nbytes is its size if so. */
static bool is_regular(const char *name, uint64_t *nbytes)
{
    struct stat st;
    const int rc = is_dash(name) ? fstat(STDIN_FILENO, &st) : stat(name, &st);
    *nbytes = rc == 0 ? (uint64_t)st.st_size : 0;
    return rc == 0 && S_ISREG(st.st_mode);
}

void input_files(struct input *in, const char *const *names, size_t n, bool nul)
{
    static const char *const standard_input[] = { "-" };
    bool sized = true;
    if (n == 0) {
        names = standard_input;
        n = 1;
    }
    *in = (struct input){ .files = calloc(n, sizeof *in->files),
                          .separator = nul ? '\0' : '\n',
                          .max_line = INPUT_LINE_MOST,
                          .nthreads = 1,
                          .stop_fd = -1 };
    if (!in->files)
        input_fail(in, "out of memory");
    for (; in->files && in->nfiles < n; in->nfiles++) {
        uint64_t nbytes;
        in->files[in->nfiles] =
            (struct input_file){ .name = names[in->nfiles], .spool = -1 };
        sized = sized && is_regular(names[in->nfiles], &nbytes);
        in->bytes_all = sized ? in->bytes_all + nbytes : 0;
    }
}

void input_documents(struct input *in, const char *const *names, size_t n)
{
    input_files(in, names, n, false);
    in->documents = true;
}

void input_keys(struct input *in, const char *const *names, size_t n)
{
    *in = (struct input){
        .keys = names, .nkeys_given = n, .nthreads = 1, .stop_fd = -1
    };
}

void input_rewind(struct input *in)
{
    source_close(in->source);
    in->source = NULL;
    in->tail.len = 0;
    in->file = in->mark = 0;
    in->nmarks = in->marked ? in->nmarks : 0;
    in->nblocks = in->bytes_done = 0;
}

void input_close(struct input *in)
{
    input_rewind(in);
    for (size_t i = 0; i < in->nfiles; i++)
        if (in->files[i].spool >= 0)
            close(in->files[i].spool);
    block_free(&in->tail);
    block_free(&in->header);
    free(in->files);
    free(in->marks);
    picker_free(in->picker);
    in->picker = NULL;
    in->files = NULL;
    in->marks = NULL;
    in->nfiles = 0;
}

/* The current file cannot be read, but the next one may be. */
static void pass_over(struct input *in, const char *why)
{
    struct input_file *const f = &in->files[in->file];
    snprintf(f->error, sizeof f->error, "%s", why);
    fail("%s: %s", input_name(in, f), why);
    in->trouble = true;
}

static bool source_start(struct input *in)
{
    struct input_file *const f = &in->files[in->file];
    enum source_use use = source_lines();
    const char *name = f->name;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", f->spool);
    if (f->spool >= 0)
        name = link;
    if (in->records) {
        uint64_t nbytes;
        f->members = (f->spool >= 0 || is_regular(name, &nbytes)) &&
                     !is_dash(name) && warc_in_members(name);
        use = f->members || in->spools ? SOURCE_RAW : SOURCE_ANY;
    }
    in->source = source_open(name, in->stop_fd, use);
    in->place = 0;
    in->begins = true;
    in->csv.state = CSV_START;
    if (in->source && f->part_len &&
        !source_part(in->source, f->part_at, f->part_len)) {
        const int error = errno;
        source_close(in->source);
        in->source = NULL;
        errno = error;
    }
    if (in->source)
        return true;
    if (!in->goes_on)
        return input_fail(in, "%s: %s", input_name(in, f), strerror(errno));
    pass_over(in, strerror(errno));
    return false;
}

/* ----------------------------------------------------------------- reading */

/* Room for a line, or a part of one, of n bytes. */
static bool line_fits(struct input *in, struct block *b, size_t n)
{
    if (block_fit(b, n))
        return true;
    input_fail(in, "%s: out of memory for a line of %zu bytes",
               input_name(in, &in->files[in->file]), n);
    return false;
}

/* No line ends in the block, which is full: twice the room, as long as the line
 * may be that long. */
static bool longer_block(struct input *in, struct block *b)
{
    const struct input_file *const f = &in->files[in->file];
    const uint64_t most =
        in->max_line < SIZE_MAX / 2 ? in->max_line + 1 : SIZE_MAX / 2;
    if (b->room < most)
        return line_fits(in, b,
                         b->room < most / 2 ? b->room * 2 : (size_t)most);
    if (!in->documents)
        return input_fail(
            in, "%s: a %s of more than 128 MiB; is %s?", input_name(in, f),
            in->csv.delimiter ? "record" : "key",
            in->csv.delimiter ? "a quote never closed" : "the separator right");
    if (in->records)
        return input_fail(in,
                          "%s: a record of more than %llu bytes; --max-line "
                          "allows longer ones",
                          input_name(in, f), (unsigned long long)in->max_line);
    if (in->whole)
        return input_fail(in,
                          "%s: more than %llu bytes; --max-line allows longer "
                          "documents",
                          input_name(in, f), (unsigned long long)in->max_line);
    return input_fail(in,
                      "%s:%llu: a line of more than %llu bytes; --max-line "
                      "allows longer ones",
                      input_name(in, f),
                      (unsigned long long)(in->ndocs - f->first + 1),
                      (unsigned long long)in->max_line);
}

/* Reading failed. Keys need all of a file; documents only a disk that works. */
static void note_error(struct input *in)
{
    struct input_file *const f = &in->files[in->file];
    const char *const why = source_error(in->source);
    if (in->skip_other && source_other(in->source))
        snprintf(f->error, sizeof f->error, "%s", why);
    else if (in->goes_on)
        pass_over(in, why);
    else if (!in->documents || source_broken(in->source))
        input_fail(in, "%s: %s", input_name(in, f), why);
    else if (!f->error[0])
        snprintf(f->error, sizeof f->error, "%s", why);
}

/* What is behind the last line, or record, that ends in n bytes that were read;
 * 0 where none does. */
static size_t lines_end(struct input *in, const char *at, size_t n)
{
    if (in->whole || in->records)
        return 0;
    if (in->csv.delimiter)
        return csv_read(&in->csv, at, n);
    const char *const cut = memrchr(at, in->separator, n);
    return cut ? (size_t)(cut - at) + 1 : 0;
}

/* Drop the byte order mark of a file of keys that was just begun, where one may
 * be, and tell it where it is part of the first key. Its length. */
static size_t skip_mark(struct input *in, struct block *b, size_t got)
{
    static const char mark[] = { '\xef', '\xbb', '\xbf' };
    if (!in->begins || in->documents || b->len || got < sizeof mark ||
        memcmp(b->at, mark, sizeof mark) != 0)
        return 0;
    if (!input_drops_ends(in) &&
        !(in->picker && picker_skips_mark(in->picker))) {
        input_tell_mark(in, &in->files[in->file]);
        return 0;
    }
    memmove(b->at, b->at + sizeof mark, got - sizeof mark);
    return sizeof mark;
}

/* Take the header off the first block of a file. */
static bool take_header(struct input *in, struct block *b)
{
    struct input_file *const f = &in->files[in->file];
    char why[200];
    size_t n;
    if (!picker_header(in->picker, b, f, &n, why, sizeof why))
        return input_fail(in, "%s: %s", input_name(in, f), why);
    if (in->keep_header && !in->header.len && !block_put(&in->header, b->at, n))
        return input_fail(in, "out of memory");
    memmove(b->at, b->at + n, b->len - n);
    b->len -= n;
    return true;
}

/* What is wrong with the record behind the last whole one, with which the file
 * ends for us. */
static bool note_record(struct input *in, const struct block *b)
{
    struct input_file *const f = &in->files[in->file];
    const char *const why = b->warc->why;
    if (!f->error[0])
        snprintf(f->error, sizeof f->error, "%s",
                 why ? why : "it ends within a WARC record");
    return true;
}

/* Whole lines of the open file, behind the tail. *ended at its end; what was
 * read before an error comes nevertheless. */
static bool fill_block(struct input *in, struct block *b, bool *ended)
{
    const struct input_file *const f = &in->files[in->file];
    const size_t ntail = in->tail.len;
    size_t ends = 0; /* behind the last separator that was seen */
    ptrdiff_t got = 1;
    if (!line_fits(in, b, ntail > BLOCK_BYTES ? ntail : BLOCK_BYTES))
        return false;
    if (ntail)
        memcpy(b->at, in->tail.at, ntail);
    b->len = ntail;
    b->unended = false;
    in->tail.len = 0;
    if (in->records && !warc_begin(b))
        return input_fail(in, "out of memory");
    while (!(ends && (b->len == b->room || source_waits(in->source)))) {
        if (b->len == b->room && !longer_block(in, b))
            return false;
        const uint64_t before = source_done(in->source);
        got = source_read(in->source, b->at + b->len, b->room - b->len);
        in->bytes_done += source_done(in->source) - before;
        if (got <= 0)
            break;
        const size_t mark = skip_mark(in, b, (size_t)got);
        const size_t cut = lines_end(in, b->at + b->len, (size_t)got - mark);
        if (cut)
            ends = b->len + cut;
        b->len += (size_t)got - mark;
        if (in->records && !warc_parse(b, f->members, in->max_line, &ends))
            return input_fail(in, "out of memory");
        if (in->records && b->warc->why)
            break;
    }
    *ended = got <= 0;
    if (got < 0)
        note_error(in);
    const size_t rest = b->len - ends;
    if (in->records && (b->warc->why || (*ended && rest)))
        *ended = note_record(in, b);
    if (!*ended) {
        b->len = ends;
        return (block_fit(&in->tail, rest) &&
                block_put(&in->tail, b->at + ends, rest)) ||
               input_fail(in, "out of memory");
    }
    if (input_failed(in) || (f->error[0] && !in->whole))
        b->len = ends; /* half a line is not a line */
    else if (!in->documents && rest) {
        b->at[b->len++] = in->separator;
        b->unended = true;
    }
    return true;
}

static size_t count_lines(const char *at, size_t n)
{
    const char *const end = at + n;
    size_t lines = n > 0 && end[-1] != '\n';
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        lines++;
        at++;
    }
    return lines;
}

static size_t count_documents(const struct input *in, const struct block *b)
{
    return in->whole     ? 1
           : in->records ? b->warc->ndocuments
                         : count_lines(b->at, b->len);
}

/* Number the documents of a block, and mark where it began. */
static bool number_block(struct input *in, struct block *b)
{
    struct input_file *const f = &in->files[in->file];
    b->first = in->ndocs;
    b->nlines = count_documents(in, b);
    if ((b->nlines || in->records) && !in->marked) {
        if (!GROW(&in->marks, &in->marks_room, in->nmarks + 1))
            return input_fail(in, "out of memory");
        in->marks[in->nmarks++] =
            (struct input_mark){ (uint32_t)in->file, f->nbytes, b->first };
    }
    in->ndocs += b->nlines;
    in->nbytes += in->records ? b->warc->unpacked : b->len;
    f->nbytes += b->len;
    return true;
}

static bool end_file(struct input *in)
{
    struct input_file *const f = &in->files[in->file];
    const uint64_t n = in->ndocs - f->first;
    source_close(in->source);
    in->source = NULL;
    if (f->known && f->ndocs != n)
        return input_fail(in, "%s: changed while it was read",
                          input_name(in, f));
    f->ndocs = n;
    f->known = true;
    in->file++;
    return true;
}

/* Number the lines of a block of keys. Whole windows of the cutter; behind the
 * block there is slack for the last one. */
static void number_keys(const struct input *in, struct input_file *f,
                        struct block *b)
{
    if (in->begins)
        f->nlines = f->nheader;
    b->first = f->nlines;
    for (size_t at = 0; at < b->len; at += CUTTER_WINDOW) {
        uint64_t ends = cutter_ends(b->at + at, in->separator);
        if (b->len - at < CUTTER_WINDOW)
            ends &= (UINT64_C(1) << (b->len - at)) - 1;
        f->nlines += (uint64_t)__builtin_popcountll(ends);
    }
}

/* Is it a file of some other kind, as grep would have it? One with a NUL. */
static bool is_other(const struct input *in, const struct block *b)
{
    return in->skip_other && in->begins && in->separator && !binary_input &&
           memchr(b->at, '\0', b->len);
}

static bool hand_out(struct input *in, struct block *b)
{
    memset(b->at + b->len, 0, BLOCK_SLACK);
    b->number = in->nblocks++;
    return true;
}

/* All keys of the command line as one block: the system limits them. */
static bool next_of_keys(struct input *in, struct block *b)
{
    b->len = 0;
    if (in->nblocks)
        return false;
    for (size_t i = 0; i < in->nkeys_given; i++)
        if (!block_put(b, in->keys[i], strlen(in->keys[i]) + 1))
            return input_fail(in, "out of memory");
    return in->nkeys_given && hand_out(in, b);
}

bool input_next(struct input *in, struct block *b)
{
    if (in->keys)
        return next_of_keys(in, b);
    input_tell_ends(in);
    while (in->file < in->nfiles && !input_failed(in)) {
        struct input_file *const f = &in->files[in->file];
        bool ended = false;
        if (!in->source) {
            if (!source_start(in)) {
                in->file++;
                continue; /* and that ends it, unless it goes on */
            }
            f->first = in->ndocs;
            f->nbytes = 0;
        }
        b->file = f;
        if (!fill_block(in, b, &ended) || (!b->len && input_failed(in)) ||
            (in->begins && in->csv.delimiter && b->len &&
             !take_header(in, b)) ||
            (in->documents && !number_block(in, b)) || (ended && !end_file(in)))
            return false;
        if (is_other(in, b) || f->enough) {
            b->len = in->tail.len = 0;
            if (!ended && !end_file(in))
                return false;
            continue;
        }
        if (in->numbered)
            number_keys(in, f, b);
        b->begins = in->begins;
        in->begins = false;
        if (b->len || in->whole)
            return hand_out(in, b);
    }
    return false;
}

/* Show the first lines of a block that begins a file. */
static void look_at_lines(struct input *in, const struct block *b)
{
    bly_bytes lines[CUTTER_WINDOW];
    struct cutter cutter = cutter_start(b->at, b->len, in->separator);
    if (b->begins)
        input_look(in, b, lines, cutter_next(&cutter, lines, CUTTER_WINDOW));
    input_tell_ends(in);
}

bool input_each(struct input *in, input_key *each, void *ctx)
{
    struct block b = { 0 };
    bool going = true;
    while (going && input_next(in, &b)) {
        look_at_lines(in, &b);
        for (size_t at = 0, n; going && at < b.len; at += n + 1) {
            const char *const key = b.at + at;
            n = (size_t)((const char *)memchr(key, in->separator, b.len - at) -
                         key);
            const bool cr = in->normal.no_cr && n && key[n - 1] == '\r';
            going = each(ctx, (bly_bytes){ key, n - cr });
        }
    }
    input_tell_more(in);
    block_free(&b);
    return going && !in->error[0];
}

/* The first document from a place on; past the last, the number of records. */
static size_t record_from(const struct block *b, size_t at)
{
    const struct warc_block *const w = b->warc;
    size_t i;
    LOWER_BOUND(i, w->n, w->records[i].from < at);
    while (i < w->n && !w->records[i].document)
        i++;
    return i;
}

static bool next_record(const struct block *b, size_t *at, const char **line,
                        size_t *len)
{
    const size_t i = record_from(b, *at);
    const struct warc_record *const r = &b->warc->records[i];
    if (i == b->warc->n)
        return false;
    *line = (b->file->members ? b->warc->plain->at : b->at) + r->at;
    *len = r->len;
    *at = r->to;
    return true;
}

size_t input_line_begins(const struct input *in, const struct block *b,
                         size_t at)
{
    if (!in->records)
        return at;
    const size_t i = record_from(b, at);
    return i < b->warc->n ? b->warc->records[i].from : b->len;
}

bool input_line(const struct input *in, const struct block *b, size_t *at,
                const char **line, size_t *len)
{
    if (in->whole && *at == 0 && b->len == 0) { /* an empty file */
        *at = 1;
        *line = b->at;
        *len = 0;
        return true;
    }
    if (in->records)
        return next_record(b, at, line, len);
    if (*at >= b->len)
        return false;
    *line = b->at + *at;
    const char *const nl = in->whole ? NULL : memchr(*line, '\n', b->len - *at);
    *len = nl ? (size_t)(nl - *line) : b->len - *at;
    *at += *len + (nl != NULL);
    if (!in->whole && *len && (*line)[*len - 1] == '\r')
        --*len;
    return true;
}

/* ----------------------------------------------------------- reading again */

/* Read a marked block that ends at byte `end`. */
static bool read_marked(struct input *in, struct block *b,
                        const struct input_mark *m, uint64_t end)
{
    const size_t len = (size_t)(end - m->place);
    if (!line_fits(in, b, len))
        return false;
    bool ok = source_skip(in->source, m->place - in->place);
    for (b->len = 0; ok && b->len < len;) {
        const ptrdiff_t got =
            source_read(in->source, b->at + b->len, len - b->len);
        ok = got > 0;
        b->len += ok ? (size_t)got : 0;
    }
    in->place = end;
    size_t whole;
    if (ok && in->records &&
        (!warc_begin(b) ||
         !warc_parse(b, b->file->members, in->max_line, &whole)))
        return input_fail(in, "out of memory");
    if (ok && (in->whole || count_documents(in, b) == b->nlines))
        return true;
    return input_fail(in, "%s: changed while it was read",
                      input_name(in, b->file));
}

bool input_next_wanted(struct input *in, struct block *b, input_want *want,
                       void *ctx)
{
    for (; in->mark < in->nmarks; in->mark++) {
        const struct input_mark *const m = &in->marks[in->mark];
        const struct input_file *const f = &in->files[m->file];
        const bool last = in->mark + 1 == in->nmarks || m[1].file != m->file;
        const uint64_t behind = last ? f->first + f->ndocs : m[1].first;
        if (!want(ctx, m->first, behind - m->first))
            continue;
        if (in->file != m->file) {
            source_close(in->source);
            in->source = NULL;
        }
        in->file = m->file;
        b->file = f;
        b->first = m->first;
        b->nlines = (size_t)(behind - m->first);
        if ((!in->source && !source_start(in)) ||
            !read_marked(in, b, m, last ? f->nbytes : m[1].place))
            return false;
        in->mark++;
        return hand_out(in, b);
    }
    return false;
}

/* What can be read of a file into its spool. */
static bool spool_bytes(struct input *in, struct input_file *f)
{
    char buf[65536];
    ptrdiff_t got;
    while ((got = source_read(in->source, buf, sizeof buf)) > 0) {
        size_t at = 0;
        while (at < (size_t)got) {
            const ssize_t put = write(f->spool, buf + at, (size_t)got - at);
            if (put < 0 && errno != EINTR)
                return input_fail(in, "%s: cannot be kept to be read again: %s",
                                  input_name(in, f), strerror(errno));
            at += put > 0 ? (size_t)put : 0;
        }
    }
    if (got < 0)
        note_error(in);
    return !input_failed(in);
}

bool input_spool(struct input *in, const char *folder)
{
    for (in->file = 0; in->file < in->nfiles; in->file++) {
        struct input_file *const f = &in->files[in->file];
        uint64_t nbytes;
        if (f->spool >= 0 ||
            (!is_dash(f->name) && is_regular(f->name, &nbytes)))
            continue;
        in->spools = in->records;
        const bool opened = source_start(in);
        in->spools = false;
        if (!opened)
            return false;
        f->spool = scratch_file(folder);
        if (f->spool < 0)
            return input_fail(
                in,
                "%s: no file for what comes from a pipe can be made there: %s; "
                "name a folder that can be written to with --work or TMPDIR",
                folder, strerror(errno));
        if (!spool_bytes(in, f))
            return false;
        source_close(in->source);
        in->source = NULL;
    }
    in->file = 0;
    return true;
}

/*
 * sync_server.c - the side of a sync that answers
 *
 * It keeps nothing that a peer has merely announced: what is allocated is
 * bounded by its own set, by what came, or by a constant. It makes no more
 * symbols than two sets of such sizes can need.
 */
#define _GNU_SOURCE
#include "apps/sync/sync_server.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/sync/records.h"
#include "apps/sync/sync_store.h"
#include "base/grow.h"

#define LINES_MOST ((size_t)1 << 30) /* bytes that are found for one peer */

void server_free(struct sync_server *s)
{
    bly_coded_free(s->table);
    block_free(&s->bytes);
    block_free(&s->summary);
    block_free(&s->lines);
    block_free(&s->taken);
    free(s->lacking);
    free(s->wanted);
    free(s->removed);
    free(s->left);
    incoming_stop(s->incoming);
}

/* An answer of its own: the reason why there is no other. */
__attribute__((format(printf, 2, 3))) static bool
refuse(struct block *out, const char *format, ...)
{
    char text[SYNC_WHY];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const unsigned char type = SYNC_REFUSED;
    out->len = 0;
    (void)(block_put(out, &type, 1) && block_put(out, text, strlen(text)));
    return false;
}

static bool out_of_memory(struct block *out)
{
    return refuse(out, "out of memory");
}

/* ---------------------------------------------------------------- greetings */

static bool say_hello(struct sync_server *s, struct reading *r,
                      struct block *out)
{
    struct sync_set *const set = s->set;
    const unsigned char *const magic = read_bytes(r, 8);
    const uint64_t form = read_word(r, 1);
    s->wishes = read_word(r, 1);
    const uint64_t n = read_number(r);
    (void)read_number(r);
    const uint64_t check = read_word(r, 8);
    if (r->bad || memcmp(magic, SYNC_MAGIC, 8) != 0)
        return refuse(out, "that is not the protocol of bloomery sync");
    if (form != set->form)
        return refuse(out, "one side has a %s, the other a %s",
                      form == SYNC_LINES ? "list" : "folder",
                      set->form == SYNC_LINES ? "list" : "folder, or objects");
    if (check != set_secret_check(set))
        return refuse(out, "the two sides have different keys (--key-file), or "
                           "only one of them has any");
    if (s->wishes & SYNC_WISH_GIVE && !s->writes)
        return refuse(out, "the other side takes nothing; use bloomery sync "
                           "serve --write there");
    if (s->reads && !set_read(set))
        return refuse(out, "%s", set->why);
    /* Three symbols for each element that either has, and some. */
    const uint64_t believed = sync_believed(n, set->n);
    const uint64_t most =
        believed < SYNC_SYMBOLS_MOST ? believed : SYNC_SYMBOLS_MOST;
    s->most_symbols = 3 * (most + set->n) + 1000;
    /* An outline has 64 bits for each at most. */
    s->most_summary = 8 * (believed + set->n) + 4096;
    if (s->most_symbols > SYNC_SYMBOLS_MOST)
        s->most_symbols = SYNC_SYMBOLS_MOST;
    s->greeted = true;
    return (block_put(out, SYNC_MAGIC, 8) && put_word(out, set->form, 1) &&
            put_word(out,
                     (s->writes ? SYNC_WISH_TAKE : 0) |
                         (s->wishes & SYNC_KNOWS_CHANGED),
                     1) &&
            varint_put(out, set->n) && varint_put(out, set->nbytes) &&
            put_word(out, set_secret_check(set), 8)) ||
           out_of_memory(out);
}

/* -------------------------------------------------------------- differences */

static bool say_strata(struct sync_server *s, struct block *out)
{
    const bly_strata *const strata = set_strata(s->set);
    if (!strata)
        return refuse(out, "%s", s->set->why);
    if (!block_fit(out, out->len + bly_strata_room(strata)))
        return out_of_memory(out);
    out->len += bly_strata_write(strata, out->at + out->len);
    return true;
}

/* As many symbols of c, from `from` to `to`, as a message has room for. */
static bool write_symbols(const bly_coded *c, uint64_t from, uint64_t to,
                          struct block *out)
{
    const uint64_t fit = (SYNC_ROOM - 64) / (8 + 4 + 10);
    if (to > bly_coded_to(c))
        to = bly_coded_to(c);
    if (to > from + fit)
        to = from + fit;
    if (from >= to)
        return refuse(out, "no symbols were asked for");
    if (!block_fit(out, out->len + bly_coded_room(c, to - from)))
        return out_of_memory(out);
    out->len += bly_coded_write(c, from, to, out->at + out->len);
    return true;
}

static bool say_symbols(struct sync_server *s, struct reading *r,
                        struct block *out)
{
    const uint64_t from = read_number(r), to = read_number(r);
    if (r->bad || from >= to)
        return refuse(out, "no symbols were asked for");
    if (from >= s->most_symbols)
        return refuse(out,
                      "%llu symbols tell all differences that two such sets "
                      "can have, and more are not sent; --method exact works "
                      "with any two sets",
                      (unsigned long long)s->most_symbols);
    const bly_coded *const c = set_symbols(s->set, from);
    return c ? write_symbols(c, from, to, out) : refuse(out, "%s", s->set->why);
}

static bool say_table(struct sync_server *s, struct reading *r,
                      struct block *out)
{
    bly_coding how = set_coding(s->set);
    how.hashes = (unsigned)read_word(r, 1);
    const uint64_t cells = read_number(r), from = read_number(r);
    if (r->bad || !how.hashes || cells > 2 * s->most_symbols || from >= cells)
        return refuse(out, "there is no such table");
    if (!s->table || s->table_cells != cells || s->table_hashes != how.hashes) {
        bly_coded_free(s->table);
        s->table = NULL;
        if (bly_coded_new(&how, 0, cells, &s->table))
            return refuse(out, "%s", bly_error());
        if (!set_code(s->set, s->table)) {
            bly_coded_free(s->table);
            s->table = NULL;
            return refuse(out, "%s", s->set->why);
        }
        s->table_cells = cells;
        s->table_hashes = how.hashes;
    }
    return write_symbols(s->table, from, cells, out);
}

/* A part of s->bytes. */
static bool write_part(const struct sync_server *s, uint64_t from,
                       struct block *out)
{
    if (from > s->bytes.len)
        return refuse(out, "that is past the end");
    const size_t left = s->bytes.len - (size_t)from;
    const size_t some = left < SYNC_ROOM - 64 ? left : SYNC_ROOM - 64;
    return (varint_put(out, s->bytes.len) &&
            (!some || block_put(out, s->bytes.at + from, some))) ||
           out_of_memory(out);
}

/* An outline of some elements as s->bytes. */
static bool write_outline(struct sync_server *s, const bly_outline_spec *spec,
                          const uint64_t *at, size_t n, struct block *out)
{
    bly_outline *o;
    s->bytes_are = 0;
    if (bly_outline_new(spec, at, n, &o))
        return refuse(out, "%s", bly_error());
    s->bytes.len = bly_outline_written_bytes(o);
    const bool ok = block_fit(&s->bytes, s->bytes.len);
    if (ok)
        bly_outline_write(o, s->bytes.at);
    bly_outline_free(o);
    return ok || out_of_memory(out);
}

static bool say_outline(struct sync_server *s, struct reading *r,
                        struct block *out)
{
    const unsigned leaf = (unsigned)read_word(r, 1);
    const unsigned inner = (unsigned)read_word(r, 1);
    const uint64_t from = read_number(r);
    const unsigned are = leaf << 8 | inner;
    if (r->bad || !leaf)
        return refuse(out, "there is no such outline");
    if (s->bytes_are != are) {
        const bly_outline_spec spec = { .leaf_bits = leaf,
                                        .inner_bits = inner };
        if (!write_outline(s, &spec, s->set->elements, s->set->n, out))
            return false;
        s->bytes_are = are;
    }
    return write_part(s, from, out);
}

#define BYTES_SORTED 1 /* no outline has leaves of 0 bits */

static bool say_sorted(struct sync_server *s, struct reading *r,
                       struct block *out)
{
    const uint64_t from = read_number(r);
    if (r->bad)
        return refuse(out, "no such set");
    if (s->bytes_are != BYTES_SORTED) {
        uint64_t before = 0;
        s->bytes.len = 0;
        s->bytes_are = BYTES_SORTED;
        for (size_t i = 0; i < s->set->n; i++) {
            if (!varint_put(&s->bytes, s->set->elements[i] - before)) {
                s->bytes_are = 0;
                return out_of_memory(out);
            }
            before = s->set->elements[i];
        }
    }
    return write_part(s, from, out);
}

/* An outline of the other side: which of ours does it lack? */
static bool find_lacking(struct sync_server *s, unsigned correction,
                         struct block *out)
{
    struct sync_set *const set = s->set;
    bly_outline *o;
    free(s->lacking);
    s->nlacking = 0;
    s->lacking = malloc(set->n * sizeof *s->lacking + 8);
    if (!s->lacking)
        return out_of_memory(out);
    if (bly_outline_load(s->summary.at, s->summary.len, NULL, &o))
        return refuse(out, "%s", bly_error());
    const bly_status st = bly_outline_lacking(
        o, set->elements, set->n, correction, s->lacking, &s->nlacking, NULL);
    bly_outline_free(o);
    return !st || refuse(out, "%s", bly_error());
}

static bool take_summary(struct sync_server *s, struct reading *r,
                         struct block *out)
{
    const uint64_t total = read_number(r);
    const unsigned correction = (unsigned)read_word(r, 1);
    const uint64_t from = read_number(r);
    if (from == 0) {
        s->summary.len = 0;
        s->summary_bytes = total;
    }
    /* No more than the other side can need for the sets that were said. */
    if (r->bad || from != s->summary.len || total != s->summary_bytes ||
        total > s->most_summary || (size_t)(r->end - r->at) > total - from)
        return refuse(out, "these bytes are not the next ones, or more than "
                           "two such sets need");
    if (!block_put(&s->summary, r->at, (size_t)(r->end - r->at)))
        return out_of_memory(out);
    if (s->summary.len < total)
        return true;
    return find_lacking(s, correction, out) &&
           (varint_put(out, s->nlacking) || out_of_memory(out));
}

/* ------------------------------------------------------------ intersections */

/* What is left after filters of others: all, at the beginning. */
static size_t left_of(const struct sync_server *s, const uint64_t **at)
{
    *at = s->left ? s->left : s->set->elements;
    return s->left ? s->nleft : s->set->n;
}

#define BYTES_SIFT 2

static bool say_sift(struct sync_server *s, struct reading *r,
                     struct block *out)
{
    const uint64_t *at;
    const size_t n = left_of(s, &at);
    const uint64_t bits = read_number(r), from = read_number(r);
    if (r->bad || bits > 64 * (uint64_t)n)
        return refuse(out, "there is no such outline");
    if (s->bytes_are != BYTES_SIFT || s->sift_bits != bits) {
        const bly_outline_spec spec = { .leaf_bits =
                                            (double)bits / (double)(n + !n) };
        if (!write_outline(s, &spec, at, n, out))
            return false;
        s->bytes_are = BYTES_SIFT;
        s->sift_bits = bits;
    }
    return write_part(s, from, out);
}

static bool take_narrow(struct sync_server *s, struct block *out)
{
    const uint64_t *at;
    const size_t n = left_of(s, &at);
    if (!s->lacking)
        return refuse(out, "there is nothing to narrow by");
    uint64_t *const left = malloc(n * sizeof *left + 8);
    size_t nleft = 0, lacks = 0;
    if (!left)
        return out_of_memory(out);
    for (size_t i = 0; i < n; i++) { /* both are sorted */
        while (lacks < s->nlacking && s->lacking[lacks] < at[i])
            lacks++;
        if (lacks == s->nlacking || s->lacking[lacks] != at[i])
            left[nleft++] = at[i];
    }
    free(s->left);
    s->left = left;
    s->nleft = nleft;
    s->bytes_are = 0;
    return varint_put(out, nleft) || out_of_memory(out);
}

static bool say_elements(const uint64_t *at, size_t n, struct reading *r,
                         struct block *out)
{
    uint64_t i = read_number(r);
    if (r->bad || i > n)
        return refuse(out, "that is past the end");
    bool ok = true;
    for (; ok && i < n && out->len < SYNC_ROOM - 8; i++)
        ok = put_word(out, at[i], 8);
    return ok || out_of_memory(out);
}

static bool say_left(struct sync_server *s, struct reading *r,
                     struct block *out)
{
    const uint64_t *at;
    const size_t n = left_of(s, &at);
    return say_elements(at, n, r, out);
}

static bool say_confirm(struct sync_server *s, struct reading *r,
                        struct block *out)
{
    unsigned char bits = 0;
    unsigned n = 0;
    bool ok = true;
    while (ok && r->end - r->at >= 8) {
        size_t at;
        bits |= (unsigned char)(set_has(s->set, read_word(r, 8), &at) << n);
        if (++n == 8) {
            ok = block_put(out, &bits, 1);
            bits = 0;
            n = 0;
        }
    }
    return (ok && (!n || block_put(out, &bits, 1))) || out_of_memory(out);
}

/* ------------------------------------------------------------------- giving */

static bool take_want(struct sync_server *s, struct reading *r,
                      struct block *out)
{
    const unsigned nbytes = (unsigned)read_word(r, 1);
    if (r->bad || nbytes < 1 || nbytes > 8)
        return refuse(out, "elements have 1 to 8 bytes");
    s->lines_ready = false;
    /* A peer that asks for everything again and again gets nothing more. */
    while (r->at < r->end && s->nwanted < 2 * s->set->n) {
        const unsigned char *const begins = read_bytes(r, nbytes);
        uint64_t e = 0;
        size_t from, to;
        if (!begins)
            return refuse(out, "the last one is incomplete");
        for (unsigned i = 0; i < nbytes; i++)
            e |= (uint64_t)begins[i] << (56 - 8 * i);
        set_range(s->set, e, nbytes * 8, &from, &to);
        /* A beginning that many share is a wish for all of them, once. */
        for (; from < to && s->nwanted < 2 * s->set->n; from++) {
            if (!GROW(&s->wanted, &s->wanted_room, s->nwanted + 1))
                return out_of_memory(out);
            s->wanted[s->nwanted++] = s->set->elements[from];
        }
    }
    return true;
}

static bool keep_line(void *ctx, uint64_t element, bly_bytes line)
{
    struct sync_server *const s = ctx;
    (void)element;
    if (line.len > SYNC_ROOM - 64 || s->lines.len > LINES_MOST)
        return false;
    s->nlines++;
    return varint_put(&s->lines, line.len) &&
           block_put(&s->lines, line.ptr, line.len);
}

/* The contents of an object are hashed when it is asked for. */
static bool hash_object(const struct sync_set *set, struct sync_file *f)
{
    struct content c;
    unsigned char buf[16384];
    ssize_t got;
    const int fd = folder_open(set, file_path(set, f));
    if (fd < 0 || !content_begin(&c, &set->hasher)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    f->size = 0;
    while ((got = read(fd, buf, sizeof buf)) > 0) {
        content_put(&c, buf, (size_t)got);
        f->size += (uint64_t)got;
    }
    content_end(&c, f->hash);
    close(fd);
    return got == 0;
}

/* What was wanted, as records; each once. */
static bool find_records(struct sync_server *s, struct block *out)
{
    struct sync_set *const set = s->set;
    if (bly_elements_sort(s->wanted, &s->nwanted))
        return refuse(out, "%s", bly_error());
    s->lines.len = s->nlines = 0;
    s->lines_at = s->lines_place = 0;
    s->lines_ready = true;
    if (set->form == SYNC_LINES)
        return list_lines(set, s->wanted, s->nwanted, keep_line, s) ||
               refuse(out, "%s", set->why);
    for (size_t i = 0; i < s->nwanted; i++) {
        size_t at;
        if (!set_has(set, s->wanted[i], &at))
            continue;
        struct sync_file f = set->files[at];
        if (set->form == SYNC_OBJECTS && !hash_object(set, &f))
            continue; /* gone, or not to be read: it cannot be had */
        if (!record_put(&s->lines, &f, file_path(set, &f),
                        s->wishes & SYNC_KNOWS_CHANGED))
            return out_of_memory(out);
        s->nlines++;
    }
    return true;
}

/* Bytes of the record at `at`. */
static size_t record_bytes(const struct sync_server *s, uint64_t at)
{
    struct reading r = { (const unsigned char *)s->lines.at + at,
                         (const unsigned char *)s->lines.at + s->lines.len,
                         false };
    const unsigned char *const from = r.at;
    if (s->set->form == SYNC_LINES) {
        (void)read_bytes(&r, read_number(&r));
    } else {
        (void)read_bytes(&r, read_number(&r));
        (void)read_number(&r);
        (void)read_number(&r);
        if (s->wishes & SYNC_KNOWS_CHANGED)
            (void)read_number(&r);
        (void)read_bytes(&r, 17);
    }
    return (size_t)(r.at - from);
}

static bool say_records(struct sync_server *s, struct reading *r,
                        struct block *out)
{
    const uint64_t from = read_number(r);
    if (r->bad || (!s->lines_ready && !find_records(s, out)))
        return r->bad ? refuse(out, "which records?") : false;
    if (from > s->nlines)
        return refuse(out, "that is past the end");
    if (from < s->lines_at)
        s->lines_at = s->lines_place = 0;
    for (; s->lines_at < from; s->lines_at++)
        s->lines_place += record_bytes(s, s->lines_place);
    bool ok = varint_put(out, s->nlines);
    while (ok && s->lines_at < s->nlines) {
        const size_t n = record_bytes(s, s->lines_place);
        if (out->len + n > SYNC_ROOM)
            break;
        ok = block_put(out, s->lines.at + s->lines_place, n);
        s->lines_place += n;
        s->lines_at++;
    }
    return ok || out_of_memory(out);
}

static const struct sync_file *file_of(const struct sync_set *set, uint64_t e)
{
    size_t at;
    return set->form != SYNC_LINES && set_has(set, e, &at) ? &set->files[at]
                                                           : NULL;
}

static bool say_chunks(struct sync_server *s, struct reading *r,
                       struct block *out)
{
    const struct sync_file *const f = file_of(s->set, read_word(r, 8));
    struct chunks c = { 0 };
    if (r->bad || !f)
        return refuse(out, "there is no such file");
    const int fd = folder_open(s->set, file_path(s->set, f));
    bool ok = fd >= 0 && chunks_of(fd, f->size, &s->set->hasher, &c);
    if (fd >= 0)
        close(fd);
    ok = ok && c.n * 12 < SYNC_ROOM - 64;
    if (ok && !chunks_put(out, &c))
        out_of_memory(out);
    /* A file that is gone by now is no reason to end: it has no chunks. */
    if (!ok && !varint_put(out, 0))
        out_of_memory(out);
    chunks_free(&c);
    return true;
}

static bool say_read(struct sync_server *s, struct reading *r,
                     struct block *out)
{
    while (r->at < r->end) {
        const struct sync_file *const f = file_of(s->set, read_word(r, 8));
        const uint64_t from = read_number(r), n = read_number(r);
        if (r->bad || !f || from > (UINT64_MAX >> 1))
            return refuse(out, "there is no such file");
        if (n > SYNC_ROOM - 64 || out->len + n + VARINT_MOST > SYNC_ROOM)
            break; /* it is asked for again */
        const int fd = folder_open(s->set, file_path(s->set, f));
        uint64_t got = 0;
        struct block bytes = { 0 };
        bool ok = block_fit(&bytes, (size_t)n);
        while (ok && fd >= 0 && got < n) {
            const ssize_t some = pread(fd, bytes.at + got, (size_t)(n - got),
                                       (off_t)(from + got));
            if (some <= 0)
                break;
            got += (uint64_t)some;
        }
        if (fd >= 0)
            close(fd);
        ok = ok && varint_put(out, got) &&
             (!got || block_put(out, bytes.at, (size_t)got));
        block_free(&bytes);
        if (!ok)
            return out_of_memory(out);
    }
    return true;
}

/* ------------------------------------------------------------------- taking */

static void refused_file(struct sync_server *s, const char *path,
                         const char *why)
{
    s->nrefused++;
    snprintf(s->refusal, sizeof s->refusal, "%.100s: %.200s", path, why);
}

static bool take_remove(struct sync_server *s, struct reading *r,
                        struct block *out)
{
    struct sync_set *const set = s->set;
    uint64_t nbad = 0;
    const size_t n = (size_t)(r->end - r->at) / 8;
    if (set->form == SYNC_LINES) {
        /* What was said twice counts once: no more than there are lines. */
        if (s->nremoved > set->n && bly_elements_sort(s->removed, &s->nremoved))
            return refuse(out, "%s", bly_error());
        uint64_t *const more =
            realloc(s->removed, (s->nremoved + n + 1) * sizeof *more);
        if (!more)
            return out_of_memory(out);
        s->removed = more;
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t e = read_word(r, 8);
        char why[SYNC_WHY] = "";
        size_t at;
        if (!set_has(set, e, &at))
            nbad++;
        else if (set->form == SYNC_LINES)
            s->removed[s->nremoved++] = e;
        else if (!store_remove(set, &set->files[at], why)) {
            nbad++;
            refused_file(s, file_path(set, &set->files[at]), why);
        }
    }
    return varint_put(out, nbad) || out_of_memory(out);
}

/* A line: it must not hold what ends it. */
static bool take_line(struct sync_server *s, struct reading *r,
                      struct block *out)
{
    const char end = s->set->nul ? '\0' : '\n';
    const uint64_t n = read_number(r);
    const unsigned char *const line = read_bytes(r, n);
    size_t at;
    if (!line || memchr(line, end, (size_t)n))
        return refuse(out, "that is not a line");
    if (set_has(s->set, bly_hash(&s->set->hasher, line, (size_t)n), &at))
        return true;
    if (s->taken.len > LINES_MOST)
        return refuse(out, "that is more than is accepted at once");
    s->nkept++;
    return (block_put(&s->taken, line, (size_t)n) &&
            block_put(&s->taken, &end, 1)) ||
           out_of_memory(out);
}

static bool take_file(struct sync_server *s, struct reading *r,
                      struct block *out)
{
    struct record record;
    char why[SYNC_WHY] = "";
    bool skip;
    if (!record_get(s->set, r, s->wishes & SYNC_KNOWS_CHANGED, &record) ||
        record.file.size > STORE_WHOLE)
        return refuse(out, "that is not a record of a short file");
    const unsigned char *const bytes = read_bytes(r, record.file.size);
    if (!bytes)
        return refuse(out, "that is not a record of a short file");
    struct incoming *const in =
        incoming_new(s->set, &record.file, record.path, NULL, &skip, why);
    if (!in) {
        if (!skip)
            refused_file(s, record.path, why);
        return true;
    }
    if (!incoming_put(in, bytes, (size_t)record.file.size, why)) {
        incoming_stop(in);
        refused_file(s, record.path, why);
    } else if (incoming_end(in, why))
        s->nkept++;
    else
        refused_file(s, record.path, why);
    return true;
}

static bool take_put(struct sync_server *s, struct reading *r,
                     struct block *out)
{
    uint64_t n = 0;
    for (; r->at < r->end; n++)
        if (!(s->set->form == SYNC_LINES ? take_line(s, r, out)
                                         : take_file(s, r, out)))
            return false;
    return varint_put(out, n) || out_of_memory(out);
}

static bool take_offer(struct sync_server *s, struct reading *r,
                       struct block *out)
{
    struct record record;
    struct chunks c = { 0 };
    char why[SYNC_WHY] = "";
    bool skip;
    incoming_stop(s->incoming);
    s->incoming = NULL;
    if (s->set->form == SYNC_LINES ||
        !record_get(s->set, r, s->wishes & SYNC_KNOWS_CHANGED, &record) ||
        !chunks_get(r, &c)) {
        chunks_free(&c);
        return refuse(out, "that is not a record of a file with its chunks");
    }
    s->incoming =
        incoming_new(s->set, &record.file, record.path, &c, &skip, why);
    chunks_free(&c);
    if (!s->incoming) {
        if (!skip)
            refused_file(s, record.path, why);
        return varint_put(out, 0) || out_of_memory(out);
    }
    uint64_t at = 0, len, ranges = 0;
    struct block said = { 0 };
    bool ok = true;
    for (; ok && incoming_needs(s->incoming, &at, &len); at += len, ranges++)
        ok = varint_put(&said, at) && varint_put(&said, len);
    ok = ok && varint_put(out, ranges) &&
         (!said.len || block_put(out, said.at, said.len));
    block_free(&said);
    return ok || out_of_memory(out);
}

static bool take_give(struct sync_server *s, struct reading *r,
                      struct block *out)
{
    char why[SYNC_WHY] = "";
    /* One that was refused is given in vain. */
    if (s->incoming &&
        !incoming_put(s->incoming, r->at, (size_t)(r->end - r->at), why)) {
        incoming_stop(s->incoming);
        s->incoming = NULL;
        refused_file(s, "a file", why);
    }
    (void)out;
    return true;
}

static bool take_keep(struct sync_server *s, struct block *out)
{
    char why[SYNC_WHY] = "";
    if (s->incoming) {
        if (incoming_end(s->incoming, why))
            s->nkept++;
        else
            refused_file(s, "a file", why);
        s->incoming = NULL;
    }
    if (s->set->form == SYNC_LINES && (s->taken.len || s->nremoved)) {
        if (bly_elements_sort(s->removed, &s->nremoved) ||
            !list_write(s->set, s->removed, s->nremoved, &s->taken)) {
            s->taken.len = s->nremoved = 0;
            return refuse(out, "%s",
                          s->set->why[0] ? s->set->why : bly_error());
        }
        s->taken.len = s->nremoved = 0;
    }
    const bool ok = varint_put(out, s->nkept) && varint_put(out, s->nrefused) &&
                    block_put(out, s->refusal, strlen(s->refusal));
    s->nkept = s->nrefused = 0;
    s->refusal[0] = '\0';
    return ok || out_of_memory(out);
}

/* -------------------------------------------------------------------- which */

static bool answer(struct sync_server *s, enum sync_type type,
                   struct reading *r, struct block *out)
{
    if (type == SYNC_HELLO && !s->greeted)
        return say_hello(s, r, out);
    if (!s->greeted || type == SYNC_HELLO)
        return refuse(out, "a sync begins with a single greeting");
    if (type >= SYNC_REMOVE && type <= SYNC_KEEP &&
        !(s->wishes & SYNC_WISH_GIVE))
        return refuse(out, "nothing was to be given");
    switch (type) {
    case SYNC_STRATA:
        return say_strata(s, out);
    case SYNC_SYMBOLS:
        return say_symbols(s, r, out);
    case SYNC_TABLE:
        return say_table(s, r, out);
    case SYNC_OUTLINE:
        return say_outline(s, r, out);
    case SYNC_SORTED:
        return say_sorted(s, r, out);
    case SYNC_SUMMARY:
        return take_summary(s, r, out);
    case SYNC_LACKING:
        return say_elements(s->lacking, s->nlacking, r, out);
    case SYNC_WANT:
        return take_want(s, r, out);
    case SYNC_RECORDS:
        return say_records(s, r, out);
    case SYNC_CHUNKS:
        return say_chunks(s, r, out);
    case SYNC_READ:
        return say_read(s, r, out);
    case SYNC_REMOVE:
        return take_remove(s, r, out);
    case SYNC_PUT:
        return take_put(s, r, out);
    case SYNC_OFFER:
        return take_offer(s, r, out);
    case SYNC_GIVE:
        return take_give(s, r, out);
    case SYNC_KEEP:
        return take_keep(s, out);
    case SYNC_SIFT:
        return say_sift(s, r, out);
    case SYNC_NARROW:
        return take_narrow(s, out);
    case SYNC_LEFT:
        return say_left(s, r, out);
    case SYNC_CONFIRM:
        return say_confirm(s, r, out);
    case SYNC_HELLO:
    case SYNC_REFUSED:
        break;
    }
    return refuse(out, "unknown message type %u", (unsigned)type);
}

bool server_answer(struct sync_server *s, const unsigned char *message,
                   size_t n, struct block *out)
{
    out->len = 0;
    if (!n)
        return refuse(out, "an empty message");
    struct reading r = { message + 1, message + n, false };
    return (block_put(out, message, 1) || out_of_memory(out)) &&
           answer(s, (enum sync_type)message[0], &r, out);
}

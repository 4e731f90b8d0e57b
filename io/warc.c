/*
 * warc.c - records of WARC files
 *
 * A header is fields in lines, up to an empty one; lines that begin with a
 * blank go on with the line before. Fields are found when somebody asks for
 * one, since three are asked for in most records.
 *
 * A record ends where its Content-Length says, and if it is a member of gzip,
 * also where the member does. Where the two disagree, the record is as long as
 * the member, it is no document, and it stays. Without members there would be
 * no telling where the next record begins: reading ends there, with an error.
 */
#define _GNU_SOURCE /* memmem, strcasestr */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <zlib.h>

#include "base/grow.h"
#include "io/source.h"
#include "io/unpack.h"
#include "io/utf8.h"
#include "io/warc.h"

#define HEAD_MOST ((size_t)1 << 20) /* bytes of a header: far more than any */

/* ------------------------------------------------------------------ headers */

/* Bytes of a header with its empty line; 0: it does not end in n bytes. */
static size_t head_len(const char *at, size_t n)
{
    const char *p = at, *const end = at + n;
    while ((p = memchr(p, '\n', (size_t)(end - p)))) {
        p++;
        if (p < end && *p == '\n')
            return (size_t)(p + 1 - at);
        if (p + 1 < end && p[0] == '\r' && p[1] == '\n')
            return (size_t)(p + 2 - at);
    }
    return 0;
}

bly_bytes warc_field(const char *head, size_t n, const char *name)
{
    const size_t len = strlen(name);
    const char *p = head, *const end = head + n;
    while ((p = memchr(p, '\n', (size_t)(end - p)))) {
        p++;
        if ((size_t)(end - p) <= len || p[len] != ':' ||
            strncasecmp(p, name, len) != 0)
            continue;
        p += len + 1;
        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        const char *e = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        e = e ? e : end;
        while (e > p && (e[-1] == '\r' || e[-1] == ' ' || e[-1] == '\t'))
            e--;
        return (bly_bytes){ p, (size_t)(e - p) };
    }
    return (bly_bytes){ "", 0 };
}

/* Does a value begin with a word, and end there, or with ; or a blank? */
static bool is_value(bly_bytes v, const char *word)
{
    const size_t n = strlen(word);
    const char *const p = v.ptr;
    return v.len >= n && strncasecmp(p, word, n) == 0 &&
           (v.len == n || p[n] == ';' || p[n] == ' ' || p[n] == '\t');
}

static bool field_is(const char *head, size_t n, const char *name,
                     const char *word)
{
    return is_value(warc_field(head, n, name), word);
}

/* A number in decimal; false if it is none, or too large. */
static bool value_number(bly_bytes v, uint64_t *number)
{
    const char *const p = v.ptr;
    *number = 0;
    for (size_t i = 0; i < v.len; i++) {
        if (p[i] < '0' || p[i] > '9' || *number > UINT64_MAX / 100)
            return false;
        *number = *number * 10 + (uint64_t)(p[i] - '0');
    }
    return v.len > 0;
}

static bool is_text_type(bly_bytes v)
{
    return is_value(v, "text/html") || is_value(v, "application/xhtml+xml") ||
           is_value(v, "text/plain");
}

/* Has a record, whose header has nhead bytes, the text of a page? */
static bool is_document(const char *at, size_t nhead, size_t n)
{
    const bly_bytes type = warc_field(at, nhead, "WARC-Type");
    const char *const content = at + nhead;
    if (is_value(type, "conversion"))
        return is_text_type(warc_field(at, nhead, "Content-Type"));
    if (!is_value(type, "response"))
        return false;
    const size_t http = head_len(content, n - nhead);
    const char *const status = http ? memchr(content, ' ', http) : NULL;
    return status && http > 5 && memcmp(content, "HTTP/", 5) == 0 &&
           status[1] == '2' &&
           is_text_type(warc_field(content, http, "Content-Type"));
}

/* ------------------------------------------------------------------ records */

enum found { FOUND, FOUND_PART, FOUND_DAMAGED };

static bool begins_record(const char *at, size_t n)
{
    return memcmp(at, "WARC/", n < 5 ? n : 5) == 0;
}

/* The record at the beginning of n bytes: what its header says. */
static enum found find_head(const char *at, size_t n, size_t *nhead,
                            uint64_t *content)
{
    if (!begins_record(at, n))
        return FOUND_DAMAGED;
    *nhead = head_len(at, n);
    if (*nhead == 0)
        return n > HEAD_MOST ? FOUND_DAMAGED : FOUND_PART;
    return value_number(warc_field(at, *nhead, "Content-Length"), content) &&
                   *content < UINT64_MAX / 2
               ? FOUND
               : FOUND_DAMAGED;
}

/* Ends of lines at the end of a record, of `left` bytes behind its content: two
 * of them, though some crawlers write one. SIZE_MAX: none are there. */
static size_t record_ends(const char *at, size_t left)
{
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        if (left - n >= 2 && at[n] == '\r' && at[n + 1] == '\n')
            n += 2;
        else if (left > n && at[n] == '\n')
            n++;
        else
            break;
    }
    return n ? n : SIZE_MAX;
}

static enum found find_plain(struct block *b, uint64_t most,
                             struct warc_record *r)
{
    struct warc_block *const w = b->warc;
    const char *const at = b->at + w->parsed;
    const size_t n = b->len - w->parsed;
    size_t nhead;
    uint64_t content;
    const enum found head = find_head(at, n, &nhead, &content);
    if (head == FOUND_DAMAGED)
        w->why = "no WARC record begins where one should";
    if (head != FOUND)
        return head;
    if (content > n - nhead || n - nhead - (size_t)content < 4)
        return FOUND_PART;
    const size_t len = nhead + (size_t)content;
    const size_t ends = record_ends(at + len, n - len);
    if (ends == SIZE_MAX) {
        w->why = "a WARC record does not end where its Content-Length says";
        return FOUND_DAMAGED;
    }
    w->unpacked += len + ends;
    *r = (struct warc_record){
        .from = w->parsed,
        .to = w->parsed + len + ends,
        .at = w->parsed,
        .len = len,
        .document = len <= most && is_document(at, nhead, len),
    };
    return FOUND;
}

/* What inflating a member came to. */
struct member {
    size_t in, out; /* bytes of the file, and unpacked */
    bool whole, damaged, memory;
};

/* Inflate the member at the beginning of n bytes behind what is in `to`, and
 * keep up to `most` bytes of it. */
static struct member inflate_member(const char *at, size_t n, uint64_t most,
                                    struct block *to)
{
    z_stream z = { 0 };
    char rest[16384];
    struct member m = { 0 };
    if (inflateInit2(&z, 15 + 16) != Z_OK) {
        m.memory = true;
        return m;
    }
    z.next_in = (unsigned char *)(uintptr_t)at;
    while (!m.whole && !m.damaged) {
        const bool keeps = m.out < most;
        if (keeps && to->room - to->len < 4096 &&
            !block_fit(to, to->room * 2 + 65536)) {
            m.memory = true;
            break;
        }
        const size_t room = keeps ? to->room - to->len : sizeof rest;
        const size_t left = n - m.in;
        z.avail_in = (unsigned)(left < UINT32_MAX / 2 ? left : UINT32_MAX / 2);
        z.next_out = (unsigned char *)(keeps ? to->at + to->len : rest);
        z.avail_out = (unsigned)(room < UINT32_MAX / 2 ? room : UINT32_MAX / 2);
        const unsigned in = z.avail_in, out = z.avail_out;
        const int rc = inflate(&z, Z_NO_FLUSH);
        m.in += in - z.avail_in;
        m.out += out - z.avail_out;
        to->len += keeps ? out - z.avail_out : 0;
        m.whole = rc == Z_STREAM_END;
        m.damaged = rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR;
        if (in == z.avail_in && out == z.avail_out)
            break; /* there is no more */
    }
    inflateEnd(&z);
    return m;
}

static enum found find_member(struct block *b, uint64_t most,
                              struct warc_record *r, bool *memory)
{
    struct warc_block *const w = b->warc;
    struct block *const plain = w->plain;
    const size_t from = plain->len;
    const struct member m =
        inflate_member(b->at + w->parsed, b->len - w->parsed, most, plain);
    size_t nhead;
    uint64_t content;
    *memory = m.memory;
    if (m.damaged)
        w->why = "the gzip data of a WARC record is damaged";
    if (!m.whole) {
        plain->len = from;
        return m.damaged ? FOUND_DAMAGED : FOUND_PART;
    }
    *r = (struct warc_record){ .from = w->parsed, .to = w->parsed + m.in };
    const char *const at = plain->at + from;
    const size_t n = plain->len - from;
    w->unpacked += m.out;
    if (n == m.out && find_head(at, n, &nhead, &content) == FOUND &&
        content <= n - nhead && n - nhead - content <= 4) {
        r->at = from;
        r->len = nhead + (size_t)content;
        r->document = is_document(at, nhead, r->len);
    }
    if (!r->document)
        plain->len = from;
    return FOUND;
}

bool warc_parse(struct block *b, bool members, uint64_t most, size_t *end)
{
    struct warc_block *const w = b->warc;
    while (w->parsed < b->len && !w->why) {
        struct warc_record r;
        bool memory = false;
        const enum found found = members ? find_member(b, most, &r, &memory)
                                         : find_plain(b, most, &r);
        if (memory || !GROW(&w->records, &w->room, w->n + 1))
            return false;
        if (found != FOUND)
            break;
        w->records[w->n++] = r;
        w->ndocuments += r.document;
        w->parsed = r.to;
    }
    *end = w->parsed;
    return true;
}

void warc_free(struct warc_block *w)
{
    if (!w)
        return;
    block_free(w->plain);
    free(w->plain);
    free(w->records);
    free(w);
}

bool warc_begin(struct block *b)
{
    if (!b->warc) {
        b->warc = calloc(1, sizeof *b->warc);
        if (b->warc && !(b->warc->plain = calloc(1, sizeof *b->warc->plain))) {
            free(b->warc);
            b->warc = NULL;
        }
    }
    if (!b->warc)
        return false;
    b->warc->n = b->warc->ndocuments = b->warc->parsed = 0;
    b->warc->unpacked = 0;
    b->warc->plain->len = 0;
    b->warc->why = NULL;
    return true;
}

/* -------------------------------------------------------------------- files */

bool warc_file(const char *path)
{
    char start[6];
    return source_peek(path, SOURCE_ANY, start, sizeof start) == 6 &&
           memcmp(start, "WARC/", 5) == 0 && start[5] >= '0' && start[5] <= '9';
}

bool warc_in_members(const char *path)
{
    enum { START = 1 << 18 };
    struct block plain = { 0 };
    char *const start = malloc(START);
    const size_t n = start ? source_peek(path, SOURCE_RAW, start, START) : 0;
    bool members = n > 2 && memcmp(start, "\x1f\x8b", 2) == 0;
    size_t nhead;
    uint64_t content;
    if (members) {
        const struct member m = inflate_member(start, n, START, &plain);
        const enum found head =
            find_head(plain.at ? plain.at : "", plain.len, &nhead, &content);
        /* A record that does not end in what was read is taken for a large
         * one, unless what was unpacked goes on behind it. */
        members = head == FOUND_PART ||
                  (head == FOUND && m.out <= content + nhead + 4);
    }
    block_free(&plain);
    free(start);
    return members;
}

/* -------------------------------------------------------------------- texts */

void warc_text_free(struct warc_text *t)
{
    block_free(&t->chunks);
    block_free(&t->plain);
}

/* Put chunks together: as many as there are, where the last is missing. */
static bool join_chunks(struct warc_text *t)
{
    const char *p = t->at, *const end = p + t->len;
    t->chunks.len = 0;
    while (p < end) {
        size_t n = 0;
        const char *const digits = p;
        for (; p < end && n < SIZE_MAX >> 8; p++) {
            const char c = *p;
            if (c >= '0' && c <= '9')
                n = n * 16 + (size_t)(c - '0');
            else if ((c | 32) >= 'a' && (c | 32) <= 'f')
                n = n * 16 + (size_t)((c | 32) - 'a' + 10);
            else
                break;
        }
        if (p == digits)
            return t->chunks.len == 0; /* it was not sent in chunks, then */
        p = memchr(p, '\n', (size_t)(end - p));
        if (!p || n == 0)
            break;
        p++;
        const size_t have = (size_t)(end - p);
        if (!block_put(&t->chunks, p, n < have ? n : have))
            return false;
        p += n < have ? n : have;
        while (p < end && (*p == '\r' || *p == '\n'))
            p++;
    }
    t->at = t->chunks.at ? t->chunks.at : "";
    t->len = t->chunks.len;
    return true;
}

/* Unpack gzip, zstd and the like: as much as there is. False: no memory. */
static bool unpack_text(struct warc_text *t, const struct unpacker *u,
                        uint64_t most, bool *longer)
{
    void *const state = u->library ? NULL : u->open();
    struct unpack_io io = { .in = (const unsigned char *)t->at, .nin = t->len };
    enum unpacked how = UNPACK_ON;
    t->plain.len = 0;
    *longer = false;
    if (!state)
        return false;
    while (how == UNPACK_ON && !*longer) {
        if (!block_fit(&t->plain, t->plain.len + 65536)) {
            how = UNPACK_MEMORY;
            break;
        }
        const size_t nin = io.nin;
        io.out = (unsigned char *)t->plain.at + t->plain.len;
        io.nout = t->plain.room - t->plain.len;
        const size_t room = io.nout;
        how = u->run(state, &io);
        t->plain.len += room - io.nout;
        *longer = t->plain.len > most;
        if (nin == io.nin && room == io.nout)
            break;
        if (t->plain.room - t->plain.len < 4096 &&
            !block_fit(&t->plain, t->plain.room * 2))
            how = UNPACK_MEMORY;
    }
    u->close(state);
    t->at = t->plain.at;
    t->len = t->plain.len;
    return how != UNPACK_MEMORY;
}

static void note_charset(struct warc_text *t, bly_bytes type)
{
    const char *const p = type.ptr;
    t->charset[0] = '\0';
    for (size_t i = 0; i + 8 < type.len; i++)
        if (strncasecmp(p + i, "charset=", 8) == 0) {
            size_t n = type.len - i - 8;
            n = n < sizeof t->charset - 1 ? n : sizeof t->charset - 1;
            memcpy(t->charset, p + i + 8, n);
            t->charset[n] = '\0';
            return;
        }
}

const char *warc_text(struct warc_text *t, const char *record, size_t n,
                      uint64_t most)
{
    const size_t nhead = head_len(record, n);
    const bool sent = field_is(record, nhead, "WARC-Type", "response");
    const char *head = record;
    size_t nfields = nhead;
    t->at = record + nhead;
    t->len = n - nhead;
    if (sent) {
        head = t->at;
        nfields = head_len(head, t->len);
        t->at += nfields;
        t->len -= nfields;
    }
    const bly_bytes type = warc_field(head, nfields, "Content-Type");
    t->html = !is_value(type, "text/plain");
    note_charset(t, type);
    if (sent && field_is(head, nfields, "Transfer-Encoding", "chunked") &&
        !join_chunks(t))
        return "its chunks cannot be put together";
    const bly_bytes packing = warc_field(head, nfields, "Content-Encoding");
    if (!sent || !packing.len || is_value(packing, "identity"))
        return NULL;
    bool more, longer = false;
    const struct unpacker *const u =
        unpacker_of((const unsigned char *)t->at, t->len, &more);
    if (!u) /* crawlers unpack bodies and leave the header as it was */
        return utf8_valid(t->at, t->len) || is_value(packing, "gzip")
                   ? NULL
                   : "it is compressed, and not with gzip or zstd";
    if (!unpack_text(t, u, most, &longer))
        return "out of memory";
    return longer ? "unpacked it is longer than --max-line allows" : NULL;
}

/* ------------------------------------------------------------------ writing */

/* A record as a member of its own. */
static bool put_packed(const char *at, size_t n,
                       bool (*put)(void *ctx, const void *bytes, size_t n),
                       void *ctx)
{
    unsigned char buf[65536];
    z_stream z = { .next_in = (unsigned char *)(uintptr_t)at };
    int rc;
    bool ok = deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                           Z_DEFAULT_STRATEGY) == Z_OK;
    if (!ok)
        return false;
    do {
        const size_t part = n < UINT32_MAX / 2 ? n : UINT32_MAX / 2;
        if (z.avail_in == 0) {
            z.avail_in = (unsigned)part;
            n -= part;
        }
        z.next_out = buf;
        z.avail_out = sizeof buf;
        rc = deflate(&z, n ? Z_NO_FLUSH : Z_FINISH);
        ok = (rc == Z_OK || rc == Z_STREAM_END) &&
             put(ctx, buf, sizeof buf - z.avail_out);
    } while (ok && rc != Z_STREAM_END);
    deflateEnd(&z);
    return ok;
}

bool warc_put(const struct block *b, bool members, bool packed, size_t from,
              size_t to, bool (*put)(void *ctx, const void *bytes, size_t n),
              void *ctx)
{
    const struct warc_block *const w = b->warc;
    struct block plain = { 0 };
    bool ok = true;
    if (members == packed)
        return put(ctx, b->at + from, to - from);
    for (size_t i = 0; ok && i < w->n; i++) {
        const struct warc_record *const r = &w->records[i];
        if (r->from < from || r->to > to)
            continue;
        if (packed) {
            ok = put_packed(b->at + r->from, r->to - r->from, put, ctx);
            continue;
        }
        plain.len = 0;
        ok =
            inflate_member(b->at + r->from, r->to - r->from, UINT64_MAX, &plain)
                .whole &&
            put(ctx, plain.at, plain.len);
    }
    block_free(&plain);
    return ok;
}

/*
 * picking_check.h - keys of lines, against a reader that is slow and plain
 *
 * Bytes from anyone are read as a file is: in pieces, which become blocks of
 * whole records, in which keys are picked in batches. What comes out must be
 * what a byte-by-byte reader of the whole text says: the same keys, lines and
 * numbers of lines, and as many bad ones.
 */
#ifndef TEST_PICKING_CHECK_H
#define TEST_PICKING_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_field.h"
#include "io/picker.h"

struct check {
    struct input in;
    struct json_path path; /* for --jsonl */
    size_t field;          /* from 0, for --field and --csv */
    char delimiter;
    bool csv, jsonl, blanks;
};

/* What was found, as text that can be compared. */
struct tale {
    char *text;
    size_t n, room;
};

static inline void tell(struct tale *t, const void *bytes, size_t n)
{
    if (t->n + n + 1 > t->room) {
        t->room = (t->n + n + 1) * 2;
        t->text = realloc(t->text, t->room);
        if (!t->text)
            abort();
    }
    if (n)
        memcpy(t->text + t->n, bytes, n);
    t->n += n;
}

static inline void tell_key(struct tale *t, bly_bytes key, bly_bytes line,
                            uint64_t number)
{
    char head[64];
    tell(t, head,
         (size_t)snprintf(head, sizeof head, "%llu %zu %zu:",
                          (unsigned long long)number, key.len, line.len));
    tell(t, key.ptr, key.len);
    tell(t, "|", 1);
    tell(t, line.ptr, line.len);
    tell(t, "\n", 1);
}

static inline void tell_bad(struct tale *t, uint64_t nbad)
{
    char head[64];
    tell(t, head,
         (size_t)snprintf(head, sizeof head, "%llu bad\n",
                          (unsigned long long)nbad));
}

/* ----------------------------------------------------------- the slow way */

/* The record of CSV at `at`: its key, of which *nkey bytes are in `key`; -1
 * for no record, 0 for a bad one. */
static inline int slow_record(const struct check *c, const char *at,
                              const char *end, const char **behind, char *key,
                              size_t *nkey, uint64_t *nlines)
{
    enum { START, PLAIN, QUOTED, CLOSED } state = START;
    size_t field = 0;
    bool wrong = false, found = false;
    const char *s = at;
    *nkey = 0;
    *nlines = 1;
    for (;; s++) {
        const bool over = s == end || (*s == '\n' && state != QUOTED);
        const bool mine = field == c->field;
        if (over && state == QUOTED)
            wrong = true; /* never closed */
        if (over)
            break;
        if (state == QUOTED) {
            if (*s == '"')
                state = CLOSED;
            else if (mine)
                key[(*nkey)++] = *s;
            *nlines += *s == '\n' && s + 1 < end;
        } else if (*s == '"' && state != PLAIN) {
            if (state == CLOSED && mine)
                key[(*nkey)++] = *s;
            state = QUOTED;
        } else if (*s == c->delimiter) {
            found |= mine;
            field++;
            state = START;
        } else if (state == CLOSED &&
                   !(*s == '\r' && (s + 1 == end || s[1] == '\n'))) {
            wrong = true;
            state = PLAIN;
        } else if (state != CLOSED) {
            if (mine && !(*s == '\r' && (s + 1 == end || s[1] == '\n')))
                key[(*nkey)++] = *s;
            state = PLAIN;
        }
    }
    found |= field == c->field;
    *behind = s == end ? end : s + 1;
    if (!wrong && (s == at || (s == at + 1 && *at == '\r')))
        return -1;
    return !wrong && found;
}

static inline int slow_field(const struct check *c, const char *at, size_t n,
                             bly_bytes *key)
{
    size_t field = 0;
    const char *from = at;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && at[i] != c->delimiter)
            continue;
        if (field++ == c->field) {
            *key = (bly_bytes){ from, (size_t)(at + i - from) };
            return 1;
        }
        from = at + i + 1;
    }
    return 0;
}

static inline int slow_json(const struct check *c, const char *at, size_t n,
                            char *text, bly_bytes *key)
{
    struct json_slice found;
    if (!json_find(at, n, &c->path, 1, &found)) {
        size_t i = 0;
        while (i < n && strchr(" \t\r", at[i]) && at[i])
            i++;
        return i == n ? -1 : 0;
    }
    *key = (bly_bytes){ found.at, found.len };
    if (found.type == JSON_STRING && found.escaped)
        *key = (bly_bytes){ text, json_unescape(found.at, found.len, text) };
    return found.type == JSON_STRING || found.type == JSON_NUMBER;
}

static inline void slow_way(const struct check *c, const char *text, size_t n,
                            struct tale *t)
{
    const char *at = text, *const end = text + n;
    char *const room = malloc(n + 1);
    uint64_t number = 0, nbad = 0, nlines = 1;
    if (!room)
        abort();
    while (at < end) {
        const char *behind = memchr(at, '\n', (size_t)(end - at));
        behind = behind ? behind + 1 : end;
        bly_bytes key = { room, 0 };
        const size_t len = (size_t)(behind - at) - (behind[-1] == '\n');
        const int got =
            c->csv ? slow_record(c, at, end, &behind, room, &key.len, &nlines)
            : c->jsonl ? slow_json(c, at, len, room, &key)
                       : slow_field(c, at, len, &key);
        /* The newline of a record that a file ends in is inside of quotes. */
        const bool open = c->csv && got == 0 && behind == end;
        const size_t line =
            (size_t)(behind - at) - (behind[-1] == '\n' && !open);
        if (got > 0)
            tell_key(t, key, (bly_bytes){ at, line }, number);
        nbad += got == 0 ? nlines : 0;
        number += nlines;
        at = behind;
    }
    tell_bad(t, nbad);
    free(room);
}

/* ----------------------------------------------------------- the fast way */

/* Pick in a block, `max` keys at a time; the number of its lines. */
static inline uint64_t pick_block(struct check *c, struct picking *p,
                                  const char *at, size_t n, size_t max,
                                  uint64_t before, struct tale *t,
                                  uint64_t *nbad)
{
    struct input_file file = { .column = c->field };
    struct block b = { .file = &file };
    bly_bytes keys[64], lines[64];
    uint32_t numbers[64];
    size_t got;
    if (!block_put(&b, at, n))
        abort();
    if (b.at[b.len - 1] != '\n' || c->in.csv.state == CSV_QUOTED)
        b.at[b.len++] = '\n';
    memset(b.at + b.len, '"', BLOCK_SLACK); /* means nothing */
    picking_start(p, &c->in, &b);
    while ((got = picking_next(p, keys, lines, numbers, max)))
        for (size_t i = 0; i < got; i++)
            tell_key(t, keys[i], lines[i], before + numbers[i]);
    *nbad += p->nbad;
    block_free(&b);
    return p->nlines;
}

static inline void fast_way(struct check *c, const char *text, size_t n,
                            size_t piece, size_t max, struct tale *t)
{
    struct picking p = { 0 };
    uint64_t before = 0, nbad = 0;
    size_t start = 0;
    c->in.csv.state = CSV_START;
    char *const slack = calloc(1, n + BLOCK_SLACK);
    if (!slack)
        abort();
    if (n)
        memcpy(slack, text, n);
    for (size_t at = 0; at < n; at += piece) {
        const size_t got = n - at < piece ? n - at : piece;
        size_t ends = 0;
        if (c->csv)
            ends = csv_read(&c->in.csv, slack + at, got);
        else
            for (size_t i = 0; i < got; i++)
                ends = slack[at + i] == '\n' ? i + 1 : ends;
        const enum csv_state state = c->in.csv.state;
        c->in.csv.state = CSV_START;
        if (ends)
            before += pick_block(c, &p, slack + start, at + ends - start, max,
                                 before, t, &nbad);
        start = ends ? at + ends : start;
        c->in.csv.state = state;
    }
    if (start < n)
        pick_block(c, &p, slack + start, n - start, max, before, t, &nbad);
    tell_bad(t, nbad);
    picking_free(&p);
    free(slack);
}

/* Do both ways agree? `max` is 64 at most. */
static inline bool ways_agree(struct check *c, const char *text, size_t n,
                              size_t piece, size_t max)
{
    struct tale slow = { 0 }, fast = { 0 };
    slow_way(c, text, n, &slow);
    fast_way(c, text, n, piece, max, &fast);
    const bool same =
        slow.n == fast.n && memcmp(slow.text, fast.text, slow.n) == 0;
    if (!same)
        fprintf(stderr, "slow:\n%.*s\nfast:\n%.*s\n", (int)slow.n, slow.text,
                (int)fast.n, fast.text);
    free(slow.text);
    free(fast.text);
    return same;
}

/* field: from 0; for --jsonl, its path. False if there is no such path. */
static inline bool check_start(struct check *c, int how, size_t field,
                               char delimiter, const char *path)
{
    static char number[16], mark[2];
    struct selection s = { .skip_bad = true };
    *c = (struct check){ .field = field,
                         .delimiter = delimiter,
                         .csv = how == 1,
                         .jsonl = how == 2 };
    static const char *const names[] = { "-" };
    input_files(&c->in, names, 1, false);
    snprintf(number, sizeof number, "%zu", field + 1);
    mark[0] = delimiter;
    s.delimiter = c->jsonl ? NULL : mark;
    s.field = how == 0 ? number : NULL;
    s.csv = c->csv ? number : NULL;
    s.no_header = c->csv;
    s.jsonl = c->jsonl ? path : NULL;
    return (!c->jsonl || json_path_dotted(&c->path, path)) &&
           selection_read(&s, &c->in);
}

static inline void check_end(struct check *c)
{
    input_close(&c->in);
    json_path_free(&c->path);
}

#endif

/*
 * index_target.c - the search in one file
 *
 * The blocks of a file that may match are read, each by the nearest way; what
 * comes out must have the hash that it had when it was indexed. If it has not,
 * or cannot be read so, the rest of the file is read from its beginning, and
 * searched as if there were no index.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/index/index_search.h"
#include "report/say.h"

#define REST_BYTES ((size_t)1 << 20)

/* The ids of the records that grep was given. */
struct named_lines {
    struct named_line {
        uint64_t line;
        size_t at, n; /* in text */
    } * lines;
    size_t n, room;
    struct bytes text;
};

struct searcher {
    struct search *search;
    char *text;
    size_t room;
    struct bytes out;
    bool *wanted;
    size_t wanted_room;
    struct line_finder finder; /* with memory of its own */
    struct line_finder *finders;
    struct record_cutter cutter; /* of the file's index */
    struct input_file columns;   /* of the file */
    struct named_lines names;
    struct bytes grepped;
};

struct searcher *searcher_new(struct search *s)
{
    struct searcher *const t = calloc(1, sizeof *t);
    struct line_finder *const f = calloc(s->nquestions + 1, sizeof *f);
    if (!t || !f) {
        free(t);
        free(f);
        return NULL;
    }
    t->search = s;
    t->finders = f;
    t->finder = s->all.finder;
    for (size_t i = 0; i < s->nquestions; i++)
        f[i] = s->questions[i].finder;
    return t;
}

void searcher_free(struct searcher *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->search->nquestions; i++)
        free(t->finders[i].folded);
    free(t->finders);
    free(t->finder.folded);
    free(t->text);
    free(t->wanted);
    free(t->out.at);
    fields_cutter_free(&t->cutter);
    free(t->names.lines);
    free(t->names.text.at);
    free(t->grepped.at);
    free(t);
}

/* ------------------------------------------------------------------ blocks */

/* What becomes of the texts of a file, in their order: a text, whose first line
 * has a number, or lines that nobody wants. False: no more. */
struct text_user {
    bool (*text)(void *ctx, const char *text, size_t n, uint64_t line,
                 bool block);
    bool (*skip)(void *ctx, uint64_t nlines); /* may be NULL */
    void *ctx;
};

static bool no_memory(struct searcher *t)
{
    fail("out of memory");
    t->search->trouble = true;
    return false;
}

/* Hand over a text, or the field that counts of its records. */
static bool text_use(struct searcher *t, const struct text_user *use,
                     const char *text, size_t n, uint64_t line, bool begins,
                     bool block)
{
    if (!t->cutter.fields)
        return use->text(use->ctx, text, n, line, block);
    return fields_cut(&t->cutter, &t->columns, text, n, begins)
               ? use->text(use->ctx, (const char *)t->cutter.text.at,
                           t->cutter.text.n, line, block)
               : no_memory(t);
}

/* Where are the columns of a file? It begins with n bytes that are given, or
 * is read as far as necessary. False, with the reason printed. */
static bool columns_find(struct searcher *t, struct text_file *f,
                         const char *name, const char *text, size_t n)
{
    const struct fields *const fields = t->cutter.fields;
    char why[200];
    if (!text) {
        struct record_seeker seeker = { 0 };
        ptrdiff_t got = 1;
        n = 0;
        if (!text_file_go(f, NULL, 0))
            got = -1;
        while (got > 0 &&
               (!n || fields_whole(fields, &seeker, t->text, n, 1) == 0)) {
            if (!GROW(&t->text, &t->room, n + REST_BYTES + BLOCK_SLACK))
                return no_memory(t);
            got = text_file_read(f, t->text + n, REST_BYTES);
            n += got > 0 ? (size_t)got : 0;
        }
        if (got < 0) {
            fail("%s: %s", name, text_file_error(f));
            t->search->trouble = true;
            return false;
        }
        text = t->text;
    }
    if (fields_columns(fields, text, n, &t->columns, why, sizeof why))
        return true;
    fail("%s: %s", name, why);
    t->search->trouble = true;
    return false;
}

/* Everything from byte `at` on, in pieces that end at line ends, or at those of
 * records. */
static bool rest_read(struct searcher *t, struct text_file *f, const char *name,
                      uint64_t at, uint64_t line, const struct text_user *use,
                      bool *more)
{
    static const struct fields lines;
    const struct fields *const fields =
        t->cutter.fields ? t->cutter.fields : &lines;
    struct record_seeker seeker = { 0 };
    size_t n = 0;
    ptrdiff_t got = 0;
    if (!text_file_go(f, NULL, at))
        return false;
    do {
        if (!GROW(&t->text, &t->room, n + REST_BYTES + BLOCK_SLACK)) {
            no_memory(t);
            return true;
        }
        got = text_file_read(f, t->text + n, REST_BYTES);
        n += got > 0 ? (size_t)got : 0;
        const size_t ready =
            got <= 0 ? n : fields_whole(fields, &seeker, t->text, n, n);
        if (ready) {
            if (fields->csv && at == 0 &&
                !columns_find(t, f, name, t->text, ready))
                return true;
            *more = text_use(t, use, t->text, ready, line, at == 0, false);
            at += ready;
            line += lines_count(t->text, ready);
            memmove(t->text, t->text + ready, n - ready);
            n -= ready;
            seeker = (struct record_seeker){ 0 };
        }
    } while (got > 0 && *more);
    return got >= 0;
}

/* A block's text, if it is what it was. */
static bool block_read(struct searcher *t, struct text_file *f,
                       const struct block_place *b, const bly_hasher *hasher)
{
    const size_t n = (size_t)b->len;
    /* Of a compressed file, len is a claim; text is only read where memory was
     * there for it, so it grows with what is really there. */
    if (!text_file_go(f, b->has_entry ? &b->entry : NULL, b->at))
        return false;
    size_t have = 0;
    while (have < n) {
        const size_t step = n - have < REST_BYTES ? n - have : REST_BYTES;
        if (!GROW(&t->text, &t->room, have + step + BLOCK_SLACK))
            return false;
        const ptrdiff_t got = text_file_read(f, t->text + have, step);
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    return bly_hash(hasher, t->text, n) == b->hash;
}

/* Does the id of a record stand where the number of its line does elsewhere? */
static bool names_records(const struct search *s, const struct target *target)
{
    return target->index && target->index->fields.has_id && s->numbers;
}

/* The wanted blocks of a file; without `wanted`, or if it is not in the index,
 * all of it. */
static void target_texts(struct searcher *t, const struct target *target,
                         const bool *wanted, const struct text_user *use)
{
    struct search *const s = t->search;
    const struct known_file *const k = target->known;
    bool more = true;
    struct text_file *const f = text_file_open(target->name, 0);
    if (!f) {
        fail_path(target->name, errno);
        s->trouble = true;
        return;
    }
    const struct fields *const fields =
        target->index ? &target->index->fields : NULL;
    t->cutter.fields = fields && fields->in.picker ? fields : NULL;
    t->cutter.wants_ids = names_records(s, target);
    if (k && t->cutter.fields && t->cutter.fields->csv &&
        !columns_find(t, f, target->name, NULL, 0)) {
        text_file_close(f);
        return;
    }
    size_t last = k ? k->nblocks : 0;
    while (wanted && last && !wanted[last - 1])
        last--;
    for (size_t i = 0; k && i < last && more; i++) {
        const struct block_place *const b = &k->blocks[i];
        if (wanted && !wanted[i]) {
            more = !use->skip || use->skip(use->ctx, b->nlines);
            continue;
        }
        if (b->len == 0)
            continue;
        s->opened++;
        if (!block_read(t, f, b, bly_index_hasher(target->index->x))) {
            warn("%s: from line %llu on it is not what was indexed; searched "
                 "without the index",
                 target->name, (unsigned long long)b->line + 1);
            if (!rest_read(t, f, target->name, b->at, b->line, use, &more)) {
                fail("%s: %s", target->name, text_file_error(f));
                s->trouble = true;
            }
            text_file_close(f);
            return;
        }
        more = text_use(t, use, t->text, (size_t)b->len, b->line, b->at == 0,
                        true);
    }
    if (!k && !rest_read(t, f, target->name, 0, 0, use, &more)) {
        fail("%s: %s", target->name, text_file_error(f));
        s->trouble = true;
    }
    text_file_close(f);
}

/* ------------------------------------------------------------------ direct */

struct direct {
    struct searcher *t;
    struct line_finder *finder;
    const struct target *target;
    size_t task;
    uint64_t found, most;
    bool print, stop;
};

static bool number_put(struct bytes *out, uint64_t x)
{
    char text[24];
    size_t n = sizeof text;
    do
        text[--n] = (char)('0' + x % 10);
    while (x /= 10);
    return bytes_put(out, text + n, sizeof text - n);
}

static bool direct_text(void *ctx, const char *text, size_t n, uint64_t line,
                        bool block)
{
    struct direct *const d = ctx;
    struct search *const s = d->t->search;
    struct bytes *const out = &d->t->out;
    struct found_line l;
    size_t at = 0, counted = 0;
    const uint64_t before = d->found, first = line;
    const bool named = names_records(s, d->target);
    if (!lines_begin(d->finder, text, n)) {
        fail("out of memory");
        s->trouble = true;
        return false;
    }
    while (d->found < d->most && lines_next(d->finder, text, n, &at, &l)) {
        d->found++;
        if (!d->print)
            continue;
        if (s->names) {
            bytes_put(out, d->target->name, strlen(d->target->name));
            bytes_put(out, ":", 1);
        }
        if (s->numbers) {
            line += lines_count(text + counted, l.at - counted);
            counted = l.at;
            if (named) {
                const bly_bytes id = fields_id(&d->t->cutter, line - first);
                bytes_put(out, id.ptr, id.len);
            } else {
                number_put(out, line + 1);
            }
            bytes_put(out, ":", 1);
        }
        bytes_put(out, text + l.at, l.end - l.at);
        if (text[l.end - 1] != '\n')
            bytes_put(out, "\n", 1);
    }
    s->hits += block && d->found > before;
    if (out->n >= (size_t)1 << 18 && !turns_put(&s->turns, d->task, out))
        return false;
    return d->found < d->most && !out->failed;
}

/* May it be searched without grep? */
static bool can_direct(const struct search *s, const struct target *target,
                       const struct question *q)
{
    const unsigned flags = target->known ? target->known->flags : 0;
    if (!q->plain || !target->known || !(s->utf8 || s->plain_locale) ||
        (flags & BLOCK_NULS))
        return false;
    return s->plain_locale ||
           !((flags & BLOCK_BAD) || (q->finder.fold && (flags & BLOCK_HIGH)));
}

/* -------------------------------------------------------------------- grep */

struct feeding {
    struct searcher *t;
    struct grep_run run;
    size_t task;
    bool named;
};

/* Remember the ids of a text that grep gets. */
static bool names_take(struct searcher *t, uint64_t line)
{
    struct named_lines *const to = &t->names;
    for (uint64_t i = 0; i < t->cutter.nlines; i++) {
        const bly_bytes id = fields_id(&t->cutter, i);
        if (!id.len)
            continue;
        if (!GROW(&to->lines, &to->room, to->n + 1) ||
            !bytes_put(&to->text, id.ptr, id.len))
            return no_memory(t);
        to->lines[to->n++] =
            (struct named_line){ line + i, to->text.n - id.len, id.len };
    }
    return true;
}

/* What grep printed, with ids for numbers: of lines that begin with the name of
 * the file, if that is printed, a number, and a mark. */
static void names_put(struct searcher *t, const char *name)
{
    const struct named_lines *const names = &t->names;
    const char *at = (const char *)t->grepped.at, *const end =
                                                      at + t->grepped.n;
    const size_t nname = t->search->names ? strlen(name) : 0;
    size_t next = 0;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop + 1 : end;
        const char *p = at;
        uint64_t line = 0;
        if (nname && (size_t)(end - at) > nname + 1 &&
            memcmp(at, name, nname) == 0 &&
            (at[nname] == ':' || at[nname] == '-'))
            p += nname + 1;
        /* A name may have a newline. */
        if (p > stop) {
            stop = memchr(p, '\n', (size_t)(end - p));
            stop = stop ? stop + 1 : end;
        }
        const char *const digits = p;
        while (p < stop && *p >= '0' && *p <= '9')
            line = line * 10 + (uint64_t)(*p++ - '0');
        if (p > digits && p < stop && (*p == ':' || *p == '-')) {
            while (next < names->n && names->lines[next].line + 1 < line)
                next++;
            bytes_put(&t->out, at, (size_t)(digits - at));
            if (next < names->n && names->lines[next].line + 1 == line)
                bytes_put(&t->out, names->text.at + names->lines[next].at,
                          names->lines[next].n);
            at = p;
        }
        bytes_put(&t->out, at, (size_t)(stop - at));
        at = stop;
    }
}

static bool grep_text(void *ctx, const char *text, size_t n, uint64_t line,
                      bool block)
{
    struct feeding *const g = ctx;
    (void)block;
    if (g->named && !names_take(g->t, line))
        return false;
    const bool more = grep_give(&g->run, text, n);
    if (g->run.to && !g->named && g->run.to->n >= (size_t)1 << 18 &&
        !turns_put(&g->t->search->turns, g->task, g->run.to))
        return false;
    return more;
}

static bool grep_gap(void *ctx, uint64_t nlines)
{
    struct feeding *const g = ctx;
    return grep_skip(&g->run, nlines);
}

/* Run grep over the wanted blocks of a file: its status. */
static int grep_search(struct searcher *t, const struct target *target,
                       const bool *wanted, char **argv, bool prints,
                       size_t task)
{
    struct search *const s = t->search;
    struct feeding g = { .t = t,
                         .task = task,
                         .named = prints && names_records(s, target) };
    const struct text_user use = { grep_text, grep_gap, &g };
    t->grepped.n = t->names.n = t->names.text.n = 0;
    if (!grep_start(&g.run, argv,
                    g.named  ? &t->grepped
                    : prints ? &t->out
                             : NULL)) {
        fail("grep: %s", g.run.error);
        s->trouble = true;
        return TROUBLE;
    }
    target_texts(t, target, wanted, &use);
    const int status = grep_end(&g.run);
    if (g.named)
        names_put(t, target->name);
    if (g.run.error)
        fail("grep: %s", g.run.error);
    if (status > 1)
        s->trouble = true;
    return status;
}

/* ------------------------------------------------------------------ a file */

static bool bit_of(const uint64_t *bitmap, uint64_t i)
{
    return bitmap[i / 64] >> i % 64 & 1;
}

/* Which blocks are to be read for these bits, with what is printed around their
 * lines. False: none. */
static bool blocks_wanted(struct searcher *t, const struct target *target,
                          const uint64_t *bits)
{
    const struct known_file *const k = target->known;
    const struct index_args *const a = t->search->args;
    bool any = false;
    if (!GROW(&t->wanted, &t->wanted_room, k->nblocks + 1)) {
        fail("out of memory");
        t->search->trouble = true;
        return false;
    }
    for (size_t i = 0; i < k->nblocks; i++)
        any |= t->wanted[i] = bit_of(bits, k->blocks[i].document);
    const uint64_t before = a->before == INDEX_UNGIVEN ? 0 : a->before;
    const uint64_t after = a->after == INDEX_UNGIVEN ? 0 : a->after;
    if (!any || (!before && !after))
        return any;
    for (size_t i = 0; i < k->nblocks; i++) {
        if (!bit_of(bits, k->blocks[i].document))
            continue;
        uint64_t lines = before;
        for (size_t j = i; j-- && lines;) {
            t->wanted[j] = true;
            lines -= lines < k->blocks[j].nlines ? lines : k->blocks[j].nlines;
        }
        lines = after;
        for (size_t j = i + 1; j < k->nblocks && lines; j++) {
            t->wanted[j] = true;
            lines -= lines < k->blocks[j].nlines ? lines : k->blocks[j].nlines;
        }
    }
    return true;
}

/* Is there a line that answers question i? */
static bool has_answer(struct searcher *t, const struct target *target,
                       size_t i, size_t task)
{
    struct search *const s = t->search;
    const struct question *const q = &s->questions[i];
    const bool *wanted = NULL;
    if (target->known) {
        const size_t words = bly_index_words(target->index->x);
        if (!blocks_wanted(t, target, target->index->maybe + i * words))
            return false;
        wanted = t->wanted;
    }
    if (can_direct(s, target, q)) {
        struct direct d = { .t = t,
                            .finder = &t->finders[i],
                            .target = target,
                            .task = task,
                            .most = 1 };
        const struct text_user use = { direct_text, NULL, &d };
        target_texts(t, target, wanted, &use);
        return d.found > 0;
    }
    if (target->known && (target->known->flags & BLOCK_NULS))
        wanted = NULL;
    return grep_search(t, target, wanted, q->argv, false, task) == 0;
}

static void print_count(struct searcher *t, const struct target *target,
                        uint64_t n)
{
    if (t->search->names) {
        bytes_put(&t->out, target->name, strlen(target->name));
        bytes_put(&t->out, ":", 1);
    }
    number_put(&t->out, n);
    bytes_put(&t->out, "\n", 1);
}

/* The lines of one file, or what else is asked of it. */
static void target_print(struct searcher *t, const struct target *target,
                         size_t task)
{
    struct search *const s = t->search;
    const struct index_args *const a = s->args;
    const bool quick = a->list || a->silent;
    const bool *wanted = NULL;
    bool some = true, found = false;
    if (target->known) {
        some = blocks_wanted(t, target, target->index->any);
        wanted = t->wanted;
    }
    for (size_t i = 0; some && i < s->nquestions && s->nquestions > 1; i++)
        some = has_answer(t, target, i, task);
    if (some && s->nquestions > 1 && target->known)
        blocks_wanted(t, target, target->index->any);
    if (!some) {
        if (a->count && !quick && !s->colored)
            print_count(t, target, 0);
        if (!a->count || quick || !s->colored)
            return;
    }
    if (some && quick && s->nquestions > 1) {
        found = true;
    } else if (s->direct && can_direct(s, target, &s->all)) {
        struct direct d = { .t = t,
                            .finder = &t->finder,
                            .target = target,
                            .task = task,
                            .most = quick ? 1 : a->most,
                            .print = !quick && !a->count };
        const struct text_user use = { direct_text, NULL, &d };
        target_texts(t, target, wanted, &use);
        found = d.found > 0;
        if (a->count && !quick)
            print_count(t, target, d.found);
    } else {
        char *name = NULL;
        size_t n = 0;
        while (s->argv[n])
            n++;
        char **const own = malloc((n + 1) * sizeof *own);
        if (!own || asprintf(&name, "--label=%s", target->name) < 0) {
            free(own);
            fail("out of memory");
            s->trouble = true;
            return;
        }
        memcpy(own, s->argv, (n + 1) * sizeof *own);
        own[s->label] = name;
        for (size_t i = 0; i < n && names_records(s, target); i++)
            if (strcmp(own[i], "--color=always") == 0)
                own[i] = (char *)(uintptr_t) "--color=never";
        if (target->known && (target->known->flags & BLOCK_NULS))
            wanted = NULL;
        found = grep_search(t, target, wanted, own, !quick, task) == 0;
        free(name);
        free(own);
    }
    if (found && a->list && !a->silent) {
        bytes_put(&t->out, target->name, strlen(target->name));
        bytes_put(&t->out, "\n", 1);
    }
    if (found)
        s->found = true;
    if (found && a->silent)
        turns_stop(&s->turns);
}

void target_search(struct search *s, struct searcher *t, size_t task)
{
    t->out.n = 0;
    target_print(t, &s->targets[task], task);
    if (t->out.failed) {
        fail("out of memory");
        s->trouble = true;
    }
    turns_done(&s->turns, task, &t->out);
}

/*
 * index_search.c - a search: its question, its files, and what it says
 *
 *     patterns -> needs -> index -> blocks that may match      index_needs.c
 *     folders  -> files that are new or changed                index_catalog.c
 *     both     -> targets, in the order of their names
 *     target   -> lines                                        index_target.c
 *
 * The index only leaves out; what matches is decided by reading.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/index/index_coverage.h"
#include "apps/index/index_search.h"
#include "base/signals.h"
#include "io/files.h"
#include "io/ordered.h"
#include "report/out.h"
#include "report/say.h"

#define ARGV_MOST 24
/* An argument of grep has 128 KiB at most. */
#define PATTERNS_BYTES_MOST 100000

static bool no_memory(void)
{
    fail("out of memory");
    return false;
}

/* ---------------------------------------------------------------- patterns */

static bool question_put(struct question *q, const char *text, size_t n)
{
    bly_bytes *const more =
        realloc(q->patterns, (q->n + 1) * sizeof *q->patterns);
    if (!more)
        return no_memory();
    q->patterns = more;
    char *const copy = malloc(n + 1);
    if (!copy)
        return no_memory();
    memcpy(copy, text, n);
    copy[n] = 0;
    q->patterns[q->n++] = (bly_bytes){ copy, n };
    return true;
}

/* The lines of a file as patterns. */
static bool question_file(struct question *q, const char *path)
{
    FILE *const in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    bool ok = true;
    if (!in) {
        fail_path(path, errno);
        return false;
    }
    while (ok && (n = getline(&line, &room, in)) >= 0) {
        if (n && line[n - 1] == '\n')
            n--;
        if (memchr(line, 0, (size_t)n)) {
            fail("%s: a pattern cannot contain NUL", path);
            ok = false;
        }
        ok = ok && question_put(q, line, (size_t)n);
    }
    if (ok && ferror(in)) {
        fail_path(path, errno);
        ok = false;
    }
    free(line);
    if (in != stdin)
        fclose(in);
    return ok;
}

static void question_free(struct question *q)
{
    for (size_t i = 0; i < q->n; i++)
        free((void *)(uintptr_t)q->patterns[i].ptr);
    free(q->patterns);
    free(q->joined);
    free((void *)(uintptr_t)q->finder.text);
    free(q->argv);
    *q = (struct question){ 0 };
}

/* Join its patterns as lines, and see whether it is one plain text. */
static bool question_ready(const struct search *s, struct question *q)
{
    size_t n = 1, len = 0;
    for (size_t i = 0; i < q->n; i++)
        n += q->patterns[i].len + 1;
    q->joined = malloc(n);
    if (!q->joined)
        return no_memory();
    n = 0;
    for (size_t i = 0; i < q->n; i++) {
        if (i)
            q->joined[n++] = '\n';
        memcpy(q->joined + n, q->patterns[i].ptr, q->patterns[i].len);
        n += q->patterns[i].len;
    }
    q->joined[n] = 0;
    if (n > PATTERNS_BYTES_MOST) {
        fail("the patterns are longer than %d bytes in all",
             PATTERNS_BYTES_MOST);
        return false;
    }
    if (q->n != 1)
        return true;
    char *const text = malloc(q->patterns[0].len + 1);
    if (!text)
        return no_memory();
    q->plain = pattern_plain(q->patterns[0], &s->rules, text, &len);
    bool ascii = true;
    for (size_t i = 0; i < len; i++)
        ascii &= (unsigned char)text[i] < 0x80;
    /* In UTF-8, a text that is not would match nothing, or by other rules. */
    q->plain =
        q->plain &&
        (ascii || (!s->rules.fold &&
                   (s->plain_locale || (s->utf8 && text_is_utf8(text, len)))));
    if (s->rules.fold)
        text_fold(text, len, true, text, NULL);
    q->finder = (struct line_finder){ .text = text,
                                      .n = len,
                                      .fold = s->rules.fold,
                                      .words = s->rules.words,
                                      .utf8 = s->utf8,
                                      .locale = s->locale };
    return true;
}

/* Operands that are indexes, and patterns from wherever they come. */
static bool question_take(struct search *s, const struct list *operands,
                          size_t *nindexes)
{
    const struct index_args *const a = s->args;
    const bool given = a->patterns.n || a->pattern_files.n;
    *nindexes = given ? operands->n : 1;
    while (!given && *nindexes + 1 < operands->n) {
        bly_index *x;
        if (access(operands->at[*nindexes], R_OK) != 0 ||
            bly_index_map(operands->at[*nindexes], NULL, &x))
            break;
        bly_index_free(x);
        ++*nindexes;
    }
    const size_t npatterns = operands->n - *nindexes;
    if (!given && npatterns == 0) {
        fail("a pattern is needed behind the index");
        return false;
    }
    s->nquestions = given ? 1 : npatterns;
    s->questions = calloc(s->nquestions, sizeof *s->questions);
    if (!s->questions)
        return no_memory();
    for (size_t i = 0; i < npatterns; i++) {
        const char *const p = operands->at[*nindexes + i];
        if (!question_put(&s->questions[i], p, strlen(p)) ||
            !question_put(&s->all, p, strlen(p)))
            return false;
    }
    for (size_t i = 0; i < a->patterns.n; i++)
        if (!question_put(&s->questions[0], a->patterns.at[i],
                          strlen(a->patterns.at[i])))
            return false;
    for (size_t i = 0; i < a->pattern_files.n; i++)
        if (!question_file(&s->questions[0], a->pattern_files.at[i]))
            return false;
    for (size_t i = 0; given && i < s->questions[0].n; i++)
        if (!question_put(&s->all, s->questions[0].patterns[i].ptr,
                          s->questions[0].patterns[i].len))
            return false;
    for (size_t i = 0; i < s->nquestions; i++)
        if (!question_ready(s, &s->questions[i]))
            return false;
    return question_ready(s, &s->all);
}

static void locale_learn(struct search *s)
{
    s->locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    const char *const set =
        s->locale ? nl_langinfo_l(CODESET, s->locale) : "ANSI_X3.4-1968";
    s->utf8 = strcmp(set, "UTF-8") == 0;
    s->plain_locale = strcmp(set, "ANSI_X3.4-1968") == 0;
    if (!s->utf8 && !s->plain_locale && s->locale) {
        const locale_t old = uselocale(s->locale);
        s->rules.multibyte = MB_CUR_MAX > 1;
        uselocale(old);
    }
}

/* -------------------------------------------------------------------- grep */

/* The arguments that follow from the options; room for them, and what the
 * caller adds. */
static char **grep_argv(const struct search *s, const struct question *q,
                        bool quick, size_t *label)
{
    const struct index_args *const a = s->args;
    /* The texts of numbers stand behind the pointers. */
    char **const argv = calloc(1, ARGV_MOST * sizeof *argv + (size_t)3 * 32);
    char *const numbers = (char *)(argv + ARGV_MOST);
    size_t n = 0;
    if (!argv)
        return NULL;
    static const char *const syntaxes[] = { "-G", "-E", "-F" };
    argv[n++] = (char *)(uintptr_t) "grep";
    argv[n++] = (char *)(uintptr_t)syntaxes[s->rules.syntax];
    if (s->rules.fold)
        argv[n++] = (char *)(uintptr_t) "-i";
    if (s->rules.words)
        argv[n++] = (char *)(uintptr_t) "-w";
    if (quick) {
        argv[n++] = (char *)(uintptr_t) "-q";
    } else {
        snprintf(numbers, 32, "-m%llu", (unsigned long long)a->most);
        snprintf(numbers + 32, 32, "-A%llu", (unsigned long long)a->after);
        snprintf(numbers + 64, 32, "-B%llu", (unsigned long long)a->before);
        argv[n++] = (char *)(uintptr_t)(s->names ? "-H" : "-h");
        if (s->numbers)
            argv[n++] = (char *)(uintptr_t) "-n";
        if (a->count)
            argv[n++] = (char *)(uintptr_t) "-c";
        if (a->only)
            argv[n++] = (char *)(uintptr_t) "-o";
        if (a->most != INDEX_UNGIVEN)
            argv[n++] = numbers;
        if (a->after != INDEX_UNGIVEN) /* 0 too has marks between groups */
            argv[n++] = numbers + 32;
        if (a->before != INDEX_UNGIVEN)
            argv[n++] = numbers + 64;
        argv[n++] = (char *)(uintptr_t)(s->colored ? "--color=always"
                                                   : "--color=never");
    }
    if (label) {
        *label = n;
        argv[n++] = (char *)(uintptr_t) "--label=";
    }
    argv[n++] = (char *)(uintptr_t) "-e";
    argv[n++] = q->joined;
    argv[n++] = (char *)(uintptr_t) "-";
    return argv;
}

/* Does grep take the pattern? It says itself what is wrong. */
static bool grep_takes(struct question *q)
{
    struct grep_run run;
    if (!grep_start(&run, q->argv, NULL)) {
        fail("grep: %s", run.error);
        return false;
    }
    return grep_end(&run) <= 1;
}

/* ----------------------------------------------------------------- indexes */

static void asked_free(struct asked_index *x, size_t nquestions)
{
    for (size_t i = 0; x->needs && i < nquestions; i++)
        needs_free(&x->needs[i]);
    free(x->needs);
    free(x->maybe);
    free(x->any);
    catalog_free(&x->catalog);
    fields_free(&x->fields);
    settings_free(&x->settings);
    bly_index_free(x->x);
}

static bool asked_open(struct asked_index *x, const char *path)
{
    x->path = path;
    if (bly_index_map(path, NULL, &x->x)) {
        x->x = NULL;
        fail_library();
        return false;
    }
    return settings_read(&x->settings, x->x, path) &&
           (!fields_any(&x->settings.fields) ||
            fields_new(&x->fields, &x->settings.fields)) &&
           catalog_read(&x->catalog, x->x);
}

/* Which blocks may match? */
static bool asked_ask(struct search *s, struct asked_index *x)
{
    const size_t words = bly_index_words(x->x);
    uint64_t *const scratch = calloc(2 * words + 1, sizeof *scratch);
    x->needs = calloc(s->nquestions, sizeof *x->needs);
    x->maybe = calloc(s->nquestions * words + 1, sizeof *x->maybe);
    x->any = calloc(words + 1, sizeof *x->any);
    bool ok = scratch && x->needs && x->maybe && x->any;
    if (!ok)
        no_memory();
    for (size_t i = 0; ok && i < s->nquestions; i++) {
        const struct question *const q = &s->questions[i];
        uint64_t *const maybe = x->maybe + i * words;
        const bool knows = s->utf8 || s->plain_locale || !s->rules.fold;
        if (knows &&
            !needs_find(q->patterns, q->n, &s->rules, &x->settings.terms,
                        bly_index_hasher(x->x), &x->needs[i])) {
            ok = no_memory();
            break;
        }
        x->helps |= x->needs[i].n > 0;
        if (needs_ask(&x->needs[i], x->x, maybe, scratch)) {
            fail_library();
            ok = false;
        }
        for (size_t j = 0; ok && j < words; j++)
            x->any[j] |= maybe[j];
    }
    free(scratch);
    if (ok && !x->helps && !quiet)
        note("%s: the index cannot help with this pattern%s; all files are "
             "searched",
             x->path,
             s->rules.fold && !x->settings.terms.fold
                 ? ", since it was not built with -i"
             : x->settings.terms.has[TERM_GRAMS]
                 ? ", of which no four characters in a row are certain"
                 : ", of which no word is certain");
    if (ok && bly_index_damage(x->x))
        warn("%s: damaged in part; more files are searched than necessary",
             x->path);
    if (ok && x->catalog.ndamaged)
        warn("%s: %llu blocks are damaged; their files are searched without "
             "the index",
             x->path, (unsigned long long)x->catalog.ndamaged);
    return ok;
}

/* ----------------------------------------------------------------- targets */

struct walk_of {
    struct search *s;
    struct asked_index *x;
};

static bool target_put(struct search *s, const char *name,
                       struct known_file *known, const struct asked_index *x)
{
    const uint64_t hash = table_hash(name, strlen(name));
    LOOKUP_EACH (&s->names_seen, hash, row) {
        if (strcmp(s->targets[row].name, name) == 0) {
            /* Two indexes have it: as it is now is better. */
            if (known && !s->targets[row].known)
                s->targets[row] = (struct target){ name, known, x };
            return true;
        }
    }
    if (!GROW(&s->targets, &s->targets_room, s->ntargets + 1) ||
        !lookup_add(&s->names_seen, hash, s->ntargets))
        return no_memory();
    s->targets[s->ntargets++] = (struct target){ name, known, x };
    return true;
}

/* A file that no index knows: its name must stay. */
static bool target_new(struct search *s, const char *path,
                       const struct asked_index *x)
{
    char *const name = strdup(path);
    if (!name || !GROW(&s->fresh_names, &s->fresh_room, s->nnew + 1)) {
        free(name);
        return no_memory();
    }
    s->fresh_names[s->nnew++] = name;
    return target_put(s, name, NULL, x);
}

/* Is it binary, as far as building looks? */
static bool looks_binary(const char *path)
{
    struct text_file *const t = text_file_open(path, 0);
    char buf[32768];
    size_t n = 0;
    ptrdiff_t got = 1;
    while (t && got > 0 && n < sizeof buf) {
        got = text_file_read(t, buf + n, sizeof buf - n);
        n += got > 0 ? (size_t)got : 0;
    }
    text_file_close(t);
    return n && memchr(buf, 0, n);
}

/* May a file that is as it was have an answer, or be printed without one? */
static bool known_wanted(const struct search *s, const struct asked_index *x,
                         const struct known_file *k)
{
    bool any = s->args->count || k->flags & BLOCK_UNREAD;
    for (size_t i = 0; i < k->nblocks && !any; i++) {
        const uint64_t d = k->blocks[i].document;
        any = x->any[d / 64] >> d % 64 & 1;
    }
    return any;
}

static bool to_search(void *ctx, const char *path, const struct stat *st)
{
    struct walk_of *const w = ctx;
    struct search *const s = w->s;
    struct known_file *const k = catalog_find(&w->x->catalog, path);
    if (!st) {
        if (k && errno == ENOENT)
            return true; /* it is counted with those that are gone */
        if (errno == ENOENT) {
            note("%s: is gone", path);
        } else {
            fail_path(path, errno);
            s->trouble = true;
        }
        return true;
    }
    for (size_t i = 0; i < s->nindexes; i++)
        if (st->st_ino == s->own[i].st_ino && st->st_dev == s->own[i].st_dev)
            return true;
    if (!S_ISREG(st->st_mode) ||
        !part_has(w->x->settings.part, w->x->settings.nparts, path))
        return true;
    const struct file_mark mark = mark_of(st);
    if (k) {
        k->met = true;
        if (k->whole && marks_agree(&mark, &k->mark)) {
            if (k->flags & BLOCK_BINARY) {
                s->nbinary++;
                return true;
            }
            if (!known_wanted(s, w->x, k))
                return true;
            return target_put(s, k->name, k->flags & BLOCK_UNREAD ? NULL : k,
                              w->x);
        }
        if (s->nchanged++ == 0)
            s->changed = k->name;
        return target_put(s, k->name, NULL, w->x);
    }
    if (!w->x->settings.binary && looks_binary(path)) {
        s->nbinary++;
        return true;
    }
    return target_new(s, path, w->x);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct target *)a)->name,
                  ((const struct target *)b)->name);
}

static bool targets_find(struct search *s)
{
    s->own = calloc(s->nindexes + 1, sizeof *s->own);
    if (!s->own)
        return no_memory();
    for (size_t i = 0; i < s->nindexes; i++)
        (void)!stat(s->indexes[i].path, &s->own[i]);
    for (size_t i = 0; i < s->nindexes; i++) {
        struct asked_index *const x = &s->indexes[i];
        struct walk_of w = { s, x };
        const struct index_settings *const set = &x->settings;
        for (size_t j = 0; j < set->nroots; j++)
            if (!index_walk(set->roots[j], to_search, &w))
                return false;
        size_t gone = 0;
        for (size_t j = 0; j < x->catalog.nfiles; j++) {
            const struct known_file *const k = &x->catalog.files[j];
            if (k->met)
                continue;
            if (gone++ == 0)
                s->gone = k->name;
        }
        s->ngone += gone;
        if (gone && gone == x->catalog.nfiles && !s->trouble) {
            char *const here = getcwd(NULL, 0);
            const bool moved =
                here && strcmp(here, set->folder) != 0 && s->gone[0] != '/';
            fail("%s: none of its %zu files is there, such as %s%s%s", x->path,
                 gone, s->gone,
                 moved ? "; its names are relative, and it was built in " : "",
                 moved ? set->folder : "");
            free(here);
            return false;
        }
    }
    if (s->ntargets)
        qsort(s->targets, s->ntargets, sizeof *s->targets, by_name);
    return true;
}

/* What is said of files besides their lines. */
static void targets_tell(const struct search *s)
{
    if (s->nchanged)
        note("%s: changed since it was indexed%s; searched without the index",
             s->changed, s->nchanged > 1 ? ", as were others" : "");
    if (s->nnew)
        note("%zu new file%s searched without the index, such as %s; bloomery "
             "index add takes them in",
             s->nnew, s->nnew == 1 ? "" : "s", s->fresh_names[0]);
    if (s->gone)
        note("%zu indexed file%s gone, such as %s", s->ngone,
             s->ngone == 1 ? " is" : "s are", s->gone);
    if (s->nbinary)
        note("%zu binary file%s not searched; build with --binary to include "
             "%s",
             s->nbinary, s->nbinary == 1 ? " was" : "s were",
             s->nbinary == 1 ? "it" : "them");
}

/* ------------------------------------------------------------------ running */

static void *search_worker(void *ctx)
{
    struct search *const s = ctx;
    struct searcher *const t = searcher_new(s);
    sigset_t pipes;
    size_t task;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, NULL);
    if (!t) {
        no_memory();
        s->trouble = true;
        turns_stop(&s->turns);
        return NULL;
    }
    while (turns_take(&s->turns, &task))
        target_search(s, t, task);
    searcher_free(t);
    return NULL;
}

static bool search_run(struct search *s, unsigned nthreads)
{
    pthread_t threads[256];
    unsigned n = 0;
    if (!turns_begin(&s->turns, s->ntargets)) {
        turns_end(&s->turns);
        return no_memory();
    }
    if (nthreads > s->ntargets)
        nthreads = (unsigned)s->ntargets;
    /* All of them are made here, so that SIGPIPE stays as it was in this one.
     */
    while (n < nthreads && n < 256 &&
           pthread_create(&threads[n], NULL, search_worker, s) == 0)
        n++;
    if (!n && s->ntargets)
        search_worker(s);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    const int error = s->turns.error;
    turns_end(&s->turns);
    if (error == EPIPE)
        signals_die(SIGPIPE);
    if (error)
        fail("standard output: %s", strerror(error));
    return !error;
}

/* Would -w have opened far fewer? */
static void advise(struct search *s)
{
    struct pattern_rules words = s->rules;
    uint64_t with = 0;
    words.words = true;
    if (s->rules.words || quiet || s->opened < 32 || s->hits * 4 > s->opened ||
        s->args->coverage > 0)
        return;
    for (size_t i = 0; i < s->nindexes; i++) {
        struct asked_index *const x = &s->indexes[i];
        const size_t nwords = bly_index_words(x->x);
        uint64_t *const bits = calloc(3 * nwords + 1, sizeof *bits);
        struct needs needs = { 0 };
        const bool ok =
            bits &&
            needs_find(s->all.patterns, s->all.n, &words, &x->settings.terms,
                       bly_index_hasher(x->x), &needs) &&
            !needs_ask(&needs, x->x, bits, bits + nwords);
        for (size_t j = 0; ok && j < nwords; j++)
            with += (uint64_t)__builtin_popcountll(bits[j]);
        needs_free(&needs);
        free(bits);
        if (!ok)
            return;
    }
    if (with * 10 < s->opened)
        note("%llu blocks were read, and %llu had a match; if the pattern is a "
             "whole word, -w would read %llu",
             (unsigned long long)s->opened, (unsigned long long)s->hits,
             (unsigned long long)with);
}

static int print_maybe(struct search *s)
{
    bool any = false;
    for (size_t i = 0; i < s->ntargets; i++) {
        const struct target *const t = &s->targets[i];
        struct index_candidate c = { .file = t->name };
        bool all = true;
        if (t->known) {
            const size_t words = bly_index_words(t->index->x);
            c.of = t->known->nblocks;
            for (size_t q = 0; q < s->nquestions; q++) {
                bool some = false;
                for (size_t j = 0; j < t->known->nblocks; j++) {
                    const uint64_t d = t->known->blocks[j].document;
                    some |= t->index->maybe[q * words + d / 64] >> d % 64 & 1;
                }
                all &= some;
            }
            for (size_t j = 0; j < t->known->nblocks; j++) {
                const uint64_t d = t->known->blocks[j].document;
                c.blocks += t->index->any[d / 64] >> d % 64 & 1;
            }
        }
        if (!all)
            continue;
        any = true;
        if (s->args->silent)
            continue;
        if (s->args->json)
            report(stdout, true, index_candidate_fields, &c, "");
        else
            printf("%s\n", t->name);
    }
    return any ? YES : NO;
}

static void search_free(struct search *s)
{
    for (size_t i = 0; i < s->nindexes; i++)
        asked_free(&s->indexes[i], s->nquestions);
    free(s->indexes);
    for (size_t i = 0; i < s->nquestions; i++)
        question_free(&s->questions[i]);
    free(s->questions);
    question_free(&s->all);
    free(s->argv);
    free(s->targets);
    lookup_free(&s->names_seen);
    for (size_t i = 0; i < s->nnew; i++)
        free(s->fresh_names[i]);
    free(s->fresh_names);
    free(s->own);
    if (s->locale)
        freelocale(s->locale);
}

static int search_asked(struct search *s, const struct list *operands)
{
    const struct index_args *const a = s->args;
    size_t nindexes;
    locale_learn(s);
    if (!question_take(s, operands, &nindexes))
        return TROUBLE;
    for (size_t i = 0; i < s->nquestions; i++) {
        s->questions[i].argv = grep_argv(s, &s->questions[i], true, NULL);
        if (!s->questions[i].argv)
            return fail("out of memory");
        if (!a->maybe && !s->questions[i].plain &&
            !grep_takes(&s->questions[i]))
            return TROUBLE;
    }
    s->direct = !a->only && a->after == INDEX_UNGIVEN &&
                a->before == INDEX_UNGIVEN && !s->colored;
    s->argv = grep_argv(s, &s->all, a->list || a->silent, &s->label);
    if (!s->argv)
        return fail("out of memory");
    s->indexes = calloc(nindexes + 1, sizeof *s->indexes);
    if (!s->indexes)
        return fail("out of memory");
    for (size_t i = 0; i < nindexes; i++) {
        struct asked_index *const x = &s->indexes[i];
        s->nindexes++;
        if (!asked_open(x, operands->at[i]))
            return TROUBLE;
        if (x->settings.terms.has[TERM_KMERS])
            return fail("%s: has sequences, not lines; ask it with --coverage "
                        "and -f FILE",
                        x->path);
        if (!asked_ask(s, x))
            return TROUBLE;
    }
    if (!targets_find(s))
        return TROUBLE;
    targets_tell(s);
    if (a->maybe)
        return print_maybe(s);
    if (!search_run(s, thread_count(a->threads)))
        return TROUBLE;
    advise(s);
    return a->silent && s->found ? YES
           : s->trouble          ? TROUBLE
           : s->found            ? YES
                                 : NO;
}

int index_search(const struct index_args *args, const struct list *operands)
{
    struct index_args a = *args;
    struct search s = { .args = &a };
    if (a.invert)
        return fail("-v is refused: lines without the pattern are in every "
                    "block, so an index cannot help; use zgrep -v");
    if (a.fixed + a.extended + a.basic > 1)
        return fail("only one of -F, -E and -G can hold");
    if (a.coverage > 0)
        return index_coverage(&a, operands);
    if (a.context != INDEX_UNGIVEN) {
        a.after = a.after == INDEX_UNGIVEN ? a.context : a.after;
        a.before = a.before == INDEX_UNGIVEN ? a.context : a.before;
    }
    s.rules = (struct pattern_rules){ .syntax = a.fixed      ? PATTERN_FIXED
                                                : a.extended ? PATTERN_EXTENDED
                                                             : PATTERN_BASIC,
                                      .words = a.words,
                                      .fold = a.ignore_case };
    a.silent |= quiet;
    s.names = !a.no_name;
    s.numbers = !a.no_number && !a.count && !a.list;
    const char *const term = getenv("TERM");
    s.colored = a.color == 1 || (a.color == 0 && out_is_terminal() && term &&
                                 strcmp(term, "dumb") != 0);
    const int status = search_asked(&s, operands);
    search_free(&s);
    return status;
}

/*
 * sync_run.c - a sync from beginning to end, and the report
 */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "apps/sync/sync_line.h"
#include "apps/sync/sync_server.h"
#include "apps/sync/sync.h"
#include "base/clock.h"
#include "base/signals.h"
#include "io/files.h"
#include "report/say.h"
#include "report/show.h"

#define SYNC_TIMEOUT 60 /* seconds */

static const char sync_text[] =
    "[{?same}{path} and {peer} have the same {here} {form}"
    "|{path} and {peer} differ: {only_here} {form} only here, {only_there} "
    "only there[{?changed}, {changed} changed]]"
    "[{!complete}; {method} finds most differences, not all]\n"
    "[{?taken}{taken} {form} taken, {taken_bytes}\n]"
    "[{?given}{given} {form} given, {given_bytes}\n]"
    "[{?removed}{removed} removed\n]"
    "[{?refused}{refused} refused\n]"
    "compared by {method}: {compared} both ways; the plain list takes {plain}"
    "[, rsync's about {rsync}]\n"
    "in all {sent} sent, {received} received, {rounds} rounds\n";

/* ----------------------------------------------------------------- one side */

static bool access_missing(const char *path)
{
    struct stat st;
    return stat(path, &st) && errno == ENOENT;
}

static bool begin_set(struct sync_set *set, const struct sync_args *args,
                      const struct secure_secret *secret, const char *path,
                      bool may_miss)
{
    struct stat st;
    const size_t n = strlen(path);
    const bool there = !stat(path, &st);
    *set = (struct sync_set){ .path = path,
                              .may_miss = may_miss,
                              .nul = args->nul,
                              .secret = shared_hashes(secret),
                              .coded = args->method == SYNC_CHOOSE ||
                                       args->method == SYNC_RATELESS,
                              .nthreads = (unsigned)args->threads };
    set->form = there ? S_ISDIR(st.st_mode) ? SYNC_FILES : SYNC_LINES
                : n && path[n - 1] == '/' ? SYNC_FILES
                                          : SYNC_LINES;
    if (args->objects) {
        if (there && set->form == SYNC_LINES)
            return refuse("%s: not a folder; --objects is for folders", path);
        set->form = SYNC_OBJECTS;
    }
    return true;
}

static void *read_set(void *set)
{
    return set_read(set) ? set : NULL;
}

/* The bytes of the other side's list, and what rsync would send: for a file its
 * flags, size and time, some 12 bytes, and what its name does not share with
 * the one before. */
static void count_plain(struct sync_client *c)
{
    const struct sync_set *const set = c->set;
    struct sync_report *const r = &c->report;
    if (set->form == SYNC_LINES) {
        r->plain = c->there_bytes;
        return;
    }
    uint64_t names = 0, rest = 0;
    const char *before = "";
    for (size_t i = 0; i < set->n; i++) {
        const char *const path = file_path(set, &set->files[set->by_path[i]]);
        size_t same = 0;
        while (same < 255 && path[same] && path[same] == before[same])
            same++;
        names += strlen(path);
        rest += strlen(path) - same;
        before = path;
    }
    const double scale = set->n ? (double)r->there / (double)set->n : 0;
    r->plain = (uint64_t)(scale * (double)names) + 27 * r->there;
    r->rsync = (uint64_t)(scale * (double)rest) + 12 * r->there;
}

static int tell(struct sync_client *c, const struct sync_args *args,
                double start)
{
    struct sync_report *const r = &c->report;
    static const char *const forms[] = { "", "lines", "files", "objects" };
    r->form = forms[c->set->form];
    r->dry_run = c->dry_run;
    r->same = !r->only_here && !r->only_there && !r->changed;
    r->sent = c->line.sent;
    r->received = c->line.received;
    r->rounds = c->line.rounds;
    if (r->compared > r->sent + r->received)
        r->compared = r->sent + r->received;
    count_plain(c);
    r->saved = r->compared ? (double)r->plain / (double)r->compared : NAN;
    r->seconds = clock_seconds() - start;
    FILE *const to = c->shows && !args->json ? stderr : stdout;
    if (c->dry_run) /* nothing came or went */
        r->taken = r->given = r->taken_bytes = r->given_bytes = 0;
    if (!quiet || args->json)
        report(to, args->json, sync_fields, r, sync_text);
    if (r->refused)
        return TROUBLE;
    return c->dry_run && !r->same ? NO : YES;
}

/* ----------------------------------------------------------- the other side */

/* In this process: a call. */
static bool call_exchange(void *ctx, const struct block *question,
                          struct block *answer, char why[SYNC_WHY])
{
    (void)why;
    server_answer(ctx, (const unsigned char *)question->at, question->len,
                  answer);
    return true;
}

/* A word for a shell. */
static bool quote(struct block *to, const char *word)
{
    bool ok = block_put(to, "'", 1);
    for (; ok && *word; word++)
        ok = *word == '\'' ? block_put(to, "'\\''", 4) : block_put(to, word, 1);
    return ok && block_put(to, "'", 1);
}

/* RSH HOST 'bloomery sync serve --stdio PATH' */
static char *rsh_command(const struct sync_args *args, const char *peer,
                         bool writes)
{
    const char *const colon = strchr(peer, ':');
    struct block there = { 0 }, all = { 0 };
    if (!colon || colon == peer || !colon[1] || peer[0] == '-') {
        fail("'%s' is not of the form HOST:PATH", peer);
        return NULL;
    }
    char *const host = strndup(peer, (size_t)(colon - peer));
    const char *const program = args->remote ? args->remote : "bloomery";
    bool ok = host && block_put(&there, program, strlen(program)) &&
              block_put(&there, " sync serve --stdio ", 20) &&
              (!writes || block_put(&there, "--write ", 8)) &&
              (!args->objects || block_put(&there, "--objects ", 10)) &&
              (!args->nul || block_put(&there, "--null ", 7)) &&
              quote(&there, colon + 1) && block_put(&there, "", 1) &&
              block_put(&all, args->rsh, strlen(args->rsh)) &&
              block_put(&all, " ", 1) && quote(&all, host) &&
              block_put(&all, " ", 1) && quote(&all, there.at) &&
              block_put(&all, "", 1);
    free(host);
    block_free(&there);
    if (ok)
        return all.at;
    block_free(&all);
    fail("out of memory");
    return NULL;
}

static bool is_address(const char *peer)
{
    struct stat st;
    const char *const colon = strrchr(peer, ':');
    return stat(peer, &st) && colon && colon[1] && !strchr(peer, '/') &&
           strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

/* Compare and move, with a line that is there. */
static int run_client(struct sync_client *c, const struct sync_args *args,
                      double start)
{
    progress_start(false);
    progress_unit(c->set->form == SYNC_LINES ? "lines" : "files");
    const bool ok = client_compare(c) && client_move(c);
    progress_clear();
    const int status =
        ok ? tell(c, args, start) : fail("%s: %s", c->report.peer, c->why);
    sync_client_free(c);
    return status;
}

/* Why a set could not be read. */
static int set_trouble(const struct sync_set *set)
{
    return set->told ? TROUBLE : fail("%s", set->why);
}

static int with_local(struct sync_client *c, const struct sync_args *args,
                      const struct secure_secret *secret, const char *peer,
                      double start)
{
    struct sync_set theirs;
    struct sync_server server = { .set = &theirs, .writes = true };
    pthread_t other;
    if (!begin_set(&theirs, args, secret, peer, c->give && !c->dry_run))
        return TROUBLE;
    /* What is not there yet becomes what the other is. */
    if (c->set->may_miss && c->set->form == SYNC_LINES &&
        access_missing(c->set->path))
        c->set->form = theirs.form;
    if (theirs.may_miss && access_missing(peer))
        theirs.form = c->set->form;
    const bool both = !pthread_create(&other, NULL, read_set, &theirs);
    bool ok = set_read(c->set);
    void *read = NULL;
    if (both)
        pthread_join(other, &read);
    else
        read = read_set(&theirs);
    c->line = (struct sync_line){ .exchange = call_exchange, .ctx = &server };
    const int status = !ok     ? set_trouble(c->set)
                       : !read ? set_trouble(&theirs)
                               : run_client(c, args, start);
    server_free(&server);
    set_free(&theirs);
    return status;
}

static int with_session(struct sync_client *c, const struct sync_args *args,
                        const struct secure_secret *secret, const char *peer,
                        double start)
{
    struct sync_session s;
    char *command = NULL;
    sync_begin(&s, secret, args->timeout ? args->timeout : SYNC_TIMEOUT);
    if (!args->pipe && args->rsh) {
        command = rsh_command(args, peer, c->give && !c->dry_run);
        if (!command)
            return TROUBLE;
    }
    signals_no_pipe();
    /* A server gives a greeting no more time than any message, and does not
     * read its own set before: this side is read first. A command that is
     * started reads its set side by side with this one. */
    const bool spawned = args->pipe || command;
    if (!spawned && !set_read(c->set))
        return set_trouble(c->set);
    const bool there = sync_reach(&s, peer, command ? command : args->pipe);
    free(command);
    if (!there)
        return TROUBLE;
    c->line = sync_line_over(&s);
    int status = !spawned || set_read(c->set) ? run_client(c, args, start)
                                              : set_trouble(c->set);
    const int how = session_close(&s.session);
    if (how && status != TROUBLE)
        status = fail("the command of the other side failed, with status %d",
                      WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how));
    return status;
}

static int sync_with(const struct sync_args *args, const struct list *operands,
                     const char *verb, bool take, bool give)
{
    const double start = clock_seconds();
    const bool compares = !strcmp(verb, "compare");
    struct sync_set mine;
    struct secure_secret secret;
    struct sync_client c = { .set = &mine,
                             .take = take,
                             .give = give,
                             .removes = args->deletes,
                             .dry_run = args->dry_run || compares,
                             .output = args->output };
    c.shows = c.dry_run && !quiet && !args->json;
    if (operands->n != (args->pipe ? 1u : 2u))
        return fail("%s needs %s", verb,
                    args->pipe ? "one path beside --pipe"
                               : "a path, and another or HOST:PORT");
    const char *const path = operands->at[0];
    const char *const peer = args->pipe ? args->pipe : operands->at[1];
    c.method = args->method;
    if (args->deletes && take == give)
        return fail("--delete goes with pull or push");
    if (args->output && (!take || give))
        return fail("-o goes with pull");
    if (args->deletes && (c.method == SYNC_BLOOM || c.method == SYNC_TREE))
        return fail("--delete needs all differences, which --method %s does "
                    "not find",
                    sync_methods[c.method]);
    if (!secure_read(args->key_file, &secret) ||
        !begin_set(&mine, args, &secret, path, take && !c.dry_run))
        return TROUBLE;
    c.report = (struct sync_report){ .path = path, .peer = peer, .verb = verb };
    const bool wire = args->pipe || args->rsh || is_address(peer);
    const int status = wire ? with_session(&c, args, &secret, peer, start)
                            : with_local(&c, args, &secret, peer, start);
    set_free(&mine);
    return status;
}

int sync_local(const struct sync_args *args, struct list *operands)
{
    return sync_with(args, operands, "compare", true, true);
}

int sync_pull(const struct sync_args *args, struct list *operands)
{
    return sync_with(args, operands, "pull", true, false);
}

int sync_push(const struct sync_args *args, struct list *operands)
{
    return sync_with(args, operands, "push", false, true);
}

int sync_both(const struct sync_args *args, struct list *operands)
{
    return sync_with(args, operands, "both", true, true);
}

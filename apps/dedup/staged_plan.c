/*
 * staged_plan.c - which task does what, written down before anything is done
 *
 * Every task gets about as many bytes of the inputs. A plain file may be cut
 * at the ends of lines; a compressed file, or one that is a document itself,
 * belongs to one task, and counts for more, since it is longer than it looks.
 * The plan has the sizes and times of the inputs, and a task that finds another
 * one there refuses. Times are those that the file system gives, so clocks do
 * not matter.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/dedup/staged.h"
#include "base/search.h"
#include "io/paths.h"
#include "io/source.h"
#include "io/unpack.h"

#define PACKED_WEIGHT 4 /* bytes of text in a compressed one, about */

enum { PLAN_HEAD, PLAN_TEXT, PLAN_FILES, PLAN_SEGMENTS, PLAN_PIECES };

/* ----------------------------------------------------------------- shares */

struct cutting {
    struct dedup_job *job;
    struct staged *st;
    size_t room;
    uint64_t each, sum; /* bytes of a share; of the files so far */
};

static bool is_packed(const char *name, bool *packed)
{
    unsigned char bytes[UNPACK_MAGIC];
    bool more;
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    *packed = n > 0 && source_lines() == SOURCE_LINES &&
              unpacker_of(bytes, (size_t)n, &more) != NULL;
    return n >= 0;
}

static bool add_segment(struct cutting *c, struct plan_segment s)
{
    struct staged *const st = c->st;
    const uint64_t last = st->head.ntasks - 1;
    s.share = s.share < last ? s.share : last;
    if (!ROOM(st->segments, c->room, (size_t)st->head.nsegments + 1))
        return dedup_fail(c->job, "out of memory");
    st->segments[st->head.nsegments++] = s;
    return true;
}

/* The place of the first line that begins at `at` or behind it; size: none. */
static bool line_from(int fd, uint64_t at, uint64_t size, uint64_t *line)
{
    char buf[65536];
    uint64_t from = at ? at - 1 : 0;
    *line = at;
    while (at && from < size) {
        const ssize_t n = pread(fd, buf, sizeof buf, (off_t)from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        const char *const end = memchr(buf, '\n', (size_t)n);
        if (end) {
            *line = from + (uint64_t)(end - buf) + 1;
            return true;
        }
        from += (uint64_t)n;
        *line = size;
    }
    return true;
}

static bool cut_file(struct cutting *c, uint64_t file, uint64_t size)
{
    const char *const name = c->st->names[file];
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    uint64_t from = 0;
    bool ok = fd >= 0;
    for (uint64_t share = c->sum / c->each; ok && from < size; share++) {
        const uint64_t end = (share + 1) * c->each - c->sum;
        uint64_t to = size;
        if (share + 1 < c->st->head.ntasks && end < size)
            ok = line_from(fd, end, size, &to);
        if (ok && to > from)
            ok = add_segment(
                c, (struct plan_segment){ share, file, from, to - from });
        from = to > from ? to : from;
    }
    if (!ok)
        dedup_fail(c->job, "%s: %s", name, strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

/* The weight of every file, and whether it is in one piece. */
static bool weigh(struct cutting *c, uint64_t *weights, bool *wholes)
{
    struct staged *const st = c->st;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < st->head.nfiles; i++) {
        struct stat s;
        const char *const name = st->names[i];
        bool packed = false;
        if (is_dash(name))
            return dedup_fail(c->job, "tasks read the inputs several times, so "
                                      "standard input cannot be one; write it "
                                      "to a file");
        if (stat(name, &s) != 0 || !is_packed(name, &packed))
            return dedup_fail(c->job, "%s: %s", name, strerror(errno));
        if (!S_ISREG(s.st_mode))
            return dedup_fail(c->job,
                              "%s: not a regular file, and tasks read it "
                              "several times; write it to a file",
                              name);
        if (strchr(name, '\n'))
            return dedup_fail(c->job, "an input has a newline in its name");
        st->files[i] = (struct plan_file){ s.st_size, s.st_mtim.tv_sec,
                                           s.st_mtim.tv_nsec };
        wholes[i] = packed || c->job->opt->format == DEDUP_FILES;
        weights[i] = (uint64_t)s.st_size * (packed ? PACKED_WEIGHT : 1);
        sum += weights[i];
    }
    c->each = sum / st->head.ntasks + 1;
    return true;
}

static bool cut_all(struct cutting *c)
{
    const uint64_t n = c->st->head.nfiles;
    uint64_t *const weights = calloc(n + 1, sizeof *weights);
    bool *const wholes = calloc(n + 1, sizeof *wholes);
    bool ok = (weights && wholes) || dedup_fail(c->job, "out of memory");
    ok = ok && weigh(c, weights, wholes);
    for (uint64_t i = 0; ok && i < n; i++) {
        if (wholes[i] || weights[i] == 0)
            ok = add_segment(
                c, (struct plan_segment){ (c->sum + weights[i] / 2) / c->each,
                                          i, 0, 0 });
        else
            ok = cut_file(c, i, weights[i]);
        c->sum += weights[i];
    }
    free(weights);
    free(wholes);
    return ok;
}

/* ----------------------------------------------------------------- the plan */

/* Words and names out of the text; false where it has not so many. */
static bool split_text(struct staged *st)
{
    const uint64_t n = st->head.nwords + st->head.nfiles;
    size_t at = 0;
    if (n > st->ntext)
        return false;
    st->words = calloc(n + 1, sizeof *st->words);
    if (!st->words)
        return false;
    st->names = st->words + st->head.nwords;
    for (uint64_t i = 0; i < n; i++) {
        const char *const end =
            at < st->ntext ? memchr(st->text + at, '\0', st->ntext - at) : NULL;
        if (!end)
            return false;
        st->words[i] = st->text + at;
        at = (size_t)(end - st->text) + 1;
    }
    return at == st->ntext;
}

static bool put_word(struct dedup_job *job, struct staged *st, size_t *room,
                     const char *word)
{
    const size_t n = strlen(word) + 1;
    if (!ROOM(st->text, *room, st->ntext + n))
        return dedup_fail(job, "out of memory");
    memcpy(st->text + st->ntext, word, n);
    st->ntext += n;
    return true;
}

static void find_print(struct staged *st)
{
    uint64_t sum = dedup_chain(1, &st->head, sizeof st->head);
    sum = dedup_chain(sum, st->text, st->ntext);
    sum = dedup_chain(sum, st->files, st->head.nfiles * sizeof *st->files);
    sum = dedup_chain(sum, st->segments,
                      st->head.nsegments * sizeof *st->segments);
    st->run = sum ? sum : 1;
}

static bool put_plan(struct dedup_job *job, const struct staged *st)
{
    struct part_out out;
    if (!part_begin(job, st, STAGE_PLAN, 0, PLAN_PIECES, &out))
        return false;
    return part_end(&out,
                    part_put(&out, PLAN_HEAD, &st->head, sizeof st->head) &&
                        part_put(&out, PLAN_TEXT, st->text, st->ntext) &&
                        part_put(&out, PLAN_FILES, st->files,
                                 st->head.nfiles * sizeof *st->files) &&
                        part_put(&out, PLAN_SEGMENTS, st->segments,
                                 st->head.nsegments * sizeof *st->segments));
}

static bool folder_of(struct dedup_job *job, const char *folder,
                      struct staged *st)
{
    st->folder = realpath(folder, NULL);
    return st->folder || dedup_fail(job, "%s: %s", folder, strerror(errno));
}

/* What all tasks need alike: also whether web pages can be read. */
static void put_version(char *to, size_t room)
{
    snprintf(to, room, "%s%s", bly_version(),
             html_works() ? " with pages" : "");
}

bool staged_plan(struct dedup_job *job, const struct split_options *how,
                 const char *const *names, size_t nnames, struct staged *st)
{
    size_t room = 0;
    char *const here = getcwd(NULL, 0);
    *st = (struct staged){ .opt = job->opt,
                           .head = { .ntasks = how->ntasks,
                                     .nfiles = nnames,
                                     .nwords = how->nwords + 1 } };
    put_version(st->head.version, sizeof st->head.version);
    bool ok = here || dedup_fail(job, "%s", strerror(errno));
    if (ok && bly_folder_make(how->folder))
        ok = dedup_fail(job, "--work %s", bly_error());
    ok =
        ok && folder_of(job, how->folder, st) && put_word(job, st, &room, here);
    for (size_t i = 0; ok && i < how->nwords; i++)
        ok = put_word(job, st, &room, how->words[i]);
    for (size_t i = 0; ok && i < nnames; i++)
        ok = put_word(job, st, &room, names[i]);
    free(here);
    st->files = ok ? calloc(nnames + 1, sizeof *st->files) : NULL;
    ok = ok &&
         ((st->files && split_text(st)) || dedup_fail(job, "out of memory"));
    struct cutting c = { .job = job, .st = st };
    ok = ok && cut_all(&c);
    if (!ok)
        return false;
    find_print(st);
    char *const path = part_path(st, STAGE_PLAN, 0);
    const bool is_there = path && access(path, F_OK) == 0;
    free(path);
    uint64_t nbytes;
    double seconds;
    if (!is_there)
        return put_plan(job, st);
    return part_there(st, STAGE_PLAN, 0, &nbytes, &seconds) ||
           dedup_fail(job,
                      "%s: has the plan of another run, or of other inputs or "
                      "options; give each run a folder of its own, or delete "
                      "this one",
                      st->folder);
}

/* All of a piece, as an array of n things. */
static void *take_piece(struct dedup_job *job, const struct staged *st,
                        uint64_t piece, uint64_t n, size_t size)
{
    struct piece_in in;
    if (!piece_open(job, st, STAGE_PLAN, 0, piece, &in))
        return NULL;
    char *at = NULL;
    if (n > in.nbytes || in.nbytes != n * size)
        dedup_fail(job, "%s: damaged", in.path);
    else if (!(at = malloc((size_t)in.nbytes + 1)))
        dedup_fail(job, "out of memory");
    if (at && !piece_get(&in, at, (size_t)in.nbytes)) {
        free(at);
        at = NULL;
    }
    piece_close(&in);
    return at;
}

bool staged_open(struct dedup_job *job, const char *folder, struct staged *st)
{
    struct piece_in in;
    struct plan_head *head;
    *st = (struct staged){ .opt = job->opt };
    if (!folder_of(job, folder, st) ||
        !piece_open(job, st, STAGE_PLAN, 0, PLAN_TEXT, &in))
        return false;
    const uint64_t run = in.foot.run;
    st->ntext = (size_t)in.nbytes;
    piece_close(&in);
    bool ok = (head = take_piece(job, st, PLAN_HEAD, 1, sizeof *head)) != NULL;
    if (ok)
        st->head = *head;
    free(head);
    ok = ok &&
         (st->text = take_piece(job, st, PLAN_TEXT, st->ntext, 1)) != NULL &&
         (st->files = take_piece(job, st, PLAN_FILES, st->head.nfiles,
                                 sizeof *st->files)) != NULL &&
         (st->segments = take_piece(job, st, PLAN_SEGMENTS, st->head.nsegments,
                                    sizeof *st->segments)) != NULL;
    if (!ok)
        return false;
    find_print(st);
    uint64_t before = 0;
    for (uint64_t i = 0; i < st->head.nsegments; i++) {
        const struct plan_segment *const s = &st->segments[i];
        ok = ok && s->share < st->head.ntasks && s->share >= before &&
             s->file < st->head.nfiles;
        before = s->share;
    }
    if (!ok || st->run != run || st->head.nwords == 0 || st->head.ntasks == 0 ||
        st->head.ntasks > STAGED_MOST_TASKS || !split_text(st))
        return dedup_fail(job, "%s/plan: damaged", st->folder);
    st->head.version[sizeof st->head.version - 1] = '\0';
    return true;
}

bool staged_fits(struct dedup_job *job, const struct staged *st)
{
    char version[sizeof st->head.version];
    put_version(version, sizeof version);
    return strcmp(st->head.version, version) == 0 ||
           dedup_fail(job,
                      "%s: planned by bloomery %s, and this is %s; all tasks "
                      "need the same",
                      st->folder, st->head.version, version);
}

void staged_free(struct staged *st)
{
    free(st->folder);
    free(st->text);
    free(st->words);
    free(st->files);
    free(st->segments);
    *st = (struct staged){ 0 };
}

/* ------------------------------------------------------------------- inputs */

size_t share_segments(const struct staged *st, uint64_t share,
                      const struct plan_segment **first)
{
    const size_t n = (size_t)st->head.nsegments;
    size_t from, to;
    LOWER_BOUND(from, n, st->segments[from].share < share);
    *first = st->segments + from;
    for (to = from; to < n && st->segments[to].share == share; to++)
        ;
    return to - from;
}

bool share_same(struct dedup_job *job, const struct staged *st, uint64_t share)
{
    const struct plan_segment *s;
    const size_t n = share_segments(st, share, &s);
    for (size_t i = 0; i < n; i++) {
        const struct plan_file *const f = &st->files[s[i].file];
        const char *const name = st->names[s[i].file];
        struct stat now;
        if (stat(name, &now) != 0)
            return dedup_fail(job, "%s: %s", name, strerror(errno));
        if (now.st_size != f->size || now.st_mtim.tv_sec != f->seconds ||
            now.st_mtim.tv_nsec != f->nanoseconds)
            return dedup_fail(job,
                              "%s: changed since the run was planned; plan it "
                              "again, in another folder",
                              name);
    }
    return true;
}

bool share_open(struct dedup_job *job, const struct staged *st, uint64_t share,
                struct input *in)
{
    const struct plan_segment *s;
    const size_t n = share_segments(st, share, &s);
    const char **const names = calloc(n + 1, sizeof *names);
    if (!names)
        return dedup_fail(job, "out of memory");
    for (size_t i = 0; i < n; i++)
        names[i] = st->names[s[i].file];
    if (n)
        input_documents(in, names, n);
    else /* not standard input */
        *in = (struct input){ .nthreads = 1, .stop_fd = -1, .documents = true };
    free(names);
    in->whole = job->opt->format == DEDUP_FILES;
    in->nthreads = job->opt->nthreads;
    in->max_line = job->opt->max_line;
    for (size_t i = 0; i < n && in->files; i++) {
        in->files[i].part_at = s[i].from;
        in->files[i].part_len = s[i].len;
    }
    return share_same(job, st, share);
}

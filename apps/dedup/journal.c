/*
 * journal.c - rows that outlive the command
 *
 * Sketching is most of the work of a run. With --work DIR the rows of every
 * block are appended to DIR/journal, and --resume takes them from there:
 *
 *     magic 8 | fingerprint 8 | record | record | ...
 *
 *     record: documents 8 | bytes of ids 8 | bytes of text 8 | checksum 8
 *             hashes 8 n | values 8 n | ends of ids 8 n | shingles 4 n
 *             components 4 k n | states n | ids
 *
 * and DIR/checked likewise gets what comparing found:
 *
 *     record: pairs 8 | checksum 8 | (document 4 | document 4 | likeness 8) n
 *
 * in the byte order of the machine, since nobody else reads them. The
 * fingerprint is of all that rows depend on: sketch, fields, priority, and the
 * names, sizes and times of the inputs; for pairs of the threshold too, and
 * every checksum begins with it. A record that is not whole, the last one
 * before a kill, is cut off.
 *
 * When both are begun anew they are synced once: a power cut may then cost
 * records, which are done again, but brings back nothing of an older run. Until
 * then the disk may hold the new head before the old records; these have
 * checksums of their own run and are cut off.
 *
 * The folder may be any of the user's, so a file of one of these names is ours
 * only if it begins with the magic; any other is left as it is, and the run
 * ends before it does anything. One run at a time: the folder is locked.
 *
 * Everything else that dedup writes is replaced whole (out_file.c). A journal
 * is not: it serves runs that do not get to their end, grows by one record at a
 * time, and is checked before it is believed.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/dedup/journal.h"
#include "io/files.h"

#define JOURNAL_MAGIC UINT64_C(0x314a4459424c89) /* "\x89LBYDJ1" */
#define RECORD_WORDS 4

static uint64_t mix_path(uint64_t sum, const struct json_path *p)
{
    sum = dedup_chain(sum, &p->n, sizeof p->n);
    for (size_t i = 0; i < p->n; i++)
        sum = dedup_chain(sum, p->token[i], p->length[i]);
    return sum;
}

static uint64_t fingerprint(const struct dedup_options *o,
                            const struct dedup_docs *docs)
{
    unsigned char head[BLY_SKETCH_HEAD];
    bly_sketch_spec_write(&o->sketch, head);
    uint64_t sum = dedup_chain(docs->base, head, sizeof head);
    const int small[] = { (int)o->format,   o->pages.html, o->pages.tags,
                          (int)o->priority, o->ascending,  o->want_ids,
                          o->whole_only };
    sum = dedup_chain(sum, small, sizeof small);
    sum = mix_path(sum, &o->text);
    sum = mix_path(sum, &o->id);
    if (o->id_name)
        sum = dedup_chain(sum, o->id_name, strlen(o->id_name));
    sum = mix_path(sum, &o->field);
    for (size_t i = 0; i < docs->in->nfiles; i++) {
        const struct input_file *const f = &docs->in->files[i];
        struct stat st;
        sum = dedup_chain(sum, f->name, strlen(f->name));
        if (f->spool < 0 && stat(f->name, &st) == 0) {
            const int64_t facts[] = { st.st_size, st.st_mtim.tv_sec,
                                      st.st_mtim.tv_nsec };
            sum = dedup_chain(sum, facts, sizeof facts);
        }
    }
    return sum;
}

/* The arrays of a part in the order of a record. */
struct piece {
    void *at;
    uint64_t nbytes;
};
#define PIECES 7
static void part_pieces(const struct dedup_part *p, size_t k, struct piece *to)
{
    const uint64_t n = p->n;
    to[0] = (struct piece){ p->hashes, 8 * n };
    to[1] = (struct piece){ p->values, 8 * n };
    to[2] = (struct piece){ p->id_end, 8 * n };
    to[3] = (struct piece){ p->nshingles, 4 * n };
    to[4] = (struct piece){ p->rows, 4 * k * n };
    to[5] = (struct piece){ p->states, n };
    to[6] = (struct piece){ p->ids, p->ids_len };
}

static bool write_all(int fd, const void *bytes, uint64_t n)
{
    const char *at = bytes;
    while (n) {
        const ssize_t put = write(fd, at, n < 1 << 30 ? (size_t)n : 1 << 30);
        if (put < 0 && errno != EINTR)
            return false;
        at += put > 0 ? put : 0;
        n -= put > 0 ? (uint64_t)put : 0;
    }
    return true;
}

static bool read_whole(int fd, void *bytes, uint64_t n)
{
    return read_all(fd, bytes, (size_t)n) == (int64_t)n;
}

static uint64_t record_sum(const struct dedup_journal *j, const uint64_t *words,
                           const struct piece *pieces)
{
    uint64_t sum = dedup_chain(j->print, words, 3 * sizeof *words);
    for (size_t i = 0; i < PIECES; i++)
        sum = dedup_chain(sum, pieces[i].at, (size_t)pieces[i].nbytes);
    return sum;
}

bool dedup_journal_write(struct dedup_job *job, const struct dedup_journal *j,
                         const struct dedup_part *p)
{
    struct piece pieces[PIECES];
    uint64_t words[RECORD_WORDS] = { p->n, p->ids_len, p->text_bytes, 0 };
    if (j->fd <= 0)
        return true;
    part_pieces(p, job->opt->sketch.k, pieces);
    words[3] = record_sum(j, words, pieces);
    bool ok = write_all(j->fd, words, sizeof words);
    for (size_t i = 0; ok && i < PIECES; i++)
        ok = write_all(j->fd, pieces[i].at, pieces[i].nbytes);
    return ok || dedup_fail(job, "%s: %s", j->path, strerror(errno));
}

/* A checksum can be forged, so offsets are checked as well. */
static bool part_sane(const struct dedup_part *p)
{
    uint64_t before = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->id_end[i] < before || p->id_end[i] > p->ids_len ||
            p->states[i] > DOC_BAD || isnan(p->values[i]))
            return false;
        before = p->id_end[i];
    }
    return before == p->ids_len;
}

/* The next whole record into p; false at the end of what is whole. */
static bool read_record(const struct dedup_journal *j, size_t k,
                        struct dedup_part *p)
{
    const int fd = j->fd;
    const uint64_t left = j->size - j->whole;
    struct piece pieces[PIECES];
    uint64_t words[RECORD_WORDS], sum = sizeof words;
    if (left < sizeof words || !read_whole(fd, words, sizeof words) ||
        words[0] > left / (4 * k + 1) || words[1] > left)
        return false;
    if (!dedup_part_room(p, k, (size_t)words[0]) ||
        !ROOM(p->ids, p->ids_room, (size_t)words[1]))
        return false;
    p->n = (size_t)words[0];
    p->ids_len = (size_t)words[1];
    p->text_bytes = words[2];
    part_pieces(p, k, pieces);
    for (size_t i = 0; i < PIECES; i++)
        sum += pieces[i].nbytes;
    if (sum > left)
        return false;
    for (size_t i = 0; i < PIECES; i++)
        if (!read_whole(fd, pieces[i].at, pieces[i].nbytes))
            return false;
    return record_sum(j, words, pieces) == words[3] && part_sane(p);
}

/* Take all records that are whole. */
static bool journal_resume(struct dedup_job *job, struct dedup_journal *j,
                           void *docs)
{
    struct dedup_part p = { 0 };
    bool ok = true;
    while (ok && read_record(j, job->opt->sketch.k, &p)) {
        ok = dedup_append(job, &p, docs);
        j->whole = (uint64_t)lseek(j->fd, 0, SEEK_CUR);
    }
    dedup_part_free(&p);
    return ok;
}

/* --------------------------------------------------------------- the folder */

static const char *const work_names[] = { "journal", "checked" };

/* Open a file of the folder, making it if it is not there. Whatever is there
 * must be a regular file that is empty or begins with the magic; its first
 * words are read, and its size is j->size. */
static bool open_ours(struct dedup_job *job, struct dedup_journal *j,
                      const char *name, int flags, uint64_t words[2])
{
    struct stat st;
    if (asprintf(&j->path, "%s/%s", job->opt->work, name) < 0) {
        j->path = NULL;
        return dedup_fail(job, "out of memory");
    }
    /* Nonblocking: a pipe of that name would keep us waiting. */
    j->fd = openat(job->work_fd, name,
                   O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0666);
    if (j->fd < 0 && errno == ENOENT)
        return true;
    if (j->fd < 0 && errno != ELOOP && errno != ENXIO && errno != EISDIR)
        return dedup_fail(job, "%s: %s", j->path, strerror(errno));
    if (j->fd < 0 || fstat(j->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return dedup_fail(job,
                          "%s: not a regular file; give --work an empty "
                          "folder, or that of an earlier run",
                          j->path);
    j->size = (uint64_t)st.st_size;
    if (j->size && (!read_whole(j->fd, words, 2 * sizeof *words) ||
                    words[0] != JOURNAL_MAGIC))
        return dedup_fail(job,
                          "%s: not written by dedup, and left as it is; give "
                          "--work an empty folder, or that of an earlier run",
                          j->path);
    return true;
}

/* Files that lost their names only after a kill: bloomery- and six letters. The
 * folder is locked, so nobody is about to take the name away. */
static void sweep_work(int folder)
{
    static const char begin[] = "bloomery-";
    const size_t n = sizeof begin - 1;
    const int fd = dup(folder);
    DIR *const dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        struct stat st;
        size_t letters = n;
        if (strncmp(e->d_name, begin, n) != 0)
            continue;
        while (isalnum((unsigned char)e->d_name[letters]))
            letters++;
        if (letters == n + 6 && !e->d_name[letters] &&
            fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
            (st.st_mode & 07777) == 0600)
            unlinkat(folder, e->d_name, 0);
    }
    if (dir)
        closedir(dir);
}

bool dedup_work_open(struct dedup_job *job)
{
    const char *const work = job->opt->work;
    if (!work)
        return true;
    if (bly_folder_make(work))
        return dedup_fail(job, "--work %s", bly_error());
    const int fd = open(work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return dedup_fail(job, "--work %s: %s; expected a folder", work,
                          strerror(errno));
    job->work_fd = fd;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return dedup_fail(
            job,
            "--work %s: another run uses it; give each run a folder of its own",
            work);
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof work_names / sizeof *work_names; i++) {
        struct dedup_journal j = { 0 };
        uint64_t words[2];
        ok = open_ours(job, &j, work_names[i], 0, words);
        if (j.fd > 0)
            close(j.fd);
        free(j.path);
    }
    if (ok)
        sweep_work(fd);
    return ok;
}

/* Some file systems have nothing to sync. */
static bool sync_file(int fd)
{
    while (fsync(fd) != 0) {
        if (errno == EINVAL || errno == ENOTSUP)
            return true;
        if (errno != EINTR)
            return false;
    }
    return true;
}

/* Open DIR/name: a new one, or with --resume what is there, which take reads
 * into `to` and leaves at its end. */
typedef bool take_records(struct dedup_job *job, struct dedup_journal *j,
                          void *to);
static bool open_in_work(struct dedup_job *job, struct dedup_journal *j,
                         const char *name, uint64_t print, take_records *take,
                         void *to)
{
    const uint64_t fresh[2] = { JOURNAL_MAGIC, print };
    uint64_t words[2] = { 0 };
    if (!job->opt->work)
        return true;
    j->print = print;
    if (!open_ours(job, j, name, O_CREAT, words))
        return false;
    if (j->fd < 0)
        return dedup_fail(job, "%s: %s", j->path, strerror(errno));
    if (!j->size || !job->opt->resume)
        return (ftruncate(j->fd, 0) == 0 && lseek(j->fd, 0, SEEK_SET) == 0 &&
                write_all(j->fd, fresh, sizeof fresh) && sync_file(j->fd) &&
                sync_file(job->work_fd)) ||
               dedup_fail(job, "%s: %s", j->path, strerror(errno));
    if (words[1] != print)
        return dedup_fail(job,
                          "%s: belongs to other inputs or options; without "
                          "--resume it is started anew",
                          j->path);
    j->whole = sizeof words;
    if (!take(job, j, to))
        return false;
    return (ftruncate(j->fd, (off_t)j->whole) == 0 &&
            lseek(j->fd, (off_t)j->whole, SEEK_SET) == (off_t)j->whole) ||
           dedup_fail(job, "%s: %s", j->path, strerror(errno));
}

/* ------------------------------------------------------------------ checked */

static uint64_t pairs_sum(const struct dedup_journal *j, uint64_t n,
                          const struct dedup_pair *pairs)
{
    return dedup_chain(j->print ^ n, pairs, (size_t)n * sizeof *pairs);
}

static bool checked_resume(struct dedup_job *job, struct dedup_journal *j,
                           void *to)
{
    struct dedup_check *const check = to;
    const uint64_t ndocs = check->docs->n;
    struct dedup_pair *pairs = NULL;
    uint64_t words[2];
    bool ok = true;
    while (ok && read_whole(j->fd, words, sizeof words) &&
           words[0] <= (j->size - j->whole) / sizeof *pairs &&
           (ok = GROW(pairs, words[0])) &&
           read_whole(j->fd, pairs, words[0] * sizeof *pairs) &&
           pairs_sum(j, words[0], pairs) == words[1]) {
        for (uint64_t i = 0; ok && i < words[0]; i++) {
            struct dedup_pair *const p =
                pairs[i].a < ndocs && pairs[i].b < ndocs
                    ? dedup_pair_of(job, &check->pairs, pairs[i].a, pairs[i].b)
                    : NULL;
            ok = p != NULL;
            if (ok)
                p->likeness = pairs[i].likeness;
        }
        j->whole += sizeof words + words[0] * sizeof *pairs;
        check->resumed += words[0];
    }
    free(pairs);
    return ok || dedup_fail(job, "%s: out of memory, or damaged", j->path);
}

bool dedup_checked_open(struct dedup_job *job, struct dedup_check *check)
{
    const struct dedup_options *const o = job->opt;
    if (o->verify != DEDUP_EXACT || job->work_fd <= 0)
        return true;
    const uint64_t print = dedup_chain(fingerprint(o, check->docs),
                                       &o->threshold, sizeof o->threshold);
    return open_in_work(job, &check->journal, work_names[1], print,
                        checked_resume, check);
}

#define PAIRS_A_RECORD ((size_t)65536)

bool dedup_checked_write(struct dedup_job *job, const struct dedup_check *check,
                         size_t from)
{
    const struct dedup_journal *const j = &check->journal;
    const size_t npairs = check->pairs.n;
    for (size_t i = from; j->fd > 0 && i < npairs; i += PAIRS_A_RECORD) {
        const size_t left = npairs - i;
        const uint64_t n = left < PAIRS_A_RECORD ? left : PAIRS_A_RECORD;
        const struct dedup_pair *const pairs = check->pairs.at + i;
        const uint64_t words[2] = { n, pairs_sum(j, n, pairs) };
        if (!write_all(j->fd, words, sizeof words) ||
            !write_all(j->fd, pairs, n * sizeof *pairs))
            return dedup_fail(job, "%s: %s", j->path, strerror(errno));
        store_trim_now(&job->store);
    }
    return true;
}

/* --------------------------------------------------------------------- rows */

bool dedup_journal_open(struct dedup_job *job, struct dedup_docs *docs,
                        struct dedup_journal *j)
{
    /* What an older run has checked goes first, or --resume would find it
     * beside the new journal. */
    struct dedup_check old = { .docs = docs };
    const bool ok = job->opt->resume || dedup_checked_open(job, &old);
    return dedup_journal_close(job, &old.journal) && ok &&
           open_in_work(job, j, work_names[0], fingerprint(job->opt, docs),
                        journal_resume, docs);
}

bool dedup_journal_close(struct dedup_job *job, struct dedup_journal *j)
{
    const bool ok = j->fd <= 0 || close(j->fd) == 0;
    if (!ok)
        dedup_fail(job, "%s: %s", j->path, strerror(errno));
    free(j->path);
    *j = (struct dedup_journal){ 0 };
    return ok;
}

/*
 * live.c - a filter in a file that many processes map and change
 *
 * Keys are added by atomic operations on the map, so a process may be killed at
 * any instruction: there is no lock that it could hold and nothing that it
 * could leave half done, except bits of a key that it had not yet reported as
 * added. Only those who come, go, make a checkpoint or replace the filter
 * take turns. They do it by locks on bytes far behind the end of the file,
 * which the kernel releases when their holder dies:
 *
 *     TURN       held for the moment in which a process joins, leaves, makes a
 *                checkpoint, or replaces the filter
 *     USER + i   held by user i as long as it lives: so whoever wants to know
 *                who is there asks the kernel, and not memory that a killed
 *                process could not clean up
 *
 * These are locks of open file descriptions. A forked child has that of its
 * parent and is the same user; the lock is free when both are gone. A map keeps
 * its open file description, so it is made through another one. Whoever takes
 * TURN opens the file once more, so that parent and child are two.
 *
 * The control page says whether the file is in use, and by which boot of the
 * machine. The first user writes that to disk before a key can be added, and
 * the last one takes it back when all is on disk. So a file that is in use and
 * of another boot was not closed: what was added since the last checkpoint may
 * be missing. The same boot without users means that they were killed. Then
 * their memory is all there, and only what the kind derives from it is made
 * anew (mend() of kind.h). All that the file says about checkpoints lies in the
 * first 512 bytes of the page, which disks write at once.
 *
 * A file is replaced by marking it as moved, taking over what was added, and
 * renaming the new file over the old one. Adding ends with a look at the mark
 * (bly_filter_still()), so a key that was reported as added was there before
 * the mark, and is taken over. If the one who replaces dies in between, the
 * next one who takes TURN finds the mark and the old name, and takes the mark
 * away.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "format/living.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <time.h>
#include <unistd.h>

#include "core/bits.h"
#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/filter_files.h"
#include "format/record.h"
#include "format/replace.h"
#include "kinds/filter.h"

/* ----------------------------------------------------------------- kinds */

bly_status bly_live_able(const bly_kind *kind, const bly_shape *s)
{
    if (bly_shape_shares(kind, s) && !kind->start && !kind->open)
        return BLY_OK;
    const char *const why =
        !kind->add   ? "it is built at once from all its keys"
        : kind->tick ? "it forgets with time, which one process must "
                       "do; replace one live filter by the next instead"
        : kind->remove && !kind->count
            ? "adding a key moves others, which takes one writer"
        : kind->add_shared && !kind->start && !kind->open
            ? "in this shape, additions of many writers would be lost"
        : kind->start || kind->open
            ? "it consists of more than one piece of memory"
            : "its additions depend on each other";
    bly_names able = { .len = 0 };
    for (size_t i = 0; bly_kind_row(i); i++)
        if (bly_kind_row(i)->add_shared && !bly_kind_row(i)->start &&
            !bly_kind_row(i)->open)
            bly_names_add(&able, bly_kind_row(i)->name);
    return bly_fail(BLY_ENOTSUP,
                    "a %s filter cannot be live: %s (these can: %s)",
                    kind->name, why, able.text);
}

#ifdef F_OFD_SETLKW /* without it, nobody knows who is there */

#define LIVE_CONTROL 4096
#define LIVE_COUNTS 8192
#define LIVE_USERS 16384
#define LIVE_PAYLOAD 32768

/* Which byte order the numbers have. */
#define LIVE_ORDER UINT64_C(0x0102030405060708)

/* One form of the control page. */
#define LIVE_FORM 1

typedef struct bly_live_control {
    uint64_t order, form;
    _Atomic uint64_t in_use;  /* since it was last closed by its last user */
    unsigned char boot[16];   /* of the machine, then */
    _Atomic uint64_t unclean; /* opened after another boot, and not accepted */
    _Atomic uint64_t moved;   /* replaced, or just being so */
    uint64_t generation, created;
    _Atomic uint64_t checkpoint, checkpoint_time, checkpoint_items;
    unsigned char zeros[512 - 96];
    uint64_t state[BLY_STATE_WORDS]; /* of the kind */
} bly_live_control;
_Static_assert(offsetof(bly_live_control, state) == 512, "docs/format.md");

typedef struct live_user {
    _Atomic uint64_t pid, since;
} live_user;
_Static_assert(LIVE_USERS + BLY_LIVE_USERS_MOST * sizeof(live_user) ==
                   LIVE_PAYLOAD,
               "docs/format.md");

/* Maps of this process, for a handler of signals, which cannot allocate or
 * lock. A map that finds no place here cannot be rescued. */
static struct live_map {
    _Atomic uintptr_t at; /* 0: free; 1: being filled in */
    size_t nbytes;
    _Atomic uint64_t lost;
} live_maps[256];

static const _Atomic uint64_t never_lost;

typedef struct live {
    bly_living is;
    bly_live_control *control;
    live_user *users;
    unsigned char *map;
    size_t nbytes;
    struct live_map *place; /* NULL: none */
    bly_mem mem;
    int lock; /* holds the lock of a user; of a reader, no lock */
    unsigned user;
    bool reading;
    size_t npath;
    char path[];
} live;

/* ----------------------------------------------------------------- places */

/* File systems whose machines do not see each other's memory. */
static const struct {
    uint32_t magic;
    const char *name;
} live_networks[] = {
    { 0x6969, "NFS" },        { 0xfe534d42, "SMB" },    { 0xff534d42, "CIFS" },
    { 0x517b, "SMB" },        { 0x00c36400, "Ceph" },   { 0x01021997, "9P" },
    { 0x5346414f, "AFS" },    { 0x6b414653, "AFS" },    { 0x73757245, "Coda" },
    { 0x0bd00bd0, "Lustre" }, { 0x47504653, "GPFS" },   { 0x01161970, "GFS2" },
    { 0x7461636f, "OCFS2" },  { 0x19830326, "BeeGFS" },
};

#ifdef BLY_TESTING
uint32_t bly_live_system; /* what the system seems to be; 0: what it is */
#endif

static bly_status local_only(const char *path, int fd)
{
#ifdef __linux__
    struct statfs fs;
    uint32_t magic = fstatfs(fd, &fs) ? 0 : (uint32_t)fs.f_type;
#ifdef BLY_TESTING
    magic = bly_live_system ? bly_live_system : magic;
#endif
    for (size_t i = 0; i < sizeof live_networks / sizeof live_networks[0]; i++)
        if (live_networks[i].magic == magic)
            return bly_fail(BLY_ENOTSUP,
                            "%s: on a network file system (%s), whose machines "
                            "do not see each other's keys at once: choose a "
                            "local disk, or /dev/shm",
                            path, live_networks[i].name);
#else
    (void)path, (void)fd;
#endif
    return BLY_OK;
}

static uint64_t now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec;
}

/* Which boot of the machine this is: 16 bytes, zeros where nobody knows. */
static void boot_now(unsigned char boot[16])
{
    char text[64] = "";
    unsigned n = 0;
    const int fd = bly_fd_open("/proc/sys/kernel/random/boot_id", O_RDONLY);
    memset(boot, 0, 16);
    if (fd < 0)
        return;
    (void)bly_fd_read(fd, text, sizeof text - 1);
    close(fd);
    for (const char *p = text; *p && n < 32; p++) {
        const char *const digits = "0123456789abcdef";
        const char *const at = strchr(digits, *p);
        if (!at)
            continue;
        boot[n / 2] = (unsigned char)(boot[n / 2] << 4 | (at - digits));
        n++;
    }
}

static bool boot_known(const unsigned char boot[16])
{
    static const unsigned char none[16];
    return memcmp(boot, none, sizeof none) != 0;
}

/* ------------------------------------------------------------------ turns */

/* Far behind the end of any file. */
#define LOCK_TURN ((off_t)1 << 62)
#define LOCK_USER(i) (LOCK_TURN + 1 + (off_t)(i))

/* 0 or an errno. */
static int lock_byte(int fd, int how, short type, off_t at)
{
    for (;;) {
        struct flock l = {
            .l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1
        };
        if (!fcntl(fd, how, &l))
            return 0;
        if (errno != EINTR)
            return errno;
    }
}

/* Does somebody else than this open file description hold one of n bytes? The
 * first of them goes to *first. */
static bool locked(int fd, off_t at, off_t n, off_t *first)
{
    struct flock l = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = n
    };
    if (fcntl(fd, F_OFD_GETLK, &l) || l.l_type == F_UNLCK)
        return false;
    if (first)
        *first = l.l_start > at ? l.l_start : at;
    return true;
}

/* The file of fd, opened once more. -1: errno is set. */
static int open_again(int fd, int flags)
{
    char self[32];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return bly_fd_open(self, flags);
}

/* Take turns: until the descriptor is closed. */
static bly_status turn_begin(const live *l, int *turn)
{
    *turn = open_again(l->lock, O_RDWR);
    if (*turn < 0)
        return bly_io_fail(l->path, "opened again", errno);
    const int err = lock_byte(*turn, F_OFD_SETLKW, F_WRLCK, LOCK_TURN);
    if (!err)
        return BLY_OK;
    close(*turn);
    *turn = -1;
    return bly_io_fail(l->path, "locked", err);
}

/* In so many words: a child that was forked meanwhile has the lock, too, and
 * would keep it for as long as it lives. */
static void turn_end(int turn)
{
    (void)lock_byte(turn, F_OFD_SETLK, F_UNLCK, LOCK_TURN);
    close(turn);
}

static size_t count_users(int fd, off_t from)
{
    size_t n = 0;
    off_t at = LOCK_USER(from);
    const off_t end = LOCK_USER(BLY_LIVE_USERS_MOST);
    while (at < end && locked(fd, at, end - at, &at)) {
        n++;
        at++;
    }
    return n;
}

/* ---------------------------------------------------------------- rescuing */

static struct live_map *map_enter(unsigned char *map, size_t nbytes)
{
    for (size_t i = 0; i < sizeof live_maps / sizeof live_maps[0]; i++) {
        uintptr_t none = 0;
        if (!atomic_compare_exchange_strong(&live_maps[i].at, &none, 1))
            continue;
        live_maps[i].nbytes = nbytes;
        atomic_store(&live_maps[i].lost, 0);
        atomic_store(&live_maps[i].at, (uintptr_t)map);
        return &live_maps[i];
    }
    return NULL;
}

bool bly_live_rescue(const void *at)
{
    const uintptr_t addr = (uintptr_t)at;
    const int err = errno;
    bool helped = false;
    for (size_t i = 0; i < sizeof live_maps / sizeof live_maps[0]; i++) {
        const uintptr_t map = atomic_load(&live_maps[i].at);
        if (map <= 1 || addr < map || addr - map >= live_maps[i].nbytes)
            continue;
        /* Made elsewhere and moved there, so that no thread finds zeros. */
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        void *const ones = mmap(NULL, page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (ones == MAP_FAILED)
            break;
        memset(ones, 0xff, page);
        atomic_store(&live_maps[i].lost, 1);
        helped = mremap(ones, page, page, MREMAP_MAYMOVE | MREMAP_FIXED,
                        (void *)(addr - addr % page)) != MAP_FAILED;
        break;
    }
    errno = err;
    return helped;
}

/* ----------------------------------------------------------------- the file */

static bly_status write_at(int fd, const char *name, off_t at,
                           const void *bytes, size_t n)
{
    const int err =
        lseek(fd, at, SEEK_SET) < 0 ? errno : bly_fd_write(fd, bytes, n);
    return err ? bly_io_fail(name, "written", err) : BLY_OK;
}

typedef struct live_making {
    const bly_filter *model;
    uint64_t generation;
} live_making;

/* A bly_fill: the whole file. What is not written is zero. */
static bly_status live_fill(void *ctx, const char *name, int fd)
{
    const live_making *const m = ctx;
    const bly_filter *const f = m->model;
    const uint64_t nbytes = LIVE_PAYLOAD + f->shape.nbytes;
    unsigned char page[BLY_PAGE];
    bly_record r;
    bly_status st = local_only(name, fd);
    if (st)
        return st;
    if (nbytes > INT64_MAX)
        return bly_io_fail(name, "written", EFBIG);
    /* Now, and not when a key is added: that would be a SIGBUS. */
    int err;
    do
        err = posix_fallocate(fd, 0, (off_t)nbytes);
    while (err == EINTR);
    if (err)
        return bly_io_fail(name, "given its room on disk", err);
    bly_record_with(f, BLY_FORM_LIVE, 0, &r);
    memset(r.state, 0, sizeof r.state);
    r.nadded = 0;
    bly_record_encode(&r, page);
    st = write_at(fd, name, 0, page, sizeof page);
    bly_live_control c = { .order = LIVE_ORDER,
                           .form = LIVE_FORM,
                           .generation = m->generation,
                           .created = now_seconds() };
    if (f->kind->nstate)
        memcpy(c.state, f->state, f->kind->nstate * sizeof c.state[0]);
    if (!st)
        st = write_at(fd, name, LIVE_CONTROL, &c, sizeof c);
    const uint64_t n = f->data ? bly_filter_additions(f) : 0;
    if (!st)
        st = write_at(fd, name, LIVE_COUNTS, &n, sizeof n);
    if (!st && f->data)
        st = write_at(fd, name, LIVE_PAYLOAD, f->data, (size_t)f->shape.nbytes);
    return st;
}

/* Nobody else's file is replaced by a new one. */
static bool nothing_there(void *ctx, int old, bool moved)
{
    (void)ctx, (void)moved;
    return old < 0;
}

bly_status bly_live_create(const char *path, const bly_filter *model)
{
    static const bly_swap only_new = { .same = nothing_there };
    live_making m = { model, 1 };
    bly_target t;
    bly_status st = bly_live_able(model->kind, &model->shape);
    if (st)
        return st;
    st = bly_target_open(path, NULL, NULL, &t);
    if (!st && (t.lock >= 0 || t.special))
        st = bly_fail(BLY_EBUSY, "%s: there is a file already", path);
    t.swap = &only_new;
    if (!st)
        st = bly_target_replace(&t, live_fill, &m);
    bly_target_close(&t);
    return st;
}

bly_status bly_live_make(const bly_filter *f, const char *path)
{
    if (!f || !path)
        return bly_fail_null("f or path");
    bly_filter *copy = NULL; /* of what nobody changes meanwhile */
    bly_status st = bly_live_able(f->kind, &f->shape);
    if (!st)
        st = bly_verify(f);
    if (!st && f->live)
        st = bly_filter_copy(f, &copy);
    if (!st)
        st = bly_live_create(path, copy ? copy : f);
    bly_free(copy);
    return st;
}

/* ---------------------------------------------------------------- trouble */

/* Is the file still what its path names, and whole? */
static bly_status still_there(const live *l)
{
    struct stat mine, now;
    if (fstat(l->lock, &mine))
        return bly_io_fail(l->path, "looked at", errno);
    if ((uint64_t)mine.st_size < l->nbytes)
        return bly_fail(BLY_EIO,
                        "%s: truncated by another program to %llu bytes: keys "
                        "are lost; make the filter anew",
                        l->path, (unsigned long long)mine.st_size);
    if (atomic_load(&l->control->moved))
        return bly_fail(BLY_EBUSY,
                        "%s: the live filter was replaced by a newer "
                        "generation: follow it with bly_live_follow(), and add "
                        "again",
                        l->path);
    if (stat(l->path, &now) || now.st_dev != mine.st_dev ||
        now.st_ino != mine.st_ino)
        return bly_fail(BLY_EIO,
                        "%s: removed or replaced by another program while it "
                        "was in use: what is added here is lost; open it anew",
                        l->path);
    return BLY_OK;
}

static live *living(const bly_filter *f)
{
    return (live *)f->extra->outside->living;
}

/* Why adding is of no use any more. */
static bly_status live_trouble(const bly_filter *f)
{
    const live *const l = living(f);
    const bly_status st = still_there(l);
    return st ? st
              : bly_fail(BLY_EIO,
                         "%s: truncated by another program while it was in "
                         "use: keys are lost; make the filter anew",
                         l->path);
}

static bly_status not_live(const bly_filter *f)
{
    return bly_fail(BLY_EINVAL,
                    "this %s filter is not live: open one with bly_share()",
                    f->kind->name);
}

static bly_status may_write(const bly_filter *f)
{
    if (!f->live)
        return not_live(f);
    return f->readonly ? bly_fail(BLY_EREADONLY,
                                  "%s: opened for reading: open it for adding "
                                  "too",
                                  living(f)->path)
                       : BLY_OK;
}

/* -------------------------------------------------------------- checkpoints */

static bly_status sync_map(const live *l, size_t from, size_t nbytes)
{
    while (msync(l->map + from, nbytes, MS_SYNC))
        if (errno != EINTR)
            return bly_io_fail(l->path, "written to disk", errno);
    return BLY_OK;
}

static uint64_t count_additions(const live *l)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < BLY_LIVE_COUNTS; i++)
        sum += atomic_load(l->is.counts + i * (BLY_LINE / sizeof(uint64_t)));
    return sum >> 63 ? 0 : sum;
}

/* The cells first, and only then what says that they are there. */
static bly_status checkpoint(live *l)
{
    bly_live_control *const c = l->control;
    const uint64_t items = count_additions(l);
    const bly_status st = sync_map(l, 0, l->nbytes);
    if (st)
        return st;
    atomic_store(&c->checkpoint_items, items);
    atomic_store(&c->checkpoint_time, now_seconds());
    atomic_fetch_add(&c->checkpoint, 1);
    return sync_map(l, 0, LIVE_COUNTS);
}

bly_status bly_checkpoint(bly_filter *f)
{
    int turn;
    if (!f)
        return bly_fail_null("f");
    bly_status st = may_write(f);
    if (st)
        return st;
    live *const l = living(f);
    st = turn_begin(l, &turn);
    if (st)
        return st;
    st = bly_filter_still(f);
    if (!st)
        st = still_there(l);
    if (!st)
        st = checkpoint(l);
    turn_end(turn);
    return st;
}

bly_status bly_live_accept(bly_filter *f)
{
    if (!f)
        return bly_fail_null("f");
    bly_status st = may_write(f);
    if (st)
        return st;
    atomic_store(&living(f)->control->unclean, 0);
    return bly_checkpoint(f);
}

/* ---------------------------------------------------------------- leaving */

/* The last one leaves it as it would be without any: on disk. A failure shows
 * when it is opened again. */
static void live_leave(bly_living *is)
{
    live *const l = (live *)is;
    const bly_mem mem = l->mem;
    int turn = -1;
    if (!l->reading && l->lock >= 0)
        (void)turn_begin(l, &turn);
    if (l->lock >= 0)
        close(l->lock);
    /* Locks of this process are gone, unless a child has them too. */
    if (turn >= 0) {
        struct stat st;
        const bool whole = !fstat(turn, &st) &&
                           (uint64_t)st.st_size >= l->nbytes &&
                           !(l->place && atomic_load(&l->place->lost));
        if (whole && st.st_nlink && !count_users(turn, 0) && !checkpoint(l)) {
            atomic_store(&l->control->in_use, 0);
            (void)sync_map(l, 0, LIVE_COUNTS);
        }
        turn_end(turn);
    }
    if (l->place)
        atomic_store(&l->place->at, 0);
    bly_mem_release(&mem, l, sizeof *l + l->npath);
}

/* ---------------------------------------------------------------- joining */

static bly_status read_header(int fd, const char *path,
                              unsigned char page[BLY_PAGE], bly_record *r,
                              bly_live_control *c)
{
    const int64_t got = bly_fd_read(fd, page, BLY_PAGE);
    if (got < 0)
        return bly_io_fail(path, "read", errno);
    if (!bly_record_begins(page, (size_t)(got < 8 ? got : 8)) && got > 0)
        return bly_fail(BLY_EFORMAT, "not a .bly file");
    if (got < BLY_PAGE)
        return bly_cut_short((uint64_t)got, LIVE_PAYLOAD, true);
    const bly_status st = bly_record_decode_live(page, r);
    if (st)
        return st;
    const int64_t more = bly_fd_read(fd, c, sizeof *c);
    if (more < 0)
        return bly_io_fail(path, "read", errno);
    if ((size_t)more < sizeof *c)
        return bly_cut_short(BLY_PAGE + (uint64_t)more, LIVE_PAYLOAD, true);
    if (c->order != LIVE_ORDER)
        return bly_fail(BLY_EFORMAT, "made by a machine with another byte "
                                     "order: use it there");
    if (c->form != LIVE_FORM)
        return bly_fail(BLY_EFORMAT,
                        "made by a newer bloomery: a live filter of form %llu "
                        "(use a newer one)",
                        (unsigned long long)c->form);
    return BLY_OK;
}

/* As in reader.c: the secret, or its absence, must be right. */
static bly_status unlock(const bly_record *r, const bly_access *how,
                         bly_hasher *hasher, bool *blind)
{
    *hasher = bly_record_hasher(r);
    *blind = false;
    if (r->hash_id != BLY_HASH_SIPHASH13)
        return how->secret ? bly_fail(BLY_ESECRET, "not a keyed filter, but a "
                                                   "key was given: query it "
                                                   "without")
                           : BLY_OK;
    if (!how->secret) {
        *blind = how->blind;
        return how->blind ? BLY_OK
                          : bly_fail(BLY_ESECRET, "a keyed filter: give the "
                                                  "key it was built with");
    }
    bly_secret_words(how->secret, hasher->secret);
    return bly_secret_check(hasher->secret) == r->secret_check
               ? BLY_OK
               : bly_fail(BLY_ESECRET, "keyed with another key, not the one "
                                       "given");
}

/* The filter without its map. */
static bly_status live_shell(const unsigned char *page, const bly_record *r,
                             const bly_access *how, bly_filter **out)
{
    bly_setting set = { .items = r->items,
                        .fpr = r->fpr,
                        .secret_check = r->secret_check,
                        .shared = !how->reading,
                        .max_bytes = how->max_bytes,
                        .mem = how->mem };
    bly_status st = bly_live_able(r->kind, &r->shape);
    if (!st)
        st = unlock(r, how, &set.hasher, &set.blind);
    if (!st && how->max_bytes && r->shape.nbytes > how->max_bytes)
        st = bly_fail(BLY_ERANGE,
                      "the filter needs %llu bytes, the limit is "
                      "%llu",
                      (unsigned long long)r->shape.nbytes,
                      (unsigned long long)how->max_bytes);
    if (!st && r->nlayers)
        st = bly_damaged("a live filter with layers");
    if (!st)
        st = bly_filter_shell(r->kind, &r->shape, &set, out);
    if (!st)
        st = bly_filter_set_meta(*out, r->keying, r->meta, r->nmeta);
    if (!st && !bly_filter_outside(*out))
        st = BLY_ENOMEM;
    (void)page;
    return st;
}

static bly_status live_new(const char *path, const bly_access *how,
                           const bly_mem *mem, live **out)
{
    /* Absolute, since the process may go to another folder. */
    char here[4096] = "";
    if (path[0] != '/' && (!getcwd(here, sizeof here - 1) || !here[0]))
        return bly_io_fail(path, "found", errno);
    const size_t nhere = strlen(here), npath = nhere + strlen(path) + 2;
    live *const l = bly_mem_zalloc(mem, sizeof *l + npath);
    if (!l)
        return bly_fail(BLY_ENOMEM, "out of memory");
    snprintf(l->path, npath, "%s%s%s", here, nhere ? "/" : "", path);
    l->npath = npath;
    l->mem = *mem;
    l->lock = -1;
    l->reading = how->reading;
    *out = l;
    return BLY_OK;
}

static bly_status live_map_it(live *l, int fd, uint64_t nbytes)
{
    struct stat st;
    if (nbytes > SIZE_MAX)
        return bly_fail(BLY_ERANGE,
                        "%llu bytes are more than this process can address",
                        (unsigned long long)nbytes);
    /* Through another description than the one with the lock. */
    const int other = open_again(fd, l->reading ? O_RDONLY : O_RDWR);
    if (other < 0)
        return bly_io_fail(l->path, "opened again", errno);
    if (!fstat(other, &st) && (uint64_t)st.st_size != nbytes) {
        close(other);
        return (uint64_t)st.st_size < nbytes
                   ? bly_cut_short((uint64_t)st.st_size, nbytes, false)
                   : bly_damaged("bytes follow the end of the filter");
    }
    void *const map =
        mmap(NULL, (size_t)nbytes, PROT_READ | (l->reading ? 0 : PROT_WRITE),
             MAP_SHARED, other, 0);
    const int err = errno;
    close(other);
    if (map == MAP_FAILED)
        return bly_io_fail(l->path, "mapped", err);
    /* Where the file system has them: /dev/shm, if it is told to. */
    (void)madvise(map, (size_t)nbytes, MADV_HUGEPAGE);
    l->map = map;
    l->nbytes = (size_t)nbytes;
    l->control = (bly_live_control *)(void *)(l->map + LIVE_CONTROL);
    l->users = (live_user *)(void *)(l->map + LIVE_USERS);
    l->place = map_enter(l->map, l->nbytes);
    return BLY_OK;
}

/* Put the map into f, which owns it and l from now on. */
static void live_put(bly_filter *f, live *l)
{
    bly_outside *const outside = f->extra->outside;
    l->is.counts = (_Atomic uint64_t *)(void *)(l->map + LIVE_COUNTS);
    l->is.moved = &l->control->moved;
    l->is.lost = l->place ? &l->place->lost : &never_lost;
    l->is.trouble = live_trouble;
    l->is.leave = live_leave;
    outside->living = &l->is;
    outside->map = l->map;
    outside->map_bytes = l->nbytes;
    f->live = true;
    f->readonly = l->reading;
    f->format = BLY_LIVE_VERSION;
    f->state = l->control->state;
    f->data = l->map + LIVE_PAYLOAD;
    /* The real one is in the map; this says that it is not empty. */
    f->nadded = 1;
}

/* Under TURN: bring in order what those before have left. */
static bly_status live_recover(bly_filter *f, int fd)
{
    live *const l = living(f);
    bly_live_control *const c = l->control;
    unsigned char boot[16];
    const bool alone = !count_users(fd, 0);
    boot_now(boot);
    /* Who set this is dead, since it is our turn, and has not replaced it. */
    if (atomic_load(&c->moved))
        atomic_store(&c->moved, 0);
    if (atomic_load(&c->in_use) && !alone)
        return BLY_OK;
    if (atomic_load(&c->in_use)) {
        if (!boot_known(boot) || memcmp(boot, c->boot, sizeof boot) != 0)
            atomic_store(&c->unclean, 1);
        if (f->kind->mend)
            f->kind->mend(f);
    }
    memcpy(c->boot, boot, sizeof boot);
    atomic_store(&c->in_use, 1);
    return sync_map(l, 0, LIVE_COUNTS);
}

static bly_status user_enter(live *l, int fd)
{
    for (unsigned i = 0; i < BLY_LIVE_USERS_MOST; i++) {
        const int err = lock_byte(fd, F_OFD_SETLK, F_WRLCK, LOCK_USER(i));
        if (!err) {
            l->user = i;
            atomic_store(&l->users[i].pid, (uint64_t)getpid());
            atomic_store(&l->users[i].since, now_seconds());
            return BLY_OK;
        }
        if (err != EAGAIN && err != EACCES)
            return bly_io_fail(l->path, "locked", err);
    }
    return bly_fail(BLY_EFULL,
                    "%d processes have it open, and there is no room for more: "
                    "open it once, and fork",
                    BLY_LIVE_USERS_MOST);
}

/* Does the path name this file? */
static bool still_named(const char *path, int fd)
{
    struct stat mine, now;
    return !fstat(fd, &mine) && !stat(path, &now) &&
           mine.st_dev == now.st_dev && mine.st_ino == now.st_ino;
}

/* Join those who have the file of fd open. *again: it is no longer what the
 * path names. */
static bly_status live_join(bly_filter *f, int fd, const char *path,
                            bool *again)
{
    live *const l = living(f);
    int err = lock_byte(fd, F_OFD_SETLKW, F_WRLCK, LOCK_TURN);
    if (err)
        return bly_io_fail(path, "locked", err);
    *again = !still_named(path, fd);
    bly_status st = *again ? BLY_OK : live_recover(f, fd);
    if (!st && !*again)
        st = user_enter(l, fd);
    err = lock_byte(fd, F_OFD_SETLK, F_UNLCK, LOCK_TURN);
    return st || !err ? st : bly_io_fail(path, "unlocked", err);
}

/* Open what is there now. */
static bly_status live_open_once(int fd, const char *path,
                                 const bly_access *how, bool *again,
                                 bly_filter **out)
{
    unsigned char page[BLY_PAGE];
    bly_live_control c;
    bly_record r;
    bly_filter *f = NULL;
    live *l = NULL;
    bly_status st = local_only(path, fd);
    if (st)
        return st;
    st = read_header(fd, path, page, &r, &c);
    if (!st)
        st = live_shell(page, &r, how, &f);
    if (!st)
        st = live_new(path, how, bly_filter_mem(f), &l);
    if (!st)
        st = live_map_it(l, fd, LIVE_PAYLOAD + r.shape.nbytes);
    if (!st) {
        live_put(f, l);
        if (!how->reading)
            st = live_join(f, fd, path, again);
        /* Before, it would be the lock that says who is there. */
        l->lock = st || *again ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (!st && !*again && l->lock < 0)
            st = bly_io_fail(path, "opened again", errno);
    } else if (l) {
        bly_mem_release(&l->mem, l, sizeof *l + l->npath);
    }
    if (!st && !*again && f->kind->sound && !f->kind->sound(f))
        st = bly_damaged("its state is impossible for its kind");
    if (st || *again) {
        bly_free(f);
        return st;
    }
    bly_filter_ready(f);
    *out = f;
    return BLY_OK;
}

bly_status bly_live_open(const char *path, const bly_access *how, bool *missing,
                         bly_filter **out)
{
    static const bly_access usual;
    *missing = false;
    if (!how)
        how = &usual;
    for (;;) {
        struct stat st;
        bool again = false;
        const int fd = bly_fd_open(path, (how->reading ? O_RDONLY : O_RDWR));
        *missing = fd < 0 && errno == ENOENT;
        if (*missing)
            return BLY_OK;
        if (fd < 0 && !how->reading && (errno == EACCES || errno == EROFS))
            return bly_fail(BLY_EIO,
                            "%s: cannot be opened for adding: %s (ask for "
                            "permission, or open it for reading)",
                            path, strerror(errno));
        if (fd < 0)
            return bly_io_fail(path, "opened", errno);
        bly_status done = fstat(fd, &st) ? bly_io_fail(path, "read", errno)
                          : !S_ISREG(st.st_mode)
                              ? bly_fail(BLY_EIO,
                                         "%s: cannot be mapped: not a regular "
                                         "file (name one)",
                                         path)
                              : BLY_OK;
        if (!done)
            done = bly_named_fail(live_open_once(fd, path, how, &again, out),
                                  path);
        close(fd);
        if (done || !again)
            return done;
    }
}

/* ----------------------------------------------------------------- knowing */

bly_status bly_live_of_sized(const bly_filter *f, bly_live *out, size_t size)
{
    if (!f || !out)
        return bly_fail_null("f or out");
    if (!f->live)
        return not_live(f);
    const live *const l = living(f);
    const bly_live_control *const c = l->control;
    unsigned char boot[16];
    boot_now(boot);
    const size_t others = count_users(l->lock, 0);
    /* Nobody is there, and yet it is in use: readers see this, too. */
    const bool cut = l->reading && !others && atomic_load(&c->in_use) &&
                     memcmp(boot, c->boot, sizeof boot) != 0;
    const bly_live told = {
        .generation = c->generation,
        .created = c->created,
        .users = others + !l->reading,
        .items_added = bly_filter_additions(f),
        .checkpoint = atomic_load(&c->checkpoint),
        .checkpoint_time = atomic_load(&c->checkpoint_time),
        .checkpoint_items = atomic_load(&c->checkpoint_items),
        .unclean = cut || atomic_load(&c->unclean),
        .replaced = atomic_load(&c->moved) != 0,
        .reading = l->reading,
        .damaged = atomic_load(l->is.lost) != 0,
    };
    BLY_GIVE(&told, out, size);
    return BLY_OK;
}

size_t bly_live_users(const bly_filter *f, bly_live_user *users, size_t n)
{
    size_t found = 0;
    if (!f || !f->live || (!users && n))
        return 0;
    const live *const l = living(f);
    for (unsigned i = 0; i < BLY_LIVE_USERS_MOST; i++) {
        const bool mine = !l->reading && i == l->user;
        if (!mine && !locked(l->lock, LOCK_USER(i), 1, NULL))
            continue;
        if (found < n)
            users[found] = (bly_live_user){ atomic_load(&l->users[i].pid),
                                            atomic_load(&l->users[i].since) };
        found++;
    }
    return found;
}

/* --------------------------------------------------------------- replacing */

bool bly_live_replaced(const bly_filter *f)
{
    return f && f->live &&
           atomic_load_explicit(f->extra->outside->living->moved,
                                memory_order_acquire);
}

/* Under TURN, with the mark set: nothing more is added to f. */
static bly_status replace_marked(bly_filter *f, bly_filter *next, bool keep)
{
    live *const l = living(f);
    live_making m = { next, l->control->generation + 1 };
    bly_target t;
    bly_status st = keep ? next->kind->merge(next, f) : BLY_OK;
    if (st)
        return st;
    st = bly_target_open(l->path, NULL, NULL, &t);
    if (!st)
        st = bly_target_replace(&t, live_fill, &m);
    bly_target_close(&t);
    return st;
}

bly_status bly_live_replace(bly_filter *f, bly_filter *next, bool keep)
{
    int turn;
    if (!f || !next)
        return bly_fail_null("f or next");
    bly_status st = may_write(f);
    if (!st && (next->live || next->readonly))
        st = bly_fail(BLY_EINVAL, "what replaces a live filter is one of its "
                                  "own: a new one, or a clone");
    if (!st)
        st = bly_live_able(next->kind, &next->shape);
    if (!st && keep)
        st = next->kind->merge ? bly_filter_fits(next, f)
                               : bly_fail(BLY_ENOTSUP,
                                          "a %s filter cannot merge what the "
                                          "old one holds",
                                          next->kind->name);
    if (st)
        return st;
    live *const l = living(f);
    st = turn_begin(l, &turn);
    if (st)
        return st;
    st = still_there(l);
    if (!st) {
        atomic_store(&l->control->moved, 1);
        st = replace_marked(f, next, keep);
        /* It may have been renamed, though not for certain to last. */
        if (st && still_named(l->path, turn))
            atomic_store(&l->control->moved, 0);
    }
    turn_end(turn);
    return st;
}

bly_status bly_live_follow(bly_filter **f)
{
    if (!f || !*f)
        return bly_fail_null("f");
    if (!(*f)->live)
        return not_live(*f);
    if (!bly_live_replaced(*f))
        return BLY_OK;
    live *const l = living(*f);
    const bool keyed = bly_filter_keyed(*f);
    const bly_access how = { .blind = keyed,
                             .max_bytes = (*f)->extra->max_bytes,
                             .mem = bly_filter_mem(*f),
                             .reading = l->reading };
    bly_filter *next = NULL;
    bool missing;
    bly_status st = bly_live_open(l->path, &how, &missing, &next);
    if (!st && missing)
        st = bly_io_fail(l->path, "opened", ENOENT);
    if (!st && keyed && !(*f)->blind) {
        st = next->extra->secret_check == (*f)->extra->secret_check
                 ? bly_filter_rehash(next, &(*f)->extra->hasher,
                                     (*f)->extra->secret_check, false)
                 : bly_fail(BLY_ESECRET,
                            "%s: the new generation is keyed with "
                            "another key: open it anew",
                            l->path);
    }
    if (st) {
        bly_free(next);
        return st;
    }
    bly_free(*f);
    *f = next;
    return BLY_OK;
}

#else /* F_OFD_SETLKW */

static bly_status no_live(void)
{
    return bly_fail(BLY_ENOTSUP, "this system has no locks of open file "
                                 "descriptions, which live filters need");
}

bly_status bly_live_create(const char *path, const bly_filter *model)
{
    (void)path, (void)model;
    return no_live();
}

bly_status bly_live_open(const char *path, const bly_access *how, bool *missing,
                         bly_filter **out)
{
    (void)path, (void)how, (void)out;
    *missing = false;
    return no_live();
}

bly_status bly_live_make(const bly_filter *f, const char *path)
{
    (void)f, (void)path;
    return no_live();
}

bly_status bly_checkpoint(bly_filter *f)
{
    (void)f;
    return no_live();
}

bly_status bly_live_of_sized(const bly_filter *f, bly_live *out, size_t size)
{
    (void)f, (void)out, (void)size;
    return no_live();
}

size_t bly_live_users(const bly_filter *f, bly_live_user *users, size_t n)
{
    (void)f, (void)users, (void)n;
    return 0;
}

bly_status bly_live_accept(bly_filter *f)
{
    (void)f;
    return no_live();
}

bly_status bly_live_replace(bly_filter *f, bly_filter *next, bool keep)
{
    (void)f, (void)next, (void)keep;
    return no_live();
}

bool bly_live_replaced(const bly_filter *f)
{
    (void)f;
    return false;
}

bly_status bly_live_follow(bly_filter **f)
{
    (void)f;
    return no_live();
}

bool bly_live_rescue(const void *at)
{
    (void)at;
    return false;
}

#endif

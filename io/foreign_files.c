/*
 * foreign_files.c - files of other systems, as commands open and make them
 *
 * A file is mapped where it lies; one that is compressed, or comes through a
 * pipe, is read into memory (foreign_packed.c). What begins as a .bly file does
 * is ours, and everything else is shown to the formats.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files.h"
#include "io/foreign_files.h"
#include "io/paths.h"
#include "io/sizing.h"
#include "io/unpack.h"
#include "report/say.h"
#include "report/show.h"

static const char *format_word(size_t i, const void *ctx)
{
    bly_format_info info;
    (void)ctx;
    return bly_format_at(i, &info) ? info.name : NULL;
}

bool format_exists(const char *name)
{
    bly_format_info info;
    if (bly_format_named(name, &info))
        return true;
    size_t n = 0;
    while (bly_format_at(n, &info))
        n++;
    const char *const near = nearest_word(name, n, format_word, NULL);
    if (near)
        fail("unknown format '%s'; did you mean '%s'?", name, near);
    else
        fail("unknown format '%s'; bloomery formats lists them", name);
    return false;
}

bool foreign_spec(const struct foreign_args *args, bly_foreign_spec *spec)
{
    if (args->format && !format_exists(args->format))
        return false;
    spec->format = args->format;
    spec->noptions = args->options.n;
    return option_words(&args->options, &spec->options);
}

/* ---------------------------------------------------------------- reading */

bool is_bly(const unsigned char *bytes, size_t n)
{
    return n >= 8 && memcmp(bytes,
                            "\x89"
                            "BL",
                            3) == 0;
}

/* The bytes of a file where they lie. */
static int foreign_map(const char *path, int fd, size_t nbytes,
                       struct foreign_file *file)
{
    void *const at = mmap(NULL, nbytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED)
        return fail_path(path, errno);
    if (nbytes > half_of_memory()) /* a question is for one page, then */
        (void)madvise(at, nbytes, MADV_RANDOM);
    cut_watch(path, NULL);
    file->bytes = at;
    file->nbytes = nbytes;
    file->mapped = true;
    return YES;
}

/* Get at the bytes, unless they are those of one of our own filters. */
static int foreign_bytes(const char *path, const char *format,
                         struct foreign_file *file)
{
    const bool named = format != NULL;
    if (is_dash(path))
        return named ? foreign_read(path, file) : YES;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return named ? fail_path(path, errno) : YES;
    struct stat st;
    unsigned char head[UNPACK_MAGIC];
    int status = YES;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        if (named)
            status = foreign_read(path, file);
    } else {
        const ssize_t n = pread(fd, head, sizeof head, 0);
        const size_t nhead = n > 0 ? (size_t)n : 0;
        bool more;
        const struct unpacker *const packed = unpacker_of(head, nhead, &more);
        const bool ours = is_bly(head, nhead);
        if (packed)
            status = foreign_unpack(path, packed->name, format, file);
        else if (n > 0 && (named || !ours))
            status = foreign_map(path, fd, (size_t)st.st_size, file);
        else if (named)
            status = fail("%s: empty", path);
    }
    close(fd);
    return status;
}

int foreign_open(const char *path, const struct foreign_args *args,
                 struct foreign_file *file)
{
    bly_foreign_spec spec = { 0 };
    *file = (struct foreign_file){ 0 };
    if (!foreign_spec(args, &spec))
        return TROUBLE;
    int status = foreign_bytes(path, args->format, file);
    if (status == YES && file->bytes) {
        bly_format_info info;
        const bly_status st =
            bly_foreign_open(&spec, file->bytes, file->nbytes, &file->f);
        /* Not of any format: the reader of our own files will say what is wrong
         * with it. */
        if (st && (st != BLY_EFORMAT || args->format ||
                   bly_format_of(file->bytes, file->nbytes, &info)))
            status = fail("%s: %s", path, bly_error());
    }
    if (status == YES && !file->f && spec.noptions)
        status = fail("%s: -O is for files of other systems; say which with "
                      "--format",
                      path);
    if (!file->f)
        foreign_close(file);
    return status;
}

const char *foreign_format(const char *path)
{
    struct foreign_file file = { 0 };
    bly_format_info info = { 0 };
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        foreign_map(path, fd, (size_t)st.st_size, &file) == YES)
        bly_format_of(file.bytes, file.nbytes, &info);
    foreign_close(&file);
    close(fd);
    return info.name;
}

void foreign_close(struct foreign_file *file)
{
    bly_foreign_free(file->f);
    if (file->mapped)
        munmap(file->bytes, file->nbytes);
    else
        free(file->bytes);
    *file = (struct foreign_file){ 0 };
}

int foreign_changes(const char *path, const struct foreign_args *args,
                    uint64_t can)
{
    struct foreign_file file;
    bly_format_info info = { 0 };
    if (foreign_open(path, args, &file) != YES)
        return -1;
    if (file.f)
        bly_format_named(bly_foreign_format(file.f), &info);
    const bool packed = file.f && !file.mapped;
    foreign_close(&file);
    if (!(info.can & can))
        return 0;
    if (packed)
        fail("%s: cannot be changed: compressed; unpack it first", path);
    return packed ? -1 : 1;
}

/* ----------------------------------------------------------------- asking */

/* st, with the key that it is about where one is. */
static bly_status batch_failed(struct batch *b, bly_status st,
                               const bly_bytes *key)
{
    static _Thread_local char why[256];
    snprintf(why, sizeof why, "key '%s': %s", show_text(key->ptr, key->len),
             bly_error());
    b->why = why;
    return st;
}

bly_status foreign_ask(const bly_foreign *f, struct batch *b)
{
    size_t bad;
    const bly_status st = bly_foreign_has(f, b->keys, b->n, b->picked, &bad);
    return st && b->n ? batch_failed(b, st, &b->keys[bad]) : st;
}

bly_status foreign_add(bly_foreign *f, struct batch *b)
{
    size_t done;
    const bly_status st = bly_foreign_add(f, b->keys, b->n, b->picked, &done);
    return st && done < b->n ? batch_failed(b, st, &b->keys[done]) : st;
}

/* ----------------------------------------------------------------- making */

struct making {
    bly_foreign *f;
    sift_fn *sift;
    const void *ctx;
};

static bly_status foreign_take(struct job *job, struct batch *b)
{
    const struct making *const m = job->ctx;
    size_t n = 0, done = 0;
    bly_bytes kept[BATCH];
    if (m->sift) {
        const bly_status st = m->sift(m->ctx, b);
        if (st)
            return st;
    } else {
        batch_invert(b);
    }
    for (size_t i = 0; i < b->n; i++)
        if (b->picked[i / 64] >> i % 64 & 1)
            kept[n++] = b->keys[i];
    const bly_status st = bly_foreign_add(m->f, kept, n, NULL, &done);
    return st && done < n ? batch_failed(b, st, &kept[done]) : st;
}

bly_foreign *foreign_build(const bly_foreign_spec *spec, struct input *in,
                           sift_fn *sift, const void *ctx, bool may_be_empty,
                           struct job *job)
{
    struct making m = { .sift = sift, .ctx = ctx };
    if (bly_foreign_new(spec, &m.f)) {
        fail_library();
        return NULL;
    }
    job->batch = foreign_take;
    job->ctx = &m;
    job->nthreads = 1;
    const bly_status st = pipeline_run(job, in);
    if (st)
        fail("%s", job->error);
    else if (!job->npicked && !may_be_empty)
        fail(
            "no keys; to make an empty filter, give its capacity with --items");
    else
        return m.f;
    bly_foreign_free(m.f);
    return NULL;
}

static bly_status write_foreign(const void *what, bly_put *put, void *ctx)
{
    return bly_foreign_write((bly_foreign *)(uintptr_t)what, put, ctx);
}

int foreign_save(bly_foreign *f, const char *path)
{
    return file_save(path, write_foreign, f);
}

struct foreign_made {
    const char *file;
    uint64_t keys, left_out, bytes;
    bly_foreign_stats s;
};

const struct field foreign_made_fields[] = {
    FIELD(struct foreign_made, file, NONE, "where the filter was written"),
    FIELD(struct foreign_made, keys, KEYS, "keys that were read"),
    FIELD(struct foreign_made, left_out, NONE,
          "keys left out because they were not in the filter that was asked"),
    NAMED(struct foreign_made, "format", s.format, NONE, "its format"),
    NAMED(struct foreign_made, "bits", s.bits, BITS, "size of the filter"),
    NAMED(struct foreign_made, "k", s.k, NONE, "probes per key"),
    NAMED(struct foreign_made, "fpr_now", s.fpr_now, RATE | MAYBE,
          "false positives with the keys it holds"),
    FIELD(struct foreign_made, bytes, BYTES, NULL),
    { 0 },
};

void foreign_report(FILE *to, bool json, const char *path,
                    const struct job *job, const bly_foreign *f)
{
    struct foreign_made made = { .file = path,
                                 .keys = job->nkeys,
                                 .left_out = job->nkeys - job->npicked };
    bly_foreign_stat(f, BLY_WHOLE, &made.s);
    made.bytes = bits_to_bytes(made.s.bits);
    report(to, json, foreign_made_fields, &made,
           "{file}: [{?keys}{keys} read[{?left_out}, {left_out} left out "
           "because they were not in it]; ]{format} filter, {bytes}, {k} "
           "probes per key, {fpr_now} false positives\n");
}

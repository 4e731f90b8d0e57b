/*
 * mapped.c - a filter used where it lies in its file
 *
 * The whole file is mapped once, for reading; the root owns the mapping and
 * every record's data points into it. Opening reads the headers and no
 * payload, so it takes no longer for a large filter than for a small one; A
 * query pages in what it touches, and processes share those pages. If the file
 * has sums of blocks, the blocks that a query depends on are checked before it
 * is answered, each once (core/block_sums.h, reach() of kind.h). Coded files
 * cannot be used in place; for them this is only another way to read.
 *
 * How much the kernel reads ahead matters, since queries go anywhere. By
 * default a fault on a page that is not in memory brings in the 128 KiB around
 * it. For a filter that fits in memory that is welcome: the other pages will be
 * needed too, and all are there after a thirty-second of the faults; and
 * functions that read all of it (statistics, merging, the checksum) need it
 * anyway. For a filter that does not fit, 31 of 32 pages only push out others
 * that are as likely to be needed. That is worse if the disk is set to read
 * farther ahead: with 8 MiB, a filter of 240 MiB in a container of 64 MiB took
 * 4.3 ms per key; with one page per fault it takes 0.04. So a map of more than
 * half of the memory that the process may use is told that access is random
 * (MADV_RANDOM), and others are left alone. The first questions to a file with
 * sums of blocks fetch their blocks by themselves, though, unless many keys
 * come at once (core/block_sums.h).
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/sized.h"
#include "core/status.h"
#include "format/filter_files.h"
#include "format/reader.h"
#include "format/record.h"
#include "format/replace.h"
#include "kinds/filter.h"

/* Below this it is not worth finding out how much memory there is. */
#define MAP_SMALL (1 << 20)

static bool exceeds_memory(size_t nbytes)
{
    return nbytes > MAP_SMALL && nbytes > bly_memory_limit() / 2;
}

/* Queries go anywhere, and each brings in a page; but comparing a block brings
 * in all of its pages at once. */
static void fetch_blocks(bly_filter *f)
{
    struct bly_sums *const sums = bly_filter_sums(f);
    if (sums)
        sums->fetch = true;
    for (uint32_t i = 0; i < f->nlayers; i++)
        fetch_blocks(f->layer[i]);
}

static bly_status map_file(bly_file *in, const char *path,
                           const bly_access *how, void *made)
{
    bly_filter **const out = made;
    if (in->nbytes == BLY_SIZE_UNKNOWN)
        return bly_fail(BLY_EIO,
                        "%s: cannot be mapped: not a regular file "
                        "(name one, or read it instead)",
                        path);
    if (in->nbytes > SIZE_MAX)
        return bly_fail(BLY_ERANGE,
                        "%s: %llu bytes are more than this machine can address",
                        path, (unsigned long long)in->nbytes);
    const size_t nbytes = (size_t)in->nbytes;
    /* There is no map of nothing; the reader says what an empty file is. */
    if (nbytes == 0)
        return bly_named_fail(bly_load(NULL, 0, how, out), path);
    unsigned char *map = mmap(NULL, nbytes, PROT_READ, MAP_SHARED, in->fd, 0);
    if (map == MAP_FAILED)
        return bly_io_fail(path, "mapped", errno);
    const bly_source src = { .bytes = map, .nbytes = nbytes, .map = map };
    const bly_status st = bly_source_read(&src, how, out);
    if (st) {
        munmap(map, nbytes);
        return bly_named_fail(st, path);
    }
    /* Was it decoded, or read, into memory of its own? */
    if ((*out)->coded || (*out)->compact) {
        munmap(map, nbytes);
        return BLY_OK;
    }
    if (exceeds_memory(nbytes)) {
        (void)madvise(map, nbytes, MADV_RANDOM);
        fetch_blocks(*out);
    }
    bly_outside *const outside = bly_filter_outside(*out);
    if (!outside) {
        bly_free(*out);
        *out = NULL;
        munmap(map, nbytes);
        return BLY_ENOMEM;
    }
    outside->map = map;
    outside->map_bytes = nbytes;
    return BLY_OK;
}

bly_status bly_map_sized(const char *path, const bly_access *how,
                         bly_filter **out, size_t size)
{
    if (out)
        *out = NULL;
    return bly_file_with(map_file, path, how, out, size);
}

/* Check all of it, whatever was checked before. */
static bly_status verify_payload(const bly_filter *f)
{
    struct bly_sums *const sums = bly_filter_sums(f);
    if (!sums)
        return bly_checksum(f->data, (size_t)f->shape.nbytes) ==
                       f->extra->outside->payload_sum
                   ? BLY_OK
                   : bly_damaged("the payload does not match its checksum");
    for (uint64_t i = 0; i < sums->nblocks; i++)
        if (!bly_sums_compare(sums, i))
            return bly_sums_status(sums);
    return BLY_OK;
}

bly_status bly_verify(const bly_filter *f)
{
    if (!f)
        return bly_fail_null("f");
    if (!f->readonly || bly_filter_live(f))
        return BLY_OK; /* was checked when it was read; or has no checksum */
    /* Payloads start at a page of the file, which may be less than one of the
     * machine; then the advice is refused, and only that. */
    const size_t nbytes = (size_t)f->shape.nbytes;
    const bool ahead = exceeds_memory(nbytes);
    if (ahead)
        (void)madvise(f->data, nbytes, MADV_SEQUENTIAL);
    const bly_status wrong = verify_payload(f);
    if (ahead)
        (void)madvise(f->data, nbytes, MADV_RANDOM);
    if (wrong)
        return wrong;
    if (f->kind->check && !f->kind->check(f))
        return bly_damaged("its contents cannot come from its kind");
    for (uint32_t i = 0; i < f->nlayers; i++) {
        const bly_status st = bly_verify(f->layer[i]);
        if (st)
            return st;
    }
    return BLY_OK;
}

bly_status bly_clone(const bly_filter *f, bly_filter **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    /* A copy may be written to, and writers rely on what a map does not check.
     */
    const bly_status st = bly_verify(f);
    return st ? st : bly_filter_copy(f, out);
}

bly_status bly_cloning_new(const bly_filter *f, bly_cloning **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    const bly_status st = bly_verify(f);
    return st ? st : bly_filter_cloning(f, out);
}

/*
 * bloomery_cuda.h - filters in the memory of an NVIDIA GPU
 * SPDX-License-Identifier: MIT
 *
 * For keys that are in device memory already. A filter is uploaded as it is,
 * asked and filled there, and downloaded: byte for byte what the processor
 * would have made of the same keys.
 *
 *     bly_cuda *g;
 *     if (bly_cuda_upload(f, &g) ||
 *         bly_cuda_has_ints(g, keys, n, maybe, stream) ||     device pointers
 *         bly_cuda_add_ints(g, keys, n, stream) ||
 *         bly_cuda_download(g, f))
 *         errx(2, "%s", bly_cuda_error());
 *     bly_cuda_free(g);
 *
 * Link with -lbloomery_cuda -lbloomery. docs/cuda.md has measurements, and says
 * when a processor is the better choice.
 *
 * Kinds: blocked, classic and count-min add and ask; fuse, xor, ribbon and
 * cuckoo ask. Other kinds, keyed filters and rare shapes that have no view
 * (bloomery/views.h) are refused by bly_cuda_upload().
 *
 * Pointers to keys and answers are device pointers, aligned as their types.
 * Calls that take a stream (NULL: the default one) are queued there and return
 * at once; the others wait. Calls that change a filter must not run at the same
 * time as others on that filter: use one stream, or events.
 *
 * A call that fails returns a status and queues nothing; bly_cuda_error() then
 * says what was wrong. Errors of kernels that were queued earlier may be
 * reported by a later call, as is usual with CUDA.
 */
#ifndef BLOOMERY_CUDA_H
#define BLOOMERY_CUDA_H

#include <bloomery.h>
#include <bloomery/inline.h>

struct CUstream_st; /* cudaStream_t is a pointer to it */

BLY_BEGIN_DECLS

/* A filter in the memory of the device that was current when it was made. */
typedef struct bly_cuda bly_cuda;

/* What went wrong in the last call of this library that failed in this thread:
 * one line. Never NULL. */
const char *bly_cuda_error(void);

/* Copy f to the current device; *out belongs to the caller. An empty filter is
 * not copied but cleared there, so a new one of any size is made in no time.
 * BLY_ENOTSUP for what cannot be asked on a device, BLY_ENOMEM if the device
 * has too little memory, BLY_EIO if there is no device or its driver does not
 * work. f may be freed afterwards. */
bly_status bly_cuda_upload(const bly_filter *f, bly_cuda **out);

/* Wait for all that was queued on the device, and put the contents into f: the
 * filter that was uploaded, or one of the same kind, shape and seed, else
 * BLY_EUNFIT. Its metadata stay. BLY_ENOTSUP for kinds that only ask, whose
 * contents never change. After BLY_EIO or BLY_EFORMAT f can only be freed. */
bly_status bly_cuda_download(bly_cuda *g, bly_filter *f) BLY_MUST_CHECK;

/* Release g; waits until nothing uses it any more. NULL is allowed. */
void bly_cuda_free(bly_cuda *g);

/* Add n keys: hashes, integers (bly_add_ints()), or bytes of a column, whose
 * three pointers are device pointers. BLY_ENOTSUP for kinds that only ask, for
 * count-min sketches with conservative update, which depends on the order of
 * the keys, and for integers in a filter of text. BLY_ERANGE if a counter of 32
 * bits might overflow. */
bly_status bly_cuda_add_hashes(bly_cuda *g, const uint64_t *hashes, size_t n,
                               struct CUstream_st *stream) BLY_MUST_CHECK;
bly_status bly_cuda_add_ints(bly_cuda *g, const uint64_t *ints, size_t n,
                             struct CUstream_st *stream) BLY_MUST_CHECK;
bly_status bly_cuda_add_column(bly_cuda *g, const bly_column *keys, size_t n,
                               struct CUstream_st *stream) BLY_MUST_CHECK;

/* Ask for n keys, in order: the same bitmap as bly_has_hashes() and its
 * relatives give, of BLY_BITMAP_WORDS(n) words. */
bly_status bly_cuda_has_hashes(const bly_cuda *g, const uint64_t *hashes,
                               size_t n, uint64_t *maybe,
                               struct CUstream_st *stream);
bly_status bly_cuda_has_ints(const bly_cuda *g, const uint64_t *ints, size_t n,
                             uint64_t *maybe, struct CUstream_st *stream);
bly_status bly_cuda_has_column(const bly_cuda *g, const bly_column *keys,
                               size_t n, uint64_t *maybe,
                               struct CUstream_st *stream);

/* How many of n keys may be in, without saying which: *nhits, in device memory,
 * is set. And the keys that may be in, in any order: *nhits of them in
 * selected[n]. Of a blocked filter that is larger than the device's cache,
 * large batches of integers or hashes are answered faster than in order. For
 * blocked filters. */
bly_status bly_cuda_tally_hashes(const bly_cuda *g, const uint64_t *hashes,
                                 size_t n, uint64_t *nhits,
                                 struct CUstream_st *stream);
bly_status bly_cuda_tally_ints(const bly_cuda *g, const uint64_t *ints,
                               size_t n, uint64_t *nhits,
                               struct CUstream_st *stream);
bly_status bly_cuda_select_hashes(const bly_cuda *g, const uint64_t *hashes,
                                  size_t n, uint64_t *selected, uint64_t *nhits,
                                  struct CUstream_st *stream);
bly_status bly_cuda_select_ints(const bly_cuda *g, const uint64_t *ints,
                                size_t n, uint64_t *selected, uint64_t *nhits,
                                struct CUstream_st *stream);

/* How often each of n keys was added: for count-min sketches. */
bly_status bly_cuda_count_hashes(const bly_cuda *g, const uint64_t *hashes,
                                 size_t n, uint64_t *counts,
                                 struct CUstream_st *stream);
bly_status bly_cuda_count_ints(const bly_cuda *g, const uint64_t *ints,
                               size_t n, uint64_t *counts,
                               struct CUstream_st *stream);

/* The hashes that g has for n integers, or n keys of a column. */
bly_status bly_cuda_hash_ints(const bly_cuda *g, const uint64_t *ints, size_t n,
                              uint64_t *hashes, struct CUstream_st *stream);
bly_status bly_cuda_hash_column(const bly_cuda *g, const bly_column *keys,
                                size_t n, uint64_t *hashes,
                                struct CUstream_st *stream);

/* Make dst the union of dst and src, which agree in kind, shape and seed and
 * are on the same device, else BLY_EUNFIT. For kinds that add. */
bly_status bly_cuda_merge(bly_cuda *dst, const bly_cuda *src,
                          struct CUstream_st *stream) BLY_MUST_CHECK;

/* How many bits of the cells are set. Waits for the stream. */
bly_status bly_cuda_ones(const bly_cuda *g, uint64_t *ones,
                         struct CUstream_st *stream);

/* A view of a blocked filter for kernels of your own:
 * bly_blocked_has(&view, hash) and bly_blocked_has_int(&view, key) of
 * bloomery/inline.h are device functions when nvcc compiles them. */
bly_status bly_cuda_view(const bly_cuda *g, bly_blocked *out);

/* How large batches go through a blocked filter: as the library chooses, key by
 * key, or sorted by where they lead first, which takes 8 bytes of device memory
 * per key. Answers are the same. For those who measure. */
typedef enum bly_cuda_way {
    BLY_CUDA_CHOOSE,
    BLY_CUDA_DIRECT,
    BLY_CUDA_PARTS
} bly_cuda_way;
void bly_cuda_set_way(bly_cuda *g, bly_cuda_way way);

BLY_END_DECLS
#endif

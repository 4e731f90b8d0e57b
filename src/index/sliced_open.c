/*
 * sliced_open.c - an index where it lies in its file
 *
 * Opening reads the header and the directory, and nothing else. Everything that
 * the directory says is checked against the size of the file before memory is
 * taken for it, and memory is bounded by the bytes of the directory.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "core/sized.h"
#include "core/status.h"
#include "format/delta.h"
#include "format/filter_files.h"
#include "format/reader.h"
#include "format/replace.h"
#include "index/bit_sliced.h"

static bly_status refuse(const char *why)
{
    return bly_fail(BLY_EFORMAT, "%s", why);
}

/* A cursor over the directory. */
typedef struct directory {
    const unsigned char *at;
    uint64_t left;
} directory;

/* The next n bytes, or NULL if there are fewer. */
static const unsigned char *directory_take(directory *d, uint64_t n)
{
    const unsigned char *const at = d->at;
    if (n > d->left)
        return NULL;
    d->at += n;
    d->left -= n;
    return at;
}

static double load_real(const unsigned char *p)
{
    const uint64_t bits = bly_load64(p);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Is there such a part before the directory, and are its bytes to be read? */
static bool part_fits(const bly_sliced_part *part, uint64_t most)
{
    return part->shift >= SLICED_SHIFT_LEAST &&
           part->shift <= SLICED_SHIFT_MOST && part->nbytes > 0 &&
           part->nbytes <= most && part->at >= SLICED_HEADER &&
           part->at <= most - part->nbytes;
}

static bool class_read(const unsigned char *p, bly_sliced_class *c)
{
    memcpy(c->name, p, SLICED_NAME);
    c->fpr = load_real(p + 32);
    c->k = bly_load32(p + 40);
    return c->name[0] && !c->name[SLICED_NAME - 1] && c->fpr > 0 &&
           c->fpr < 1 && c->k >= 1 && c->k <= SLICED_K_MOST;
}

static bool segment_read(const unsigned char *p, uint64_t most,
                         bly_sliced_segment *s)
{
    s->first = bly_load64(p);
    s->ndocs = bly_load64(p + 8);
    s->part.at = bly_load64(p + 16);
    s->part.nbytes = bly_load64(p + 24);
    s->part.shift = bly_load32(p + 32);
    return part_fits(&s->part, most) && s->ndocs >= 1 &&
           s->ndocs < s->part.nbytes / 8;
}

static bool group_read(const unsigned char *p, uint64_t most,
                       bly_sliced_group *g)
{
    g->class_number = bly_load32(p);
    g->part.shift = bly_load32(p + 4);
    g->m = bly_load64(p + 8);
    g->ndocs = bly_load64(p + 16);
    g->first = bly_load64(p + 24);
    g->span = bly_load64(p + 32);
    g->terms = bly_load64(p + 40);
    g->expected = load_real(p + 48);
    g->part.at = bly_load64(p + 56);
    g->part.nbytes = bly_load64(p + 64);
    if (!part_fits(&g->part, most) || g->m < 1 || g->m > SLICED_ROWS_MOST ||
        g->ndocs < 1 || g->ndocs > 8 * g->part.nbytes || g->span < g->ndocs ||
        g->span > UINT32_MAX || !(g->expected >= 0 && g->expected <= 1))
        return false;
    /* m is at most 2^40 and a column at most 2^32: the product may not fit. */
    uint64_t bits;
    if (__builtin_mul_overflow(g->m, bly_sliced_stride(g->ndocs), &bits) ||
        bits / 8 > g->part.nbytes)
        return false;
    return g->part.nbytes == bly_sliced_row_bytes(g->m, g->ndocs) +
                                 bly_sliced_list_bytes(g->ndocs, g->span);
}

bool bly_sliced_pair_next(const unsigned char **at, uint64_t *left,
                          bly_sliced_pair *out)
{
    if (*left < 8)
        return false;
    out->nname = bly_load32(*at);
    out->nvalue = bly_load32(*at + 4);
    const uint64_t n = (uint64_t)out->nname + out->nvalue;
    if (n > *left - 8)
        return false;
    out->name = *at + 8;
    out->value = out->name + out->nname;
    *at += 8 + n;
    *left -= 8 + n;
    return true;
}

/* Segments must follow each other from document 0 on, and groups be sorted and
 * lie within the documents. */
static bly_status records_read(bly_index *x, directory *d, uint64_t most)
{
    uint64_t next = 0;
    for (uint32_t i = 0; i < x->nclasses; i++)
        if (!class_read(directory_take(d, SLICED_CLASS), &x->classes[i]))
            return refuse("a class of terms is impossible");
    for (uint32_t i = 0; i < x->nsegments; i++) {
        bly_sliced_segment *const s = &x->segments[i];
        if (!segment_read(directory_take(d, SLICED_SEGMENT), most, s) ||
            s->first != next)
            return refuse("a segment is impossible");
        next += s->ndocs;
    }
    if (next != x->ndocs)
        return refuse("the segments have another number of documents");
    for (uint64_t i = 0; i < x->ngroups; i++) {
        bly_sliced_group *const g = &x->groups[i];
        if (!group_read(directory_take(d, SLICED_GROUP), most, g) ||
            g->class_number >= x->nclasses || g->span > x->ndocs ||
            g->first > x->ndocs - g->span ||
            (i && bly_sliced_order(g - 1, g) > 0))
            return refuse("a group is impossible");
    }
    return BLY_OK;
}

static bly_status part_sums(bly_index *x, directory *d, bly_sliced_part *part)
{
    const uint64_t n = bly_sums_count(part->nbytes, part->shift);
    const unsigned char *const table =
        n <= d->left / 8 ? directory_take(d, 8 * n) : NULL;
    if (!table)
        return refuse("the directory ends before its sums");
    part->table = table;
    /* Without a base, so that nothing is released. */
    bly_block block = { .at = (unsigned char *)(uintptr_t)table };
    const bly_status st =
        bly_sums_new(&x->mem, x->bytes + part->at, part->nbytes, part->shift,
                     false, &block, &part->sums);
    if (!st)
        part->sums->offset = part->at;
    return st;
}

static bly_status directory_read(bly_index *x, directory d, uint64_t most)
{
    const unsigned char *const head = directory_take(&d, SLICED_HEAD);
    if (!head)
        return refuse("the directory is too short");
    x->hasher = (bly_hasher){ .id = BLY_HASH_XXH3, .seed = bly_load64(head) };
    x->nclasses = bly_load32(head + 8);
    x->nsegments = bly_load32(head + 12);
    x->ngroups = bly_load64(head + 16);
    x->ndocs = bly_load64(head + 24);
    x->ndropped = bly_load64(head + 32);
    x->nmeta = bly_load64(head + 40);
    if (x->nclasses < 1 || x->nclasses > BLY_INDEX_CLASSES_MOST ||
        x->ngroups > d.left / SLICED_GROUP ||
        (uint64_t)x->nclasses * SLICED_CLASS +
                (uint64_t)x->nsegments * SLICED_SEGMENT +
                x->ngroups * SLICED_GROUP >
            d.left ||
        x->ndocs > x->nbytes / 8 || x->ndropped > x->ndocs ||
        x->nmeta > SLICED_META_MOST)
        return refuse("the directory is impossible");
    x->classes = bly_mem_zalloc(&x->mem, x->nclasses * sizeof x->classes[0]);
    x->segments =
        bly_mem_zalloc(&x->mem, (x->nsegments + 1) * sizeof x->segments[0]);
    x->groups =
        bly_mem_zalloc(&x->mem, (size_t)(x->ngroups + 1) * sizeof x->groups[0]);
    if (!x->classes || !x->segments || !x->groups)
        return bly_fail(BLY_ENOMEM, "out of memory");
    bly_status st = records_read(x, &d, most);
    if (st)
        return st;
    if (x->ndropped) {
        x->dropped = directory_take(&d, bly_index_words(x) * 8);
        if (!x->dropped)
            return refuse("the directory ends before the dropped documents");
    }
    x->meta = directory_take(&d, (x->nmeta + 7) & ~UINT64_C(7));
    if (!x->meta)
        return refuse("the directory ends before the metadata");
    const unsigned char *at = x->meta;
    uint64_t left = x->nmeta;
    bly_sliced_pair pair;
    while (bly_sliced_pair_next(&at, &left, &pair))
        ;
    if (left)
        return refuse("the metadata are impossible");
    for (uint32_t i = 0; i < x->nsegments && !st; i++)
        st = part_sums(x, &d, &x->segments[i].part);
    for (uint64_t i = 0; i < x->ngroups && !st; i++)
        st = part_sums(x, &d, &x->groups[i].part);
    if (!st && d.left)
        return refuse("the directory goes on behind its end");
    return st;
}

static bly_status header_read(bly_index *x)
{
    const unsigned char *const p = x->bytes;
    if (x->nbytes < SLICED_HEADER ||
        memcmp(p, BLY_INDEX_MAGIC, sizeof BLY_INDEX_MAGIC - 1) != 0)
        return refuse("not an index (name a .blx file)");
    if (bly_load32(p + 8) != 1)
        return bly_fail(BLY_EFORMAT,
                        "an index of version %u; this library reads version 1 "
                        "(use a newer one, or build the index again)",
                        bly_load32(p + 8));
    if (bly_load64(p + 120) != bly_checksum(p, 120))
        return refuse("damaged: the header does not match its checksum (build "
                      "the index again)");
    const uint64_t nbytes = bly_load64(p + 16), at = bly_load64(p + 24),
                   length = bly_load64(p + 32);
    if (nbytes != x->nbytes)
        return bly_fail(BLY_EFORMAT,
                        "%llu bytes, but its header says %llu: truncated or "
                        "extended (restore it from a copy, or build it again)",
                        (unsigned long long)x->nbytes,
                        (unsigned long long)nbytes);
    if (at < SLICED_HEADER || at > nbytes || length > nbytes - at)
        return refuse("the directory is not within the file");
    if (bly_checksum(p + at, (size_t)length) != bly_load64(p + 40))
        return refuse("damaged: the directory does not match its checksum "
                      "(restore it from a copy, or build it again)");
    return directory_read(x, (directory){ p + at, length }, at);
}

static bly_status index_over(const unsigned char *bytes, uint64_t nbytes,
                             const bly_mem *mem, bly_index **out)
{
    const bly_mem *const use = mem ? mem : &bly_mem_system;
    bly_index *const x = bly_mem_zalloc(use, sizeof *x);
    if (!x)
        return bly_fail(BLY_ENOMEM, "out of memory");
    x->mem = *use;
    x->bytes = bytes;
    x->nbytes = nbytes;
    const bly_status st = header_read(x);
    if (st)
        bly_index_free(x);
    else
        *out = x;
    return st;
}

bly_status bly_index_load(const void *bytes, size_t nbytes, const bly_mem *mem,
                          bly_index **out)
{
    if (!out)
        return bly_fail_null("out");
    *out = NULL;
    if (!bytes && nbytes)
        return bly_fail_null("bytes");
    return index_over(bytes, nbytes, mem, out);
}

bly_status bly_sliced_map(int fd, uint64_t nbytes, const char *name,
                          const bly_mem *mem, bly_index **out)
{
    if (nbytes > SIZE_MAX)
        return bly_fail(BLY_ERANGE,
                        "%s: %llu bytes are more than this machine can address",
                        name, (unsigned long long)nbytes);
    /* There is no map of nothing; the reader says what an empty file is. */
    if (nbytes == 0)
        return bly_named_fail(index_over(NULL, 0, mem, out), name);
    void *const map = mmap(NULL, (size_t)nbytes, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return bly_io_fail(name, "mapped", errno);
    const bly_status st = index_over(map, nbytes, mem, out);
    if (st) {
        munmap(map, (size_t)nbytes);
        return bly_named_fail(st, name);
    }
    /* A question goes to a few rows; what is between them is not wanted. */
    (void)madvise(map, (size_t)nbytes, MADV_RANDOM);
    (*out)->map = map;
    return BLY_OK;
}

static bly_status map_index(bly_file *in, const char *path,
                            const bly_access *how, void *out)
{
    if (how && how->secret)
        return bly_fail(BLY_ESECRET, "%s: an index has no secret", path);
    if (in->nbytes == BLY_SIZE_UNKNOWN)
        return bly_fail(BLY_EIO, "%s: cannot be mapped: not a regular file",
                        path);
    return bly_sliced_map(in->fd, in->nbytes, path, how ? how->mem : NULL, out);
}

bly_status bly_index_map_sized(const char *path, const bly_access *how,
                               bly_index **out, size_t size)
{
    if (out)
        *out = NULL;
    return bly_file_with(map_index, path, how, out, size);
}

void bly_index_free(bly_index *x)
{
    if (!x)
        return;
    const bly_mem mem = x->mem;
    for (uint32_t i = 0; x->segments && i < x->nsegments; i++)
        bly_sums_free(&mem, x->segments[i].part.sums);
    for (uint64_t i = 0; x->groups && i < x->ngroups; i++)
        bly_sums_free(&mem, x->groups[i].part.sums);
    bly_mem_release(&mem, x->classes, x->nclasses * sizeof x->classes[0]);
    bly_mem_release(&mem, x->segments,
                    (x->nsegments + 1) * sizeof x->segments[0]);
    bly_mem_release(&mem, x->groups,
                    (size_t)(x->ngroups + 1) * sizeof x->groups[0]);
    if (x->map)
        munmap(x->map, (size_t)x->nbytes);
    bly_mem_release(&mem, x, sizeof *x);
}

/* -------------------------------------------------------------- description */

const bly_hasher *bly_index_hasher(const bly_index *x)
{
    return &x->hasher;
}

uint64_t bly_index_documents(const bly_index *x)
{
    return x->ndocs;
}

void bly_index_live(const bly_index *x, uint64_t *live)
{
    const size_t nwords = bly_index_words(x);
    for (size_t i = 0; i < nwords; i++)
        live[i] = x->dropped ? ~bly_load64(x->dropped + 8 * i) : UINT64_MAX;
    if (x->ndocs % 64)
        live[nwords - 1] &= bly_through(x->ndocs - 1);
}

int bly_index_class_named(const bly_index *x, const char *name)
{
    for (uint32_t i = 0; name && i < x->nclasses; i++)
        if (strcmp(x->classes[i].name, name) == 0)
            return (int)i;
    return -1;
}

void bly_index_stat_sized(const bly_index *x, bly_index_stats *out, size_t size)
{
    bly_index_stats s = {
        .documents = x->ndocs,
        .dropped = x->ndropped,
        .segments = x->nsegments,
        .groups = (uint32_t)x->ngroups,
        .classes = x->nclasses,
        .nbytes = x->nbytes,
        .seed = x->hasher.seed,
    };
    for (uint64_t i = 0; i < x->ngroups; i++)
        s.row_bytes += x->groups[i].part.nbytes;
    for (uint32_t i = 0; i < x->nsegments; i++)
        s.blob_bytes += x->segments[i].part.nbytes;
    BLY_GIVE(&s, out, size);
}

bool bly_index_class_at_sized(const bly_index *x, size_t i,
                              bly_index_class_stats *out, size_t size)
{
    if (i >= x->nclasses)
        return false;
    bly_index_class_stats s = { .fpr = x->classes[i].fpr,
                                .k = x->classes[i].k };
    double sum = 0, columns = 0;
    memcpy(s.name, x->classes[i].name, sizeof s.name);
    for (uint64_t j = 0; j < x->ngroups; j++) {
        const bly_sliced_group *const g = &x->groups[j];
        if (g->class_number != i)
            continue;
        s.groups++;
        s.terms += g->terms;
        s.row_bytes += g->part.nbytes;
        sum += g->expected * (double)g->ndocs;
        columns += (double)g->ndocs;
    }
    s.expected = columns > 0 ? sum / columns : 0;
    BLY_GIVE(&s, out, size);
    return true;
}

bool bly_index_wants_compaction(const bly_index *x)
{
    uint64_t sizes = 0; /* groups that a compaction would leave */
    for (uint64_t i = 0; i < x->ngroups; i++)
        sizes += i == 0 || bly_sliced_order(&x->groups[i - 1], &x->groups[i]);
    return x->ndropped * 4 > x->ndocs || x->ngroups > 4 * sizes ||
           x->nsegments > 64;
}

bly_bytes bly_index_get(const bly_index *x, const char *name)
{
    const unsigned char *at = x->meta;
    uint64_t left = x->nmeta;
    bly_sliced_pair pair;
    const size_t n = name ? strlen(name) : 0;
    while (name && bly_sliced_pair_next(&at, &left, &pair))
        if (pair.nname == n && memcmp(pair.name, name, n) == 0)
            return (bly_bytes){ pair.value, pair.nvalue };
    return (bly_bytes){ 0 };
}

/* The last segment that begins at or before a document. */
static const bly_sliced_segment *segment_of(const bly_index *x, uint64_t number)
{
    uint32_t low = 0, high = x->nsegments;
    while (high - low > 1) {
        const uint32_t mid = low + (high - low) / 2;
        *(x->segments[mid].first <= number ? &low : &high) = mid;
    }
    return &x->segments[low];
}

bly_status bly_index_document(const bly_index *x, uint64_t number,
                              bly_bytes *blob)
{
    if (!x || !blob)
        return bly_fail_null(x ? "blob" : "x");
    *blob = (bly_bytes){ 0 };
    if (number >= x->ndocs)
        return bly_fail(BLY_EINVAL, "there is no document %llu, only %llu",
                        (unsigned long long)number,
                        (unsigned long long)x->ndocs);
    const bly_sliced_segment *const s = segment_of(x, number);
    const uint64_t i = number - s->first, table = 8 * (s->ndocs + 1);
    if (!bly_sums_touch(s->part.sums, 8 * i, 16))
        return bly_sums_status(s->part.sums);
    const unsigned char *const bytes = x->bytes + s->part.at;
    const uint64_t from = bly_load64(bytes + 8 * i),
                   to = bly_load64(bytes + 8 * i + 8);
    if (from > to || to > s->part.nbytes - table)
        return refuse("the place of a document is impossible");
    if (to > from && !bly_sums_touch(s->part.sums, table + from, to - from))
        return bly_sums_status(s->part.sums);
    *blob = (bly_bytes){ bytes + table + from, (size_t)(to - from) };
    return BLY_OK;
}

/* -------------------------------------------------------------------- damage
 */

bly_status bly_index_damage(const bly_index *x)
{
    bly_status st = x ? BLY_OK : bly_fail_null("x");
    for (uint32_t i = 0; !st && i < x->nsegments; i++)
        st = bly_sums_status(x->segments[i].part.sums);
    for (uint64_t i = 0; !st && i < x->ngroups; i++)
        st = bly_sums_status(x->groups[i].part.sums);
    return st;
}

static bly_status part_verify(const bly_sliced_part *part)
{
    for (uint64_t i = 0; i < part->sums->nblocks; i++)
        if (!bly_sums_compare(part->sums, i))
            return bly_sums_status(part->sums);
    return BLY_OK;
}

static bly_status group_verify(const bly_index *x, const bly_sliced_group *g)
{
    bool right = true;
    const bly_status st = part_verify(&g->part);
    if (st)
        return st;
    const unsigned char *const list = bly_sliced_list(g, x->bytes, &right);
    for (uint64_t i = 0; list && i < g->ndocs; i++)
        right &= bly_load32(list + 4 * i) < g->span;
    return right ? BLY_OK : refuse("a group has impossible documents");
}

bly_status bly_index_verify(const bly_index *x)
{
    bly_status st = BLY_OK;
    bly_bytes blob;
    if (!x)
        return bly_fail_null("x");
    if (x->map)
        (void)madvise(x->map, (size_t)x->nbytes, MADV_SEQUENTIAL);
    for (uint32_t i = 0; i < x->nsegments && !st; i++)
        st = part_verify(&x->segments[i].part);
    for (uint64_t i = 0; i < x->ngroups && !st; i++)
        st = group_verify(x, &x->groups[i]);
    for (uint64_t i = 0; i < x->ndocs && !st; i++)
        st = bly_index_document(x, i, &blob);
    if (x->map)
        (void)madvise(x->map, (size_t)x->nbytes, MADV_RANDOM);
    return st;
}

const unsigned char *bly_sliced_list(const bly_sliced_group *g,
                                     const unsigned char *bytes, bool *right)
{
    if (g->span == g->ndocs)
        return NULL;
    const uint64_t at = bly_sliced_row_bytes(g->m, g->ndocs);
    *right = bly_sums_touch(g->part.sums, at, 4 * g->ndocs);
    return bytes + g->part.at + at;
}

/*
 * git.c - changed-path filters in a commit-graph of git
 *
 *     "CGPH", version 1, object ids (1 SHA-1, 2 SHA-256), C chunks, B bases
 *     C + 1 times: id of 4 letters, offset of 8 bytes, big-endian; the last
 *                  offset is where the last chunk ends
 *     OIDF  256 numbers of 4 bytes; the last is N, the number of commits
 *     OIDL  N object ids, sorted
 *     BIDX  N numbers of 4 bytes: where the filter of a commit ends in BDAT
 *     BDAT  hash version, k, bits per entry, 4 bytes each; then all filters
 *
 * Every commit is a part, named by its object id. Its filter has the paths that
 * differ from its first parent, with all their leading directories; no slash at
 * either end. Without a byte it was not computed, and anything may be in it;
 * the byte 0x00 is a commit without changes, 0xff one with too many.
 *
 * Position i is a + i b (32 bits) mod m, with a and b by MurmurHash3 and two
 * seeds. Hash version 1 takes bytes above 0x7f as negative numbers, which was a
 * mistake, and 2 (git 2.46) does not.
 *
 * A graph may have a million commits, so nothing is allocated for a part, and
 * asking goes over the index alone (git_test()). A file of a chain
 * (commit-graphs/graph-*.graph) has the commits that its bases do not.
 */
#include <string.h>

#include "foreign/format.h"
#include "foreign/hashes.h"

#define GIT_HEADER 8
#define GIT_ENTRY 12     /* of the table of chunks */
#define GIT_BDAT_HEAD 12 /* of the chunk of filters */

enum { GIT_COMMIT, GIT_NOPTIONS };

static const bly_param git_options[] = {
    [GIT_COMMIT] = BLY_OPTION_TEXT(
        "commit", NULL, "only commits whose object id begins with this"),
};

struct git_graph {
    uint32_t ncommits;         /* in the file */
    uint32_t first;            /* of those that are parts */
    size_t id_bytes;           /* of an object id */
    const unsigned char *ids;  /* sorted */
    const unsigned char *ends; /* big-endian, checked to ascend */
    const unsigned char *filters;
    size_t nfilters; /* bytes */
    uint32_t k;
    bool is_signed; /* hash version 1 */
};

/* ---------------------------------------------------------------- opening */

static bool git_recognise(const unsigned char *bytes, size_t n)
{
    return n > GIT_HEADER && memcmp(bytes, "CGPH\1", 5) == 0;
}

/* The chunks that are read. */
enum { GIT_OIDF, GIT_OIDL, GIT_BIDX, GIT_BDAT, GIT_NCHUNKS };

/* Find them by the table; ptr is NULL where there is none. Chunks follow the
 * table, and each other, and end before the checksum. */
static bly_status git_read_table(const bly_foreign *f, size_t id_bytes,
                                 bly_bytes out[GIT_NCHUNKS])
{
    static const char *const ids[] = { "OIDF", "OIDL", "BIDX", "BDAT" };
    const size_t n = f->more->bytes[6],
                 first = GIT_HEADER + (n + 1) * GIT_ENTRY;
    bly_bytes *open = NULL; /* it ends where the next one begins */
    if (f->more->nbytes < first + id_bytes)
        return bly_damaged(
            "it ends in the middle of the table of its %zu chunks", n);
    uint64_t last = first;
    for (size_t i = 0; i <= n; i++) {
        const unsigned char *const e =
            f->more->bytes + GIT_HEADER + i * GIT_ENTRY;
        const uint64_t at = bly_load_be64(e + 4);
        if (at < last || at > f->more->nbytes - id_bytes)
            return bly_damaged("chunk %zu of %zu lies outside the file", i, n);
        if (open)
            open->len = (size_t)(at - last);
        open = NULL;
        for (unsigned j = 0; j < GIT_NCHUNKS && i < n && !open; j++)
            if (!out[j].ptr && memcmp(e, ids[j], 4) == 0)
                open = &out[j];
        if (open)
            open->ptr = f->more->bytes + at;
        last = at;
    }
    return BLY_OK;
}

static bly_status git_find_filters(const bly_foreign *f, struct git_graph *g)
{
    bly_bytes chunks[GIT_NCHUNKS] = { { 0 } };
    const bly_status st = git_read_table(f, g->id_bytes, chunks);
    if (st)
        return st;
    const bly_bytes fan = chunks[GIT_OIDF], ids = chunks[GIT_OIDL],
                    ends = chunks[GIT_BIDX], data = chunks[GIT_BDAT];
    if (fan.len != 1024 || !ids.ptr)
        return bly_damaged("a commit-graph without a list of its commits");
    g->ncommits = bly_load_be32((const unsigned char *)fan.ptr + 1020);
    if (ids.len / g->id_bytes != g->ncommits || ids.len % g->id_bytes != 0)
        return bly_damaged(
            "it announces %u commits, but has %zu bytes of object ids",
            g->ncommits, ids.len);
    if (!ends.ptr || !data.ptr)
        return bly_damaged("a commit-graph without changed-path filters; git "
                           "commit-graph write --reachable --changed-paths "
                           "makes them");
    if (ends.len / 4 != g->ncommits || ends.len % 4 != 0)
        return bly_damaged("%zu bytes in the index of the filters of %u "
                           "commits",
                           ends.len, g->ncommits);
    if (data.len < GIT_BDAT_HEAD)
        return bly_damaged(
            "a chunk of filters of %zu bytes; its header alone has %d",
            data.len, GIT_BDAT_HEAD);
    g->ids = ids.ptr;
    g->ends = ends.ptr;
    g->filters = (const unsigned char *)data.ptr + GIT_BDAT_HEAD;
    g->nfilters = data.len - GIT_BDAT_HEAD;
    uint32_t last = 0;
    for (uint32_t i = 0; i < g->ncommits; i++) {
        const uint32_t end = bly_load_be32(g->ends + (size_t)i * 4);
        if (end < last || end > g->nfilters)
            return bly_damaged("the filter of commit %u ends outside", i);
        last = end;
    }
    return BLY_OK;
}

static bly_status git_settings(struct git_graph *g)
{
    const unsigned char *const head = g->filters - GIT_BDAT_HEAD;
    const uint32_t version = bly_load_be32(head);
    g->k = bly_load_be32(head + 4);
    g->is_signed = version == 1;
    if (version != 1 && version != 2)
        return bly_damaged("filters of hash version %u; 1 and 2 are known",
                           version);
    if (g->k < 1 || g->k > BLY_FOREIGN_MAX_K)
        return bly_damaged("%u hash functions; git has 7", g->k);
    return BLY_OK;
}

/* How the object id of commit i compares with the first `digits` hexadecimal
 * digits, of which text are the values. */
static int git_compare(const struct git_graph *g, size_t i,
                       const unsigned char *text, size_t digits)
{
    const unsigned char *const id = g->ids + i * g->id_bytes;
    for (size_t d = 0; d < digits; d++) {
        const int have = d % 2 ? id[d / 2] & 15 : id[d / 2] >> 4;
        if (have != text[d])
            return have - text[d];
    }
    return 0;
}

/* The first commit that is not below the prefix, or past it where `past`. */
static uint32_t git_bound(const struct git_graph *g, const unsigned char *text,
                          size_t digits, bool past)
{
    uint32_t low = 0, high = g->ncommits;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int c = git_compare(g, middle, text, digits);
        if (c < 0 || (past && c == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Parts are the commits that the option asks for: neighbours, by their order.
 */
static bly_status git_choose(bly_foreign *f, struct git_graph *g)
{
    const char *const prefix = f->more->option[GIT_COMMIT];
    unsigned char text[64];
    f->nparts = g->ncommits;
    if (!prefix)
        return BLY_OK;
    const size_t digits = strlen(prefix);
    if (digits > g->id_bytes * 2 ||
        strspn(prefix, "0123456789abcdefABCDEF") != digits)
        return bly_fail(BLY_EINVAL,
                        "option commit: '%s' is not the beginning of an object "
                        "id, which is %zu hexadecimal digits",
                        prefix, g->id_bytes * 2);
    for (size_t i = 0; i < digits; i++)
        text[i] =
            (unsigned char)(prefix[i] <= '9' ? prefix[i] - '0'
                                             : (prefix[i] | 32) - 'a' + 10);
    g->first = git_bound(g, text, digits, false);
    const uint32_t end = git_bound(g, text, digits, true);
    if (end <= g->first)
        return bly_fail(BLY_EINVAL, "option commit: no commit begins with %s",
                        prefix);
    f->nparts = end - g->first;
    return BLY_OK;
}

static bly_status git_open(bly_foreign *f)
{
    if (!git_recognise(f->more->bytes, f->more->nbytes))
        return bly_damaged("not a commit-graph of version 1");
    const unsigned type = f->more->bytes[5];
    if (type != 1 && type != 2)
        return bly_damaged("object ids of type %u; 1 and 2 are known", type);
    bly_status st = bly_foreign_own(f, sizeof(struct git_graph));
    if (st)
        return st;
    struct git_graph *const g = f->own;
    g->id_bytes = type == 1 ? 20 : 32;
    st = git_find_filters(f, g);
    if (!st)
        st = git_settings(g);
    return st ? st : git_choose(f, g);
}

/* ------------------------------------------------------------- describing */

/* The filter of part i. The index was checked, but is not kept; where it has
 * changed since, nothing is known of the commit. */
static bly_bytes git_filter(const struct git_graph *g, size_t i)
{
    const size_t at = g->first + i;
    const uint32_t begin = at ? bly_load_be32(g->ends + (at - 1) * 4) : 0;
    const uint32_t end = bly_load_be32(g->ends + at * 4);
    if (begin > end || end > g->nfilters)
        return (bly_bytes){ g->filters, 0 };
    return (bly_bytes){ g->filters + begin, end - begin };
}

enum git_class { GIT_NOT_COMPUTED, GIT_NO_CHANGES, GIT_TOO_MANY, GIT_PATHS };

static enum git_class git_classify(bly_bytes filter)
{
    const int only = filter.len == 1 ? *(const unsigned char *)filter.ptr : -1;
    return filter.len == 0 ? GIT_NOT_COMPUTED
           : only == 0     ? GIT_NO_CHANGES
           : only == 0xff  ? GIT_TOO_MANY
                           : GIT_PATHS;
}

static void git_part(const bly_foreign *f, size_t i, bly_foreign_part *out)
{
    const struct git_graph *const g = f->own;
    const bly_bytes filter = git_filter(g, i);
    const enum git_class class = git_classify(filter);
    out->bytes = filter.ptr;
    out->nbits = (uint64_t)filter.len * 8;
    out->k = class == GIT_PATHS || class == GIT_NO_CHANGES ? g->k : 0;
    out->excludes_all = class == GIT_NO_CHANGES;
}

static void git_name(const bly_foreign *f, size_t i, char name[BLY_PART_NAME])
{
    const struct git_graph *const g = f->own;
    const unsigned char *const id = g->ids + (g->first + i) * g->id_bytes;
    for (size_t j = 0; j < g->id_bytes; j++) {
        name[2 * j] = "0123456789abcdef"[id[j] >> 4];
        name[2 * j + 1] = "0123456789abcdef"[id[j] & 15];
    }
    name[2 * g->id_bytes] = '\0';
}

static void git_describe(const bly_foreign *f, bly_facts *out)
{
    const struct git_graph *const g = f->own;
    uint64_t count[GIT_PATHS + 1] = { 0 };
    for (size_t i = 0; i < f->nparts; i++)
        count[git_classify(git_filter(g, i))]++;
    bly_fact_word(out, "object_ids", g->id_bytes == 20 ? "sha1" : "sha256");
    bly_fact_uint(out, "base_graphs", f->more->bytes[7]);
    bly_fact_uint(out, "commits", g->ncommits);
    bly_fact_uint(out, "hash_version", g->is_signed ? 1 : 2);
    bly_fact_uint(out, "bits_per_entry", bly_load_be32(g->filters - 4));
    bly_fact_uint(out, "with_a_filter", count[GIT_PATHS]);
    bly_fact_uint(out, "without_changes", count[GIT_NO_CHANGES]);
    bly_fact_uint(out, "too_many_changes", count[GIT_TOO_MANY]);
    bly_fact_uint(out, "not_computed", count[GIT_NOT_COMPUTED]);
}

/* ----------------------------------------------------------------- asking */

/* A folder may be written with a slash behind; no path in a filter has one. */
static bly_status git_encode(const bly_foreign *f, bly_bytes text,
                             bly_scratch *s, bly_foreign_key *out)
{
    (void)f;
    while (text.len > 1 && ((const char *)text.ptr)[text.len - 1] == '/')
        text.len--;
    return bly_key_encode(BLY_KEY_BYTES, text, s, out);
}

static void git_hash(const bly_foreign *f, bly_foreign_key *key)
{
    const struct git_graph *const g = f->own;
    key->h[0] = bly_murmur3_32(key->bytes, key->len, 0x293ae76f, g->is_signed);
    key->h[1] = bly_murmur3_32(key->bytes, key->len, 0x7e646e2c, g->is_signed);
}

static uint32_t git_position(const bly_foreign_key *key, uint32_t i,
                             uint64_t nbits)
{
    return (uint32_t)((uint32_t)(key->h[0] + i * key->h[1]) % nbits);
}

static void git_positions(const bly_foreign *f, const bly_foreign_part *p,
                          const bly_foreign_key *key, uint64_t *out)
{
    (void)f;
    for (uint32_t i = 0; i < p->k; i++)
        out[i] = git_position(key, i, p->nbits);
}

static bool git_test(const bly_foreign *f, size_t part,
                     const bly_foreign_key *key)
{
    const struct git_graph *const g = f->own;
    const bly_bytes filter = git_filter(g, part);
    const unsigned char *const bits = filter.ptr;
    if (filter.len == 0)
        return true;
    for (uint32_t i = 0; i < g->k; i++) {
        const uint32_t at = git_position(key, i, (uint64_t)filter.len * 8);
        if (!(bits[at / 8] >> at % 8 & 1))
            return false;
    }
    return true;
}

const bly_format bly_format_git = {
    .name = "git",
    .systems = "git, changed paths in a commit-graph",
    .summary = "which paths a commit may have changed",
    .options = git_options,
    .noptions = GIT_NOPTIONS,
    .recognise = git_recognise,
    .open = git_open,
    .part = git_part,
    .part_name = git_name,
    .describe = git_describe,
    .encode = git_encode,
    .hash = git_hash,
    .positions = git_positions,
    .test = git_test,
};

/*
 * parts.h - sort keys by where they lead before a blocked filter is touched
 *
 * In a filter that is larger than the device's cache every key costs a line
 * from memory, of which it uses eight bits. If the keys of one range of blocks
 * are dealt with together, and the range fits into the cache, lines come from
 * there; what is left are three streams: the keys are read, written in parts,
 * and read again.
 *
 *     keys       k5 k1 k9 k2 ...          in the order of the caller
 *     part 0   | k1 k9 .... room |        blocks 0 to m/P - 1
 *     part 1   | k5 ....... room |        the next m/P
 *
 * The block of a key is its hash scaled down, so that the top bits of the hash
 * are the number of its part. Hashes spread evenly: a part gets n/P keys, give
 * or take a few square roots of that, and has room for six of them more. Keys
 * that come often may fill a part all the same; what finds no room is added, or
 * asked for, at once.
 *
 * A block of threads takes a tile of keys, counts them by part, takes room for
 * all of them with one addition per part, and writes them part by part, so that
 * neighbours are written together.
 */
#ifndef BLY_CUDA_PARTS_H
#define BLY_CUDA_PARTS_H

#include "blocked.h"

/* Of five sizes tried on an H200, these were the fastest. */
#define PARTS_THREADS 512u
#define PARTS_EACH 16u /* keys of a thread in a tile */
#define PARTS_FIT 2    /* tiles at a time on a multiprocessor */
#define PARTS_TILE (PARTS_THREADS * PARTS_EACH)
#define PARTS_LEAST_BITS 6u /* a share of them for every lane of a warp */
#define PARTS_MOST_BITS 10u

/* Bytes that a block of threads shares: the keys of a tile and their parts, and
 * for each part a count, a place in the tile and a place in the part. */
#define PARTS_SHARED(bits) \
    ((8 + 2) * (size_t)PARTS_TILE + (size_t)16 * (1u << (bits)))

typedef struct parts {
    uint64_t *keys;   /* of all parts */
    uint64_t *filled; /* keys that belong to each part, with those that found
                         no room */
    uint64_t room;    /* keys of a part */
    uint32_t bits;    /* 2^bits parts */
} parts;

/* What is done with keys. */
typedef struct parts_job {
    bly_blocked b;
    uint64_t *words;    /* add to these; NULL: ask */
    uint64_t *nhits;    /* asked: how many may be in, */
    uint64_t *selected; /* and which; NULL: only how many */
} parts_job;

ANYWHERE unsigned part_of(uint64_t hash, unsigned bits)
{
    return (unsigned)(hash >> (64 - bits));
}

/* Do the job for `each` (a literal) keys of every lane; bit r of `some` says
 * whether there is a key r. Hits are counted, and added up by job_end(), unless
 * the keys are wanted: then their places come from the common counter at
 * once. */
ANYWHERE void job_keys(const parts_job *j, const key_source *s,
                       const uint64_t *keys, uint32_t some, unsigned each,
                       uint64_t *nhits)
{
    uint32_t hits[TURN], found = 0;
    UNROLLED
    for (unsigned r = 0; r < each; r++) {
        const uint64_t hash = word_hash(s, keys[r]);
        if (j->words) {
            blocked_enter(&j->b, j->words, hash, some >> r & 1);
            continue;
        }
        const uint32_t valid = warp_votes(some >> r & 1);
        hits[r] = blocked_votes(&j->b, hash) & valid;
        found += ones_of(hits[r]);
    }
    *nhits += found;
    if (j->words || !j->selected || !found)
        return;
    uint64_t to = lane_at() == 0 ? cell_add(j->nhits, found) : 0;
    to = warp_take(to, 0);
    UNROLLED
    for (unsigned r = 0; r < each; r++) {
        const uint32_t before = hits[r] & ((UINT32_C(1) << lane_at()) - 1);
        if (hits[r] >> lane_at() & 1)
            j->selected[to + ones_of(before)] = keys[r];
        to += ones_of(hits[r]);
    }
}

/* A turn of a warp: n keys, or as many as a turn has. */
ANYWHERE void job_turn(const parts_job *j, const key_source *s,
                       const uint64_t *at, uint64_t n, uint64_t *nhits)
{
    uint64_t keys[TURN];
    uint32_t some = 0;
    UNROLLED
    for (unsigned r = 0; r < TURN; r++) {
        const unsigned i = r * LANES + lane_at();
        some |= (uint32_t)(i < n) << r;
        keys[r] = i < n ? stream_load(at + i) : 0;
    }
    job_keys(j, s, keys, some, TURN, nhits);
}

ANYWHERE void job_end(const parts_job *j, uint64_t nhits)
{
    if (!j->words && !j->selected && lane_at() == 0 && nhits)
        (void)cell_add(j->nhits, nhits);
}

/* The sums of all counts before each part, by one warp: a lane adds up the
 * parts of its share, the lanes add up their sums, and it goes through its
 * share again. */
ANYWHERE void parts_before(const uint32_t *count, uint32_t *before,
                           unsigned nparts)
{
    const unsigned share = nparts / LANES, from = lane_at() * share;
    uint32_t sum = 0;
    for (unsigned i = from; i < from + share; i++)
        sum += count[i];
    uint32_t upto = sum; /* of lanes up to this one */
    UNROLLED
    for (unsigned step = 1; step < LANES; step *= 2) {
        const uint32_t more = warp_take32(upto, (lane_at() - step) % LANES);
        upto += lane_at() >= step ? more : 0;
    }
    sum = upto - sum;
    for (unsigned i = from; i < from + share; i++) {
        before[i] = sum;
        sum += count[i];
    }
}

/* What finds no room in its part: rare, unless one key comes very often. */
APART void job_left(const parts_job *j, const key_source *s, uint64_t key,
                    bool some, uint64_t *nhits)
{
    job_keys(j, s, &key, some, 1, nhits);
}

/* Deal a tile of keys to their parts. */
ANYWHERE void parts_tile(const parts *p, const parts_job *j,
                         const key_source *s, uint64_t from, uint64_t n,
                         uint64_t *nhits)
{
    const unsigned nparts = 1u << p->bits, t = thread_at();
    uint64_t *const tile = SHARED, *const place = tile + PARTS_TILE;
    uint32_t *const count = (uint32_t *)(place + nparts);
    uint32_t *const before = count + nparts;
    uint16_t *const parts_of = (uint16_t *)(before + nparts);
    uint64_t keys[PARTS_EACH];
    uint32_t rank[PARTS_EACH]; /* in its part of the tile, and which part */
    const unsigned ntile =
        (unsigned)(n - from < PARTS_TILE ? n - from : PARTS_TILE);
    for (unsigned i = t; i < nparts; i += PARTS_THREADS)
        count[i] = 0;
    UNROLLED
    for (unsigned i = 0; i < PARTS_EACH; i++) {
        const unsigned at = i * PARTS_THREADS + t;
        keys[i] = at < ntile ? stream_load(s->words + from + at) : 0;
    }
    block_meet();
    UNROLLED
    for (unsigned i = 0; i < PARTS_EACH; i++) {
        const unsigned part = part_of(word_hash(s, keys[i]), p->bits);
        rank[i] = part << 16;
        if (i * PARTS_THREADS + t < ntile)
            rank[i] |= half_add(&count[part], 1);
    }
    block_meet();
    /* Where the keys of a part begin: in the tile, by adding up the counts, and
     * in the part, by taking room there. */
    for (unsigned i = t; i < nparts; i += PARTS_THREADS)
        place[i] = count[i] ? cell_add(&p->filled[i], count[i]) : 0;
    if (t < LANES)
        parts_before(count, before, nparts);
    block_meet();
    UNROLLED
    for (unsigned i = 0; i < PARTS_EACH; i++) {
        if (i * PARTS_THREADS + t < ntile) {
            const unsigned to = before[rank[i] >> 16] + (rank[i] & 0xffff);
            tile[to] = keys[i];
            parts_of[to] = (uint16_t)(rank[i] >> 16);
        }
    }
    block_meet();
    for (unsigned at = t; at - lane_at() < ntile; at += PARTS_THREADS) {
        const bool some = at < ntile;
        const unsigned part = some ? parts_of[at] : 0;
        const uint64_t to = some ? place[part] + at - before[part] : 0;
        const bool left = to >= p->room;
        const uint64_t key = some ? tile[at] : 0;
        if (some && !left)
            p->keys[part * p->room + to] = key;
        if (warp_votes(some && left))
            job_left(j, s, key, some && left, nhits);
    }
    block_meet();
}

KERNEL_FITTING(parts_deal, PARTS_THREADS, PARTS_FIT)
(parts p, parts_job j, key_source s, uint64_t n)
{
    uint64_t nhits = 0;
    for (uint64_t from = block_at() * PARTS_TILE; from < n;
         from += nblocks_of() * PARTS_TILE)
        parts_tile(&p, &j, &s, from, n, &nhits);
    job_end(&j, nhits);
}

/* Do the job for all parts, in order. A block of threads has a run of one part,
 * of which there are nruns: one turn for each of its warps. Runs are short, so
 * that the blocks that run at the same time work on the same one or two parts,
 * and these stay in the cache. */
#define PARTS_RUN (256 * TURN)

KERNEL_FITTING(parts_work, 256, 4)
(parts p, parts_job j, key_source s, uint64_t nruns)
{
    const uint64_t part = block_at() / nruns;
    const uint64_t filled = p.filled[part];
    const uint64_t end = filled < p.room ? filled : p.room;
    const uint64_t i =
        block_at() % nruns * PARTS_RUN + thread_at() / LANES * TURN_KEYS;
    uint64_t nhits = 0;
    uint32_t *const all = (uint32_t *)SHARED; /* hits of the block */
    if (thread_at() == 0)
        *all = 0;
    block_meet();
    if (i < end)
        job_turn(&j, &s, p.keys + part * p.room + i, end - i, &nhits);
    if (lane_at() == 0 && nhits)
        (void)half_add(all, (uint32_t)nhits);
    block_meet();
    if (thread_at() < LANES)
        job_end(&j, *all);
}

/* The job without parts, for few keys and small filters. */
KERNEL_FITTING(job_direct, 256, 4)
(parts_job j, key_source s, uint64_t n)
{
    uint64_t nhits = 0;
    for (uint64_t i = turn_first(); i < n; i += turn_step())
        job_turn(&j, &s, s.words + i, n - i, &nhits);
    job_end(&j, nhits);
}

#endif

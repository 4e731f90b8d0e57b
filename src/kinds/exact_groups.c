/*
 * exact_groups.c - groups of keys with different shares of members
 *
 * One issuer may have revoked half of its certificates and another none, while
 * one in a thousand of all is revoked. A first ribbon for all keys has a single
 * width. But each group has its own best width, and with these the ribbons take
 * less in total:
 *
 *     r (f + 1) + s 2^-f bits for r members and s others with f bits each
 *
 * f is an integer, so there are few widths. The groups of one width make a span
 * (core/groups.h), and each span has a first ribbon of its own. A group without
 * members needs no ribbon and takes no bits; nor does a group that has only
 * members. All spans share the second ribbon.
 *
 * A row in the table takes 32 bits, and each ribbon wastes part of its last
 * blocks. So a small group that differs little from the rest stays with the
 * rest, and a width that few members would have is not used. Answers are
 * correct whichever spans the groups are put into: the choice only affects the
 * number of bits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "kinds/exact.h"

#define ROW_BITS 32
#define SPAN_BITS 2048 /* a ribbon: its header, and blocks half full */
#define MAX_WIDTH 48
#define EMPTY (MAX_WIDTH + 1) /* a width of groups without members, */
#define FULL (MAX_WIDTH + 2)  /* and of those without others */
#define NWIDTHS (FULL + 1)

/* A group, or several groups that a row cannot tell apart. */
typedef struct group_row {
    double r, s;
    uint32_t print;
    uint8_t width;
    bool own; /* has a row */
} group_row;

static double group_cost(const group_row *g, unsigned width)
{
    if (width == EMPTY)
        return g->r > 0 ? INFINITY : 0;
    if (width == FULL)
        return g->s > 0 ? INFINITY : 0;
    return g->r * (width + 1) + ldexp(g->s, -(int)width);
}

/* The best width for a group, among those in use. */
static unsigned best_width(const group_row *g, const bool *use)
{
    unsigned best = NWIDTHS;
    for (unsigned w = 0; w < NWIDTHS; w++)
        if (use[w] &&
            (best == NWIDTHS || group_cost(g, w) < group_cost(g, best)))
            best = w;
    return best;
}

/* The bits that all groups take with these widths, if groups without a row have
 * the width `rest`. Chooses a width for each group. */
static double total_cost(group_row *rows, size_t n, const bool *use,
                         unsigned rest)
{
    bool used[NWIDTHS] = { false };
    double sum = 0;
    used[rest] = true;
    for (size_t i = 0; i < n; i++) {
        group_row *const g = &rows[i];
        const unsigned best = best_width(g, use);
        const double stay = group_cost(g, rest);
        const double go = ROW_BITS + group_cost(g, best);
        g->own = best != rest && go < stay;
        g->width = (uint8_t)(g->own ? best : rest);
        used[g->width] = true;
        sum += g->own ? go : stay;
    }
    for (unsigned w = 1; w < EMPTY; w++)
        sum += used[w] ? SPAN_BITS : 0;
    return sum;
}

/* The width of the rest that minimises the total, given the widths in use. The
 * rest includes unknown groups, which have no members. So EMPTY is taken where
 * it costs no more than a hundredth, which makes the answers for them correct;
 * never FULL, which would make them always wrong. */
static double best_rest(group_row *rows, size_t n, const bool *use,
                        unsigned *rest)
{
    double least = total_cost(rows, n, use, EMPTY) / 1.01;
    *rest = EMPTY;
    for (unsigned w = 0; w < EMPTY; w++) {
        const double cost = use[w] ? total_cost(rows, n, use, w) : INFINITY;
        if (cost < least) {
            least = cost;
            *rest = w;
        }
    }
    return least;
}

/* Choose the widths to use: start with the best width of every group, and drop
 * one after another as long as that lowers the total. */
static unsigned choose_widths(group_row *rows, size_t n, unsigned narrowest)
{
    bool use[NWIDTHS] = { false }, all[NWIDTHS] = { false };
    unsigned rest = EMPTY;
    for (unsigned w = narrowest; w < NWIDTHS; w++)
        all[w] = w != FULL || !narrowest; /* FULL only if no rate was asked
                                             for */
    use[narrowest] = use[EMPTY] = true;
    for (size_t i = 0; i < n; i++)
        use[best_width(&rows[i], all)] = true;
    double least = best_rest(rows, n, use, &rest);
    for (unsigned w = narrowest + 1; w < EMPTY; w++) {
        unsigned other = rest;
        if (!use[w])
            continue;
        use[w] = false;
        const double cost = best_rest(rows, n, use, &other);
        if (cost <= least) {
            least = cost;
            rest = other;
        } else {
            use[w] = true;
        }
    }
    total_cost(rows, n, use, rest);
    return rest;
}

/* ------------------------------------------------------------- the table */

static int by_print(const void *a, const void *b)
{
    const uint32_t x = ((const group_row *)a)->print;
    const uint32_t y = ((const group_row *)b)->print;
    return (x > y) - (x < y);
}

/* Join groups that a row cannot tell apart. Returns how many are left. */
static size_t join_rows(group_row *rows, size_t n)
{
    size_t kept = 0;
    qsort(rows, n, sizeof *rows, by_print);
    for (size_t i = 0; i < n; i++) {
        if (kept && rows[kept - 1].print == rows[i].print) {
            rows[kept - 1].r += rows[i].r;
            rows[kept - 1].s += rows[i].s;
        } else {
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

/* The sums over all groups of one width. */
typedef struct span_sum {
    double r, s;
    bool used;
    unsigned number;
} span_sum;

/* The length of a span is proportional to its share of the keys, but no span is
 * so short that its keys could not be told apart. */
#define LEAST_SHARE 0x1p-16

static void put_spans(span_sum *sums, unsigned nspans, unsigned char *at)
{
    double all = 0, weight = 0, upto = 0;
    for (unsigned w = 0; w < NWIDTHS; w++)
        all += sums[w].r + sums[w].s;
    for (unsigned w = 0; w < NWIDTHS; w++)
        if (sums[w].used)
            weight += fmax((sums[w].r + sums[w].s) / all, LEAST_SHARE);
    for (unsigned w = 0; w < NWIDTHS; w++) {
        if (!sums[w].used)
            continue;
        upto += fmax((sums[w].r + sums[w].s) / all, LEAST_SHARE);
        const bool last = sums[w].number + 1 == nspans;
        unsigned char *const span = at + 16 * (size_t)sums[w].number;
        bly_store64(span, last ? UINT64_MAX
                               : (uint64_t)(upto / weight * 0x1p63) << 1);
        bly_store64(span + 8, w == EMPTY  ? BLY_EXACT_EMPTY
                              : w == FULL ? BLY_EXACT_FULL
                                          : w);
    }
}

/* The rate at which keys outside the universe pass, if they are spread over the
 * groups like the keys of the universe. */
static double mean_pass(const span_sum *sums)
{
    double all = 0, pass = 0;
    for (unsigned w = 0; w < NWIDTHS; w++) {
        all += sums[w].r + sums[w].s;
        if (w < EMPTY)
            pass += ldexp(sums[w].r + sums[w].s, -(int)w);
        else if (w == FULL)
            pass += 2 * sums[w].r; /* no second ribbon halves it */
    }
    return all > 0 && pass > 0 ? fmin(pass / all, 1) : 0x1p-60;
}

static double all_bits(const span_sum *sums, uint64_t nbytes)
{
    double members = 0, through = 0, bits = 8 * (double)nbytes;
    for (unsigned w = 0; w < EMPTY; w++) {
        members += sums[w].r;
        through += ldexp(sums[w].s, -(int)w);
        if (w && sums[w].r > 0)
            bits += bly_exact_cost((uint64_t)sums[w].r, 0, ldexp(1, -(int)w));
    }
    return bits +
           bly_exact_cost((uint64_t)fmax(members, 1), fmax(through, 1), 1);
}

static bly_status make_table(const bly_mem *mem, uint64_t seed,
                             const group_row *rows, size_t n, unsigned rest,
                             bly_grouping *out)
{
    span_sum sums[NWIDTHS] = { { 0 } };
    unsigned nspans = 0;
    uint64_t nrows = 0;
    sums[rest].used = true;
    for (size_t i = 0; i < n; i++) {
        span_sum *const s = &sums[rows[i].width];
        s->r += rows[i].r;
        s->s += rows[i].s;
        s->used = true;
        nrows += rows[i].own;
    }
    for (unsigned w = 0; w < NWIDTHS; w++)
        if (sums[w].used)
            sums[w].number = nspans++;
    const uint64_t nbytes = bly_groups_bytes(nspans, nrows);
    bly_status st = bly_block_new(mem, nbytes, &out->table);
    if (st)
        return st;
    unsigned char *const at = out->table.at, *to = at + 16 * (size_t)nspans;
    put_spans(sums, nspans, at);
    for (size_t i = 0; i < n; i++)
        if (rows[i].own) {
            bly_store32(to, rows[i].print << BLY_GROUPS_SPAN_BITS |
                                sums[rows[i].width].number);
            to += 4;
        }
    const bly_groups groups = { at, nrows, nspans, sums[rest].number };
    out->nbytes = nbytes;
    out->hasher = (bly_hasher){ .id = BLY_HASH_GROUPED, .seed = seed };
    bly_groups_aim(&out->hasher, &groups);
    out->pass = mean_pass(sums);
    out->bits = all_bits(sums, nbytes);
    out->state[BLY_EXACT_SPANS] = nspans | (uint64_t)groups.rest << 8;
    out->state[BLY_EXACT_ROWS] = nrows;
    return BLY_OK;
}

/* Turn the description of the groups into rows. */
static bly_status read_groups(const bly_group *groups, size_t n, uint64_t seed,
                              group_row *rows, bly_grouping *out)
{
    double least = 0;
    for (size_t i = 0; i < n; i++) {
        const bly_group *const g = &groups[i];
        if (!g->name.ptr && g->name.len)
            return bly_fail_null("name");
        if (g->name.len && memchr(g->name.ptr, '\t', g->name.len))
            return bly_fail(BLY_EINVAL, "the name of a group has no tab: one "
                                        "stands between it and the key");
        if ((double)g->members > BLY_EXACT_MAX_OTHERS ||
            (double)g->others > BLY_EXACT_MAX_OTHERS)
            return bly_fail(BLY_ERANGE, "a group has at most 2^48 keys");
        rows[i] = (group_row){
            .r = (double)g->members,
            .s = (double)g->others,
            .print = bly_groups_print(seed, g->name.ptr, g->name.len),
        };
        out->others += g->others;
        if (g->members && g->others)
            least += bly_exact_entropy(rows[i].r, rows[i].s);
    }
    out->state[BLY_EXACT_GROUPS] = n;
    out->state[BLY_EXACT_LEAST] = (uint64_t)least;
    return BLY_OK;
}

bly_status bly_exact_group(const bly_want *w, uint64_t seed,
                           const bly_group *groups, size_t n,
                           const bly_mem *mem, bly_grouping *out)
{
    bly_grouping made = { .nbytes = 0 };
    unsigned narrowest = 0;
    bly_block block;
    if (w->bits)
        return bly_fail(BLY_EINVAL,
                        "a filter of groups takes as few bits as it "
                        "can: give a rate or nothing, no size");
    if (n == 0 || n > BLY_GROUPS_ROWS)
        return bly_fail(BLY_EINVAL, "%zu groups; expected 1 to %llu", n,
                        (unsigned long long)BLY_GROUPS_ROWS);
    /* The second ribbon halves the rate. */
    while (narrowest < MAX_WIDTH && w->fpr > 0 &&
           ldexp(0.5, -(int)narrowest) > w->fpr)
        narrowest++;
    bly_status st = bly_block_new(mem, n * sizeof(group_row), &block);
    if (st)
        return st;
    group_row *const rows = (group_row *)(void *)block.at;
    st = read_groups(groups, n, seed, rows, &made);
    if (!st) {
        const size_t njoined = join_rows(rows, n);
        const unsigned rest = choose_widths(rows, njoined, narrowest);
        st = make_table(mem, seed, rows, njoined, rest, &made);
    }
    bly_block_free(mem, &block);
    if (!st)
        *out = made;
    return st;
}

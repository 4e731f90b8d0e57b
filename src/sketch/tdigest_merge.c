/*
 * tdigest_merge.c - sorting what waits, and making fewer means of it
 *
 * Doubles are sorted as integers: with the sign bit flipped, or all bits of
 * negative ones, they have the same order.
 *
 *     few values     by insertion
 *     up to 3,072    by digits of 8 or 11 bits, from the lowest up, in memory
 *                    of the stack; a digit that all values share is skipped
 *     more           in place, together with their weights (core/sort.c)
 *
 * Of equal values, means come before those that waited. Where RedisBloom's
 * scale is asked for and equal values have different weights, their order is
 * the one in which its sorting leaves them, since what is merged depends on it.
 */
#include <math.h>
#include <string.h>

#include "core/sort.h"
#include "sketch/tdigest_merge.h"

/* What a stack has room for: 24 KiB four times, and 16 for the means. */
#define STACK_VALUES 3072
#define STACK_MEANS 1024

/* As many are sorted as RedisBloom sorts them: 30 ms at worst. */
#define PEER_VALUES 8192

bool bly_tdigest_is_large(const bly_tdigest *t)
{
    return t->most > STACK_VALUES || t->limit > STACK_MEANS;
}

/* ----------------------------------------------------------------- sorting */

#define SIGN (UINT64_C(1) << 63)

static uint64_t key_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ (bits & SIGN ? UINT64_MAX : SIGN);
}

static double value_of(uint64_t key)
{
    const uint64_t bits = key ^ (key & SIGN ? SIGN : UINT64_MAX);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define DIGIT_BITS 11
#define NDIGITS 6
#define DIGIT_VALUES (1u << DIGIT_BITS)

/* Where insertion is faster. */
#define FEW 48

static void swap_nodes(double *x, double *w, size_t i, size_t j)
{
    const double value = x[i], weight = w[i];
    x[i] = x[j];
    w[i] = w[j];
    x[j] = value;
    w[j] = weight;
}

/* Values as keys, and their weights; each has two places. */
typedef struct sorting {
    uint64_t key[2][STACK_VALUES];
    double weight[2][STACK_VALUES];
} sorting;

/* By digits of `bits` bits. Returns in which place the sorted ones are. */
static inline __attribute__((always_inline)) unsigned
sort_digits(sorting *s, size_t n, unsigned bits, bool weighted)
{
    const unsigned ndigits = (64 + bits - 1) / bits, size = 1u << bits;
    uint16_t count[NDIGITS + 2][DIGIT_VALUES];
    unsigned at = 0;
    for (unsigned d = 0; d < ndigits; d++)
        memset(count[d], 0, size * sizeof count[d][0]);
    for (size_t i = 0; i < n; i++)
        for (unsigned d = 0; d < ndigits; d++)
            count[d][s->key[0][i] >> d * bits & (size - 1)]++;
    for (unsigned d = 0; d < ndigits; d++) {
        const uint64_t *const a = s->key[at];
        uint64_t *const b = s->key[!at];
        uint16_t *const c = count[d];
        uint16_t sum = 0;
        if (c[a[0] >> d * bits & (size - 1)] == n)
            continue;
        for (unsigned i = 0; i < size; i++) {
            const uint16_t here = c[i];
            c[i] = sum;
            sum = (uint16_t)(sum + here);
        }
        for (size_t i = 0; i < n; i++) {
            const size_t to = c[a[i] >> d * bits & (size - 1)]++;
            b[to] = a[i];
            if (weighted)
                s->weight[!at][to] = s->weight[at][i];
        }
        at = !at;
    }
    return at;
}

static unsigned sort_few(sorting *s, size_t n, bool weighted)
{
    uint64_t *const keys = s->key[0];
    for (size_t i = 1; i < n; i++) {
        const uint64_t key = keys[i];
        const double weight = weighted ? s->weight[0][i] : 1;
        size_t j = i;
        for (; j && keys[j - 1] > key; j--) {
            keys[j] = keys[j - 1];
            if (weighted)
                s->weight[0][j] = s->weight[0][j - 1];
        }
        keys[j] = key;
        if (weighted)
            s->weight[0][j] = weight;
    }
    return 0;
}

/* Sort n values and, unless w is NULL, their weights; where they are is told.
 */
static const double *sort_some(sorting *s, const double *x, const double *w,
                               size_t n, const double **sorted_w)
{
    for (size_t i = 0; i < n; i++)
        s->key[0][i] = key_of(x[i]);
    if (w)
        memcpy(s->weight[0], w, n * sizeof *w);
    const unsigned at = n <= FEW   ? sort_few(s, n, w != NULL)
                        : w        ? sort_digits(s, n, 8, true)
                        : n < 1500 ? sort_digits(s, n, 8, false)
                                   : sort_digits(s, n, 11, false);
    *sorted_w = w ? s->weight[at] : NULL;
    for (size_t i = 0; i < n; i++) {
        const double value = value_of(s->key[at][i]);
        memcpy(&s->key[at][i], &value, sizeof value);
    }
    return (const double *)(const void *)s->key[at];
}

/* As RedisBloom sorts, as far as can be seen from where equal values go: by
 * parts around the middle one, which moves to the end meanwhile. The time may
 * rise with the square of n. */
static void sort_as_the_peer(double *x, double *w, size_t from, size_t to)
{
    while (to - from > 1) {
        const size_t last = to - 1, middle = (from + last) / 2;
        const double pivot = x[middle];
        if (to - from == 2) {
            if (x[from] > x[last])
                swap_nodes(x, w, from, last);
            return;
        }
        size_t end = from;
        swap_nodes(x, w, middle, last);
        for (size_t i = from; i < last; i++)
            if (x[i] < pivot)
                swap_nodes(x, w, end++, i);
        swap_nodes(x, w, end, last);
        /* The shorter part first, so that few are nested. */
        if (end - from < to - end) {
            sort_as_the_peer(x, w, from, end);
            from = end + 1;
        } else {
            sort_as_the_peer(x, w, end + 1, to);
            to = end;
        }
    }
}

static void sort_in_place(double *x, double *w, size_t n)
{
    uint64_t *const keys = (uint64_t *)(void *)x;
    for (size_t i = 0; i < n; i++) {
        const uint64_t key = key_of(x[i]);
        memcpy(&keys[i], &key, sizeof key);
    }
    bly_hashes_sort(keys, (uint64_t *)(void *)w, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t key;
        memcpy(&key, &keys[i], sizeof key);
        x[i] = value_of(key);
    }
}

/* ----------------------------------------------------------------- settling */

/* Values and means in order, which become fewer means: the last one is open.
 * x and w may be the arrays that are read, further on. */
typedef struct settling {
    double *x, *w;
    size_t n, most; /* closed ones, and how many there may be besides the last */
    double total;   /* of all weights */
    double below;   /* weight of the closed ones */
    double fineness;
    double mean, weight; /* of the open one; exact: its mean */
    double sum;          /* else what its values lie above `mean` */
    double limit;        /* and how much it may weigh */
    bool exact;          /* as in RedisBloom, bit by bit */
} settling;

/* The most weight that both ends allow: x G <= a (1 - a) for its share x at its
 * lower end a, and x G <= (a + x) (1 - a - x) at the upper. */
static double settling_limit(const settling *m)
{
    const double a = m->below / m->total, f = a * (1 - a);
    const double b = m->fineness - 1 + 2 * a;
    const double root = sqrt(b * b + 4 * f);
    const double upper = b > 0 ? 2 * f / (b + root) : (root - b) / 2;
    return fmin(f / m->fineness, upper) * m->total;
}

static void settling_open(settling *m, double x, double w)
{
    m->mean = x;
    m->weight = w;
    m->sum = 0;
    if (!m->exact)
        m->limit = settling_limit(m);
}

static void settling_close(settling *m)
{
    m->x[m->n] = m->exact ? m->mean : m->mean + m->sum / m->weight;
    m->w[m->n] = m->weight;
    m->below += m->weight;
    m->n++;
}

static inline __attribute__((always_inline)) void
settling_take(settling *m, double x, double w, bool exact)
{
    const double both = m->weight + w;
    bool fits;
    if (exact) {
        const double q0 = m->below / m->total;
        const double q2 = (m->below + both) / m->total;
        const double z = both * m->fineness;
        fits = z <= q0 * (1 - q0) && z <= q2 * (1 - q2);
    } else {
        fits = both <= m->limit;
    }
    if (fits || m->n == m->most) {
        m->weight = both;
        if (exact)
            m->mean += (x - m->mean) * w / both;
        else
            m->sum += (x - m->mean) * w;
    } else {
        settling_close(m);
        settling_open(m, x, w);
    }
}

static inline __attribute__((always_inline)) void
settling_run(settling *m, const double *x, const double *w, size_t n,
             bool exact)
{
    settling_open(m, x[0], w[0]);
    for (size_t i = 1; i < n; i++)
        settling_take(m, x[i], w[i], exact);
    settling_close(m);
}

/* Means and values in order, and their weights, in memory of the stack. */
typedef struct ordered {
    double x[STACK_VALUES], w[STACK_VALUES];
} ordered;

static bool has_uneven_twins(const ordered *o, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (o->x[i] == o->x[i - 1] && o->w[i] != o->w[i - 1])
            return true;
    return false;
}

static void order_all(const bly_tdigest *t, ordered *o)
{
    sorting s;
    const size_t n = t->nmerged, k = t->nwaiting;
    const double *const x = t->means, *const w = bly_tdigest_weights(t);
    const double *v, *const y =
        sort_some(&s, x + n, t->weighted ? w + n : NULL, k, &v);
    size_t i = 0, j = 0;
    for (size_t to = 0; to < n + k; to++) {
        const bool is_mean = j == k || (i < n && x[i] <= y[j]);
        o->x[to] = is_mean ? x[i] : y[j];
        o->w[to] = is_mean ? w[i] : v ? v[j] : 1;
        i += is_mean;
        j += !is_mean;
    }
    if (t->scale != BLY_TDIGEST_REDISBLOOM || !has_uneven_twins(o, n + k))
        return;
    memcpy(o->x, x, (n + k) * sizeof *x);
    memcpy(o->w, w, n * sizeof *w);
    for (j = n; j < n + k; j++)
        o->w[j] = t->weighted ? w[j] : 1;
    sort_as_the_peer(o->x, o->w, 0, n + k);
}

void bly_tdigest_settle(bly_tdigest *t)
{
    const size_t n = t->nmerged + t->nwaiting;
    const double total = t->merged_weight + t->waiting_weight;
    /* One value alone has nothing to be merged with. */
    if (!t->nwaiting || n < 2)
        return;
    double *const weights = bly_tdigest_weights(t);
    const uint64_t most = t->wroom < t->most ? t->wroom : t->most - 1;
    settling m = { .x = t->means,
                   .w = weights,
                   .most = (size_t)most - 1,
                   .total = total,
                   .fineness = bly_tdigest_fineness(t, total),
                   .exact = t->scale == BLY_TDIGEST_REDISBLOOM };
    if (m.exact)
        m.fineness = t->compression / (2 * BLY_TDIGEST_PI * total * log(total));
    if (bly_tdigest_is_large(t)) {
        if (m.exact && n <= PEER_VALUES)
            sort_as_the_peer(t->means, weights, 0, n);
        else
            sort_in_place(t->means, weights, n);
        if (m.exact)
            settling_run(&m, t->means, weights, n, true);
        else
            settling_run(&m, t->means, weights, n, false);
    } else {
        ordered o;
        order_all(t, &o);
        if (m.exact)
            settling_run(&m, o.x, o.w, n, true);
        else
            settling_run(&m, o.x, o.w, n, false);
    }
    t->nmerged = m.n;
    t->nwaiting = 0;
    t->merged_weight = total;
    t->waiting_weight = 0;
    t->weighted = bly_tdigest_is_large(t);
    t->ncompressions++;
}

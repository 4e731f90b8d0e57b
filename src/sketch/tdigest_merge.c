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

/* A value is kept apart if it has a fourth of what a mean may weigh. */
#define PINNED_PART 4

bool bly_tdigest_is_large(const bly_tdigest *t)
{
    return bly_tdigest_most(t) >= STACK_VALUES ||
           bly_tdigest_limit(t) > STACK_MEANS;
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

/* Where insertion is faster; and where longer digits are. */
#define FEW 48
#define MANY 1500

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

/* By ndigits digits of `bits` bits, which begin at bit `shift`, from place
 * `at`. Returns in which place the sorted ones are. */
static inline __attribute__((always_inline)) unsigned
sort_digits(sorting *s, unsigned at, size_t n, unsigned shift, unsigned bits,
            unsigned ndigits, bool weighted)
{
    const unsigned size = 1u << bits;
    uint16_t count[NDIGITS][DIGIT_VALUES];
    for (unsigned d = 0; d < ndigits; d++)
        memset(count[d], 0, size * sizeof count[d][0]);
    for (size_t i = 0; i < n; i++)
        for (unsigned d = 0; d < ndigits; d++)
            count[d][s->key[at][i] >> (shift + d * bits) & (size - 1)]++;
    for (unsigned d = 0; d < ndigits; d++) {
        const unsigned by = shift + d * bits;
        const uint64_t *const a = s->key[at];
        uint64_t *const b = s->key[!at];
        uint16_t *const c = count[d];
        uint16_t sum = 0;
        if (c[a[0] >> by & (size - 1)] == n)
            continue;
        for (unsigned i = 0; i < size; i++) {
            const uint16_t here = c[i];
            c[i] = sum;
            sum = (uint16_t)(sum + here);
        }
        for (size_t i = 0; i < n; i++) {
            const size_t to = c[a[i] >> by & (size - 1)]++;
            b[to] = a[i];
            if (weighted)
                s->weight[!at][to] = s->weight[at][i];
        }
        at = !at;
    }
    return at;
}

/* By insertion, as long as that takes no more than so many moves: false, and
 * all are there in some order. */
static inline __attribute__((always_inline)) bool
sort_few(sorting *s, unsigned at, size_t n, bool weighted, size_t most)
{
    uint64_t *const keys = s->key[at];
    double *const w = s->weight[at];
    for (size_t i = 1; i < n; i++) {
        const uint64_t key = keys[i];
        if (keys[i - 1] <= key)
            continue;
        const double weight = weighted ? w[i] : 1;
        size_t j = i;
        for (; j && keys[j - 1] > key; j--) {
            keys[j] = keys[j - 1];
            if (weighted)
                w[j] = w[j - 1];
        }
        keys[j] = key;
        if (weighted)
            w[j] = weight;
        if (i - j > most)
            return false;
        most -= i - j;
    }
    return true;
}

/* The upper half of the bits that are not the same in all of them leaves almost
 * all in order; what is not is moved there. */
static inline __attribute__((always_inline)) unsigned
sort_keys(sorting *s, size_t n, unsigned bits, unsigned ndigits, bool weighted)
{
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++)
        differ |= s->key[0][i] ^ s->key[0][0];
    if (!differ)
        return 0;
    const unsigned top = 64 - (unsigned)__builtin_clzll(differ);
    const unsigned shift = top > bits * ndigits ? top - bits * ndigits : 0;
    unsigned at = sort_digits(s, 0, n, shift, bits, ndigits, weighted);
    if (shift && !sort_few(s, at, n, weighted, 4 * n))
        at = sort_digits(s, at, n, 0, DIGIT_BITS, NDIGITS, weighted);
    return at;
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
    unsigned at = 0;
    if (n <= FEW)
        sort_few(s, 0, n, w != NULL, SIZE_MAX);
    else if (w)
        at = sort_keys(s, n, 8, 4, true);
    else if (n < MANY)
        at = sort_keys(s, n, 8, 4, false);
    else
        at = sort_keys(s, n, DIGIT_BITS, 3, false);
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

/* Values and means in order, which become fewer means; x and w may be the
 * arrays that are read, further on. */
typedef struct settling {
    double *x, *w;
    size_t n,
        most;     /* closed ones, and how many there may be besides the last */
    double total; /* of all weights */
    double below; /* weight of the closed ones */
    double fineness;
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

static void settling_close(settling *m, double mean, double weight)
{
    m->x[m->n] = mean;
    m->w[m->n] = weight;
    m->below += weight;
    m->n++;
}

/* A mean, which may be rounded to a number that its values are all below. */
static double within(double least, double greatest, double mean)
{
    return mean < least ? least : mean > greatest ? greatest : mean;
}

/* As RedisBloom does it, value by value; but there, means of values that are
 * far apart become infinite. */
static void settling_run_exact(settling *m, const double *x, const double *w,
                               size_t n)
{
    double first = x[0], mean = first, weight = w[0];
    double q0 = 0;
    for (size_t i = 1; i < n; i++) {
        const double both = weight + w[i];
        const double q2 = (m->below + both) / m->total;
        const double z = both * m->fineness;
        if ((z <= q0 * (1 - q0) && z <= q2 * (1 - q2)) || m->n == m->most) {
            const double sum = mean + (x[i] - mean) * w[i] / both;
            mean = within(first, x[i],
                          isfinite(sum)
                              ? sum
                              : mean * (weight / both) + x[i] * (w[i] / both));
            weight = both;
        } else {
            settling_close(m, mean, weight);
            q0 = m->below / m->total;
            first = mean = x[i];
            weight = w[i];
        }
    }
    settling_close(m, mean, weight);
}

/* A value that came often, `count` places of all `weight` from here on. */
typedef struct often {
    size_t count;
    double weight;
} often;

static often settling_often(const double *x, const double *w, size_t n)
{
    often o = { .count = 1, .weight = w[0] };
    for (; o.count < n && x[o.count] == x[0]; o.count++)
        o.weight += w[o.count];
    return o;
}

/* Is it to stay what it is? If it has a good part of the weight that a mean may
 * have here, and there is room for all means that may come after it. */
static bool settling_pins(const settling *m, often o, double most)
{
    if (o.count < 3 || o.weight < most / PINNED_PART || o.weight > 0x1p52)
        return false;
    const double after = m->below + o.weight, left = m->total - after;
    const double need = left > 0 ? 2 * (2 * m->fineness + 1) *
                                           (log(m->total) + log(left / after)) +
                                       4
                                 : 0;
    return (double)m->n + 5 + need <= (double)m->most;
}

/* Three means, of which the outer ones have the weight 1: so nothing is
 * interpolated between it and its neighbours but what lies between them. */
static void settling_pin(settling *m, double value, double weight)
{
    settling_close(m, value, 1);
    settling_close(m, value, weight - 2);
    settling_close(m, value, 1);
}

/* How much a mean that begins here may weigh is the same for all of its values.
 * They are summed up as differences from the first: that keeps digits, and two
 * of them may be further apart than a double goes, which half of them is not.
 */
static void settling_run(settling *m, const double *x, const double *w,
                         size_t n)
{
    size_t known = 0; /* up to here, no value begins that is pinned */
    for (size_t i = 0; i < n;) {
        const size_t from = i;
        const double first = x[i] / 2;
        const double most = m->n == m->most ? INFINITY : settling_limit(m);
        double weight = 0, sum = 0;
        often o = { 0, 0 };
        for (; i < n && (i == from || weight + w[i] <= most); i++) {
            if (i + 1 < n && x[i + 1] == x[i] && i >= known) {
                o = settling_often(x + i, w + i, n - i);
                if (settling_pins(m, o, most))
                    break;
                known = i + o.count;
                o.count = 0;
            }
            sum += (x[i] / 2 - first) * w[i];
            weight += w[i];
        }
        if (i > from) {
            double mean = 2 * (first + sum / weight);
            for (size_t j = from; !isfinite(sum) && j < i; j++)
                mean = (j > from ? mean : 0) + x[j] * (w[j] / weight);
            settling_close(m, within(x[from], x[i - 1], mean), weight);
        }
        if (o.count) {
            const double value = x[i]; /* may be where means are put */
            i += o.count;
            settling_pin(m, value, o.weight);
        }
    }
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
    const double *v, *const y = sort_some(&s, x + n, t->weighted ? w + n : NULL,
                                          k, &v);
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
    const size_t n = (size_t)t->nmerged + t->nwaiting;
    const double total = t->merged_weight + t->waiting_weight;
    /* One value alone has nothing to be merged with. Where nothing waits, there
     * may be no room for anything to wait: so were parts given. */
    const uint64_t room = bly_tdigest_wroom(t), full = bly_tdigest_most(t);
    if (n < 2 || (!t->nwaiting && n < full))
        return;
    double *const weights = bly_tdigest_weights(t);
    const uint64_t most = room < full ? room : full - 1;
    settling m = { .x = t->means,
                   .w = weights,
                   .most = (size_t)most - 1,
                   .total = total,
                   .fineness = bly_tdigest_fineness(t, total) };
    const bool exact = t->scale == BLY_TDIGEST_REDISBLOOM;
    if (exact) /* of a weight, and not of a share */
        m.fineness = t->compression / (2 * BLY_TDIGEST_PI * total * log(total));
    if (bly_tdigest_is_large(t)) {
        if (exact && n <= PEER_VALUES)
            sort_as_the_peer(t->means, weights, 0, n);
        else
            sort_in_place(t->means, weights, n);
        (exact ? settling_run_exact : settling_run)(&m, t->means, weights, n);
    } else {
        ordered o;
        order_all(t, &o);
        (exact ? settling_run_exact : settling_run)(&m, o.x, o.w, n);
    }
    t->nmerged = (uint32_t)m.n;
    t->nwaiting = 0;
    t->merged_weight = total;
    t->waiting_weight = 0;
    t->weighted = bly_tdigest_is_large(t);
    t->ncompressions++;
}

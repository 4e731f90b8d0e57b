/*
 * fano.c - sorted numbers in few bits, and whether one lies between two
 */
#include <string.h>

#include "core/packed.h"
#include "engine/fano.h"

#define LINE_BYTES 64
#define LINE_WORDS 7 /* of bits, behind the number of zeros before them */
#define LINE_BITS (64 * LINE_WORDS)
#define SAMPLE_ZEROS 128

/* ----------------------------------------------------------------- layout */

/* A bucket costs 8/7 + 1/4 bits, and a low bit costs one bit per number. If
 * there were more than 1.44 times as many buckets as numbers, half as many
 * buckets and one more low bit would be cheaper. So there are at least 0.72
 * times as many. */
static unsigned low_bits(uint64_t room, uint64_t last)
{
    const uint64_t least = room - room * 9 / 32 - 1; /* the last of them */
    if (!least)
        return 63;
    const unsigned have = bly_field_width(last);
    const unsigned need = bly_field_width(least);
    if (have <= need)
        return 0;
    const unsigned low = have - need;
    return low - (last >> low < least);
}

bly_fano bly_fano_of(uint64_t room, uint64_t last)
{
    bly_fano t = { .room = room, .last = last };
    t.low = low_bits(room, last);
    t.nbuckets = (last >> t.low) + 1;
    t.nlines = (room + t.nbuckets + LINE_BITS - 1) / LINE_BITS;
    t.nsamples = (t.nbuckets + SAMPLE_ZEROS - 1) / SAMPLE_ZEROS;
    t.samples = t.nlines * LINE_BYTES;
    t.lows = t.samples + (t.nsamples + 1) / 2 * 8;
    t.nbytes = t.lows + (room * t.low + 63) / 64 * 8 + BLY_FIELD_SLACK;
    return t;
}

/* The head of a line: how many zeros are before it, and in its first two, four
 * and six words. */
#define HEAD_TWO(head) ((head)&0xff)
#define HEAD_FOUR(head) ((head) >> 8 & 0x1ff)
#define HEAD_SIX(head) ((head) >> 17 & 0x1ff)
#define HEAD_BEFORE(head) ((head) >> 26)

static inline uint64_t line_head(const bly_fano *t, uint64_t line)
{
    return bly_load64(t->data + line * LINE_BYTES);
}

static inline uint64_t line_zeros_before(const bly_fano *t, uint64_t line)
{
    return HEAD_BEFORE(line_head(t, line));
}

static inline unsigned char *line_word(const bly_fano *t, uint64_t line,
                                       unsigned i)
{
    return t->data + line * LINE_BYTES + 8 + (size_t)8 * i;
}

static inline unsigned char *sample_at(const bly_fano *t, uint64_t i)
{
    return t->data + t->samples + 4 * i;
}

static inline uint64_t low_of(const bly_fano *t, uint64_t i)
{
    return bly_field_get(t->data + t->lows, i * t->low, t->low);
}

static uint64_t low_mask(const bly_fano *t)
{
    return bly_field_mask(t->low);
}

/* --------------------------------------------------------- finding a bucket */

#define FANO_BODY static inline __attribute__((always_inline))

/* The range of lines, first to last, one of which has zero z. */
FANO_BODY void zero_lines(const bly_fano *t, uint64_t z, uint64_t *first,
                          uint64_t *last)
{
    const uint64_t i = z / SAMPLE_ZEROS;
    uint64_t a = bly_load32(sample_at(t, i));
    uint64_t b =
        i + 1 < t->nsamples ? bly_load32(sample_at(t, i + 1)) : t->nlines - 1;
    b = b < t->nlines ? b : t->nlines - 1;
    *first = a < b ? a : b;
    *last = b;
}

/* The line with zero z. If the numbers are well spread it is one of two lines.
 * Then there is no branch, since half of the predictions would be wrong. */
FANO_BODY uint64_t zero_line(const bly_fano *t, uint64_t z)
{
    uint64_t line, last;
    zero_lines(t, z, &line, &last);
    if (__builtin_expect(last - line > 1, 0))
        while (line < last) {
            const uint64_t mid = last - (last - line) / 2;
            if (line_zeros_before(t, mid) <= z)
                line = mid;
            else
                last = mid - 1;
        }
    return line_zeros_before(t, last) <= z ? last : line;
}

/* The position of zero z < nbuckets, counted in bits of lines; past all of them
 * if the data is damaged. The head tells which two words it is in, without a
 * branch. */
FANO_BODY uint64_t zero_at(const bly_fano *t, uint64_t z, bool pdep)
{
    const uint64_t line = zero_line(t, z), head = line_head(t, line);
    const uint64_t two = HEAD_TWO(head), four = HEAD_FOUR(head);
    const uint64_t six = HEAD_SIX(head);
    uint64_t left = z - HEAD_BEFORE(head);
    unsigned word =
        2 * ((unsigned)(left >= two) + (left >= four) + (left >= six));
    const uint64_t most = left >= four ? four : left >= two ? two : 0;
    left -= left >= six ? six : most;
    uint64_t zeros = ~bly_load64(line_word(t, line, word));
    const uint64_t n = (uint64_t)__builtin_popcountll(zeros);
    const bool second = left >= n;
    word += second;
    left -= second ? n : 0;
    if (word < LINE_WORDS)
        zeros = ~bly_load64(line_word(t, line, word));
    if (word >= LINE_WORDS || left >= 64 ||
        !bly_nth_one(zeros, (unsigned)left, pdep))
        return t->nlines * LINE_BITS;
    return line * LINE_BITS + 64 * word +
           bly_select_by(zeros, (unsigned)left, pdep);
}

/* Numbers of a bucket: the first one, and how many there are. */
typedef struct bucket {
    uint64_t first, n;
} bucket;

/* The numbers between two positions in the high bits, from the beginning of
 * bucket p on. Whatever the positions are, the result is within the numbers
 * stored. */
FANO_BODY bucket bucket_between(const bly_fano *t, uint64_t p, uint64_t from,
                                uint64_t to)
{
    bucket b = { from - p, to - from };
    if (b.first > t->n)
        b.first = t->n;
    if (b.n > t->n - b.first)
        b.n = t->n - b.first;
    return b;
}

/* Bucket p, and where the next one begins. */
FANO_BODY bucket bucket_from(const bly_fano *t, uint64_t p, uint64_t at,
                             bool pdep, uint64_t *next)
{
    const uint64_t line = at / LINE_BITS;
    unsigned bit = (unsigned)(at % LINE_BITS);
    uint64_t end = UINT64_MAX;
    if (line < t->nlines) {
        unsigned i = bit / 64;
        uint64_t zeros = ~bly_load64(line_word(t, line, i)) >> bit % 64;
        if (zeros)
            end = at + (unsigned)__builtin_ctzll(zeros);
        else if (++i < LINE_WORDS &&
                 (zeros = ~bly_load64(line_word(t, line, i))))
            end = line * LINE_BITS + 64 * i + (unsigned)__builtin_ctzll(zeros);
        else
            end = zero_at(t, p, pdep);
    }
    *next = end + 1;
    return bucket_between(t, p, at, end);
}

FANO_BODY uint64_t bucket_begins(const bly_fano *t, uint64_t p, bool pdep)
{
    return p ? zero_at(t, p - 1, pdep) + 1 : 0;
}

/* ----------------------------------------------------------------- asking */

/* Up to so many numbers are compared one after another. */
#define FEW_NUMBERS 8

/* Is one of the low bits of a bucket in from..to? */
FANO_BODY bool bucket_any(const bly_fano *t, bucket b, uint64_t from,
                          uint64_t to)
{
    while (b.n > FEW_NUMBERS) { /* the first that is from or more, and halves */
        const uint64_t half = b.n / 2;
        if (low_of(t, b.first + half - 1) < from) {
            b.first += half;
            b.n -= half;
        } else {
            b.n = half;
        }
    }
    /* Most buckets have up to two, and how many is unpredictable: so there is
     * no branch. */
    const uint64_t end = b.first + b.n;
    const uint64_t one = low_of(t, b.first);
    const uint64_t two = low_of(t, b.first + (b.n > 1));
    bool any = (b.n > 0) & (one >= from) & (one <= to);
    any |= (b.n > 1) & (two >= from) & (two <= to);
    for (uint64_t i = b.first + 2; i < end; i++) {
        const uint64_t low = low_of(t, i);
        any |= (low >= from) & (low <= to);
    }
    return any;
}

/* Two buckets, p < to >> low, the second anywhere behind the first: any number
 * between them counts, and in the two themselves those on the right side. */
FANO_BODY bool between_buckets(const bly_fano *t, bucket first, uint64_t p,
                               uint64_t next, uint64_t from, uint64_t to,
                               bool pdep)
{
    const uint64_t mask = bly_field_mask(t->low), q = to >> t->low;
    if (first.n && low_of(t, first.first + first.n - 1) >= (from & mask))
        return true;
    const uint64_t begins = q == p + 1 ? next : bucket_begins(t, q, pdep);
    if (begins - q != next - (p + 1)) /* ones before either */
        return true;
    const bucket last = bucket_from(t, q, begins, pdep, &next);
    return last.n && low_of(t, last.first) <= (to & mask);
}

FANO_BODY bool any_body(const bly_fano *t, uint64_t from, uint64_t to,
                        bool pdep)
{
    const uint64_t mask = bly_field_mask(t->low), p = from >> t->low;
    uint64_t next;
    if (!t->n)
        return false;
    const bucket b = bucket_from(t, p, bucket_begins(t, p, pdep), pdep, &next);
    if (p == to >> t->low)
        return bucket_any(t, b, from & mask, to & mask);
    return between_buckets(t, b, p, next, from, to, pdep);
}

/* Three stages, each over the whole group, so that the cache misses within a
 * stage overlap: samples, lines, low bits. */
FANO_BODY uint64_t any_each_body(const bly_fano *t, const uint64_t *from,
                                 const uint64_t *to, size_t n, bool pdep)
{
    bucket b[BLY_FANO_GROUP];
    uint64_t next[BLY_FANO_GROUP], any = 0;
    const uint64_t mask = bly_field_mask(t->low);
    if (!t->n)
        return 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t p = from[i] >> t->low;
        __builtin_prefetch(sample_at(t, (p - (p > 0)) / SAMPLE_ZEROS));
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t p = from[i] >> t->low;
        uint64_t first, last;
        zero_lines(t, p - (p > 0), &first, &last);
        __builtin_prefetch(line_word(t, first, 0));
        __builtin_prefetch(line_word(t, last, 0));
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t p = from[i] >> t->low;
        b[i] = bucket_from(t, p, bucket_begins(t, p, pdep), pdep, &next[i]);
        __builtin_prefetch(t->data + t->lows + b[i].first * t->low / 8);
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t p = from[i] >> t->low;
        const bool yes =
            p == to[i] >> t->low
                ? bucket_any(t, b[i], from[i] & mask, to[i] & mask)
                : between_buckets(t, b[i], p, next[i], from[i], to[i], pdep);
        any |= (uint64_t)yes << i;
    }
    return any;
}

/* As in quotient_table.c: for processors that select by an instruction, that
 * only count ones, and for all others. */
#define FANO_ROW(name, attribute, pdep)                                        \
    attribute static bool any_##name(const bly_fano *t, uint64_t from,         \
                                     uint64_t to)                              \
    {                                                                          \
        return any_body(t, from, to, pdep);                                    \
    }                                                                          \
    attribute static uint64_t any_each_##name(                                 \
        const bly_fano *t, const uint64_t *from, const uint64_t *to, size_t n) \
    {                                                                          \
        return any_each_body(t, from, to, n, pdep);                            \
    }

#if BLY_X86
FANO_ROW(pdep, __attribute__((target("popcnt,lzcnt,bmi,bmi2"))), true)
FANO_ROW(popcnt, __attribute__((target("popcnt"))), false)
#endif
FANO_ROW(portable, , false)

const bly_fano_row bly_fano_rows[] = {
#if BLY_X86
    { "pdep", BLY_CPU_AVX512, any_pdep, any_each_pdep },
    { "popcnt", BLY_CPU_POPCNT, any_popcnt, any_each_popcnt },
#endif
    { "portable", 0, any_portable, any_each_portable },
};

BLY_CHOOSE(fano)

/* ---------------------------------------------------------------- reaching */

/* What finding zero z reads, and the line behind it. */
static bool reach_zero(const bly_fano *t, uint64_t z, bly_fano_touch *touch,
                       void *ctx)
{
    const uint64_t i = z / SAMPLE_ZEROS;
    uint64_t line, last;
    if (!touch(ctx, t->samples + 4 * i, i + 1 < t->nsamples ? 8 : 4))
        return false;
    zero_lines(t, z, &line, &last);
    if (last - line > 1)
        while (line < last) { /* as in zero_line() */
            const uint64_t mid = last - (last - line) / 2;
            if (!touch(ctx, mid * LINE_BYTES, 8))
                return false;
            if (line_zeros_before(t, mid) <= z)
                line = mid;
            else
                last = mid - 1;
        }
    last += last + 1 < t->nlines; /* where a bucket behind it begins */
    return touch(ctx, line * LINE_BYTES, (last - line + 1) * LINE_BYTES);
}

/* The low bits of n numbers. */
static bool reach_lows(const bly_fano *t, uint64_t first, uint64_t n,
                       bly_fano_touch *touch, void *ctx)
{
    const uint64_t at = first * t->low / 8;
    const uint64_t end = (first + n) * t->low / 8 + BLY_FIELD_SLACK;
    return !n || touch(ctx, t->lows + at, end - at);
}

/* Report bucket p, of which all numbers from one on, or the first and the last,
 * are looked at. */
static bool reach_bucket(const bly_fano *t, uint64_t p, uint64_t from,
                         bool ends, bly_fano_touch *touch, void *ctx)
{
    uint64_t next;
    if ((p ? !reach_zero(t, p - 1, touch, ctx) : !touch(ctx, 0, LINE_BYTES)) ||
        !reach_zero(t, p, touch, ctx))
        return false;
    bucket b = bucket_from(t, p, bucket_begins(t, p, false), false, &next);
    if (ends && b.n)
        return reach_lows(t, b.first, 1, touch, ctx) &&
               reach_lows(t, b.first + b.n - 1, 1, touch, ctx);
    while (b.n > FEW_NUMBERS) { /* as in bucket_any() */
        const uint64_t half = b.n / 2;
        if (!reach_lows(t, b.first + half - 1, 1, touch, ctx))
            return false;
        if (low_of(t, b.first + half - 1) < from) {
            b.first += half;
            b.n -= half;
        } else {
            b.n = half;
        }
    }
    return reach_lows(t, b.first, b.n, touch, ctx);
}

bool bly_fano_reach(const bly_fano *t, uint64_t from, uint64_t to,
                    bly_fano_touch *touch, void *ctx)
{
    const uint64_t p = from >> t->low, q = to >> t->low;
    return !t->n ||
           (reach_bucket(t, p, from & low_mask(t), p != q, touch, ctx) &&
            (p == q || reach_bucket(t, q, 0, true, touch, ctx)));
}

/* ---------------------------------------------------------- all of them */

static void put_low(const bly_fano *t, uint64_t i, uint64_t low)
{
    const uint64_t bit = i * t->low;
    unsigned char *const at = t->data + t->lows + bit / 8;
    const unsigned shift = (unsigned)(bit % 8);
    bly_store64(at, bly_load64(at) | low << shift);
    if (shift + t->low > 64)
        at[8] |= (unsigned char)(low >> (64 - shift));
}

/* The head of a line that has *zeros zeros before it; adds the zeros of the
 * line to *zeros. */
static uint64_t head_of(const bly_fano *t, uint64_t line, uint64_t *zeros)
{
    uint64_t in[LINE_WORDS + 1] = { 0 };
    for (unsigned i = 0; i < LINE_WORDS; i++)
        in[i + 1] = in[i] + (uint64_t)__builtin_popcountll(
                                ~bly_load64(line_word(t, line, i)));
    const uint64_t head = *zeros << 26 | in[6] << 17 | in[4] << 8 | in[2];
    *zeros += in[LINE_WORDS];
    return head;
}

/* The heads of lines, and the lines of every 128th zero. */
static void put_index(const bly_fano *t)
{
    uint64_t zeros = 0, sample = 0;
    for (uint64_t line = 0; line < t->nlines; line++) {
        bly_store64(t->data + line * LINE_BYTES, head_of(t, line, &zeros));
        for (; sample < t->nsamples && sample * SAMPLE_ZEROS < zeros; sample++)
            bly_store32(sample_at(t, sample), (uint32_t)line);
    }
}

void bly_fano_fill(const bly_fano *t, const uint64_t *numbers)
{
    if (!t->n)
        return;
    for (uint64_t i = 0; i < t->n; i++) {
        const uint64_t at = (numbers[i] >> t->low) + i;
        const uint64_t bit = at % LINE_BITS;
        line_word(t, at / LINE_BITS, (unsigned)(bit / 64))[bit % 64 / 8] |=
            (unsigned char)(1 << bit % 8);
        put_low(t, i, numbers[i] & low_mask(t));
    }
    put_index(t);
}

/* From one to the next, in order. */
typedef struct fano_walk {
    const bly_fano *t;
    uint64_t word; /* number of the word of high bits */
    uint64_t ones; /* left in it */
    uint64_t i;    /* of the next number */
    uint64_t p;    /* bucket of the one before */
} fano_walk;

static fano_walk walk_of(const bly_fano *t)
{
    return (fano_walk){ .t = t, .ones = bly_load64(line_word(t, 0, 0)) };
}

/* The next number; false after the last. */
static bool walk_next(fano_walk *w, uint64_t *number)
{
    const bly_fano *const t = w->t;
    if (w->i >= t->n)
        return false;
    while (!w->ones) {
        if (++w->word >= t->nlines * LINE_WORDS)
            return false;
        w->ones = bly_load64(line_word(t, w->word / LINE_WORDS,
                                       (unsigned)(w->word % LINE_WORDS)));
    }
    const uint64_t at = 64 * w->word + (unsigned)__builtin_ctzll(w->ones);
    w->ones &= w->ones - 1;
    w->p = at - w->i;
    *number = w->p << t->low | low_of(t, w->i);
    w->i++;
    return true;
}

void bly_fano_read(const bly_fano *t, uint64_t *out)
{
    fano_walk w = walk_of(t);
    uint64_t n = 0;
    while (n < t->n && walk_next(&w, &out[n]))
        n++;
    for (; n < t->n; n++)
        out[n] = t->last;
}

static bool clear_from(const unsigned char *at, uint64_t nbytes)
{
    for (uint64_t i = 0; i < nbytes; i++)
        if (at[i])
            return false;
    return true;
}

/* Are index and lines such as put_index() makes them, with n ones? */
static bool index_right(const bly_fano *t)
{
    uint64_t zeros = 0, sample = 0;
    for (uint64_t line = 0; line < t->nlines; line++) {
        if (line_head(t, line) != head_of(t, line, &zeros))
            return false;
        for (; sample < t->nsamples && sample * SAMPLE_ZEROS < zeros; sample++)
            if (bly_load32(sample_at(t, sample)) != line)
                return false;
    }
    return t->nlines * LINE_BITS - zeros == t->n && sample == t->nsamples &&
           clear_from(sample_at(t, sample),
                      t->lows - t->samples - 4 * t->nsamples);
}

bool bly_fano_check(const bly_fano *t)
{
    if (!t->n)
        return clear_from(t->data, t->nbytes);
    if (!index_right(t))
        return false;
    fano_walk w = walk_of(t);
    uint64_t number, before = 0;
    while (walk_next(&w, &number)) {
        if (w.p >= t->nbuckets || number > t->last ||
            (w.i > 1 && number <= before))
            return false;
        before = number;
    }
    const uint64_t bits = t->n * t->low, end = t->nbytes - t->lows;
    const uint64_t whole = bits / 8;
    return w.i == t->n &&
           (!(bits % 8) || t->data[t->lows + whole] >> bits % 8 == 0) &&
           clear_from(t->data + t->lows + whole + (bits % 8 != 0),
                      end - whole - (bits % 8 != 0));
}

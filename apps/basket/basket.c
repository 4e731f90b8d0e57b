/*
 * basket.c - which things come together, even if they are rare?
 *
 * A line is a basket of items. Each item stands for the set of baskets that
 * contain it, and two items belong together if their sets are alike: J =
 * baskets with both / baskets with either. Counting pairs finds those that are
 * frequent; this finds those that are close, at any frequency (Cohen et al.,
 * Finding interesting associations without support pruning, 2001):
 *
 *     each basket number has k images, and each item keeps the least of each
 *     over its baskets; items that agree in a band of these are candidates;
 *     the baskets of candidates are compared.
 *
 * What is kept is the number of each item's baskets, and 4 k bytes per item.
 */
#include <stdlib.h>
#include <string.h>

#include <bloomery/sketch.h>

#include "apps/basket/basket.h"
#include "base/grow.h"
#include "io/input.h"
#include "base/lookup.h"
#include "report/out.h"
#include "report/say.h"

#define BASKET_MOST UINT32_MAX       /* items, baskets: numbers of 32 bits */
#define BASKET_MOST_PAIRS (1u << 26) /* candidates: half a GiB */

struct item {
    size_t name; /* where its bytes begin */
    size_t len;
    size_t first;  /* its baskets, in `lists` */
    uint32_t n;    /* how many baskets it is in */
    uint32_t last; /* the basket it was seen in last, from 1 */
};

/* An item in a basket. */
struct seen {
    uint32_t item, basket;
};

/* All that was read. Zero is empty. */
struct baskets {
    struct block names;
    struct item *items;
    size_t nitems, room;
    struct lookup by_name;
    struct seen *seen; /* in the order of baskets */
    size_t nseen, seen_room;
    uint32_t nbaskets;
    uint32_t *lists; /* the baskets of each item, rising */
};

/* --------------------------------------------------------------- reading */

/* The item of that name, made if there is none; NULL: out of memory. */
static struct item *basket_item(struct baskets *b, const char *word, size_t len)
{
    const uint64_t hash = table_hash(word, len);
    LOOKUP_EACH (&b->by_name, hash, row) {
        struct item *const it = &b->items[row];
        if (it->len == len && memcmp(b->names.at + it->name, word, len) == 0)
            return it;
    }
    const size_t name = b->names.len;
    if (b->nitems >= BASKET_MOST - 1 ||
        !GROW(&b->items, &b->room, b->nitems + 1) ||
        !block_put(&b->names, word, len) ||
        !lookup_add(&b->by_name, hash, b->nitems))
        return NULL;
    b->items[b->nitems] = (struct item){ .name = name, .len = len };
    return &b->items[b->nitems++];
}

static bool basket_see(struct baskets *b, const char *word, size_t len)
{
    struct item *const it = basket_item(b, word, len);
    if (!it)
        return false;
    if (it->last == b->nbaskets)
        return true; /* twice in one basket is once */
    if (!GROW(&b->seen, &b->seen_room, b->nseen + 1))
        return false;
    b->seen[b->nseen++] =
        (struct seen){ (uint32_t)(it - b->items), b->nbaskets - 1 };
    it->last = b->nbaskets;
    it->n++;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool basket_line(void *ctx, bly_bytes line)
{
    struct baskets *const b = ctx;
    const char *const at = line.ptr;
    if (b->nbaskets == BASKET_MOST) {
        fail("more than %u baskets", BASKET_MOST);
        return false;
    }
    if (!memory_spares(b->nseen * sizeof *b->seen)) {
        fail("more baskets than there is memory for");
        return false;
    }
    b->nbaskets++;
    for (size_t i = 0; i < line.len;) {
        if (is_blank(at[i])) {
            i++;
            continue;
        }
        const size_t start = i;
        while (i < line.len && !is_blank(at[i]))
            i++;
        if (!basket_see(b, at + start, i - start)) {
            fail("out of memory");
            return false;
        }
    }
    return true;
}

static int basket_read(struct baskets *b, const struct list *names)
{
    struct input in;
    input_files(&in, names->at, names->n, false);
    in.normal.no_cr = true; /* no part of an item */
    int status = input_each(&in, basket_line, b) ? YES : TROUBLE;
    if (in.error[0])
        status = fail("%s", in.error);
    input_close(&in);
    return status;
}

/* -------------------------------------------------------------- searching */

/* The baskets of each item one after the other. Occurrences come in the order
 * of baskets, so each list rises. */
static bool basket_lists(struct baskets *b)
{
    b->lists = calloc(b->nseen + 1, sizeof *b->lists);
    if (!b->lists)
        return false;
    size_t sum = 0;
    for (size_t i = 0; i < b->nitems; i++) {
        b->items[i].first = sum;
        sum += b->items[i].n;
        b->items[i].n = 0;
    }
    for (size_t i = 0; i < b->nseen; i++) {
        struct item *const it = &b->items[b->seen[i].item];
        b->lists[it->first + it->n++] = b->seen[i].basket;
    }
    return true;
}

/* An item that occurs often enough, and its k minima. */
struct signature {
    uint32_t item;
    uint32_t minima[];
};

struct search {
    const struct basket_args *args;
    unsigned k;
    bly_bands bands;
    unsigned char *signatures; /* n of them */
    size_t n;
    uint64_t *pairs; /* candidates: item and item, half a word each */
    size_t npairs, room;
};

static struct signature *search_at(const struct search *s, size_t i)
{
    const size_t each = sizeof(struct signature) + s->k * sizeof(uint32_t);
    return (struct signature *)(void *)(s->signatures + i * each);
}

/* The images of a basket's number are the components of a set of it alone. */
static int search_sign(struct search *s, const struct baskets *b)
{
    static const bly_hasher by = { .id = BLY_HASH_XXH3 };
    const bly_sketch_spec spec = { .family = BLY_LINEAR32, .k = s->k };
    const size_t each = sizeof(struct signature) + s->k * sizeof(uint32_t);
    uint32_t *const slot = calloc(b->nitems + 1, sizeof *slot);
    for (size_t i = 0; slot && i < b->nitems; i++)
        if (b->items[i].n >= s->args->least)
            slot[i] = (uint32_t)++s->n;
    s->signatures = s->n < SIZE_MAX / each ? malloc((s->n + 1) * each) : NULL;
    bly_sketch *images = NULL;
    if (!slot || !s->signatures || bly_sketch_new(&spec, &images)) {
        free(slot);
        return fail("out of memory for the signatures of %zu items", s->n);
    }
    memset(s->signatures, 0xff, (s->n + 1) * each);
    uint32_t image[BLY_MAX_COMPONENTS] = { 0 };
    uint64_t last = UINT64_MAX;
    for (size_t i = 0; i < b->nseen; i++) {
        const uint64_t basket = b->seen[i].basket;
        const uint32_t item = b->seen[i].item;
        if (!slot[item])
            continue;
        if (basket != last) {
            uint64_t h;
            bly_hash_ints(&by, &basket, 1, &h);
            bly_sketch_clear(images);
            (void)!bly_sketch_add(images, &h, 1); /* a whole one takes it */
            (void)bly_sketch_components(images, image);
            last = basket;
        }
        struct signature *const to = search_at(s, slot[item] - 1);
        to->item = item;
        for (unsigned c = 0; c < s->k; c++)
            to->minima[c] = image[c] < to->minima[c] ? image[c] : to->minima[c];
    }
    bly_sketch_free(images);
    free(slot);
    return YES;
}

struct band_entry {
    uint64_t key;
    uint32_t item;
};

static int band_order(const void *a, const void *b)
{
    const struct band_entry *const x = a, *const y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* All pairs of n entries of one key. */
static int search_bucket(struct search *s, const struct band_entry *e, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (s->npairs + i > BASKET_MOST_PAIRS)
            s->npairs = bly_distinct(s->pairs, s->npairs);
        if (s->npairs + i > BASKET_MOST_PAIRS)
            return fail("more than %u candidate pairs; raise --threshold or "
                        "--min-count",
                        BASKET_MOST_PAIRS);
        if (!GROW(&s->pairs, &s->room, s->npairs + i))
            return fail("out of memory");
        for (size_t j = 0; j < i; j++)
            s->pairs[s->npairs++] = (uint64_t)e[j].item << 32 | e[i].item;
    }
    return YES;
}

static int search_candidates(struct search *s)
{
    struct band_entry *const e = calloc(s->n + 1, sizeof *e);
    uint64_t *const keys = calloc(s->n * s->bands.bands + 1, sizeof *keys);
    int status = e && keys ? YES : fail("out of memory");
    for (size_t i = 0; i < s->n && status == YES; i++)
        bly_bands_keys(s->bands, search_at(s, i)->minima,
                       keys + i * s->bands.bands);
    for (unsigned band = 0; band < s->bands.bands && status == YES; band++) {
        for (size_t i = 0; i < s->n; i++)
            e[i] = (struct band_entry){ keys[i * s->bands.bands + band],
                                        search_at(s, i)->item };
        qsort(e, s->n, sizeof *e, band_order);
        for (size_t i = 0, end; i < s->n && status == YES; i = end) {
            for (end = i + 1; end < s->n && e[end].key == e[i].key; end++)
                ;
            status = search_bucket(s, e + i, end - i);
        }
    }
    free(e);
    free(keys);
    if (status == YES)
        s->npairs = bly_distinct(s->pairs, s->npairs);
    return status;
}

/* ---------------------------------------------------------------- telling */

struct together {
    const struct item *a, *b;
    uint32_t both;
    double jaccard;
};

static uint32_t common_baskets(const struct baskets *b, const struct item *x,
                               const struct item *y)
{
    /* NOLINTNEXTLINE: items in pairs exist */
    const uint32_t *const p = b->lists + x->first, *const q =
                                                       b->lists + y->first;
    uint32_t i = 0, j = 0, both = 0;
    while (i < x->n && j < y->n) {
        const uint32_t u = p[i], v = q[j];
        both += u == v;
        i += u <= v;
        j += v <= u;
    }
    return both;
}

/* The most alike first; equal ones in the order in which they came. */
static int together_order(const void *a, const void *b)
{
    const struct together *const x = a, *const y = b;
    if (x->jaccard != y->jaccard)
        return x->jaccard > y->jaccard ? -1 : 1;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return x->b < y->b ? -1 : x->b > y->b;
}

struct basket_pair {
    bly_bytes a, b;
    double jaccard, a_then_b, b_then_a;
    uint32_t both, count_a, count_b;
};

static const struct field basket_pair_fields[] = {
    FIELD(struct basket_pair, a, NONE, "an item"),
    FIELD(struct basket_pair, b, NONE, "another"),
    FIELD(struct basket_pair, jaccard, NONE,
          "baskets with both / baskets with either"),
    FIELD(struct basket_pair, both, NONE, "baskets with both"),
    FIELD(struct basket_pair, count_a, NONE, "baskets with a"),
    FIELD(struct basket_pair, count_b, NONE, "baskets with b"),
    FIELD(struct basket_pair, a_then_b, NONE, "both / count_a"),
    FIELD(struct basket_pair, b_then_a, NONE, "both / count_b"),
    { 0 },
};

struct basket_report {
    const struct basket_report *self;
    const struct together *t;
    const char *names;
    size_t baskets, items, bands, rows, candidates, n;
};

static void basket_pair_at(const void *from, size_t i, void *element)
{
    const struct basket_report *const r = from;
    const struct together *const t = &r->t[i];
    const char *const names = r->names;
    *(struct basket_pair *)element = (struct basket_pair){
        .a = { names + t->a->name, t->a->len },
        .b = { names + t->b->name, t->b->len },
        .jaccard = t->jaccard,
        .a_then_b = (double)t->both / t->a->n,
        .b_then_a = (double)t->both / t->b->n,
        .both = t->both,
        .count_a = t->a->n,
        .count_b = t->b->n,
    };
}

const struct field basket_fields[] = {
    FIELD(struct basket_report, baskets, NONE, "baskets that were read"),
    FIELD(struct basket_report, items, NONE, "different items in them"),
    FIELD(struct basket_report, bands, NONE, "bands of a signature"),
    FIELD(struct basket_report, rows, NONE, "components of a band"),
    FIELD(struct basket_report, candidates, NONE, "pairs that share a band"),
    EACH(struct basket_report, "pairs", self, n, NONE, basket_pair_at,
         struct basket_pair, basket_pair_fields, "the pairs, likest first"),
    { 0 },
};

static void basket_print(const struct basket_report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct basket_pair p;
        basket_pair_at(r, i, &p);
        print_key(p.a.ptr, p.a.len);
        putchar('\t');
        print_key(p.b.ptr, p.b.len);
        printf("\t%.4f\t%u\t%u\t%u\t%.4f\t%.4f\n", p.jaccard, p.both, p.count_a,
               p.count_b, p.a_then_b, p.b_then_a);
    }
}

static int basket_tell(const struct baskets *b, const struct search *s)
{
    struct together *const t = calloc(s->npairs + 1, sizeof *t);
    size_t n = 0;
    if (!t)
        return fail("out of memory");
    for (size_t i = 0; i < s->npairs; i++) {
        const struct item *const x = &b->items[s->pairs[i] >> 32];
        const struct item *const y = &b->items[(uint32_t)s->pairs[i]];
        const uint32_t both = common_baskets(b, x, y);
        const double j = (double)both / ((double)x->n + y->n - both);
        if (j >= s->args->threshold)
            t[n++] = (struct together){ x, y, both, j };
    }
    qsort(t, n, sizeof *t, together_order);
    const struct basket_report r = { &r,
                                     t,
                                     b->names.at,
                                     b->nbaskets,
                                     b->nitems,
                                     s->bands.bands,
                                     s->bands.rows,
                                     s->npairs,
                                     n };
    if (s->args->json)
        report(stdout, true, basket_fields, &r, NULL);
    else
        basket_print(&r);
    free(t);
    return YES;
}

int basket(const struct basket_args *args, const struct list *files)
{
    struct baskets b = { 0 };
    struct search s = { .args = args };
    if (args->components > BLY_MAX_COMPONENTS)
        return fail("--components %llu: %d at most",
                    (unsigned long long)args->components, BLY_MAX_COMPONENTS);
    s.k = (unsigned)args->components;
    if (bly_bands_choose(s.k, args->threshold, args->recall, &s.bands))
        return fail_library();
    int status = basket_read(&b, files);
    if (status == YES && !basket_lists(&b))
        status = fail("out of memory");
    if (status == YES)
        status = search_sign(&s, &b);
    if (status == YES)
        status = search_candidates(&s);
    if (status == YES)
        status = basket_tell(&b, &s);
    block_free(&b.names);
    free(b.items);
    lookup_free(&b.by_name);
    free(b.seen);
    free(b.lists);
    free(s.signatures);
    free(s.pairs);
    return status;
}

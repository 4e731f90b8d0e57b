/*
 * fuzz_node.c - messages to a node, and saved nodes, from anyone
 *
 * The first byte of the input says what the rest is: an even number, a message;
 * an odd one, a node. Either is tried as it is, and as a forger would send it:
 * fitting, with sums right. What is refused leaves the node as it was; what is
 * taken leads to a node that answers, tells, and loads from what it writes.
 *
 *     fuzz_node -max_total_time=60 FOUND fuzz/corpus/node
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/node.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct bytes {
    uint8_t *at;
    size_t n;
} bytes;

static bool keep(void *ctx, const void *at, size_t n)
{
    bytes *const b = ctx;
    uint8_t *const more = realloc(b->at, b->n + n);
    assert(more);
    memcpy(more + b->n, at, n);
    *b = (bytes){ more, b->n + n };
    return true;
}

static bytes written(const bly_node *v)
{
    bytes b = { 0 };
    assert(bly_node_write(v, keep, &b) == BLY_OK);
    return b;
}

static void set64(uint8_t *p, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(x >> 8 * i);
}

/* A node that has heard of "u", in version 2 of life 1, and what it wrote: made
 * once, since planning takes longer than all else. */
static bytes kept, message;

static void make_node(void)
{
    const bly_spec spec = { .items = 10 };
    bly_node *v, *u;
    assert(!bly_node_new(&spec, 1, 60, &v) && !bly_node_new(&spec, 1, 60, &u));
    assert(!bly_node_link(v, "u") && !bly_node_link(v, "w"));
    assert(!bly_node_link(u, "v") && !bly_node_add(v, "here", 4));
    for (int i = 0; i < 3; i++) {
        (void)!bly_node_add(u, &(char){ (char)('a' + i) }, 1);
        message.n = 0;
        assert(!bly_node_tell(u, "v", keep, &message, NULL));
        if (i < 2)
            assert(!bly_node_hear(v, "u", message.at, message.n, 5, NULL));
    }
    kept = written(v);
    bly_node_free(v);
    bly_node_free(u);
}

static bly_node *kept_node(void)
{
    bly_node *v;
    assert(!bly_node_load(kept.at, kept.n, 2, NULL, &v));
    return v;
}

/* Whatever v went through, it does all that a node does. */
static void works(bly_node *v)
{
    bly_node_stats stats;
    bly_link e;
    bly_way ways[2];
    bly_node_stat(v, &stats);
    assert(stats.fpr >= 0 && stats.fpr <= 1);
    assert(bly_node_find(v, "absent", 6, ways, 2) <= stats.links + 1);
    for (size_t i = 0; bly_node_link_at(v, i, &e) && i < 8; i++) {
        bytes b = { 0 };
        assert(!bly_node_tell(v, e.name, keep, &b, NULL));
        assert(b.n <= bly_node_news_most(v));
        free(b.at);
    }
    bytes all = written(v);
    bly_node *again;
    if (stats.life < UINT64_MAX) {
        assert(!bly_node_load(all.at, all.n, stats.life + 1, NULL, &again));
        bly_node_free(again);
    }
    free(all.at);
    bly_node_tick(v, UINT64_MAX, NULL);
}

static void try_message(const uint8_t *at, size_t n)
{
    bly_node *v = kept_node();
    bly_news news;
    if (bly_node_hear(v, "u", at, n, 7, &news)) {
        bytes is = written(v);
        /* But for the number of its life, which is at 16, and the sum. */
        memcpy(is.at + 16, kept.at + 16, 8);
        assert(is.n == kept.n && !memcmp(is.at, kept.at, is.n - 8));
        free(is.at);
    } else {
        assert(news.bytes == n && news.fate <= BLY_NEWS_GAP);
    }
    works(v);
    bly_node_free(v);
}

static void try_node(const uint8_t *at, size_t n)
{
    const bly_access how = { .max_bytes = 4 << 20 };
    bly_node *v;
    if (!bly_node_load(at, n, UINT64_MAX, &how, &v))
        works(v);
    bly_node_free(v);
}

/* Offsets as in docs/format.md. */
static void forge_message(uint8_t *m, size_t n)
{
    if (n < 48)
        return;
    memcpy(m, message.at, 16); /* what all messages have; flags are lost */
    for (int i = 17; i < 40; i++)
        if (i % 8)
            m[i] = 0; /* small numbers */
    set64(m + n - 8, XXH3_64bits(m, n - 8));
}

static void forge_node(uint8_t *f, size_t n)
{
    if (n < 64)
        return;
    memcpy(f, kept.at, 12);
    set64(f + n - 8, XXH3_64bits(f, n - 8));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!kept.at)
        make_node();
    if (size < 1)
        return 0;
    const bool node = data[0] & 1;
    const size_t n = size - 1;
    uint8_t *const copy = malloc(n + 1);
    assert(copy);
    memcpy(copy, data + 1, n);
    (node ? try_node : try_message)(copy, n);
    (node ? forge_node : forge_message)(copy, n);
    (node ? try_node : try_message)(copy, n);
    free(copy);
    return 0;
}

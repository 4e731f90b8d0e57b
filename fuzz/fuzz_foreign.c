/*
 * fuzz_foreign.c - filters of other systems, from bytes that anyone may have
 * written
 *
 * The first byte says how the rest is taken:
 *
 *     0         a file; its format is found by its content
 *     1 ..      a file of the format of that row, the first row being 1
 *     from 128  keys and changes: a small filter of a format that can be made
 *               is written, and its bytes are changed as the rest says
 *
 * so that a reader meets bytes that are nearly right even where no seed is.
 * What opens is described, asked, repacked and added to, and no more memory is
 * held than a few times the file: an allocation past that stops the fuzzer.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery/foreign.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ----------------------------------------------------------------- memory */

struct budget {
    size_t held, most;
};

static void *budget_alloc(void *ctx, size_t nbytes)
{
    struct budget *const b = ctx;
    assert(nbytes <= b->most - b->held);
    b->held += nbytes;
    return malloc(nbytes);
}

static void budget_release(void *ctx, void *ptr, size_t nbytes)
{
    struct budget *const b = ctx;
    b->held -= nbytes;
    free(ptr);
}

/* ----------------------------------------------------------------- asking */

static const bly_bytes texts[] = {
    { "", 0 },
    { "42", 2 },
    { "a longer key than 16 bytes", 26 },
    { "00ff", 4 },
    { "-1.5e300", 8 },
    { "http://item.test/1", 18 },
    { "\0\xff", 2 },
    { "GET http://a.test/", 18 },
};
#define NTEXTS (sizeof texts / sizeof texts[0])

/* Facts and parts can be shown: words are there, names end. */
static void describe(const bly_foreign *f, size_t part)
{
    bly_foreign_stats s;
    bly_foreign_stat(f, part, &s);
    assert(s.format && memchr(s.name, 0, sizeof s.name));
    assert(s.nfacts <= BLY_MAX_FACTS && s.ones <= s.bits);
    for (size_t i = 0; i < s.nfacts; i++)
        assert(s.facts[i].name &&
               (s.facts[i].type != BLY_CHOICE || s.facts[i].word));
}

/* A key is in the whole if it is in one part. */
static void ask(const bly_foreign *f, size_t nparts)
{
    uint64_t *const where = calloc(BLY_BITMAP_WORDS(nparts) + 1, 8);
    if (!where)
        return;
    for (size_t i = 0; i < NTEXTS; i++) {
        uint64_t bit, any = 0;
        const bly_status st = bly_foreign_has(f, &texts[i], 1, &bit, NULL);
        assert(bly_foreign_where(f, texts[i], where) == st);
        for (size_t j = 0; j < BLY_BITMAP_WORDS(nparts); j++)
            any |= where[j];
        assert(st || (bit != 0) == (any != 0));
    }
    free(where);
}

static bool put_nowhere(void *ctx, const void *bytes, size_t nbytes)
{
    (void)bytes;
    *(uint64_t *)ctx += nbytes;
    return true;
}

/* What takes the bits answers as they did before. */
static void repack(const bly_foreign *from, const bly_mem *mem)
{
    bly_format_info t;
    for (size_t i = 0; bly_format_at(i, &t); i++) {
        const bly_foreign_spec spec = { .format = t.name, .mem = mem };
        bly_foreign *f;
        uint64_t was, is, nbytes = 0;
        if (!(t.can & BLY_FORMAT_NEW) || bly_foreign_repack(&spec, from, &f))
            continue;
        for (size_t j = 0; j < NTEXTS; j++)
            if (!bly_foreign_has(from, &texts[j], 1, &was, NULL) &&
                !bly_foreign_has(f, &texts[j], 1, &is, NULL))
                assert(was == is);
        assert(bly_foreign_write(f, put_nowhere, &nbytes) == BLY_OK);
        assert(nbytes > 0);
        bly_foreign_free(f);
    }
}

/* What takes more keys has them afterwards, and what it then writes opens. */
static void add(const char *format, const bly_mem *mem, const uint8_t *bytes,
                size_t size)
{
    const bly_foreign_spec spec = { .format = format,
                                    .max_bytes = 2 * size + 1024,
                                    .mem = mem };
    bly_foreign *f;
    uint64_t bit, nbytes = 0;
    if (bly_foreign_edit(&spec, bytes, size, &f))
        return;
    for (size_t i = 0; i < NTEXTS; i++)
        if (!bly_foreign_add(f, &texts[i], 1, NULL, NULL))
            assert(!bly_foreign_has(f, &texts[i], 1, &bit, NULL) && bit);
    (void)bly_foreign_remove(f, texts[0]);
    assert(bly_foreign_write(f, put_nowhere, &nbytes) == BLY_OK && nbytes);
    bly_foreign_free(f);
}

/* A file of a format, NULL: of the one that it is. */
static void try_file(const char *format, const uint8_t *data, size_t size)
{
    /* Small things that every filter has, and the bytes eight times over. */
    struct budget b = { .most = ((size_t)64 << 10) + 8 * size };
    const bly_mem mem = { .alloc = budget_alloc,
                          .release = budget_release,
                          .ctx = &b };
    const bly_foreign_spec spec = { .format = format, .mem = &mem };
    bly_foreign *f;
    uint8_t *const bytes = malloc(size ? size : 1); /* ends where it ends */
    if (!bytes)
        return;
    if (size)
        memcpy(bytes, data, size);
    if (bly_foreign_open(&spec, bytes, size, &f) == BLY_OK) {
        bly_foreign_stats s;
        bly_foreign_stat(f, BLY_WHOLE, &s);
        describe(f, BLY_WHOLE);
        for (size_t i = 0; i < s.nparts && i < 1000; i++)
            describe(f, i);
        ask(f, s.nparts);
        repack(f, &mem);
        bly_foreign_free(f);
        add(format, &mem, bytes, size);
    } else {
        assert(!f && bly_error()[0]);
    }
    assert(b.held == 0);
    free(bytes);
}

/* ----------------------------------------------------------------- making */

struct file {
    uint8_t at[1 << 16];
    size_t n;
};

static bool put_file(void *ctx, const void *bytes, size_t nbytes)
{
    struct file *const to = ctx;
    if (nbytes > sizeof to->at - to->n)
        return false;
    memcpy(to->at + to->n, bytes, nbytes);
    to->n += nbytes;
    return true;
}

/* A small filter of row i with the last of each option's choices that `bits`
 * names; false where it cannot be made. */
static bool make(const bly_format_info *t, unsigned bits, struct file *to)
{
    bly_option options[BLY_FORMAT_MAX_OPTIONS];
    bly_foreign_spec spec = { .format = t->name,
                              .options = options,
                              .items = 20 };
    for (size_t i = 0; i < t->noptions; i++) {
        const char *const *c = bly_param_at(t->options, i)->choices;
        if (!c || !(bits >> i & 1))
            continue;
        while (c[1])
            c++;
        options[spec.noptions++] =
            (bly_option){ bly_param_at(t->options, i)->name, *c };
    }
    bly_foreign *f;
    to->n = 0;
    if (!(t->can & BLY_FORMAT_NEW) || bly_foreign_new(&spec, &f))
        return false;
    for (size_t i = 0; i < NTEXTS; i++)
        (void)!bly_foreign_add(f, &texts[i], 1, NULL,
                               NULL); /* some are not keys */
    const bly_status st = bly_foreign_write(f, put_file, to);
    bly_foreign_free(f);
    return st == BLY_OK;
}

/* Pairs of an offset and a byte; 0xffff cuts off that many bytes. */
static void change(struct file *f, const uint8_t *data, size_t size)
{
    for (; size >= 3 && f->n; data += 3, size -= 3) {
        const size_t at = (size_t)data[0] << 8 | data[1];
        if (at == 0xffff)
            f->n -= data[2] < f->n ? data[2] : f->n;
        else
            f->at[at % f->n] ^= data[2];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bly_format_info t;
    if (size == 0)
        return 0;
    if (data[0] == 0) {
        try_file(NULL, data + 1, size - 1);
    } else if (data[0] < 128) {
        if (bly_format_at(data[0] - 1u, &t))
            try_file(t.name, data + 1, size - 1);
    } else if (size >= 2 && bly_format_at(data[0] - 128u, &t)) {
        static struct file f;
        if (make(&t, data[1], &f)) {
            change(&f, data + 2, size - 2);
            try_file(t.name, f.at, f.n);
            try_file(NULL, f.at, f.n);
        }
    }
    return 0;
}

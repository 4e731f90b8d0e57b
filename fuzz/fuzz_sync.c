/*
 * fuzz_sync.c - the two sides of a sync, with peers that say anything
 *
 * The first byte chooses the side and the form. For the side that answers, the
 * rest is questions, each behind a length of two bytes; a greeting stands in
 * front. For the side that asks, it is answers: by every method, with and
 * without taking what it is told. Files are never written: the folder is none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/sync/client.h"
#include "apps/sync/sync_server.h"
#include "report/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ELEMENTS 40

static void make_set(struct sync_set *set, uint64_t salt, enum sync_form form)
{
    *set = (struct sync_set){ .form = form, .path = "/dev/null" };
    set->hasher = (bly_hasher){ .id = BLY_HASH_XXH3 };
    set->elements = malloc(ELEMENTS * sizeof *set->elements);
    set->files = calloc(ELEMENTS, sizeof *set->files);
    set->by_path = calloc(ELEMENTS, sizeof *set->by_path);
    if (!set->elements || !set->files || !set->by_path)
        abort();
    for (uint64_t i = 0; i < ELEMENTS; i++) {
        char path[16];
        const int n = snprintf(path, sizeof path, "f%02u", (unsigned)i);
        const uint64_t seed = i < 4 ? i + salt : i;
        set->elements[i] = bly_hash(&set->hasher, &seed, sizeof seed) | 1;
        set->files[i].path = set->names.len;
        set->by_path[i] = (uint32_t)i;
        if (!block_put(&set->names, path, (size_t)n + 1))
            abort();
    }
    set->n = ELEMENTS;
    if (bly_elements_sort(set->elements, &set->n))
        abort();
    for (size_t i = 0; i < set->n; i++)
        set->files[i].element = set->elements[i];
}

static void serve(struct sync_set *set, const uint8_t *data, size_t size)
{
    struct sync_server s = { .set = set, .writes = false };
    struct block answer = { 0 }, hello = { 0 };
    unsigned char type = SYNC_HELLO;
    if (!block_put(&hello, &type, 1) || !block_put(&hello, SYNC_MAGIC, 8) ||
        !put_word(&hello, set->form, 1) || !put_word(&hello, 1, 1) ||
        !varint_put(&hello, 40) || !varint_put(&hello, 400) ||
        !put_word(&hello, 0, 8))
        abort();
    bool more =
        server_answer(&s, (const unsigned char *)hello.at, hello.len, &answer);
    while (more && size >= 2) {
        size_t n = (size_t)data[0] | (size_t)data[1] << 8;
        data += 2;
        size -= 2;
        n = n < size ? n : size;
        more = server_answer(&s, data, n, &answer);
        if (answer.len > SYNC_MESSAGE || (more && !answer.len))
            abort();
        data += n;
        size -= n;
    }
    server_free(&s);
    block_free(&answer);
    block_free(&hello);
}

/* Answers that were written before the questions. */
struct script {
    const uint8_t *at;
    size_t left;
};

static bool next_answer(void *ctx, const struct block *question,
                        struct block *answer, char why[SYNC_WHY])
{
    struct script *const s = ctx;
    (void)why;
    if (question->len > SYNC_MESSAGE)
        abort();
    answer->len = 0;
    if (s->left < 2)
        return false;
    size_t n = (size_t)s->at[0] | (size_t)s->at[1] << 8;
    s->at += 2;
    s->left -= 2;
    n = n < s->left ? n : s->left;
    /* The right type, so that the fuzzer gets past it. */
    const bool ok = block_put(answer, question->at, 1) &&
                    (!n || block_put(answer, s->at, n));
    s->at += n;
    s->left -= n;
    return ok;
}

static void ask(struct sync_set *set, enum sync_method method,
                const uint8_t *data, size_t size)
{
    struct script s = { data, size };
    struct sync_client c = {
        .set = set,
        .method = method,
        .take = true,
        .give = true,
        .dry_run = true,
    };
    c.line = (struct sync_line){ .exchange = next_answer, .ctx = &s };
    c.report.peer = "fuzzer";
    if (client_compare(&c)) {
        for (size_t i = 0, at; i < c.nmine; i++)
            if (!set_has(set, c.mine[i], &at))
                abort();
        client_move(&c);
    }
    sync_client_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sync_set set;
    if (!size)
        return 0;
    quiet = true;
    make_set(&set, data[0] & 1 ? 100 : 0,
             data[0] & 2 ? SYNC_FILES : SYNC_LINES);
    if (data[0] & 4)
        serve(&set, data + 1, size - 1);
    else
        ask(&set, (enum sync_method)((data[0] >> 4) % 6), data + 1, size - 1);
    set_free(&set);
    return 0;
}

/*
 * automaton.c - many strings in a text, exactly (Aho and Corasick, 1975)
 *
 * Node 0 is the root. Children of a node are a list; those of the root, which
 * most bytes ask for, are a table.
 */
#include "apps/traffic/automaton.h"

#include <stdlib.h>

#define NOTHING UINT32_MAX

struct node {
    uint32_t child, sibling; /* first child; the next child of the parent */
    uint32_t fail;           /* the longest end that is a node too */
    uint32_t output;         /* the longest end where strings end, itself too */
    uint32_t string;         /* the first one that ends here */
    unsigned char byte;
};

struct automaton {
    struct node *nodes;
    uint32_t nnodes;
    uint32_t *next; /* of strings that are the same */
    size_t nstrings;
    uint32_t root[256];
};

static uint32_t child_of(const struct automaton *a, uint32_t node,
                         unsigned char c)
{
    if (node == 0)
        return a->root[c];
    uint32_t i = a->nodes[node].child;
    while (i != NOTHING && a->nodes[i].byte != c)
        i = a->nodes[i].sibling;
    return i;
}

static void string_add(struct automaton *a, const struct scan_string *s,
                       uint32_t number)
{
    uint32_t at = 0;
    for (size_t i = 0; i < s->n; i++) {
        const unsigned char c = scan_lower(s->at[i]);
        uint32_t next = child_of(a, at, c);
        if (next == NOTHING) {
            next = a->nnodes++;
            a->nodes[next] = (struct node){ .child = NOTHING,
                                            .sibling = a->nodes[at].child,
                                            .output = NOTHING,
                                            .string = NOTHING,
                                            .byte = c };
            a->nodes[at].child = next;
            if (at == 0)
                a->root[c] = next;
        }
        at = next;
    }
    a->next[number] = a->nodes[at].string;
    a->nodes[at].string = number;
}

static uint32_t step(const struct automaton *a, uint32_t at, unsigned char c)
{
    for (;; at = a->nodes[at].fail) {
        const uint32_t next = child_of(a, at, c);
        if (next != NOTHING)
            return next;
        if (at == 0)
            return 0;
    }
}

/* Nodes by their depth: the ends of one are all above it. */
static bool ends_find(struct automaton *a)
{
    uint32_t *const queue = malloc(a->nnodes * sizeof *queue);
    size_t n = 0;
    if (!queue)
        return false;
    queue[n++] = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t parent = queue[i];
        for (uint32_t k = a->nodes[parent].child; k != NOTHING;
             k = a->nodes[k].sibling) {
            struct node *const node = &a->nodes[k];
            node->fail =
                parent ? step(a, a->nodes[parent].fail, node->byte) : 0;
            node->output =
                node->string != NOTHING ? k : a->nodes[node->fail].output;
            queue[n++] = k;
        }
    }
    free(queue);
    return true;
}

struct automaton *automaton_new(const struct scan_string *strings, size_t n)
{
    struct automaton *const a = calloc(1, sizeof *a);
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++)
        nodes += strings[i].n;
    if (!a || nodes >= NOTHING) {
        free(a);
        return NULL;
    }
    a->nodes = malloc(nodes * sizeof *a->nodes);
    a->next = malloc((n ? n : 1) * sizeof *a->next);
    a->nstrings = n;
    if (a->nodes && a->next) {
        a->nodes[a->nnodes++] = (struct node){ .child = NOTHING,
                                               .sibling = NOTHING,
                                               .output = NOTHING,
                                               .string = NOTHING };
        for (size_t i = 0; i < 256; i++)
            a->root[i] = NOTHING;
        for (size_t i = 0; i < n; i++)
            string_add(a, &strings[i], (uint32_t)i);
        if (ends_find(a))
            return a;
    }
    automaton_free(a);
    return NULL;
}

void automaton_free(struct automaton *a)
{
    if (!a)
        return;
    free(a->nodes);
    free(a->next);
    free(a);
}

uint64_t automaton_bytes(const struct automaton *a)
{
    return a ? sizeof *a + a->nnodes * sizeof *a->nodes +
                   a->nstrings * sizeof *a->next
             : 0;
}

bool automaton_run(const struct automaton *a, const unsigned char *at, size_t n,
                   automaton_fn *found, void *ctx)
{
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++) {
        node = step(a, node, scan_lower(at[i]));
        for (uint32_t o = a->nodes[node].output; o != NOTHING;
             o = a->nodes[a->nodes[o].fail].output)
            for (uint32_t s = a->nodes[o].string; s != NOTHING; s = a->next[s])
                if (!found(ctx, s, i + 1))
                    return false;
    }
    return true;
}

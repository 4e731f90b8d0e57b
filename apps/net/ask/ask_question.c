/*
 * ask_question.c - a question that goes back the way that a packet came
 */
#include "apps/net/ask/ask_question.h"

#include <string.h>

bool ask_fits(const struct mark *m, const struct ask_bits *b, unsigned *left,
              unsigned *all)
{
    uint64_t wrong = 0;
    *left = *all = 0;
    for (unsigned i = 0; i < MARK_BYTES / 8; i++) {
        const uint64_t own = m->set[i] | m->clear[i];
        const uint64_t differ =
            (m->set[i] & ~b->bits.words[i]) | (m->clear[i] & b->bits.words[i]);
        wrong |= differ & ~b->written.words[i];
        /* A bit that was written says nothing, whatever it is. */
        *left += (unsigned)__builtin_popcountll(own & ~b->written.words[i]);
        *all += (unsigned)__builtin_popcountll(own);
    }
    return m->nbytes == b->nbytes && !wrong;
}

void ask_write(const struct mark *m, struct ask_bits *b)
{
    for (unsigned i = 0; i < MARK_BYTES / 8; i++)
        b->written.words[i] |= m->set[i] | m->clear[i];
}

bool ask_on_way(const struct ask_question *q, const char *name)
{
    for (unsigned i = 0; i < q->nway; i++)
        if (strcmp(q->way[i], name) == 0)
            return true;
    return false;
}

bool ask_name_set(char out[ASK_NAME], const char *name)
{
    const size_t n = strlen(name);
    if (!n || n >= ASK_NAME)
        return false;
    memcpy(out, name, n + 1);
    return true;
}

/* --------------------------------------------------------------------- parts
 */

static void put_name(struct blob *b, const char *name)
{
    blob_number(b, strlen(name), 1);
    blob_bytes(b, name, strlen(name));
}

/* Names are printed: no bytes that a terminal obeys. */
static bool take_name(struct body *b, char out[ASK_NAME])
{
    const size_t n = (size_t)body_number(b, 1);
    const unsigned char *const at = body_bytes(b, n);
    if (!at || !n || n >= ASK_NAME)
        return false;
    for (size_t i = 0; i < n; i++)
        if (at[i] <= ' ' || at[i] == 0x7f)
            return false;
    memcpy(out, at, n);
    out[n] = '\0';
    return true;
}

static void put_bits(struct blob *b, const struct ask_bits *bits)
{
    const struct mark like = { .nbytes = bits->nbytes };
    unsigned char bytes[MARK_BYTES];
    blob_number(b, bits->nbytes, 1);
    marked_put(&like, &bits->bits, bytes);
    blob_bytes(b, bytes, bits->nbytes);
    marked_put(&like, &bits->written, bytes);
    blob_bytes(b, bytes, bits->nbytes);
}

static bool take_bits(struct body *b, struct ask_bits *out)
{
    out->nbytes = (unsigned)body_number(b, 1);
    if (!out->nbytes || out->nbytes > MARK_BYTES || out->nbytes % 8)
        return false;
    const struct mark like = { .nbytes = out->nbytes };
    const unsigned char *const bits = body_bytes(b, out->nbytes);
    const unsigned char *const written = body_bytes(b, out->nbytes);
    if (!bits || !written)
        return false;
    marked_get(&like, bits, &out->bits);
    marked_get(&like, written, &out->written);
    return true;
}

/* ------------------------------------------------------------------ messages
 */

void ask_put(struct blob *b, uint8_t type, const struct ask_question *q)
{
    blob_start(b);
    if (type == ASK_WALK) {
        blob_number(b, q->hops, 1);
        blob_number(b, q->routers, 2);
        blob_number(b, q->ms, 4);
    }
    put_name(b, q->asker);
    put_bits(b, &q->b);
    if (type != ASK_WALK)
        return;
    blob_number(b, q->nway, 1);
    for (unsigned i = 0; i < q->nway; i++)
        put_name(b, q->way[i]);
}

bool ask_take(const struct frame *f, struct ask_question *q)
{
    struct body b = { .at = f->body, .n = f->nbody };
    memset(q, 0, sizeof *q);
    if (f->type == ASK_WALK) {
        q->hops = (unsigned)body_number(&b, 1);
        q->routers = (unsigned)body_number(&b, 2);
        q->ms = (unsigned)body_number(&b, 4);
    }
    if (!take_name(&b, q->asker) || !take_bits(&b, &q->b))
        return false;
    if (f->type == ASK_WALK) {
        const unsigned n = (unsigned)body_number(&b, 1);
        if (n > ASK_HOPS)
            return false;
        for (; q->nway < n; q->nway++)
            if (!take_name(&b, q->way[q->nway]))
                return false;
    }
    return !b.bad && !b.n;
}

void ask_put_tree(struct blob *b, const struct ask_tree *t)
{
    blob_start(b);
    blob_number(b, t->n, 2);
    for (unsigned i = 0; i < t->n; i++) {
        const struct ask_node *const node = &t->at[i];
        blob_number(b, node->before, 2);
        blob_number(b, node->state, 1);
        blob_number(b, node->left, 1);
        blob_number(b, node->all, 1);
        put_name(b, node->name);
    }
}

bool ask_take_tree(const struct frame *f, struct ask_tree *t)
{
    struct body b = { .at = f->body, .n = f->nbody };
    const unsigned n = (unsigned)body_number(&b, 2);
    t->n = 0;
    if (n > ASK_ROUTERS)
        return false;
    for (; t->n < n; t->n++) {
        struct ask_node *const node = &t->at[t->n];
        const unsigned before = (unsigned)body_number(&b, 2);
        const unsigned state = (unsigned)body_number(&b, 1);
        node->left = (unsigned)body_number(&b, 1);
        node->all = (unsigned)body_number(&b, 1);
        if (!take_name(&b, node->name) || state > ASK_CUT ||
            node->left > node->all ||
            (t->n ? before >= t->n : before != ASK_FIRST))
            return false;
        node->before = before;
        node->state = (enum ask_state)state;
    }
    return !b.bad && !b.n;
}

void ask_put_links(struct blob *b, const struct ask_links *l)
{
    blob_start(b);
    blob_number(b, l->n, 1);
    for (unsigned i = 0; i < l->n; i++) {
        put_name(b, l->at[i].name);
        blob_number(b, l->at[i].at.family, 1);
        blob_bytes(b, l->at[i].at.at, 16);
        blob_number(b, l->at[i].at.port, 2);
    }
}

bool ask_take_links(const struct frame *f, struct ask_links *l)
{
    struct body b = { .at = f->body, .n = f->nbody };
    const unsigned n = (unsigned)body_number(&b, 1);
    l->n = 0;
    if (n > ASK_LINKS)
        return false;
    for (; l->n < n; l->n++) {
        struct ask_link *const link = &l->at[l->n];
        if (!take_name(&b, link->name))
            return false;
        const unsigned family = (unsigned)body_number(&b, 1);
        const unsigned char *const at = body_bytes(&b, 16);
        const unsigned port = (unsigned)body_number(&b, 2);
        if (!at || (family != 0 && family != 4 && family != 6))
            return false;
        link->at = (struct address){ .family = (uint8_t)family,
                                     .port = (uint16_t)port };
        memcpy(link->at.at, at, 16);
    }
    return !b.bad && !b.n;
}

/* --------------------------------------------------------------------- trees
 */

unsigned ask_add(struct ask_tree *t, const struct ask_node *node)
{
    if (t->n == ASK_ROUTERS) {
        if (node->before < t->n)
            t->at[node->before].state = ASK_CUT;
        return ASK_FIRST;
    }
    t->at[t->n] = *node;
    return t->n++;
}

void ask_join(struct ask_tree *t, unsigned before, const struct ask_tree *more)
{
    unsigned place[ASK_ROUTERS];
    for (unsigned i = 0; i < more->n; i++) {
        struct ask_node node = more->at[i];
        node.before = i ? place[node.before] : before;
        /* Of those that found no room, the ones behind find none either. */
        place[i] =
            i && node.before == ASK_FIRST ? ASK_FIRST : ask_add(t, &node);
    }
}

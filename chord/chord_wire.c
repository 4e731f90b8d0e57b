/*
 * chord_wire.c - who is where, and the messages of the ring as bytes
 */
#include "chord/chord_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/byte_order.h"
#include "io/digests.h"
#include "base/lookup.h"
#include "base/grow.h"

uint64_t descriptor_id(const struct address *a, unsigned v)
{
    char text[ADDRESS_TEXT + 16], where[ADDRESS_TEXT];
    unsigned char sum[SHA256_BYTES];
    address_text(a, where);
    const int n = snprintf(text, sizeof text, "%s#%u", where, v);
    sum_sha256(text, (size_t)n, sum);
    return get_be(sum, 8);
}

uint64_t wire_ring(const char *name, unsigned bits, unsigned r, unsigned copies)
{
    char text[320];
    unsigned char sum[SHA256_BYTES];
    const int n =
        snprintf(text, sizeof text, "%.200s bits=%u sha256 r=%u R=%u names=2",
                 name, bits, r, copies);
    sum_sha256(text, (size_t)n, sum);
    return get_be(sum, 8);
}

/* ----------------------------------------------------------------- the book */

/* The number of an id; 0: unknown. */
static uint32_t book_find(const struct book *b, uint64_t id)
{
    LOOKUP_EACH (&b->by_id, table_hash(&id, sizeof id), row)
        if (b->at[row].id == id)
            return (uint32_t)row + 1;
    return 0;
}

uint32_t book_add(struct book *b, const struct descriptor *d)
{
    const uint32_t known = book_find(b, d->id);
    if (known) {
        struct descriptor *const old = &b->at[known - 1];
        if (!address_equal(&old->address, &d->address) || old->v != d->v)
            return 0;
        if (d->incarnation > old->incarnation)
            old->incarnation = d->incarnation;
        return known;
    }
    if ((d->address.family != 4 && d->address.family != 6) ||
        !d->address.port || d->v >= WIRE_MOST_V ||
        descriptor_id(&d->address, d->v) != d->id)
        return 0;
    size_t at = b->n;
    if (b->nfree) {
        while (b->at[b->hand].address.family)
            b->hand++;
        at = b->hand;
    } else if (b->n >= BOOK_MOST || !GROW(&b->at, &b->room, b->n + 1)) {
        return 0;
    }
    if (!lookup_add(&b->by_id, table_hash(&d->id, sizeof d->id), at))
        return 0;
    if (b->nfree)
        b->nfree--;
    else
        b->n++;
    b->at[at] = *d;
    return (uint32_t)at + 1;
}

void book_keep(struct book *b, const bool *used)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->at[i].address.family && !used[i + 1]) {
            b->at[i] = (struct descriptor){ 0 };
            b->nfree++;
        }
    b->hand = 0;
    lookup_empty(&b->by_id);
    for (size_t i = 0; i < b->n; i++)
        if (b->at[i].address.family) /* there is room: it was in it before */
            lookup_add(&b->by_id, table_hash(&b->at[i].id, 8), i);
}

const struct descriptor *book_get(const struct book *b, uint32_t at)
{
    return at && at <= b->n && b->at[at - 1].address.family ? &b->at[at - 1]
                                                            : NULL;
}

void book_free(struct book *b)
{
    free(b->at);
    lookup_free(&b->by_id);
    *b = (struct book){ 0 };
}

/* ------------------------------------------------------------------ writing */

void wire_put_descriptor(struct blob *to, const struct descriptor *d)
{
    blob_number(to, d->id, 8);
    blob_number(to, d->v, 2);
    blob_number(to, d->address.family, 1);
    blob_bytes(to, d->address.at, sizeof d->address.at);
    blob_number(to, d->address.port, 2);
    blob_number(to, d->incarnation, 8);
}

static void put_peers(struct blob *b, const struct book *book,
                      const struct chord_message *m)
{
    blob_number(b, m->npeers, 1);
    for (unsigned i = 0; i < m->npeers; i++) {
        const struct descriptor *const d = book_get(book, m->peers[i].at);
        /* A placeholder is an id without an address. */
        const struct descriptor none = { .id = m->peers[i].id };
        wire_put_descriptor(b, d ? d : &none);
    }
}

void wire_put_question(struct blob *b, const struct book *book,
                       const struct chord_message *m, uint64_t to,
                       const struct descriptor *self)
{
    blob_start(b);
    blob_number(b, to, 8);
    blob_number(b, self != NULL, 1);
    if (self)
        wire_put_descriptor(b, self);
    blob_number(b, m->flags, 1);
    blob_number(b, m->target, 8);
    blob_number(b, m->ndead, 1);
    for (unsigned i = 0; i < m->ndead; i++)
        blob_number(b, m->dead[i], 8);
    put_peers(b, book, m);
}

void wire_put_answer(struct blob *b, const struct book *book,
                     const struct chord_message *m)
{
    blob_start(b);
    blob_number(b, m->kind, 1);
    put_peers(b, book, m);
}

/* ------------------------------------------------------------------ reading */

static struct chord_peer get_descriptor(struct body *b, struct book *book)
{
    struct descriptor d = { 0 };
    d.id = body_number(b, 8);
    d.v = (uint16_t)body_number(b, 2);
    d.address.family = (uint8_t)body_number(b, 1);
    const unsigned char *const at = body_bytes(b, sizeof d.address.at);
    if (at)
        memcpy(d.address.at, at, sizeof d.address.at);
    d.address.port = (uint16_t)body_number(b, 2);
    d.incarnation = body_number(b, 8);
    if (b->bad)
        return (struct chord_peer){ 0, 0 };
    return (struct chord_peer){ d.id,
                                d.address.family ? book_add(book, &d) : 0 };
}

static void get_peers(struct body *b, struct book *book,
                      struct chord_message *m)
{
    const unsigned n = (unsigned)body_number(b, 1);
    if (n > CHORD_MOST_PEERS || (size_t)n * WIRE_DESCRIPTOR > b->n)
        b->bad = true;
    for (unsigned i = 0; i < n && !b->bad; i++)
        m->peers[m->npeers++] = get_descriptor(b, book);
}

static void start_message(const struct frame *f, struct chord_message *m)
{
    m->type = f->type;
    m->answer = (f->flags & FRAME_ANSWER) != 0;
    m->refused = (f->flags & FRAME_ERROR) != 0;
    m->kind = m->flags = 0;
    m->request = f->request;
    m->target = 0;
    m->npeers = m->ndead = 0;
}

bool wire_get_question(const struct frame *f, struct book *book,
                       struct chord_message *m, uint64_t *to,
                       struct chord_peer *from)
{
    struct body b = { f->body, f->nbody, false };
    start_message(f, m);
    *to = body_number(&b, 8);
    *from = (struct chord_peer){ 0, 0 };
    if (body_number(&b, 1))
        *from = get_descriptor(&b, book);
    m->flags = (uint8_t)body_number(&b, 1);
    m->target = body_number(&b, 8);
    const unsigned ndead = (unsigned)body_number(&b, 1);
    if (ndead > CHORD_NAMED_DEAD)
        b.bad = true;
    for (unsigned i = 0; i < ndead && !b.bad; i++)
        m->dead[m->ndead++] = body_number(&b, 8);
    get_peers(&b, book, m);
    return !b.bad && !b.n;
}

bool wire_get_answer(const struct frame *f, struct book *book,
                     struct chord_message *m)
{
    struct body b = { f->body, f->nbody, false };
    start_message(f, m);
    if (m->refused)
        return true;
    m->kind = (uint8_t)body_number(&b, 1);
    get_peers(&b, book, m);
    return !b.bad && !b.n;
}

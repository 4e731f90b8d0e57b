/*
 * gossip_verbs.c - asking peers: for documents, and for what they know
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/call.h"
#include "apps/net/gossip/gossip_node.h"
#include "apps/net/gossip/gossip_wire.h"
#include "report/say.h"
#include "report/show.h"

#define ASK_TIMEOUT 30000
#define ASK_TRIES 4

/* Ask, and again if it is busy: after 50 ms, doubling. False, with the reason
 * printed. */
static bool ask_peer(struct caller *c, const char *where, uint8_t type,
                     struct blob *body, struct frame *f)
{
    struct address to;
    struct blob copy = { 0 };
    if (!address_parse(where, &to))
        return false;
    for (unsigned tries = 0; tries < ASK_TRIES; tries++) {
        /* A frame takes the place of its body. */
        blob_start(&copy);
        blob_bytes(&copy, body->at + FRAME_HEAD, body->n - FRAME_HEAD);
        const bool ok = call_ask(c, &to, type, &copy, f);
        const enum frame_error e = ok ? call_error(c, f) : (enum frame_error)0;
        if (ok && !e) {
            blob_free(&copy);
            return true;
        }
        if (e != FRAME_BUSY)
            break;
        const struct timespec t = { 0, (50L << tries) * 1000000 };
        nanosleep(&t, NULL);
    }
    blob_free(&copy);
    return refuse("%s: %s", where, c->why);
}

static void caller_end(struct caller *c, struct blob *b)
{
    call_close(c);
    blob_free(b);
}

static bool read_report(const struct frame *f, struct search_report *r)
{
    struct body b = { f->body, f->nbody, false };
    r->peers = body_number(&b, 4);
    r->with_words = body_number(&b, 4);
    r->asked = body_number(&b, 4);
    r->silent = body_number(&b, 4);
    const size_t n = (size_t)body_number(&b, 2);
    r->hits = n <= QUERY_BEST ? calloc(n + 1, sizeof *r->hits) : NULL;
    if (!r->hits)
        return false;
    for (; r->nhits < n && !b.bad; r->nhits++) {
        struct search_hit *const h = &r->hits[r->nhits];
        struct address a;
        gossip_get_address(&b, &a);
        const uint64_t bits = body_number(&b, 8);
        memcpy(&h->score, &bits, sizeof h->score);
        h->path = text_get(&b);
        h->context = text_get(&b);
        if (!b.bad)
            address_text(&a, h->peer);
        if (!(h->score >= 0 && h->score < 1e9))
            return false;
    }
    return !b.bad && !b.n;
}

static void print_report(const struct search_report *r)
{
    for (size_t i = 0; i < r->nhits; i++) {
        const struct search_hit *const h = &r->hits[i];
        printf("%6.3f  %s  %s\n", h->score, h->peer,
               show_text(h->path.ptr, h->path.len));
        if (h->context.len)
            printf("        %s\n", show_text(h->context.ptr, h->context.len));
    }
    note("%zu documents; of %llu peers %llu seem to have a word, %llu were "
         "asked, %llu did not answer",
         r->nhits, (unsigned long long)r->peers,
         (unsigned long long)r->with_words, (unsigned long long)r->asked,
         (unsigned long long)r->silent);
}

int gossip_find_words(const struct peer_args *a, const struct list *words)
{
    struct secure_secret secret;
    struct query q = { .k = (unsigned)(a->best ? a->best : 20) };
    struct search_report r = { 0 };
    struct blob b = { 0 };
    struct frame f;
    if (a->best > QUERY_BEST)
        return fail("--best is at most %d", QUERY_BEST);
    if (!a->at)
        return fail("no peer is given; use --at ADDRESS:PORT");
    if (!query_words(&q, words->at, words->n))
        return fail("give 1 to %d different words of letters and digits",
                    QUERY_WORDS);
    if (!secure_read(a->key, &secret))
        return TROUBLE;
    struct caller c = { .secret = &secret,
                        .ring = gossip_network(),
                        .timeout = ASK_TIMEOUT };
    int status = TROUBLE;
    query_put(&b, &q, false);
    if (ask_peer(&c, a->at, GOSSIP_SEARCH, &b, &f)) {
        if (!read_report(&f, &r)) {
            fail("%s: the answer cannot be understood", a->at);
        } else {
            /* Who was silent may have them. */
            status = r.nhits ? YES : r.silent ? TROUBLE : NO;
            if (a->json)
                report(stdout, true, search_fields, &r, NULL);
            else if (!quiet)
                print_report(&r);
            if (status == TROUBLE)
                fail("unknown: %llu of the peers that may have the words did "
                     "not answer",
                     (unsigned long long)r.silent);
        }
    }
    free(r.hits);
    caller_end(&c, &b);
    return status;
}

/* -------------------------------------------------------------- a directory */

static bool read_peers(const struct frame *f, struct peers_report *r)
{
    struct body b = { f->body, f->nbody, false };
    for (size_t i = 0; i < PEER_NUMBERS; i++)
        r->numbers[i] = body_number(&b, 8);
    const size_t n = (size_t)body_number(&b, 4);
    r->peers = n <= b.n / 32 ? calloc(n + 1, sizeof *r->peers) : NULL;
    if (!r->peers)
        return false;
    for (; r->npeers < n && !b.bad; r->npeers++) {
        struct listed_peer *const p = &r->peers[r->npeers];
        struct address a;
        gossip_get_address(&b, &a);
        p->version = body_number(&b, 8);
        p->filter = body_number(&b, 4);
        p->silent = body_number(&b, 1);
        if (!b.bad)
            address_text(&a, p->address);
    }
    return !b.bad && !b.n;
}

int gossip_peers(const struct peer_args *a, const char *where)
{
    struct secure_secret secret;
    struct peers_report r = { 0 };
    struct blob b = { 0 };
    struct frame f;
    if (!secure_read(a->key, &secret))
        return TROUBLE;
    struct caller c = { .secret = &secret,
                        .ring = gossip_network(),
                        .timeout = ASK_TIMEOUT };
    int status = TROUBLE;
    blob_start(&b);
    if (ask_peer(&c, where, GOSSIP_LIST, &b, &f)) {
        if (!read_peers(&f, &r)) {
            fail("%s: the answer cannot be understood", where);
        } else {
            status = YES;
            if (a->json)
                report(stdout, true, peers_fields, &r, NULL);
            else if (!quiet)
                for (size_t i = 0; i < r.npeers; i++)
                    report_text(stdout, listed_peer_fields, &r.peers[i],
                                "{address:-22} {?filter}[{filter}|no filter]"
                                "[{?silent}, silent {silent} times|]\n");
        }
    }
    free(r.peers);
    caller_end(&c, &b);
    return status;
}

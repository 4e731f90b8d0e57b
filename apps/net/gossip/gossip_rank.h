/*
 * gossip_rank.h - which peers to ask, when to stop, and which documents win
 *
 * A word that few peers have says most: its weight is log(1 + N / N_t), where
 * N_t of N filters have it. Peers are asked in the order of the weights of the
 * words that they seem to have, in groups, until p in a row have added nothing
 * to the best k documents; p = 2 + N / 300 + 2 (k / 50), as published, finds
 * 72 % of the best 20 of 10,000 documents at 1000 peers, so p is k at least,
 * which finds 92 %. A document's score is the sum over words of weight (1 + ln
 * tf), over the square root of its number of words. Peers send counts; whoever
 * asks makes the score.
 *
 * Like gossip.h this is a state machine: search_next() says whom to ask,
 * search_took() takes what came.
 */
#ifndef BLY_GOSSIP_RANK_H
#define BLY_GOSSIP_RANK_H

#include "apps/net/gossip/gossip.h"

#define QUERY_WORDS 16
#define QUERY_WORD 64 /* bytes of a word: longer ones are not words */
#define QUERY_BEST 100
#define FOUND_PATH 1024
#define FOUND_CONTEXT 160
#define SEARCH_GROUP 4

struct query {
    unsigned k, n;
    struct {
        char text[QUERY_WORD];
        uint8_t len;
        uint64_t hash;
        double weight;
    } words[QUERY_WORDS];
};

/* The words of a text, folded; false if there are none or too many. */
bool query_words(struct query *q, const char *const *texts, size_t n);
uint64_t word_hash(bly_bytes word);

/* A document that was found. */
struct found {
    uint32_t peer; /* as search_peers[] */
    uint32_t words, counts[QUERY_WORDS];
    double score;
    bly_bytes path, context;
};

double found_score(const struct query *q, const struct found *f);

struct search_peer {
    uint64_t id;
    struct address address;
    double rank;
    size_t bytes; /* of its filter: among equals the smallest is first, since
                     short documents have the higher scores */
};

struct gossip_search {
    struct query query;        /* weights are made by search_new() */
    struct search_peer *peers; /* best first; those with none are not in it */
    size_t npeers, known;      /* `known` have filters */
    size_t next, due;          /* whom to ask next, and whose turn it is */
    unsigned patience, vain;
    size_t asked, silent;
    bool over;
    struct found best[QUERY_BEST]; /* best first; texts are its own */
    size_t nbest;

    /* What a group sent, until it is its turn. */
    struct {
        struct found *at;
        size_t n;
        bool came, silent;
    } group[SEARCH_GROUP];
};

/* Begin, with the directory of g; false: no memory. patience 0: as above.
 * search_free() in any case. */
bool search_new(struct gossip_search *s, const struct gossip *g,
                const struct query *q, unsigned patience);
void search_free(struct gossip_search *s);

/* The next one to ask now, NULL: nobody until an answer has come, or it is
 * over. */
const struct search_peer *search_next(struct gossip_search *s, uint32_t *which);

/* What came from peer `which`, or nothing (at NULL) for silence. Texts are
 * copied. */
void search_took(struct gossip_search *s, uint32_t which,
                 const struct found *at, size_t n);
bool search_over(const struct gossip_search *s);

#endif

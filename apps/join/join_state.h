/*
 * join_state.h - a join while it runs
 */
#ifndef BLY_JOIN_JOINING_H
#define BLY_JOIN_JOINING_H

#include "apps/join/held.h"
#include "apps/join/join.h"
#include "apps/join/joined.h"
#include "apps/join/streams.h"
#include "wire/shared_secret.h"

enum join_type { JOIN_INNER, JOIN_LEFT, JOIN_SEMI, JOIN_ANTI };

/* By the high bits of hashes; the table of held.c goes by the low ones. */
#define JOIN_PART_BITS 6
#define JOIN_PARTS (1u << JOIN_PART_BITS)

#define SCRATCH_BUFFER ((size_t)256 * 1024)

/* Where rows of the result go. */
struct join_out {
    bly_put *put;
    void *ctx;
    bool terminal; /* what goes there is made clean */
    bool failed;
    int error;         /* errno of that; 0: out of memory */
    struct block text; /* gathered */
};

struct join_state {
    const struct join_args *args;
    enum join_type type;
    const char *folder;          /* for temporary files */
    struct secure_secret shared; /* with the other end */
    const unsigned char *secret; /* of hashes; NULL: none */
    struct joined shape;
    struct join_out out;
    struct join_report report;
    uint64_t sent, received, unfiltered;
    const struct input *left_input, *right_input; /* while they are read */
    bool
        stopped; /* an input could not be read to its end, which was reported */
    bool complete; /* the result is */

    bly_filter *of_left;  /* drops rows of RIGHT; NULL: none */
    bly_filter *of_right; /* drops rows of LEFT; NULL: none does */
    bool no_right;        /* no row of RIGHT is held: of_right would drop all */
    bly_builder *builder; /* of the latter */

    struct held held; /* rows of RIGHT that may have partners */
    bool spilled;     /* they lie in right[], and those of LEFT go to left[] */
    struct scratch scratch;
    struct stream right[JOIN_PARTS], left[JOIN_PARTS];
    struct stream alone; /* rows of the result that need no partner */
    bool headed;         /* the header is out */
    uint64_t nleft;      /* rows of LEFT that were seen */
    struct block row;    /* of the result, or a part of it */

    /* LEFT is read twice: what it was, to be the same again. */
    _Atomic uint64_t first_rows, first_sum;
    uint64_t second_sum;
};

/* Rows of the result: gathered, and sent. False: out->failed. */
bool join_put(struct join_out *out, const struct block *row);
bool join_flush(struct join_out *out);

/* Does the result have this row of LEFT, if it has a partner or not? Where it
 * has the partner too, this is the first of both. */
static inline bool join_takes(const struct join_state *j, bool partner)
{
    return partner ? j->type != JOIN_ANTI
                   : j->type == JOIN_LEFT || j->type == JOIN_ANTI;
}

/* A row of LEFT into j->row, with a partner or without. */
bool join_row(struct join_state *j, bly_bytes left,
              const struct held_row *right);

/* A row of RIGHT, of which nothing but the key is needed where rest is NULL.
 * BLY_OK, or why it could not be held. */
bly_status join_hold(struct join_state *j, uint64_t hash, bly_bytes key,
                     const bly_bytes *rest, const char **why);

/* partitions.c: a row of RIGHT, a row of LEFT to the temporary file; and the
 * result of all, when everything is there. False: scratch_why() says why. */
bool part_right(void *joining, const struct held_row *row);
bool part_left(struct join_state *j, uint64_t number, uint64_t hash,
               bly_bytes key, bly_bytes row, bool maybe);
bool parts_join(struct join_state *j);
const char *scratch_why(const struct join_state *j);
void parts_free(struct join_state *j);

/* remote.c: rows of RIGHT from the command; and the other end of it. NULL in a
 * program that cannot seal what they say. */
__attribute__((weak)) int remote_rows(struct join_state *j);
__attribute__((weak)) int remote_serve(struct join_state *j, const char *name);

/* Note the columns of RIGHT from its header, or a row. */
void join_columns(struct join_state *j, const struct input *in, bly_bytes row);

/* LEFT or RIGHT as an input. False, with the reason printed. */
bool join_input(struct join_state *j, const char *name, bool right,
                struct input *in);

#endif

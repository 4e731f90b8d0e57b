/*
 * client.c - the side of a sync that asks: which elements differ?
 *
 * A handful of elements is sent as it is. Otherwise the first 32 symbols are
 * asked for, half a kilobyte, which tell 20 differences. If there are more,
 * strata tell about how many, and whether a list of all elements would be
 * shorter; then symbols go on, in one step to what should be nearly enough, and
 * in small steps to the end.
 */
#define _GNU_SOURCE
#include "apps/sync/client.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define FIRST_SYMBOLS 32
#define SYMBOL_BYTES 14   /* of 8 bytes, 4 of check, and a count */
#define LEAF_BITS 8       /* of a filter, per element */
#define TREE_LEAF_BITS 10 /* of a tree, whose branches are cut by others */
#define TREE_INNER_BITS 6
#define TREE_CORRECTION 5

/* What a peer may send, however much it claims to have, beyond what this side
 * has itself: elements in a list, and bytes of something that comes in parts
 * (512 MiB both). */
#define ELEMENTS_MOST ((uint64_t)1 << 26)
#define PARTS_MOST ((uint64_t)1 << 29)

const char *const sync_methods[] = { "auto",     "bloom", "tree", "iblt",
                                     "rateless", "exact", NULL };

bool client_fail(struct sync_client *c, const char *format, ...)
{
    va_list args;
    if (c->why[0])
        return false;
    va_start(args, format);
    vsnprintf(c->why, sizeof c->why, format, args);
    va_end(args);
    return false;
}

void sync_client_free(struct sync_client *c)
{
    free(c->mine);
    free(c->theirs);
    block_free(&c->question);
    block_free(&c->answer);
}

void client_begin(struct sync_client *c, enum sync_type type)
{
    c->question.len = 0;
    if (!put_word(&c->question, type, 1))
        client_fail(c, "out of memory");
}

bool client_ask(struct sync_client *c, struct reading *answer)
{
    struct sync_line *const line = &c->line;
    if (c->why[0])
        return false;
    const unsigned type = (unsigned char)c->question.at[0];
    if (!line->exchange(line->ctx, &c->question, &c->answer, c->why))
        return client_fail(c, "no answer");
    line->rounds++;
    line->sent += SYNC_FRAME + line->sealing + c->question.len;
    line->received += SYNC_FRAME + line->sealing + c->answer.len;
    const unsigned char *const at = (const unsigned char *)c->answer.at;
    if (!c->answer.len)
        return client_fail(c, "the answer is empty");
    if (at[0] == SYNC_REFUSED)
        return client_fail(
            c, "the other side refuses: %.*s",
            (int)(c->answer.len - 1 < 256 ? c->answer.len - 1 : 256),
            (const char *)at + 1);
    if (at[0] != type)
        return client_fail(c, "the answer is to another question");
    *answer = (struct reading){ at + 1, at + c->answer.len, false };
    return true;
}

static bool say(struct sync_client *c, bool put)
{
    return put || client_fail(c, "out of memory");
}

/* ---------------------------------------------------------------- greetings */

bool client_hello(struct sync_client *c)
{
    struct sync_set *const set = c->set;
    struct block *const q = &c->question;
    struct reading r;
    const unsigned wishes = (c->take ? SYNC_WISH_TAKE : 0) |
                            (c->give && !c->dry_run ? SYNC_WISH_GIVE : 0) |
                            SYNC_KNOWS_CHANGED;
    client_begin(c, SYNC_HELLO);
    if (!say(c, block_put(q, SYNC_MAGIC, 8) && put_word(q, set->form, 1) &&
                    put_word(q, wishes, 1) && varint_put(q, set->n) &&
                    varint_put(q, set->nbytes) &&
                    put_word(q, set_secret_check(set), 8)) ||
        !client_ask(c, &r))
        return false;
    const unsigned char *const magic = read_bytes(&r, 8);
    const uint64_t form = read_word(&r, 1);
    c->changed = read_word(&r, 1) & SYNC_KNOWS_CHANGED;
    c->report.here = set->n;
    c->report.there = read_number(&r);
    c->there_bytes = read_number(&r);
    const uint64_t check = read_word(&r, 8);
    if (r.bad || memcmp(magic, SYNC_MAGIC, 8) != 0)
        return client_fail(c, "the other side is not bloomery sync");
    if (form != set->form || check != set_secret_check(set))
        return client_fail(c, "the other side has something else, or another "
                              "key");
    return true;
}

/* ------------------------------------------------------------------ symbols */

/* What was found, as elements of this machine. */
static bool take_elements(struct sync_client *c, const bly_differ *d)
{
    for (unsigned side = 0; side < 2; side++) {
        const void *bytes;
        const size_t n = bly_differ_elements(d, (bly_side)side, &bytes);
        uint64_t *const to = malloc(n * sizeof *to + 8);
        if (!to)
            return client_fail(c, "out of memory");
        for (size_t i = 0; i < n; i++)
            to[i] = get_le((const unsigned char *)bytes + 8 * i, 8);
        size_t left = n;
        if (bly_elements_sort(to, &left))
            client_fail(c, "%s", bly_error());
        *(side == BLY_MINE ? &c->mine : &c->theirs) = to;
        *(side == BLY_MINE ? &c->nmine : &c->ntheirs) = left;
    }
    return !c->why[0];
}

static bool ask_estimate(struct sync_client *c)
{
    struct reading r;
    const bly_strata *const mine = set_strata(c->set);
    if (!mine)
        return client_fail(c, "%s", c->set->why);
    client_begin(c, SYNC_STRATA);
    if (!client_ask(c, &r))
        return false;
    const bool ok = !bly_strata_estimate(mine, r.at, (size_t)(r.end - r.at),
                                         &c->report.estimate);
    /* There cannot be more than there are, nor fewer than one side has more. */
    const uint64_t a = c->report.here, b = c->report.there;
    const uint64_t least = a > b ? a - b : b - a;
    if (c->report.estimate > a + b)
        c->report.estimate = a + b;
    if (c->report.estimate < least)
        c->report.estimate = least;
    return ok || client_fail(c, "%s", bly_error());
}

/* Symbols from where d is, to `to` at most. */
static bool ask_symbols(struct sync_client *c, bly_differ *d, uint64_t to)
{
    struct reading r;
    const uint64_t from = bly_differ_symbols(d);
    const bly_coded *const mine = set_symbols(c->set, from);
    if (!mine)
        return client_fail(c, "%s", c->set->why);
    if (to > bly_coded_to(mine))
        to = bly_coded_to(mine);
    client_begin(c, SYNC_SYMBOLS);
    if (!say(c,
             varint_put(&c->question, from) && varint_put(&c->question, to)) ||
        !client_ask(c, &r))
        return false;
    if (bly_differ_take(d, mine, r.at, (size_t)(r.end - r.at)))
        return client_fail(c, "the symbols of the other side: %s", bly_error());
    c->report.symbols = bly_differ_symbols(d);
    return true;
}

static bool find_exact(struct sync_client *c);

/* Symbols, tables and outlines are for sets that are much alike. A peer that
 * claims to have far more than this side could make this side accept as much as
 * it likes to send. */
static bool alike(struct sync_client *c, const char *method)
{
    const uint64_t here = c->report.here, there = c->report.there;
    return sync_believed(there, here) == there ||
           client_fail(c,
                       "the other side says that it has %llu elements, and "
                       "there are %llu here; --method %s is for sets of about "
                       "the same size: use --method exact",
                       (unsigned long long)there, (unsigned long long)here,
                       method);
}

/* Elements in a list of all, if each takes this many bytes. */
static double exact_bytes(const struct sync_client *c)
{
    const double n = (double)c->report.there;
    return n * ceil((64 - log2(n + 1)) / 7);
}

static bool find_rateless(struct sync_client *c)
{
    const bly_coding how = set_coding(c->set);
    const uint64_t most = 3 * (c->report.here + c->report.there) + 1000;
    bly_differ *d;
    if (!alike(c, "rateless"))
        return false;
    if (bly_differ_new(&how, &d))
        return client_fail(c, "%s", bly_error());
    bool ok = ask_symbols(c, d, FIRST_SYMBOLS);
    if (ok && !bly_differ_done(d) && c->method == SYNC_CHOOSE) {
        ok = ask_estimate(c);
        if (ok &&
            1.4 * SYMBOL_BYTES * (double)c->report.estimate > exact_bytes(c)) {
            bly_differ_free(d);
            return find_exact(c);
        }
    }
    /* To nine tenths of what should be needed, and then a twelfth of it each
     * time. */
    const uint64_t goal = c->report.estimate * 5 / 4;
    while (ok && !bly_differ_done(d)) {
        const uint64_t at = bly_differ_symbols(d);
        uint64_t to = at + 8 + at / 12;
        if (to < goal)
            to = goal;
        if (at >= most)
            ok = client_fail(c,
                             "%llu symbols came, and the differences are not "
                             "known: the other side sends no symbols of its "
                             "set; --method exact does without them",
                             (unsigned long long)at);
        else
            ok = ask_symbols(c, d, to);
    }
    ok = ok && take_elements(c, d);
    bly_differ_free(d);
    c->report.method = "rateless";
    return ok;
}

/* ------------------------------------------------------------------- tables */

/* All of a table of so many cells; *done: it was enough. */
static bool try_table(struct sync_client *c, uint64_t cells, bool *done)
{
    bly_coding how = set_coding(c->set);
    how.hashes = 4;
    bly_coded *mine = NULL;
    bly_differ *d = NULL;
    bool ok =
        !bly_coded_new(&how, 0, cells, &mine) && !bly_differ_new(&how, &d);
    if (!ok)
        client_fail(c, "%s", bly_error());
    else if (!set_code(c->set, mine))
        ok = client_fail(c, "%s", c->set->why);
    while (ok && bly_differ_symbols(d) < cells) {
        struct reading r;
        client_begin(c, SYNC_TABLE);
        ok = say(c, put_word(&c->question, how.hashes, 1) &&
                        varint_put(&c->question, cells) &&
                        varint_put(&c->question, bly_differ_symbols(d))) &&
             client_ask(c, &r);
        if (ok && bly_differ_take(d, mine, r.at, (size_t)(r.end - r.at)))
            ok = client_fail(c, "the table of the other side: %s", bly_error());
    }
    c->report.symbols += cells;
    *done = ok && bly_differ_done(d);
    if (*done)
        ok = take_elements(c, d);
    bly_differ_free(d);
    bly_coded_free(mine);
    return ok;
}

static bool find_table(struct sync_client *c)
{
    const uint64_t most = 3 * (c->report.here + c->report.there) + 1000;
    bool done = false;
    if (!alike(c, "iblt") || !ask_estimate(c))
        return false;
    uint64_t cells = (c->report.estimate * 3 / 2 + 20 + 3) / 4 * 4;
    c->report.method = "iblt";
    while (try_table(c, cells, &done) && !done) {
        cells *= 2; /* there is no second half to ask for */
        if (cells > most)
            return client_fail(c, "no table tells the differences; --method "
                                  "exact does without them");
    }
    return done;
}

/* -------------------------------------------------------------------- lists */

static bool too_much(struct sync_client *c)
{
    return client_fail(c,
                       "the other side says that it has %llu elements, and "
                       "there are %llu here: too many to accept at once",
                       (unsigned long long)c->report.there,
                       (unsigned long long)c->report.here);
}

bool client_parts(struct sync_client *c, enum sync_type type, const void *how,
                  size_t nhow, uint64_t most, struct block *to)
{
    uint64_t total = 1;
    while (to->len < total) {
        struct reading r;
        client_begin(c, type);
        if (!say(c, (!nhow || block_put(&c->question, how, nhow)) &&
                        varint_put(&c->question, to->len)) ||
            !client_ask(c, &r))
            return false;
        total = read_number(&r);
        const size_t n = (size_t)(r.end - r.at);
        if (!r.bad && total > PARTS_MOST + VARINT_MOST * c->report.here)
            return too_much(c);
        if (r.bad || total > most || n > total - to->len || (!n && total))
            return client_fail(c, "the other side sends more, or less, than it "
                                  "says");
        if (n && !block_put(to, r.at, n))
            return client_fail(c, "out of memory");
        if (!total)
            break;
    }
    return true;
}

static bool add_element(uint64_t **to, size_t *n, size_t *room, uint64_t e)
{
    if (!GROW(to, room, *n + 1))
        return false;
    (*to)[(*n)++] = e;
    return true;
}

/* Two sorted lists side by side. */
static bool find_exact(struct sync_client *c)
{
    const struct sync_set *const set = c->set;
    struct block all = { 0 };
    size_t mine_room = 0, theirs_room = 0, i = 0;
    uint64_t e = 0, n = 0;
    c->report.method = "exact";
    bool ok = client_parts(c, SYNC_SORTED, NULL, 0,
                           c->report.there * VARINT_MOST, &all);
    const unsigned char *at = (const unsigned char *)all.at;
    const unsigned char *const end = all.len ? at + all.len : at;
    for (; ok && at != end; n++) {
        uint64_t gap;
        ok = varint_get(&at, end, &gap) && gap <= UINT64_MAX - e &&
             (gap || !n) && n < c->report.there;
        if (!ok) {
            client_fail(c, "the list of the other side cannot be read");
            break;
        }
        e += gap;
        for (; ok && i < set->n && set->elements[i] < e; i++)
            ok = add_element(&c->mine, &c->nmine, &mine_room, set->elements[i]);
        if (i < set->n && set->elements[i] == e)
            i++;
        else if (ok && c->ntheirs > ELEMENTS_MOST + set->n)
            ok = too_much(c);
        else if (ok)
            ok = add_element(&c->theirs, &c->ntheirs, &theirs_room, e);
        if (!ok)
            client_fail(c, "out of memory");
    }
    for (; ok && i < set->n; i++)
        ok = add_element(&c->mine, &c->nmine, &mine_room, set->elements[i]) ||
             client_fail(c, "out of memory");
    if (ok && n != c->report.there)
        ok = client_fail(c, "the list of the other side is incomplete");
    block_free(&all);
    return ok;
}

/* ----------------------------------------------------------------- outlines */

/* What the other side lacks, from its outline. */
static bool find_mine(struct sync_client *c, unsigned leaf, unsigned inner,
                      unsigned correction)
{
    const unsigned char how[] = { (unsigned char)leaf, (unsigned char)inner };
    struct block bytes = { 0 };
    bly_outline *o = NULL;
    bool ok = client_parts(c, SYNC_OUTLINE, how, sizeof how,
                           c->report.there * 16 + 4096, &bytes);
    c->mine = ok ? malloc(c->set->n * sizeof *c->mine + 8) : NULL;
    if (ok && (!c->mine || bly_outline_load(bytes.at, bytes.len, NULL, &o) ||
               bly_outline_lacking(o, c->set->elements, c->set->n, correction,
                                   c->mine, &c->nmine, NULL)))
        ok = client_fail(c, "%s", c->mine ? bly_error() : "out of memory");
    bly_outline_free(o);
    block_free(&bytes);
    return ok;
}

bool client_outline(struct sync_client *c, const void *bytes, size_t nbytes,
                    unsigned correction, uint64_t *nlacking)
{
    bool ok = true;
    for (size_t at = 0, some; ok && at < nbytes; at += some) {
        struct reading r;
        some = nbytes - at < SYNC_ROOM - 64 ? nbytes - at : SYNC_ROOM - 64;
        client_begin(c, SYNC_SUMMARY);
        ok = say(c,
                 varint_put(&c->question, nbytes) &&
                     put_word(&c->question, correction, 1) &&
                     varint_put(&c->question, at) &&
                     block_put(&c->question, (const char *)bytes + at, some)) &&
             client_ask(c, &r);
        if (ok && at + some == nbytes) {
            *nlacking = read_number(&r);
            if (r.bad || *nlacking > c->report.there)
                ok = client_fail(c, "the other side has more than it says");
        }
    }
    return ok;
}

bool client_elements(struct sync_client *c, enum sync_type type, uint64_t total,
                     uint64_t **to, size_t *n)
{
    size_t room = 0;
    bool ok = total <= ELEMENTS_MOST + c->report.here || too_much(c);
    *n = 0;
    while (ok && *n < total) {
        struct reading r;
        client_begin(c, type);
        ok = say(c, varint_put(&c->question, *n)) && client_ask(c, &r);
        if (ok && r.end - r.at < 8)
            ok = client_fail(c, "the other side sends less than it says");
        while (ok && r.end - r.at >= 8 && *n < total)
            ok = say(c, add_element(to, n, &room, read_word(&r, 8)));
    }
    if (ok && *n && bly_elements_sort(*to, n))
        ok = client_fail(c, "%s", bly_error());
    return ok;
}

/* What it has that we lack, from ours. */
static bool find_theirs(struct sync_client *c, unsigned leaf, unsigned inner,
                        unsigned correction)
{
    const bly_outline_spec spec = { .leaf_bits = leaf, .inner_bits = inner };
    bly_outline *o;
    uint64_t total = 0;
    if (bly_outline_new(&spec, c->set->elements, c->set->n, &o))
        return client_fail(c, "%s", bly_error());
    const size_t nbytes = bly_outline_written_bytes(o);
    unsigned char *const bytes = malloc(nbytes);
    if (bytes)
        bly_outline_write(o, bytes);
    bly_outline_free(o);
    const bool ok =
        say(c, bytes) && client_outline(c, bytes, nbytes, correction, &total) &&
        client_elements(c, SYNC_LACKING, total, &c->theirs, &c->ntheirs);
    free(bytes);
    return ok;
}

static bool find_outlined(struct sync_client *c)
{
    const bool tree = c->method == SYNC_TREE;
    const unsigned leaf = tree ? TREE_LEAF_BITS : LEAF_BITS;
    const unsigned inner = tree ? TREE_INNER_BITS : 0;
    c->report.method = tree ? "tree" : "bloom";
    c->report.complete = false;
    if (!alike(c, c->report.method))
        return false;
    /* In the direction that something is to go, or in both. */
    return (!(c->give || c->removes) ||
            find_mine(c, leaf, inner, TREE_CORRECTION)) &&
           (!(c->take || c->removes) ||
            find_theirs(c, leaf, inner, TREE_CORRECTION));
}

/* ---------------------------------------------------------------------- all */

bool client_compare(struct sync_client *c)
{
    c->report.complete = true;
    if (!client_hello(c))
        return false;
    bool ok;
    switch (c->method) {
    case SYNC_EXACT:
        ok = find_exact(c);
        break;
    case SYNC_IBLT:
        ok = find_table(c);
        break;
    case SYNC_BLOOM:
    case SYNC_TREE:
        ok = find_outlined(c);
        break;
    case SYNC_RATELESS:
        ok = find_rateless(c);
        break;
    default:
        /* A few elements are shorter than the first symbols. */
        ok = c->report.there < FIRST_SYMBOLS * SYMBOL_BYTES / 9 ||
                     sync_believed(c->report.there, c->report.here) !=
                         c->report.there
                 ? find_exact(c)
                 : find_rateless(c);
    }
    /* An element that was found with a false checksum is none of ours. */
    for (size_t i = 0, at; ok && i < c->nmine; i++)
        if (!set_has(c->set, c->mine[i], &at))
            ok = client_fail(c, "the other side sends symbols of another set");
    c->report.only_here = c->nmine;
    c->report.only_there = c->ntheirs;
    c->report.compared = c->line.sent + c->line.received;
    return ok;
}

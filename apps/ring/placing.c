/*
 * placing.c - rules of bloomery/place.h, measured on the same keys
 *
 * Three numbers decide which rule fits: how uneven the loads are, how many keys
 * move when a member comes or goes (1/(n + 1) and 1/n have to, any more is
 * needless), and what a lookup costs. All rules get the same keys in the same
 * order. The bounded rule is told every key, so that its time is that of
 * counting too.
 */
#define _GNU_SOURCE
#include "apps/ring/placing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "report/say.h"

const struct field placed_fields[] = {
    FIELD(struct placed, rule, NONE, "the rule"),
    FIELD(struct placed, points, OPTIONAL | ZERO,
          "points of each member on the ring"),
    FIELD(struct placed, largest, NONE, "largest load over the mean"),
    FIELD(struct placed, joined, SHARE,
          "share of keys that move when a member comes"),
    FIELD(struct placed, left, SHARE,
          "share of keys that move when a member goes"),
    FIELD(struct placed, needless, SHARE,
          "share of keys that move between old members when one comes"),
    FIELD(struct placed, nanoseconds, NANOSECONDS,
          "per lookup, the least of several rounds"),
    FIELD(struct placed, bytes, BYTES, "memory of the rule"),
    { 0 },
};

bly_bytes *placing_names(size_t n)
{
    enum { LONGEST = 24 };
    bly_bytes *const names = malloc(n * (sizeof *names + LONGEST));
    if (!names) {
        fail("no memory for %zu names", n);
        return NULL;
    }
    char *text = (char *)(names + n);
    for (size_t i = 0; i < n; i++, text += LONGEST)
        names[i] =
            (bly_bytes){ text, (size_t)snprintf(text, LONGEST, "node%zu", i) };
    return names;
}

/* A rule with n members from number `first` on. */
static bool placing_make(const struct placing *how, const char *rule,
                         uint32_t points, size_t first, size_t n,
                         bly_place **out)
{
    const bly_place_spec spec = { .rule = rule,
                                  .names = how->names + first,
                                  .n = n,
                                  .points = points,
                                  .slack = how->slack,
                                  .seed = how->seed };
    if (!rule || bly_place_new(&spec, out) == BLY_OK)
        return true;
    fail_library();
    return false;
}

/* The members of all keys. */
static void place_keys(const struct placing *how, bly_place *p, size_t n,
                       uint32_t *members)
{
    uint32_t none;
    const bool counts =
        p && how->nkeys && bly_place_take(p, how->hashes[0], &none) == BLY_OK;
    if (counts)
        (void)bly_place_give(p, none);
    for (size_t i = 0; i < how->nkeys; i++)
        if (counts)
            (void)bly_place_take(p, how->hashes[i], &members[i]);
        else
            members[i] = p ? bly_place_of(p, how->hashes[i])
                           : (uint32_t)(how->hashes[i] % n);
}

static double largest_load(const struct placing *how, const uint32_t *members,
                           uint64_t *loads)
{
    uint64_t most = 0;
    memset(loads, 0, (how->n + 1) * sizeof *loads);
    for (size_t i = 0; i < how->nkeys; i++)
        most = ++loads[members[i]] > most ? loads[members[i]] : most;
    return (double)most * (double)how->n / (double)how->nkeys;
}

/* Keys that move when the members become `n` from number `first` on; *needless
 * those of them that go to one of the old members though theirs stays. */
static bool placing_moved(const struct placing *how, const char *rule,
                          uint32_t points, size_t first, size_t n,
                          const uint32_t *before, uint32_t *after,
                          double *moved, double *needless)
{
    bly_place *p = NULL;
    uint64_t nmoved = 0, nneedless = 0;
    if (!placing_make(how, rule, points, first, n, &p))
        return false;
    place_keys(how, p, n, after);
    for (size_t i = 0; i < how->nkeys; i++) {
        const size_t now = after[i] + first;
        nmoved += now != before[i];
        nneedless += now != before[i] && now < how->n && before[i] >= first &&
                     before[i] < first + n;
    }
    bly_place_free(p);
    *moved = (double)nmoved / (double)how->nkeys;
    *needless = (double)nneedless / (double)how->nkeys;
    return true;
}

bool placing_measure(const struct placing *how, const char *rule,
                     uint32_t points, struct placed *out)
{
    enum { ROUNDS = 5 };
    uint32_t *const before = malloc((how->nkeys + 1) * sizeof *before);
    uint32_t *const after = malloc((how->nkeys + 1) * sizeof *after);
    uint64_t *const loads = malloc((how->n + 1) * sizeof *loads);
    /* Buckets have numbers in these two: only the last can go. */
    const bool numbered = !rule || strcmp(rule, "jump") == 0;
    bool ok = before && after && loads;
    double unused;
    *out = (struct placed){ .rule = rule ? rule : "modulo", .points = points };
    if (!ok)
        fail("no memory for %zu keys", how->nkeys);
    for (int i = 0; ok && i < (how->untimed ? 1 : ROUNDS); i++) {
        bly_place *p = NULL;
        ok = placing_make(how, rule, points, 0, how->n, &p);
        if (!ok)
            break;
        const double start = clock_ns();
        place_keys(how, p, how->n, before);
        const double ns = (clock_ns() - start) / (double)how->nkeys;
        out->nanoseconds = i && out->nanoseconds < ns ? out->nanoseconds : ns;
        out->bytes = p ? bly_place_bytes(p) : 0;
        bly_place_free(p);
    }
    if (ok)
        out->largest = largest_load(how, before, loads);
    ok = ok && placing_moved(how, rule, points, 0, how->n + 1, before, after,
                             &out->joined, &out->needless);
    out->left = 1; /* of one member, all keys */
    if (how->n > 1)
        ok =
            ok && placing_moved(how, rule, points, numbered ? 0 : 1, how->n - 1,
                                before, after, &out->left, &unused);
    free(before);
    free(after);
    free(loads);
    return ok;
}

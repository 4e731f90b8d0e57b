/*
 * table.c - the table of kinds, and what can be asked of its rows
 */
#include <string.h>

#include "core/bytes.h"
#include "core/status.h"
#include "kinds/kind.h"

static const bly_kind *const kind_rows[] = {
#define KIND_ROW(name) &bly_kind_##name,
    BLY_KINDS(KIND_ROW)
#undef KIND_ROW
};

const bly_kind *bly_kind_row(size_t i)
{
    return i < sizeof kind_rows / sizeof kind_rows[0] ? kind_rows[i] : NULL;
}

const bly_kind *bly_kind_by_id(uint32_t id)
{
    const bly_kind *kind;
    for (size_t i = 0; (kind = bly_kind_row(i)); i++)
        if (kind->id == id)
            return kind;
    return NULL;
}

const bly_kind *bly_kind_by_name(const char *name)
{
    const bly_kind *kind;
    if (!name)
        return kind_rows[0];
    for (size_t i = 0; (kind = bly_kind_row(i)); i++)
        if (strcmp(kind->name, name) == 0)
            return kind;
    return NULL;
}

uint32_t bly_kind_can(const bly_kind *kind)
{
    uint32_t can = 0;
#define KIND_CAN(NAME, slot, word, help) can |= kind->slot ? BLY_CAN(NAME) : 0;
    BLY_ABILITIES(KIND_CAN)
#undef KIND_CAN
    return can;
}

bool bly_shape_shares(const bly_kind *kind, const bly_shape *s)
{
    return kind->add_shared && (!kind->shares || kind->shares(s));
}

uint64_t bly_shape_bits(const bly_kind *kind, const bly_shape *s)
{
    return kind->bits ? kind->bits(s) : 8 * s->nbytes;
}

double bly_shape_real(const bly_shape *s, unsigned i)
{
    return bly_bits_real(s->p[i]);
}

void bly_shape_set_real(bly_shape *s, unsigned i, double value)
{
    s->p[i] = bly_real_bits(value);
}

double bly_want_real(const bly_want *w, unsigned i)
{
    return bly_bits_real(w->opt[i]);
}

bly_status bly_read_choice(const bly_param *param, const char *sort,
                           const char *owner, const char *text, uint64_t *out)
{
    bly_names words = { { 0 }, 0 };
    for (uint64_t i = 0; param->choices[i]; i++) {
        if (strcmp(param->choices[i], text) == 0) {
            *out = i;
            return BLY_OK;
        }
        bly_names_add(&words, param->choices[i]);
    }
    return bly_fail(BLY_EINVAL, "option %s of %s %s is one of %s, not '%s'",
                    param->name, sort, owner, words.text, text);
}

/* The number of a param. */
static bly_status param_named(const bly_kind *kind, const char *name,
                              uint32_t *out)
{
    bly_names known = { { 0 }, 0 };
    for (*out = 0; *out < kind->nparams; ++*out) {
        if (strcmp(kind->params[*out].name, name) == 0)
            return BLY_OK;
        bly_names_add(&known, kind->params[*out].name);
    }
    return bly_fail(BLY_EINVAL, "kind %s has no parameter '%s'; it has: %s",
                    kind->name, name, known.text);
}

bly_status bly_want_set(const bly_kind *kind, bly_want *w, const char *name,
                        uint64_t value)
{
    uint32_t i;
    const bly_status st = param_named(kind, name, &i);
    if (!st) {
        w->opt[i] = value;
        w->given[i] = true;
    }
    return st;
}

bly_status bly_shape_get(const bly_kind *kind, const bly_shape *s,
                         const char *name, uint64_t *out)
{
    uint32_t i;
    const bly_status st = param_named(kind, name, &i);
    if (!st)
        *out = s->p[i];
    return st;
}

static void fact_put(bly_facts *facts, bly_fact fact)
{
    if (facts->n < BLY_MAX_FACTS)
        facts->at[facts->n++] = fact;
}

void bly_fact_uint(bly_facts *facts, const char *name, uint64_t value)
{
    fact_put(facts, (bly_fact){ .name = name,
                                .type = BLY_UINT,
                                .uint = value,
                                .real = (double)value });
}

void bly_fact_real(bly_facts *facts, const char *name, double value)
{
    fact_put(facts,
             (bly_fact){ .name = name, .type = BLY_REAL, .real = value });
}

void bly_fact_word(bly_facts *facts, const char *name, const char *word)
{
    fact_put(facts,
             (bly_fact){ .name = name, .type = BLY_CHOICE, .word = word });
}

unsigned bly_kinds_room(void)
{
    unsigned most = 0;
    const bly_kind *kind;
    for (size_t i = 0; (kind = bly_kind_row(i)); i++)
        most = bly_kind_room(kind) > most ? bly_kind_room(kind) : most;
    return most;
}

bly_shape bly_shape_copy(const bly_kind *kind, const bly_shape *s)
{
    bly_shape copy = { .nbytes = s->nbytes };
    memcpy(copy.p, s->p, bly_kind_room(kind) * sizeof copy.p[0]);
    return copy;
}

unsigned bly_kind_room(const bly_kind *kind)
{
    unsigned n = kind->nparams;
    while (n && kind->params[n - 1].planning)
        n--;
    return n;
}

double bly_shape_rate(const bly_kind *kind, const bly_shape *s, double n)
{
    const double rate = kind->rate(s, n) + n * 0x1p-64;
    return rate < 1 || rate != rate ? rate : 1;
}

/*
 * table.c - the table of kinds, and what its rows say about themselves
 */
#include <string.h>

#include "core/bytes.h"
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

/* The number of a param; one that there is not is our own mistake. */
static uint32_t param_named(const bly_kind *kind, const char *name)
{
    uint32_t i = 0;
    while (i + 1 < kind->nparams && strcmp(kind->params[i].name, name) != 0)
        i++;
    return i;
}

void bly_want_set(const bly_kind *kind, bly_want *w, const char *name,
                  uint64_t value)
{
    const uint32_t i = param_named(kind, name);
    w->opt[i] = value;
    w->given[i] = true;
}

uint64_t bly_shape_get(const bly_kind *kind, const bly_shape *s,
                       const char *name)
{
    return s->p[param_named(kind, name)];
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

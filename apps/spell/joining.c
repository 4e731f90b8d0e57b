/*
 * joining.c - compounds by rule: COMPOUNDRULE
 */
#include <string.h>

#include "apps/spell/joining.h"

static const char letter_names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "abcdefghijklmnopqrstuvwxyz0123456789";
_Static_assert(sizeof letter_names == JOINING_LETTERS + 1, "a name each");

/* ------------------------------------------------------------------ writing */

bool joining_letters_give(struct joining_letters *l, const struct aff *a,
                          unsigned nletters, size_t nstates)
{
    *l = (struct joining_letters){ .n = nletters, .nstates = nstates };
    for (size_t i = 0; i < a->nrules; i++) {
        const struct aff_rule *const rule = &a->rules[i];
        if (rule->n > JOINING_PARTS ||
            l->nstates + rule->n + 1 > JOINING_STATES)
            return false;
        l->nstates += rule->n + 1;
        for (size_t k = 0; k < rule->n; k++) {
            unsigned char *const letter = &l->of[rule->at[k].flag];
            if (*letter)
                continue;
            if (l->n == JOINING_LETTERS)
                return false;
            *letter = (unsigned char)++l->n;
        }
    }
    return true;
}

unsigned joining_letters_of(const struct joining_letters *l,
                            const struct word *w, const struct aff_flags *flags,
                            unsigned char out[JOINING_LETTERS])
{
    unsigned n = 0;
    bool word = false;
    for (size_t i = 0; i < w->n; i++) {
        if (w->c[i] >= '0' && w->c[i] <= '9')
            return 0;
        word |= letter_is(w->c[i]);
    }
    for (size_t i = 0; i < flags->n && word; i++)
        if (l->of[flags->at[i]] && n < JOINING_LETTERS)
            out[n++] = l->of[flags->at[i]];
    return n;
}

bool joining_write(const struct joining_letters *l, const struct aff *a,
                   struct block *b)
{
    for (size_t i = 0; i < a->nrules; i++) {
        const struct aff_rule *const rule = &a->rules[i];
        for (size_t k = 0; k < rule->n; k++)
            if (!block_put(b, &letter_names[l->of[rule->at[k].flag] - 1], 1) ||
                (rule->at[k].times && !block_put(b, &rule->at[k].times, 1)))
                return false;
        if (rule->n && !block_put(b, "", 1))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ reading */

bool joining_read(struct joining *j, const struct block *texts)
{
    bool begun = false; /* a part of this rule was there */
    j->n = 0;
    for (size_t i = 0; i < texts->len; i++) {
        const char c = texts->at[i];
        const char *const name = c ? strchr(letter_names, c) : NULL;
        if (begun && (c == '?' || c == '*')) {
            j->at[j->n - 1].times = c;
            continue;
        }
        if ((!name && c) || (!c && !begun) || j->n == JOINING_STATES)
            return false;
        j->at[j->n++] = (struct joining_part){
            .letter = name ? (unsigned char)(name - letter_names + 1) : 0
        };
        begun = c != '\0';
    }
    return !begun;
}

/* ------------------------------------------------------------------- moving */

static bool set_has(const struct joining_set *s, size_t i)
{
    return s->bits[i / 64] >> i % 64 & 1;
}

static void set_put(struct joining_set *s, size_t i)
{
    s->bits[i / 64] |= UINT64_C(1) << i % 64;
}

/* What may be missing leads to what is behind it. Places are looked at in
 * their order, so once is enough. */
static void set_close(const struct joining *j, struct joining_set *s)
{
    for (size_t i = 0; i + 1 < j->n; i++)
        if (set_has(s, i) && j->at[i].times)
            set_put(s, i + 1);
}

void joining_begin(const struct joining *j, struct joining_set *out)
{
    *out = (struct joining_set){ 0 };
    for (size_t i = 0; i < j->n; i++)
        if (i == 0 || !j->at[i - 1].letter)
            set_put(out, i);
    set_close(j, out);
}

void joining_step(const struct joining *j, const struct joining_set *from,
                  unsigned letter, struct joining_set *out)
{
    *out = (struct joining_set){ 0 };
    for (size_t i = 0; i < j->n; i++)
        if (set_has(from, i) && j->at[i].letter == letter)
            set_put(out, j->at[i].times == '*' ? i : i + 1);
    set_close(j, out);
}

uint64_t joining_next(const struct joining *j, const struct joining_set *s)
{
    uint64_t letters = 0;
    for (size_t i = 0; i < j->n; i++)
        if (set_has(s, i))
            letters |= UINT64_C(1) << j->at[i].letter;
    return letters;
}

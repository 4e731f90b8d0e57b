/*
 * figure_spell.c - misspellings that a filter of words lets through
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/spell/speller.h"
#include "base/random.h"
#include "io/text_set.h"
#include "workbench/figure.h"

#define SPELL_WORDS 235886 /* those of a list that early systems had */
#define SYLLABLES 6
#define SPELT (2 * SYLLABLES) /* letters at most */

/* Words of syllables, so that a letter changed often gives another word. */
static size_t make_word(uint64_t *at, char out[SPELT])
{
    static const char consonants[] = "bcdfghjklmnpqrstvwxz", vowels[] = "aeiou";
    const size_t n = 3 + random_next(at) % (SYLLABLES - 2);
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = consonants[random_next(at) % (sizeof consonants - 1)];
        out[2 * i + 1] = vowels[random_next(at) % (sizeof vowels - 1)];
    }
    return 2 * n;
}

static bool make_words(struct figure_run *run, struct text_set *words)
{
    uint64_t at = run->seed;
    char word[SPELT];
    while (words->n < SPELL_WORDS) {
        const size_t n = make_word(&at, word);
        if (!text_set_add(words, (bly_bytes){ word, n }))
            return !(run->broken = true);
    }
    return true;
}

/* The next word of the set, which lie one after another as lines; false at the
 * end. Zero in *word begins. */
static bool next_word(const struct text_set *words, bly_bytes *word)
{
    const char *const end = words->lines.at + words->lines.len;
    const char *const at =
        word->ptr ? (const char *)word->ptr + word->len + 1 : words->lines.at;
    if (at >= end)
        return false;
    const char *const newline = memchr(at, '\n', (size_t)(end - at));
    *word = (bly_bytes){ at, (size_t)((newline ? newline : end) - at) };
    return true;
}

static bly_filter *spell_filter(struct figure_run *run, const bly_spec *spec,
                                const struct text_set *words)
{
    bly_filter *const f = figure_filter(run, spec, NULL);
    for (bly_bytes word = { 0 }; f && next_word(words, &word);)
        run->broken |= bly_add_keys(f, &word, 1, NULL, NULL) != BLY_OK;
    return f;
}

/* The share of misspellings that are taken for words: a letter of a word is
 * another one, and the result is not a word. */
static double undetected(struct figure_run *run, const struct speller *s,
                         const struct text_set *words, uint64_t queries,
                         bool capital)
{
    uint64_t at = run->seed, dice = ~run->seed, missed = 0;
    char word[SPELT];
    for (uint64_t asked = 0; asked < queries;) {
        const size_t n = make_word(&at, word);
        char *const c = &word[random_next(&dice) % n];
        *c = (char)('a' + random_next(&dice) % 26);
        if (text_set_has(words, (bly_bytes){ word, n }))
            continue;
        asked++;
        if (capital)
            word[0] = (char)(word[0] - 32);
        missed += speller_right(s, word, n, false);
    }
    return (double)missed / (double)queries;
}

/* Words that are flagged: none. */
static double words_flagged(const struct speller *s,
                            const struct text_set *words)
{
    double wrong = 0;
    for (bly_bytes word = { 0 }; next_word(words, &word);)
        wrong += !speller_right(s, word.ptr, word.len, false);
    return wrong;
}

static void spell_run_rate(struct figure_run *run, double rate,
                           const struct text_set *words,
                           struct figure_series *const to[4])
{
    const bly_spec spec = SPEC(.kind = "classic", .items = SPELL_WORDS,
                               .fpr = rate, .seed = run->seed);
    const uint64_t queries = run->full ? 1000000 : 100000;
    bly_filter *const f = spell_filter(run, &spec, words);
    const struct speller s = { .filter = f, .is = { .known = true } };
    bly_prediction plan;
    if (!f || run->broken || bly_plan(&spec, &plan)) {
        run->broken = true;
        bly_free(f);
        return;
    }
    const double p = plan.fpr, twice = 1 - (1 - p) * (1 - p);
    const double sd = figure_rate_sd(
        p, SPELL_WORDS, (double)plan.bits,
        round((double)plan.bits / SPELL_WORDS * log(2)), (double)queries, 1);
    const double plain = undetected(run, &s, words, queries, false);
    const double capital = undetected(run, &s, words, queries, true);
    figure_judge(run, to[0], rate, p, plain, sd);
    figure_judge(run, to[1], rate, twice, capital, 2 * sd);
    /* Half of them begin a sentence: between p and 2p. */
    figure_point(run, to[2], rate, (p + twice) / 2, (plain + capital) / 2, p,
                 2 * p);
    figure_point(run, to[3], rate, 0, words_flagged(&s, words), 0, 0);
    bly_free(f);
}

static void spell_run(struct figure_run *run)
{
    static const double rates[] = { 0.01, 0.001, 0.03, 0.003, 0.0003 };
    struct text_set words = { 0 };
    run->x = AXIS(.label = "rate of the filter", .scale = PLOT_LOG,
                  .format = PLOT_PERCENT);
    run->y = AXIS(.label = "misspellings let through", .scale = PLOT_LOG,
                  .format = PLOT_PERCENT);
    struct figure_series *to[4];
    to[0] = figure_series(run, "in lower case");
    to[1] = figure_series(run, "at the beginning of a sentence");
    to[2] = figure_series(run, "half and half");
    to[3] = figure_series(run, "words that are flagged");
    to[2]->unseen = to[3]->unseen = true;
    if (make_words(run, &words))
        for (size_t i = 0; i < (run->full ? 5 : 2) && !run->broken; i++)
            spell_run_rate(run, rates[i], &words, to);
    text_set_free(&words);

    struct figure_series *const sizes = figure_series(run, "kB at 0.1 %%");
    sizes->unseen = true;
    static const double known[][2] = { { 104334, 187.5 }, { 235886, 423.9 } };
    for (size_t i = 0; i < 2; i++) {
        const bly_spec spec =
            SPEC(.kind = "classic", .items = (uint64_t)known[i][0],
                 .fpr = 0.001);
        bly_prediction plan;
        run->broken |= bly_plan(&spec, &plan) != BLY_OK;
        figure_point(run, sizes, known[i][0], known[i][1],
                     (double)plan.bits / 8e3, 0.999 * known[i][1],
                     1.001 * known[i][1]);
    }
    figure_note(run, "A word at the beginning of a sentence is asked for in "
                     "two forms, and each may be taken for a word.");
}

const struct figure figure_spell = {
    .name = "spell",
    .title = "Spelling: misspellings that slip through a filter of words",
    .source = "McIlroy's spell and its successors: words in a Bloom filter.",
    .about = "A filter of 235,886 words flags none of them. A word with a "
             "letter changed slips through at the filter's rate p for each "
             "form that is asked for: p in lower case, nearly 2p where a "
             "sentence begins, and in a text something between.",
    .run = spell_run,
};

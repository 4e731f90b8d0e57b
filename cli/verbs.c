/*
 * verbs.c - which verb a line has, and whose options those are
 *
 * Options may stand before the verb, so a verb is looked for behind whatever
 * any verb of the command takes.
 */
#include <string.h>

#include "cli/cli.h"
#include "report/say.h"

/* ------------------------------------------------------------------ options */

const struct opt *options_of(const struct command *c, const struct verb *v)
{
    static const struct opt none[] = { { 0 } };
    return v ? v->options : c->options ? c->options : none;
}

/* The first option for which same() holds: of v, or of all there are. */
static const struct opt *
option_which(const struct command *c, const struct verb *v,
             bool (*same)(const struct opt *o, const char *word, size_t n),
             const char *word, size_t n)
{
    const struct verb *all = v ? NULL : c->verbs;
    do {
        const struct verb *const one = all ? all : v;
        for (const struct opt *o = options_of(c, one); o->name; o++)
            if (same(o, word, n))
                return o;
    } while (all && (++all)->name);
    return NULL;
}

static bool same_name(const struct opt *o, const char *name, size_t n)
{
    return strlen(o->name) == n && strncmp(o->name, name, n) == 0;
}

static bool same_letter(const struct opt *o, const char *letter, size_t n)
{
    (void)n;
    return o->letter == *letter;
}

const struct opt *option_named(const struct command *c, const struct verb *v,
                               const char *name, size_t n)
{
    return option_which(c, v, same_name, name, n);
}

const struct opt *option_letter(const struct command *c, const struct verb *v,
                                char letter)
{
    return option_which(c, v, same_letter, &letter, 1);
}

const struct opt *wants_value(const struct command *c, const struct verb *v,
                              const char *word)
{
    if (word[0] != '-' || !word[1])
        return NULL;
    if (word[1] == '-') {
        const struct opt *const o =
            option_meant(c, v, word + 2, strlen(word + 2));
        return o && o->type.is != IS_FLAG ? o : NULL;
    }
    for (const char *at = word + 1; *at; at++) {
        const struct opt *const o = option_letter(c, v, *at);
        if (o && o->type.is != IS_FLAG)
            return at[1] ? NULL : o;
    }
    return NULL;
}

/* -------------------------------------------------------------------- verbs */

static bool is_word(const char *name, size_t n, const char *word)
{
    return strlen(word) == n && strncmp(name, word, n) == 0;
}

/* The verb that is the first word, or the first two. */
static const struct verb *verb_named(const struct command *c,
                                     const struct list *words, size_t *nwords)
{
    for (const struct verb *v = c->verbs; v && v->name && words->n; v++) {
        const size_t n = strcspn(v->name, " ");
        *nwords = v->name[n] ? 2 : 1;
        if (is_word(v->name, n, words->at[0]) &&
            (*nwords == 1 ||
             (words->n > 1 && strcmp(v->name + n + 1, words->at[1]) == 0)))
            return v;
    }
    *nwords = 0;
    for (const struct verb *v = c->verbs; v && c->implied && v->name; v++)
        if (strcmp(v->name, c->implied) == 0 &&
            words->n == operands_needed(v->operands))
            return v;
    return NULL;
}

const struct verb *verb_of_line(const struct command *c, size_t n,
                                const char *const *words, size_t *nwords)
{
    const char *first[3];
    struct list found = { first, 0, 0 };
    bool ended = false;
    for (size_t i = 0; i < n && found.n < 3; i++)
        if (ended || words[i][0] != '-' || !words[i][1])
            first[found.n++] = words[i];
        else if (strcmp(words[i], "--") == 0)
            ended = true;
        else
            i += wants_value(c, NULL, words[i]) != NULL;
    return verb_named(c, &found, nwords);
}

static const char *verb_word(size_t i, const void *ctx)
{
    const struct verb *const verbs = ctx;
    return verbs[i].name;
}

/* The words that a verb may begin with, or those behind such a word. */
static void verb_words(char *out, size_t room, const struct command *c,
                       const char *behind)
{
    size_t at = 0;
    out[0] = '\0';
    for (const struct verb *v = c->verbs; v->name && at < room; v++) {
        const size_t n = strcspn(v->name, " ");
        const bool again = v != c->verbs && v->name[n] &&
                           strncmp(v[-1].name, v->name, n + 1) == 0;
        if (behind ? v->name[n] && is_word(v->name, n, behind) : !again)
            at +=
                (size_t)snprintf(out + at, room - at, "%s%.*s", at ? ", " : "",
                                 behind ? (int)strlen(v->name) : (int)n,
                                 behind ? v->name + n + 1 : v->name);
    }
}

const struct verb *verb_of_operands(const struct command *c,
                                    const struct list *operands, size_t *nwords)
{
    const struct verb *const v = verb_named(c, operands, nwords);
    char words[512];
    if (v)
        return v;
    if (operands->n == 0) {
        verb_words(words, sizeof words, c, NULL);
        fail("which verb? bloomery %s VERB: one of %s", c->name, words);
        return NULL;
    }
    const char *const wrong = operands->at[0];
    verb_words(words, sizeof words, c, wrong);
    if (words[0] && operands->n == 1)
        fail("%s needs a second word, one of %s", wrong, words);
    else if (words[0])
        fail("unknown '%s %s'; there are: %s", wrong, operands->at[1], words);
    if (words[0])
        return NULL;
    size_t n = 0;
    while (c->verbs[n].name)
        n++;
    const char *const near = nearest_word(wrong, n, verb_word, c->verbs);
    verb_words(words, sizeof words, c, NULL);
    if (near)
        fail("unknown verb '%s'; did you mean '%s'?", wrong, near);
    else
        fail("unknown verb '%s'; there are: %s", wrong, words);
    return NULL;
}

/* ----------------------------------------------------------------- operands */

const char *operand_or_at(const char *verb, const struct list *operands,
                          const struct list *at)
{
    const size_t n = operands->n + at->n;
    if (n == 1)
        return operands->n ? operands->at[0] : at->at[0];
    fail("%s bloomery %s --at ADDRESS:PORT",
         n ? "one address is enough; use" : "whom to ask? Use", verb);
    return NULL;
}

const char *next_operand(const char **usage, size_t *n)
{
    for (const char *at = *usage; *at;) {
        at += strspn(at, " [].|");
        *n = strcspn(at, " [].|");
        const char *const word = at;
        at += *n;
        if (word[0] == '-') { /* and its argument, unless the bracket ends */
            if (at[0] == ' ' && at[1] != '[' && at[1] != '|' && at[1] != '-') {
                at += strspn(at, " ");
                at += strcspn(at, " ]");
            }
        } else if (*n && !is_word(word, *n, "OPTION")) {
            *usage = at;
            return word;
        }
    }
    return NULL;
}

size_t operands_needed(const char *usage)
{
    size_t needed = 0, n;
    int depth = 0;
    const char *at = usage;
    for (const char *word; (word = next_operand(&at, &n));) {
        for (; usage < word; usage++)
            depth += (*usage == '[') - (*usage == ']');
        needed += depth == 0;
    }
    return needed;
}

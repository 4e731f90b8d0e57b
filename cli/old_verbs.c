/*
 * old_verbs.c - verbs that are not rows yet
 */
#include <string.h>

#include "cli/cli.h"

#include "io/input.h"
#include "report/say.h"

static const char *old_verb_word(size_t i, const void *ctx)
{
    const struct old_verb *const verbs = ctx;
    return verbs[i].name;
}

static size_t old_verb_named(const struct command *c,
                             const struct old_verb *verbs, size_t n,
                             const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return i;
    const char *const near = nearest_word(name, n, old_verb_word, verbs);
    if (near)
        fail("unknown verb '%s'; did you mean '%s'?", name, near);
    else
        fail("unknown verb '%s'; there are: %s", name, c->old_verbs);
    return n;
}

/* Does the verb take all that was given? False, with the reason printed, if
 * not. */
static bool verb_takes(const struct command *c, const struct old_verb *v)
{
    for (const struct opt *o = c->options; o->name; o++) {
        char word[40];
        snprintf(word, sizeof word, " %s ", o->name);
        if (!was_given(o->to) || strstr(v->options, word))
            continue;
        fail("%s takes no --%s; see bloomery %s --help", v->name, o->name,
             c->name);
        return false;
    }
    return true;
}

size_t verb_find(const struct command *c, const struct old_verb *verbs,
                 size_t n, const struct list *operands, struct list *rest)
{
    if (operands->n == 0) {
        fail("no verb is given; usage: bloomery %s VERB, which is one of: %s",
             c->name, c->old_verbs);
        return n;
    }
    const size_t i = old_verb_named(c, verbs, n, operands->at[0]);
    if (i == n || !verb_takes(c, &verbs[i]))
        return n;
    crlf_option = strstr(verbs[i].options, " crlf ") != NULL;
    *rest =
        (struct list){ operands->at + 1, operands->n - 1, operands->literal };
    if (rest->n >= verbs[i].least)
        return i;
    fail("%s needs more; usage: bloomery %s %s %s", verbs[i].name, c->name,
         verbs[i].name, verbs[i].operands);
    return n;
}

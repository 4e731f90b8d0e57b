/*
 * sizing.c - what a filter is to be, as a command line says it
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "io/sizing.h"
#include "report/say.h"
#include "report/show.h"

static const char *kind_word(size_t i, const void *ctx)
{
    bly_kind_info info;
    (void)ctx;
    return bly_kind_at(i, &info) ? info.name : NULL;
}

bool kind_exists(const char *name)
{
    bly_kind_info info;
    if (bly_kind_named(name, &info))
        return true;
    size_t n = 0;
    while (bly_kind_at(n, &info))
        n++;
    const char *const near = nearest_word(name, n, kind_word, NULL);
    if (near) {
        fail("unknown kind '%s'; did you mean '%s'?", name, near);
    } else {
        char *const all = kinds_that_can(0);
        fail("unknown kind '%s'; there are: %s", name, all ? all : "");
        free(all);
    }
    return false;
}

/* NAME=VALUE words as options, with place for `more` behind them. */
static bool option_words_and(const struct list *words, size_t more,
                             bly_option **out)
{
    *out = NULL;
    if (words->n + more == 0)
        return true;
    bly_option *const options = calloc(words->n + more, sizeof *options);
    for (size_t i = 0; options && i < words->n; i++) {
        const char *const text = words->at[i];
        const char *const equals = strchr(text, '=');
        if (!equals || equals == text) {
            fail("--option '%s': not of the form NAME=VALUE", text);
            free(options);
            return false;
        }
        options[i].name = strndup(text, (size_t)(equals - text));
        options[i].value = equals + 1;
        if (!options[i].name) {
            fail("out of memory");
            free(options);
            return false;
        }
    }
    if (!options) {
        fail("out of memory");
        return false;
    }
    *out = options;
    return true;
}

bool option_words(const struct list *words, const bly_option **out)
{
    bly_option *options;
    const bool right = option_words_and(words, 0, &options);
    *out = options;
    return right;
}

#define MISS_NAME "miss"

/* The options of -O, and that of --miss behind them. */
static bool sizing_options(const struct sizing *s, bly_spec *spec)
{
    bly_option *options;
    if (!option_words_and(&s->options, s->miss > 0, &options))
        return false;
    for (size_t i = 0; s->miss > 0 && i < s->options.n; i++)
        if (strcmp(options[i].name, MISS_NAME) == 0) {
            fail("--miss and -O miss are the same thing; give one of them");
            return false;
        }
    if (s->miss > 0) {
        char *text;
        if (asprintf(&text, "%.17g", s->miss) < 0) {
            fail("out of memory");
            return false;
        }
        options[s->options.n] = (bly_option){ MISS_NAME, text };
    }
    spec->options = options;
    sizing_misses(s, spec);
    return true;
}

void sizing_misses(const struct sizing *s, bly_spec *spec)
{
    bly_kind_info kind;
    spec->noptions = s->options.n;
    if (!(s->miss > 0) || !(spec->kind ? bly_kind_named(spec->kind, &kind)
                                       : bly_kind_at(0, &kind)))
        return;
    for (size_t i = 0; i < kind.nparams; i++)
        spec->noptions +=
            strcmp(bly_param_at(kind.params, i)->name, MISS_NAME) == 0;
}

bool sizing_spec(const struct sizing *s, bly_spec *spec)
{
    if (s->kind && !kind_exists(s->kind))
        return false;
    if (s->bits && s->memory) {
        fail("--bits and --memory are the same thing; give one of them");
        return false;
    }
    if (s->memory > UINT64_MAX / 8) {
        fail("--memory %llu: more than 2^61 bytes",
             (unsigned long long)s->memory);
        return false;
    }
    spec->kind = s->kind;
    spec->items = s->items;
    spec->fpr = s->fpr;
    spec->bits = s->memory ? s->memory * 8 : s->bits;
    if (spec->items && spec->fpr > 0 && spec->bits) {
        fail("--items, --fpr and %s contradict each other; give two of them",
             s->memory ? "--memory" : "--bits");
        return false;
    }
    return sizing_options(s, spec);
}

bool is_sized(const bly_spec *spec)
{
    bly_kind_info kind;
    if (spec->items || (spec->bits && spec->fpr > 0))
        return true;
    return (spec->kind ? bly_kind_named(spec->kind, &kind)
                       : bly_kind_at(0, &kind)) &&
           (kind.traits & BLY_SELF_SIZED) && (spec->noptions || spec->bits);
}

char *kinds_that_can(uint32_t ability)
{
    struct text text;
    FILE *const to = text_begin(&text);
    bly_kind_info info;
    const char *comma = "";
    for (size_t i = 0; bly_kind_at(i, &info); i++) {
        if ((info.can & ability) != ability)
            continue;
        fprintf(to, "%s%s", comma, info.name);
        comma = ", ";
    }
    return text_end(&text);
}

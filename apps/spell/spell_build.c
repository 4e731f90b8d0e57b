/*
 * spell_build.c - bloomery spell build
 */
#include <stdlib.h>
#include <string.h>

#include "apps/spell/spell.h"
#include "apps/spell/wordlist.h"
#include "io/filters.h"
#include "io/files.h"
#include "io/paths.h"
#include "io/source.h"
#include "report/say.h"

const struct field spell_built_fields[] = {
    FIELD(struct spell_built, file, NONE, "where the filter was written"),
    FIELD(struct spell_built, words, NONE,
          "words that were read, as they stand in lists and dictionaries"),
    FIELD(struct spell_built, forms, NONE,
          "their forms, parts of compounds too, some more than once"),
    MEMBERS(struct spell_built, made, NONE, made_fields),
    { 0 },
};

/* Hashes on their way to a builder. */
struct forms {
    bly_builder *builder;
    uint64_t hashes[512];
    size_t n;
    bool library; /* bly_error() says what is wrong */
};

static bool forms_flush(struct forms *f)
{
    const size_t n = f->n;
    f->n = 0;
    f->library = n && bly_builder_add(f->builder, f->hashes, NULL, n);
    return !f->library;
}

static bool forms_take(void *ctx, enum role role, const char *text, size_t n)
{
    struct forms *const f = ctx;
    char key[KEY_BYTES];
    for (unsigned i = 0; i < role_asks(role); i++) {
        f->hashes[f->n++] = bly_hash(bly_builder_hasher(f->builder), key,
                                     role_key(role, i, text, n, key));
        if (f->n == 512 && !forms_flush(f))
            return false;
    }
    return true;
}

static bool spec_read(const struct spell_args *args, const struct list *from,
                      const char *affix, bly_spec *spec)
{
    bool ok, joins;
    *spec = (bly_spec){ .keying = { BLY_KEYS_TEXT, 0 } };
    if (!sizing_spec(&args->sizing, spec) ||
        !kind_guards(spec->kind, "a dictionary") ||
        !wordlist_joins(from->at, from->n, affix, &joins))
        return false;
    if (spec->fpr <= 0 && !spec->bits)
        spec->fpr = joins ? SPELL_COMPOUND_FPR : SPELL_FPR;
    spec->secret = secret_read(args->keys.key_file, &ok);
    return ok;
}

/* Say which lines were bad; false: they count. */
static bool bad_told(const struct wordlist *l)
{
    const unsigned long long n = l->nbad;
    if (n && !l->skip_bad)
        fail("%llu line%s; --skip-bad leaves %s out", n,
             n == 1 ? " is not a word" : "s are not words",
             n == 1 ? "it" : "them");
    else if (n)
        warn("%llu line%s; left out", n,
             n == 1 ? " is not a word" : "s are not words");
    return !n || l->skip_bad;
}

bly_filter *spell_make(const struct spell_args *args, const struct list *from,
                       const char *affix, const char *source,
                       struct spell_built *built, bool *bad)
{
    struct forms forms = { 0 };
    struct spell_traits is = { 0 };
    struct wordlist l = { .take = forms_take,
                          .ctx = &forms,
                          .skip_bad = args->keys.select.skip_bad,
                          .is = &is };
    bly_filter *f = NULL;
    bly_spec spec;
    if (!spec_read(args, from, affix, &spec))
        return NULL;
    if (bly_builder_new(&spec, &forms.builder)) {
        fail_library();
        return NULL;
    }
    const bool read = wordlist_read(&l, from->at, from->n, affix);
    if ((!read && forms.library) || (read && !forms_flush(&forms)))
        fail_library();
    else if (read && !l.nwords && !is_sized(&spec))
        fail("no words in the input");
    else if (read &&
             bly_builder_finish(forms.builder, thread_count(args->threads), &f))
        fail_library();
    if (f && (spell_traits_set(&is, f) || meta_set(&args->meta, f) ||
              (source && bly_set_pair(f, "spell-source", source)))) {
        fail_library();
        bly_free(f);
        f = NULL;
    }
    if (f) {
        *bad = !bad_told(&l);
        if (l.not_followed[0])
            warn("%s: not followed; check differs from hunspell there",
                 l.not_followed);
        bly_stats s;
        bly_stat(f, &s);
        *built = (struct spell_built){ .words = l.nwords,
                                       .forms = l.nforms,
                                       .made = made_of(&s) };
    }
    bly_builder_free(forms.builder);
    spell_traits_free(&is);
    return f;
}

/* Do the options go together? */
static bool build_fits(const struct spell_args *args, const struct list *from)
{
    static const char *const standard_input[] = { "-" };
    if (!args->output) {
        fail("-o FILE is missing: where to write the filter");
        return false;
    }
    return meta_check(&args->meta, false) &&
           output_works(args->output, args->json) &&
           output_spares(args->output, &args->keys.key_file, 1) &&
           output_spares(args->output, &args->affix, 1) &&
           (from->n ? output_spares(args->output, from->at, from->n)
                    : output_spares(args->output, standard_input, 1));
}

int spell_build(const struct spell_args *args, const struct list *operands)
{
    struct spell_built built;
    struct list from = *operands;
    const char **all = NULL;
    char *dictionary = NULL;
    bool bad;
    steady_input = true;
    if (args->lang) { /* the language's dictionary, and what else is named */
        dictionary = lang_dictionary(args->lang);
        all = calloc(from.n + 1, sizeof *all);
        if (!dictionary || !all) {
            free(all);
            free(dictionary);
            return TROUBLE;
        }
        all[0] = dictionary;
        if (from.n)
            memcpy(all + 1, from.at, from.n * sizeof *all);
        from = (struct list){ .at = all, .n = from.n + 1 };
    }
    int status = TROUBLE;
    bly_filter *const f =
        build_fits(args, &from)
            ? spell_make(args, &from, args->affix, NULL, &built, &bad)
            : NULL;
    if (f) {
        FILE *const to = report_to(args->output);
        bly_stats s;
        bly_stat(f, &s);
        status = filter_save(f, args->output);
        built.file = args->output;
        if (status == YES && !quiet) {
            report(to, args->json, spell_built_fields, &built,
                   "{file}: {words} words, {forms} forms; " MADE_TEXT);
            warn_past_capacity(args->output, &s);
        }
        if (status == YES && bad)
            status = TROUBLE;
    }
    bly_free(f);
    free(all);
    free(dictionary);
    return status;
}

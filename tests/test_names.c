/*
 * test_names.c - names that do not exist
 *
 * Wherever a name is looked up, one that is misspelt is refused, and the
 * message says which ones there are.
 */
#include <stdio.h>
#include <string.h>

#include <bloomery/foreign.h>
#include <bloomery/sketch.h>

#include "kinds/kind.h"
#include "tests/support.h"

static void refused_at(bly_status st, const char *wrong, const char *right)
{
    if (st != BLY_EINVAL || !strstr(bly_error(), wrong) ||
        !strstr(bly_error(), right))
        fail_msg("'%s', not '%s': %s, \"%s\"", wrong, right,
                 bly_status_text(st), bly_error());
}

/* Not by appending: the right name must not be in the wrong one. */
static void misspell(const char *name, char out[80])
{
    snprintf(out, 80, "?%s", name + 1);
}

static bly_status new_kind(const char *kind, const bly_option *option)
{
    bly_filter *f;
    const bly_spec spec = { .kind = kind,
                            .items = 100,
                            .options = option,
                            .noptions = option != NULL };
    const bly_status st = bly_new(&spec, &f);
    assert_null(f);
    return st;
}

static bly_status new_format(const char *format, const bly_option *option)
{
    bly_foreign *f;
    const bly_foreign_spec spec = { .format = format,
                                    .items = 100,
                                    .options = option,
                                    .noptions = option != NULL };
    const bly_status st = bly_foreign_open(&spec, "", 0, &f);
    assert_null(f);
    return st;
}

/* The options of a kind or a format, and the words of each. */
static void options_refused(const char *owner, const bly_param *params,
                            size_t n,
                            bly_status make(const char *, const bly_option *))
{
    for (size_t i = 0; i < n; i++) {
        const bly_param *const p = bly_param_at(params, i);
        char name[80];
        if (!p->settable)
            continue;
        misspell(p->name, name);
        refused_at(make(owner, &(bly_option){ name, "1" }), name, p->name);
        for (size_t c = 0; p->type == BLY_CHOICE && p->choices[c]; c++)
            refused_at(make(owner, &(bly_option){ p->name, "nonesuch" }),
                       "nonesuch", p->choices[c]);
    }
}

static void kinds(void **unused)
{
    bly_kind_info kind;
    (void)unused;
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        char name[80];
        misspell(kind.name, name);
        assert_false(bly_kind_named(name, &kind));
        refused_at(new_kind(name, NULL), name, kind.name);
        options_refused(kind.name, kind.params, kind.nparams, new_kind);
    }
}

static void formats(void **unused)
{
    bly_format_info format;
    (void)unused;
    for (size_t i = 0; bly_format_at(i, &format); i++) {
        char name[80];
        misspell(format.name, name);
        assert_false(bly_format_named(name, &format));
        refused_at(new_format(name, NULL), name, format.name);
        options_refused(format.name, format.options, format.noptions,
                        new_format);
    }
}

static void families(void **unused)
{
    bly_family family = BLY_OPH;
    (void)unused;
    for (unsigned i = 0; bly_family_name(i); i++) {
        char name[80];
        misspell(bly_family_name(i), name);
        refused_at(bly_family_named(name, &family), name, bly_family_name(i));
        assert_int_equal(family, BLY_OPH);
    }
    for (unsigned i = 0; bly_family_name(i); i++) {
        assert_ok(bly_family_named(bly_family_name(i), &family));
        assert_int_equal(family, i);
    }
}

/* Inside the library, for kinds made of others. */
static void parameters(void **unused)
{
    const bly_kind *kind;
    (void)unused;
    for (size_t i = 0; (kind = bly_kind_row(i)); i++)
        for (uint32_t p = 0; p < kind->nparams; p++) {
            bly_shape s = { .nbytes = 0 };
            bly_want w = { 0 };
            uint64_t value = 7;
            char name[80];
            misspell(kind->params[p].name, name);
            refused_at(bly_want_set(kind, &w, name, 1), name,
                       kind->params[p].name);
            refused_at(bly_shape_get(kind, &s, name, &value), name,
                       kind->params[p].name);
            assert_int_equal(value, 7);
            for (size_t j = 0; j < BLY_MAX_PARAMS; j++)
                assert_false(w.given[j]);
            assert_ok(bly_want_set(kind, &w, kind->params[p].name, 1));
            assert_true(w.given[p] && w.opt[p] == 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(formats),
        cmocka_unit_test(families),
        cmocka_unit_test(parameters),
    };
    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}

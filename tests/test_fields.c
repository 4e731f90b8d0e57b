/*
 * test_fields.c - results by their tables: JSON, text and schema of one struct
 */
#define _GNU_SOURCE
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/fields.h"

struct part {
    const char *name;
    double share;
};

struct result {
    const char *file;
    char *owned;
    char chars[8];
    bly_bytes key;
    bool yes;
    uint32_t small;
    uint64_t keys, none;
    const uint64_t *seed;
    double rate, infinite;
    bly_fact fact, facts[2];
    size_t nfacts;
    struct part inner, parts[2];
    size_t nparts;
    const struct part *behind;
    double values[3];
    size_t nvalues;
    const char *words[3];
};

static const struct field part_fields[] = {
    FIELD(struct part, name, NONE, "what it is called"),
    FIELD(struct part, share, SHARE | MAYBE, "of the whole"),
    { 0 },
};

/* Parts made one by one: from `behind`, with its name. */
static void part_at(const void *from, size_t i, void *element)
{
    const struct part *const base = from;
    *(struct part *)element = (struct part){ base->name, (double)i };
}

static const struct field fields[] = {
    FIELD(struct result, file, NONE, "a text"),
    FIELD(struct result, owned, MAYBE, "a text that is not there"),
    FIELD(struct result, chars, OPTIONAL | ZERO, "a text that is left out"),
    FIELD(struct result, key, NONE, "bytes"),
    FIELD(struct result, yes, NONE, "a bool"),
    FIELD(struct result, small, NONE, "32 bits"),
    FIELD(struct result, keys, KEYS, "64 bits"),
    FIELD(struct result, none, MAYBE | ZERO, "no value"),
    FIELD(struct result, seed, OPTIONAL, "behind a pointer"),
    FIELD(struct result, rate, RATE | MAYBE, "a share"),
    FIELD(struct result, infinite, ESTIMATE | MAYBE, "not finite"),
    FIELD(struct result, fact, NONE, "a number or a word"),
    OBJECT(struct result, "inner", inner, NONE, part_fields, "an object"),
    OBJECT(struct result, "behind", behind, AT | MAYBE, part_fields,
           "the same"),
    LIST(struct result, "parts", parts, nparts, NONE, part_fields, "objects"),
    LIST(struct result, "tuples", parts, nparts, TUPLE, part_fields, "arrays"),
    EACH(struct result, "made", behind, nparts, OPTIONAL, part_at, struct part,
         part_fields, "objects that are made"),
    VALUES(struct result, "values", values, nvalues, NONE, "numbers"),
    WORDS(struct result, "words", words, NONE, "words"),
    FACTS(struct result, facts, nfacts),
    MEMBERS(struct result, inner, NONE, part_fields),
    NAMED(struct result, "hidden", keys, NONE, NULL),
    { 0 },
};

static struct result example(void)
{
    return (struct result){
        .file = "a\"b",
        .key = { "k\xff", 2 },
        .yes = true,
        .small = 7,
        .keys = 1,
        .rate = 0.01,
        .infinite = INFINITY,
        .fact = { .type = BLY_CHOICE, .word = "red" },
        .facts = { { .name = "k", .type = BLY_UINT, .uint = 7 },
                   { .name = "long_name", .type = BLY_REAL, .real = 2.5 } },
        .nfacts = 2,
        .inner = { "in", 0.5 },
        .parts = { { "p", NAN } },
        .nparts = 1,
        .values = { 1, 0.5 },
        .nvalues = 2,
        .words = { "one", "two" },
    };
}

static char *as_json(const struct result *r)
{
    char *text = NULL;
    size_t n;
    struct json j = { .to = open_memstream(&text, &n) };
    report_object(&j, fields, r);
    fclose(j.to);
    return text;
}

static void json_has_what_is_there(void **state)
{
    (void)state;
    struct result r = example();
    char *text = as_json(&r);
    assert_string_equal(
        text,
        "{\"file\":\"a\\\"b\",\"owned\":null,\"key\":\"k\\ufffd\",\"yes\":true,"
        "\"small\":7,\"keys\":1,\"none\":null,\"rate\":0.01,\"infinite\":null,"
        "\"fact\":\"red\",\"inner\":{\"name\":\"in\",\"share\":0.5},"
        "\"behind\":null,\"parts\":[{\"name\":\"p\",\"share\":null}],"
        "\"tuples\":[[\"p\",null]],\"values\":[1,0.5],"
        "\"words\":[\"one\",\"two\"],\"params\":{\"k\":7,\"long_name\":2.5},"
        "\"name\":\"in\",\"share\":0.5}");
    free(text);

    const uint64_t seed = UINT64_MAX;
    r.seed = &seed;
    r.behind = &r.inner;
    strcpy(r.chars, "x");
    text = as_json(&r);
    assert_non_null(strstr(text, "\"chars\":\"x\",\"key\""));
    assert_non_null(strstr(text, "\"seed\":18446744073709551615,"));
    assert_non_null(
        strstr(text, "\"behind\":{\"name\":\"in\",\"share\":0.5},"));
    assert_non_null(strstr(text, "\"made\":[{\"name\":\"in\",\"share\":0}],"));
    free(text);
}

static void text_is_made_of_values(void **state)
{
    (void)state;
    static const struct {
        const char *text, *printed;
    } rows[] = {
        { "{file}, {keys} or {keys:#}\n", "a\"b, 1 key or 1\n" },
        { "{rate}", "1 %" },
        { "<{small:4}><{small:-4}><{rate:6.3}>", "<   7><7   >< 0.010>" },
        { "{owned}", "unknown" },
        { "[{owned}x]y", "y" },
        { "[{owned}x|z]y", "zy" },
        { "[{owned}x|{file}|z]", "a\"b" },
        { "[{?yes}yes][{!yes}no]", "yes" },
        { "[{?none}some|none]", "none" },
        { "[{?words}words][{!values}no values]", "words" },
        { "[{>infinite}endless][{>rate}what]", "endless" },
        { "[a[{owned}b]c[{small}[{!yes}d]]e]", "ac7e" },
        { "{fact} {name} {hidden}", "red in 1" },
        { "{small match/es}, {hidden match/es}", "7 matches, 1 match" },
        { "{small entr/y/ies}, {hidden entr/y/ies}", "7 entries, 1 entry" },
        { "  k~{small}\n[  absent~{owned}\n]", "  k       7\n" },
        { "a~b\n{params:1}", "a           b\n k          7\n"
                             " long_name  2.5\n" },
    };
    struct result r = example();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = NULL;
        size_t n;
        FILE *const to = open_memstream(&text, &n);
        report_text(to, fields, &r, rows[i].text);
        fclose(to);
        assert_string_equal(text, rows[i].printed);
        free(text);
    }
}

static void schema_says_what_may_be_missing(void **state)
{
    (void)state;
    static const struct report reports[] = { { "always", part_fields, ARRAY },
                                             { 0 } };
    char *text = NULL;
    size_t n;
    struct json j = { .to = open_memstream(&text, &n) };
    report_schema(&j, NULL, reports);
    fclose(j.to);
    assert_non_null(strstr(text,
                           "\"description\":\"always\",\"type\":\"array\","
                           "\"items\":{\"type\":\"object\""));
    assert_non_null(strstr(text, "\"unit\":\"share\",\"type\":[\"number\","
                                 "\"null\"]"));
    assert_non_null(strstr(text, "\"required\":[\"name\",\"share\"],"
                                 "\"additionalProperties\":false"));
    free(text);
    assert_string_equal(field_kind(&part_fields[1]), "number, share, or null");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_what_is_there),
        cmocka_unit_test(text_is_made_of_values),
        cmocka_unit_test(schema_says_what_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

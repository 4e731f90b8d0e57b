/*
 * sql.c - what the adapters for databases share
 */
#define _POSIX_C_SOURCE 200809L /* strtok_r() */
#include "adapters/sql/sql_inside.h"
#include "base/grow.h"
#include "io/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char wrong[300];

/* Why it was wrong, for engines that number their errors. */
static _Thread_local bly_status status;

__attribute__((format(printf, 1, 2))) const char *sql_wrong(const char *format,
                                                            ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(wrong, sizeof wrong, format, ap);
    va_end(ap);
    status = BLY_EINVAL;
    return wrong;
}

/* What the library says; NULL if it was content. */
const char *sql_told(bly_status st)
{
    status = st;
    return st ? bly_error() : NULL;
}

const char *sql_no_memory(void)
{
    status = BLY_ENOMEM;
    return "out of memory";
}

const char *sql_failed(int error, const char *path)
{
    sql_wrong("%s: %s", path, strerror(error));
    status = BLY_EIO;
    return wrong;
}

const char *sql_too_large(uint64_t nbytes)
{
    sql_wrong("a filter of %llu bytes is too large for a value; make a file "
              "with bloomery build and pass its path",
              (unsigned long long)nbytes);
    status = BLY_ERANGE;
    return wrong;
}

bly_status sql_status(void)
{
    return status;
}

/* ----------------------------------------------------------------- options */

static const char *option_take(struct sql_spec *s, char *word)
{
    char *const equals = strchr(word, '=');
    if (!equals)
        return sql_wrong(
            "'%.40s' is not an option; expected NAME=VALUE, such as fpr=0.001",
            word);
    *equals = '\0';
    const char *const value = equals + 1;
    bool ok = true;
    if (strcmp(word, "items") == 0)
        ok = bly_parse_count(value, &s->spec.items);
    else if (strcmp(word, "bits") == 0)
        ok = bly_parse_count(value, &s->spec.bits);
    else if (strcmp(word, "seed") == 0)
        ok = bly_parse_count(value, &s->spec.seed);
    else if (strcmp(word, "fpr") == 0)
        ok = bly_parse_real(value, &s->spec.fpr);
    else if (strcmp(word, "kind") == 0)
        snprintf(s->kind, sizeof s->kind, "%s", value);
    else if (strcmp(word, "compact") == 0 && strcmp(value, "yes") == 0)
        s->compact = true;
    else if (strcmp(word, "compact") == 0 && strcmp(value, "no") == 0)
        s->compact = false;
    else if (strcmp(word, "compact") == 0)
        return sql_wrong("compact=%.40s: expected compact=yes or compact=no",
                         value);
    else if (s->spec.noptions == SQL_OPTIONS)
        return sql_wrong("more than %d options", SQL_OPTIONS);
    else
        s->options[s->spec.noptions++] = (bly_option){ word, value };
    if (!ok)
        return sql_wrong(strcmp(word, "fpr") == 0
                             ? "%s=%.40s is not a rate; expected a number "
                               "between 0 and 1, such as 0.001 or 1%%"
                             : "%s=%.40s is not a whole number; expected one "
                               "such as 5000 or 10M",
                         word, value);
    /* To the library zero is "choose for me", which nobody means who says it.
     */
    if ((strcmp(word, "items") == 0 && !s->spec.items) ||
        (strcmp(word, "bits") == 0 && !s->spec.bits) ||
        (strcmp(word, "fpr") == 0 && !(s->spec.fpr > 0)))
        return sql_wrong(
            "%s=%.40s is too little; leave it out, and it is chosen", word,
            value);
    return NULL;
}

const char *sql_spec_read(struct sql_spec *s, const char *kind,
                          const char *options, const bly_mem *mem)
{
    *s = (struct sql_spec){ .spec = { .mem = mem, .options = s->options } };
    snprintf(s->kind, sizeof s->kind, "%s", kind ? kind : "");
    const int n =
        snprintf(s->text, sizeof s->text, "%s", options ? options : "");
    if (n < 0 || (size_t)n >= sizeof s->text)
        return sql_wrong("options of more than %zu bytes", sizeof s->text - 1);
    char *rest;
    for (char *word = strtok_r(s->text, " ,\t\n", &rest); word;
         word = strtok_r(NULL, " ,\t\n", &rest)) {
        const char *const bad = option_take(s, word);
        if (bad)
            return bad;
    }
    s->spec.kind = s->kind[0] ? s->kind : NULL;
    bly_kind_info info;
    bly_prediction unused;
    if (s->spec.kind && !bly_kind_named(s->spec.kind, &info) &&
        bly_plan(&(bly_spec){ .kind = s->kind }, &unused))
        return sql_wrong("%s", bly_error()); /* which kinds there are */
    return NULL;
}

/* ------------------------------------------------------------------ asking */

static const char *hash_of(const bly_filter *f, const struct sql_key *key,
                           uint64_t *hash)
{
    const bly_hasher *const hasher = bly_hasher_of(f);
    if (!hasher) {
        status = BLY_ESECRET;
        return "a keyed filter can be asked only with its secret";
    }
    return sql_told(bly_hash_as(hasher, bly_keying_of(f), key->type,
                                sql_key_at(key), 1, hash, NULL));
}

const char *sql_has_many(const bly_filter *f, bly_key_type type,
                         const void *keys, size_t n, uint64_t *maybe)
{
    return sql_told(bly_has_as(f, type, keys, n, maybe));
}

const char *sql_has(const bly_filter *f, const struct sql_key *key, bool *maybe)
{
    uint64_t found = 0;
    const bly_status st = bly_has_as(f, key->type, sql_key_at(key), 1, &found);
    *maybe = found & 1;
    return sql_told(st);
}

bool sql_is_plain(const bly_filter *f)
{
    const bly_keying keys = bly_keying_of(f);
    return bly_hasher_of(f) && keys.type != BLY_KEYS_INT64 &&
           keys.type != BLY_KEYS_UINT64 && !keys.forms;
}

const char *sql_count(const bly_filter *f, const struct sql_key *key,
                      uint64_t *count)
{
    uint64_t hash;
    const char *const bad = hash_of(f, key, &hash);
    if (bad)
        return bad;
    const bly_status st = bly_count_hashes(f, &hash, 1, count);
    return sql_told(st ? st : bly_damage(f));
}

const char *sql_get(const bly_filter *f, const struct sql_key *key,
                    uint64_t *value, bool *present)
{
    uint64_t hash, is_there = 0;
    const char *const bad = hash_of(f, key, &hash);
    if (bad)
        return bad;
    const bly_status st = bly_get_hashes(f, &hash, 1, value, &is_there);
    *present = is_there & 1;
    return sql_told(st ? st : bly_damage(f));
}

const char *sql_add(bly_filter *f, const struct sql_key *key)
{
    return sql_told(bly_add_as(f, key->type, sql_key_at(key), 1, NULL, NULL));
}

/* ------------------------------------------------------------------ telling */

struct text {
    char *at;
    size_t len, room;
    bool broken;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t,
                                                      const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    char piece[512];
    const int n = vsnprintf(piece, sizeof piece, format, ap);
    va_end(ap);
    if (t->broken || !GROW(&t->at, &t->room, t->len + (size_t)n + 1)) {
        t->broken = true; /* and stays so: what follows would be a hole */
        return;
    }
    memcpy(t->at + t->len, piece, (size_t)n + 1);
    t->len += (size_t)n;
}

static void put_string(struct text *t, bly_bytes s)
{
    const char *at = s.ptr;
    const char *const end = at + s.len;
    put(t, "\"");
    while (at < end) {
        const char *const from = at;
        const int32_t c = utf8_next(&at, end);
        if (c < 0) { /* as the command has it: docs/json.md */
            put(t, "\\ufffd");
            at = from + 1;
        } else if (c == '"' || c == '\\')
            put(t, "\\%c", (char)c);
        else if (c < 0x20)
            put(t, "\\u%04x", (unsigned)c);
        else
            put(t, "%.*s", (int)(at - from), from);
    }
    put(t, "\"");
}

/* A number, or null for what is not a number. */
static void put_real(struct text *t, const char *name, double x)
{
    if (x - x == 0)
        put(t, ",\"%s\":%.10g", name, x);
    else
        put(t, ",\"%s\":null", name);
}

static void put_facts(struct text *t, const bly_fact *facts, size_t n)
{
    put(t, ",\"params\":{");
    for (size_t i = 0; i < n; i++) {
        put(t, "%s\"%s\":", i ? "," : "", facts[i].name);
        if (facts[i].word)
            put(t, "\"%s\"", facts[i].word);
        else if (facts[i].type == BLY_REAL)
            put(t, "%.10g", facts[i].real);
        else
            put(t, "%llu", (unsigned long long)facts[i].uint);
    }
    put(t, "}");
}

static const char *text_end(struct text *t, char **out)
{
    if (t->broken || !t->at) {
        free(t->at);
        return sql_no_memory();
    }
    *out = t->at;
    return NULL;
}

const char *sql_info_filter(const bly_filter *f, char **out)
{
    struct text t = { 0 };
    bly_stats s;
    bly_stat(f, &s);
    const char *const type = bly_key_type_name(bly_keying_of(f).type);
    put(&t, "{\"kind\":\"%s\",\"keys\":", s.kind);
    put(&t, type ? "\"%s\"" : "null", type ? type : "");
    put(&t, ",\"capacity\":%llu", (unsigned long long)s.capacity);
    put_real(&t, "items", s.items_estimate);
    put_real(&t, "items_sd", s.items_sd);
    put_real(&t, "fill", s.fill);
    put_real(&t, "fpr_now", s.fpr_now);
    put_real(&t, "fpr_at_capacity", s.fpr_at_capacity);
    put(&t, ",\"bits\":%llu,\"seed\":%llu,\"keyed\":%s,\"layers\":%u",
        (unsigned long long)s.bits, (unsigned long long)s.seed,
        s.keyed ? "true" : "false", (unsigned)s.layers);
    put_facts(&t, s.facts, s.nfacts);
    const bly_bytes note = bly_note_of(f);
    if (note.len) {
        put(&t, ",\"note\":");
        put_string(&t, note);
    }
    put(&t, "}");
    return text_end(&t, out);
}

const char *sql_info_sketch(const bly_stored *s, char **out)
{
    struct text t = { 0 };
    put(&t, "{\"sketch\":\"%s\"", bly_stored_name(s->type));
    if (s->type == BLY_STORED_HLL) {
        double sd;
        const double n = bly_hll_estimate(s->hll, &sd);
        put_real(&t, "items", n);
        put_real(&t, "items_sd", sd);
    } else if (s->type == BLY_STORED_TOPK) {
        put(&t, ",\"listed\":%zu,\"total\":%llu", bly_topk_listed(s->topk),
            (unsigned long long)bly_topk_total(s->topk));
    } else if (s->type == BLY_STORED_LIKENESS) {
        put(&t, ",\"components\":%u", bly_sketch_spec_of(s->likeness)->k);
    }
    put(&t, "}");
    return text_end(&t, out);
}

const char *sql_plan(uint64_t items, const double *fpr, const char *kind,
                     char **out)
{
    struct text t = { 0 };
    bly_prediction p;
    const bly_spec spec = { .kind = kind,
                            .items = items,
                            .fpr = fpr ? *fpr : 0 };
    if (items == 0)
        return sql_wrong("a plan for no keys; say how many there will be");
    if (fpr && *fpr == 0) /* to the library that is "choose for me" */
        return sql_wrong("a rate is between 0 and 1, not 0");
    if (bly_plan(&spec, &p))
        return sql_told(BLY_EINVAL);
    put(&t, "{\"kind\":\"%s\",\"items\":%llu", p.kind,
        (unsigned long long)items);
    put_real(&t, "fpr", p.fpr);
    put(&t, ",\"bits\":%llu", (unsigned long long)p.bits);
    put_real(&t, "bits_per_key", (double)p.bits / (double)items);
    put_facts(&t, p.facts, p.nfacts);
    put(&t, "}");
    return text_end(&t, out);
}

const char *sql_topk(const bly_topk *list, char **out)
{
    struct text t = { 0 };
    const size_t n = bly_topk_listed(list);
    bly_topk_item *const items = malloc((n + 1) * sizeof *items);
    if (!items)
        return sql_no_memory();
    const size_t got = bly_topk_list(list, items, n);
    put(&t, "[");
    for (size_t i = 0; i < got; i++) {
        put(&t, i ? ",[" : "[");
        put_string(&t, items[i].key);
        put(&t, ",%llu]", (unsigned long long)items[i].count);
    }
    put(&t, "]");
    free(items);
    return text_end(&t, out);
}

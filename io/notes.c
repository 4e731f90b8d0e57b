/*
 * notes.c - what a filter says of its keys, on command lines and in reports
 */
#define _GNU_SOURCE /* strndup */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/notes.h"
#include "report/say.h"

/* ---------------------------------------------------------------- setting */

/* NAME=VALUE, or NAME alone, which takes the pair away. */
static bly_status set_pair(bly_filter *f, const char *text)
{
    const char *const equals = strchr(text, '=');
    char *const name =
        strndup(text, equals ? (size_t)(equals - text) : strlen(text));
    if (!name)
        return BLY_ENOMEM;
    const bly_status st = bly_set_pair(f, name, equals ? equals + 1 : NULL);
    free(name);
    return st;
}

bly_status meta_set(const struct meta_args *m, bly_filter *f)
{
    bly_status st = m->note ? bly_set_note(f, m->note) : BLY_OK;
    for (size_t i = 0; i < m->pairs.n && !st; i++)
        st = set_pair(f, m->pairs.at[i]);
    return st;
}

bool meta_check(const struct meta_args *m, bool removes)
{
    bly_filter *f;
    if (!m->note && !m->pairs.n)
        return true;
    for (size_t i = 0; i < m->pairs.n; i++)
        if (m->pairs.at[i][0] == '=' ||
            (!removes && !strchr(m->pairs.at[i], '='))) {
            fail("--meta '%s': not of the form NAME=VALUE", m->pairs.at[i]);
            return false;
        }
    /* On a filter that nobody needs. */
    bly_status st = bly_new(&(bly_spec){ .items = 1 }, &f);
    if (!st)
        st = meta_set(m, f);
    bly_free(f);
    if (st)
        fail_library();
    return !st;
}

/* ---------------------------------------------------------------- telling */

struct meta_pair {
    char name[BLY_NAME_MOST + 1], value[BLY_NOTE_MOST + 1];
};

static void copy_text(char *to, bly_bytes from)
{
    if (from.len)
        memcpy(to, from.ptr, from.len);
    to[from.len] = '\0';
}

static void pair_at(const void *f, size_t i, void *pair)
{
    struct meta_pair *const p = pair;
    bly_bytes name = { 0 }, value = { 0 };
    (void)bly_pair_at(f, i, &name, &value);
    copy_text(p->name, name);
    copy_text(p->value, value);
}

static const struct field pair_fields[] = {
    FIELD(struct meta_pair, name, NONE, "its name"),
    FIELD(struct meta_pair, value, NONE, "its value"),
    { 0 },
};

const struct field meta_fields[] = {
    FIELD(struct meta, key_type, MAYBE,
          "what its keys are: text, bytes, int64, uint64; null: not known"),
    FIELD(struct meta, folded, NONE, "whether the case of keys was folded"),
    FIELD(struct meta, trimmed, NONE, "whether keys were trimmed"),
    FIELD(struct meta, no_cr, NONE,
          "whether carriage returns at their ends were cut off"),
    FIELD(struct meta, note, MAYBE | ZERO, "what its owner notes"),
    EACH(struct meta, "meta", f, npairs, NONE, pair_at, struct meta_pair,
         pair_fields, "pairs of a name and a value"),
    NAMED(struct meta, "meta_unknown", unknown, NONE,
          "entries that a newer bloomery made"),
    NAMED(struct meta, "type", keys, NONE, NULL),
    FIELD(struct meta, pairs, NONE, NULL),
    { 0 },
};

struct meta meta_of(const bly_filter *f)
{
    const bly_keying k = bly_keying_of(f);
    struct meta m = {
        .f = f,
        .key_type = bly_key_type_name(k.type),
        .folded = k.forms & BLY_KEYS_FOLDED,
        .trimmed = k.forms & BLY_KEYS_TRIMMED,
        .no_cr = k.forms & BLY_KEYS_NO_CR,
        .unknown = bly_meta_unknown(f),
    };
    bly_bytes name, value;
    size_t n = 0;
    copy_text(m.note, bly_note_of(f));
    if (m.key_type)
        snprintf(m.keys, sizeof m.keys, "%s%s%s%s", m.key_type,
                 m.folded ? ", case folded" : "", m.trimmed ? ", trimmed" : "",
                 m.no_cr ? ", without carriage returns" : "");
    for (; bly_pair_at(f, m.npairs, &name, &value); m.npairs++) {
        const int len =
            snprintf(m.pairs + n, sizeof m.pairs - n, "%s%.*s=%.*s",
                     n ? "; " : "", (int)name.len, (const char *)name.ptr,
                     (int)value.len, (const char *)value.ptr);
        n += len > 0 && (size_t)len < sizeof m.pairs - n ? (size_t)len : 0;
    }
    return m;
}

const char *meta_lost(const bly_filter *f)
{
    static char lost[240];
    const struct meta m = meta_of(f);
    char typed[sizeof m.keys + 32];
    snprintf(typed, sizeof typed, "that its keys are %s, ", m.keys);
    const char *const parts[] = {
        /* Elsewhere keys are text anyway. */
        m.key_type && strcmp(m.keys, "text") != 0 ? typed : "",
        m.note[0] ? "its note, " : "",
        m.npairs ? "its metadata, " : "",
    };
    const int n =
        snprintf(lost, sizeof lost, "%s%s%s", parts[0], parts[1], parts[2]);
    if (n > 2)
        lost[n - 2] = '\0';
    return lost;
}

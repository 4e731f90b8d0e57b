/*
 * blocklist.c - a list that can be asked: opening it
 *
 * A list and its exceptions are two files. Whoever replaces them writes the
 * exceptions first, under a name that no other version has, and the list last;
 * so a list that is there finds its exceptions, unless the next version came
 * and went in between: then that one is opened.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/urls/blocklist.h"
#include "io/filters.h"
#include "io/source.h"
#include "io/digests.h"

#define SET_MOST ((size_t)4 << 30)

/* ------------------------------------------------------------------- traits */

bly_status traits_set(const struct list_traits *t, bly_filter *f)
{
    bly_status st = bly_set_pair(f, "list", t->domains ? "domains" : "urls");
    if (!st && t->single)
        st = bly_set_pair(f, "labels", "1");
    if (!st && t->suffix)
        st = bly_set_pair(f, "suffix", "yes");
    if (!st && t->exact)
        st = bly_set_pair(f, "exact", "yes");
    if (!st && t->allow[0])
        st = bly_set_pair(f, "allow", t->allow);
    return st;
}

void traits_note(const struct list_traits *t, char out[512])
{
    snprintf(out, 512, "list=%s%s%s%s%s%s%s", t->domains ? "domains" : "urls",
             t->folded ? "\nfolded=yes" : "", t->single ? "\nlabels=1" : "",
             t->suffix ? "\nsuffix=yes" : "", t->exact ? "\nexact=yes" : "",
             t->allow[0] ? "\nallow=" : "", t->allow);
}

static bool is_text(bly_bytes value, const char *text)
{
    return value.len == strlen(text) && memcmp(value.ptr, text, value.len) == 0;
}

/* One pair. False if it cannot be: a file says it, and anyone may have written
 * that. */
static bool traits_pair(struct list_traits *t, const char *name,
                        bly_bytes value)
{
    if (strcmp(name, "list") == 0) {
        t->domains = is_text(value, "domains");
        t->known = t->domains || is_text(value, "urls");
        return t->known;
    }
    if (strcmp(name, "labels") == 0)
        t->single = true;
    else if (strcmp(name, "folded") == 0)
        t->folded = true;
    else if (strcmp(name, "suffix") == 0)
        t->suffix = true;
    else if (strcmp(name, "exact") == 0)
        t->exact = true;
    else if (strcmp(name, "allow") == 0) {
        if (!value.len || value.len >= sizeof t->allow ||
            memchr(value.ptr, '/', value.len) ||
            memchr(value.ptr, '\0', value.len))
            return false;
        memcpy(t->allow, value.ptr, value.len);
        t->allow[value.len] = '\0';
    }
    return true;
}

static bool traits_of_filter(struct list_traits *t, const bly_filter *f)
{
    static const char *const names[] = { "list", "labels", "suffix", "exact",
                                         "allow" };
    bly_bytes value;
    *t = (struct list_traits){ .folded =
                                   bly_keying_of(f).forms & BLY_KEYS_FOLDED };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (bly_pair_of(f, names[i], &value) &&
            !traits_pair(t, names[i], value))
            return false;
    return true;
}

static bool traits_of_note(struct list_traits *t, bly_bytes note)
{
    const char *at = note.ptr;
    const char *const end = at + note.len;
    *t = (struct list_traits){ 0 };
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        line = line ? line : end;
        const char *const is = memchr(at, '=', (size_t)(line - at));
        char name[16];
        if (is && (size_t)(is - at) < sizeof name) {
            memcpy(name, at, (size_t)(is - at));
            name[is - at] = '\0';
            if (!traits_pair(t, name,
                             (bly_bytes){ is + 1, (size_t)(line - is) - 1 }))
                return false;
        }
        at = line + (line < end);
    }
    return true;
}

/* --------------------------------------------------------------- exceptions */

void allow_name(const char *list, const struct text_set *allow, char out[256])
{
    unsigned char sum[SHA256_BYTES];
    char *const copy = strdup(list);
    sum_sha256(allow->lines.at, allow->lines.len, sum);
    snprintf(out, 256, "%.200s.%02x%02x%02x%02x%02x%02x%02x%02x.allow",
             copy ? basename(copy) : "list", sum[0], sum[1], sum[2], sum[3],
             sum[4], sum[5], sum[6], sum[7]);
    free(copy);
}

char *allow_path(const char *list, const char *name)
{
    const char *const slash = strrchr(list, '/');
    const int n = slash ? (int)(slash - list) + 1 : 0;
    char *path;
    return asprintf(&path, "%.*s%s", n, list, name) < 0 ? NULL : path;
}

/* All bytes of a file. False, and why. */
static bool bytes_read(const char *path, struct block *b, char *why,
                       size_t nwhy)
{
    struct source *const s = source_open(path, -1, SOURCE_RAW);
    ptrdiff_t n = -1;
    b->len = 0;
    if (!s) {
        snprintf(why, nwhy, "%s: %s", path, strerror(errno));
        return false;
    }
    while (b->len < SET_MOST && block_fit(b, b->len + (1 << 16)) &&
           (n = source_read(s, b->at + b->len, 1 << 16)) > 0)
        b->len += (size_t)n;
    if (n)
        snprintf(why, nwhy, "%s: %s", path,
                 n < 0 && source_error(s) ? source_error(s) : "out of memory");
    source_close(s);
    return n == 0;
}

/* The exceptions that a list names. *gone: there is no such file. */
static bool allow_read(struct blocklist *l, const char *list, bool *gone,
                       char *why, size_t nwhy)
{
    struct block b = { 0 };
    char right[256];
    char *const path = allow_path(list, l->is.allow);
    *gone = false;
    if (!path) {
        snprintf(why, nwhy, "out of memory");
        return false;
    }
    bool ok = bytes_read(path, &b, why, nwhy);
    *gone = !ok && errno == ENOENT;
    for (size_t at = 0; ok && at < b.len;) {
        const char *const end = memchr(b.at + at, '\n', b.len - at);
        const size_t n = end ? (size_t)(end - b.at) - at : b.len - at;
        ok = text_set_add(&l->allow, (bly_bytes){ b.at + at, n });
        if (!ok)
            snprintf(why, nwhy, "out of memory");
        at += n + 1;
    }
    if (*gone)
        snprintf(why, nwhy,
                 "%s: the exceptions of %s are missing; they belong beside it",
                 path, list);
    /* The name was given for these contents; its first part is the list's name
     * at that time. */
    allow_name("x", &l->allow, right);
    const size_t n = strlen(l->is.allow), tail = strlen(right) - 1;
    if (ok && (n < tail || strcmp(l->is.allow + n - tail, right + 1) != 0)) {
        snprintf(why, nwhy, "%s: not the exceptions that %s was built with",
                 path, list);
        ok = false;
    }
    block_free(&b);
    free(path);
    return ok;
}

/* ------------------------------------------------------------------ opening */

static bool is_sorted_set(const char *path)
{
    char head[6];
    FILE *const f = fopen(path, "rb");
    const bool is = f && fread(head, 1, sizeof head, f) == sizeof head &&
                    memcmp(head, "blysor", sizeof head) == 0;
    if (f)
        fclose(f);
    return is;
}

static bool prefixes_open(struct blocklist *l, const char *path, char *why,
                          size_t nwhy)
{
    struct block b = { 0 };
    bool ok = bytes_read(path, &b, why, nwhy);
    if (ok && bly_sorted_load(b.at, b.len, NULL, &l->prefixes)) {
        snprintf(why, nwhy, "%s: %s", path, bly_error());
        ok = false;
    }
    block_free(&b);
    if (ok && !traits_of_note(&l->is, bly_sorted_note(l->prefixes))) {
        snprintf(why, nwhy, "%s: its note is not one of a list", path);
        ok = false;
    }
    return ok;
}

static bool filter_list_open(struct blocklist *l, const char *path,
                             const unsigned char *secret, char *why,
                             size_t nwhy)
{
    /* Into memory, and checked: whoever cuts or overwrites the file later
     * harms no answer. */
    const bly_access how = { .secret = secret };
    bly_kind_info kind;
    const bly_status st = bly_open(path, &how, &l->filter);
    if (st) {
        snprintf(why, nwhy, "%s%s", bly_error(),
                 st == BLY_ESECRET && !secret ? ", with --key-file" : "");
        return false;
    }
    bly_kind_of(l->filter, &kind);
    if (kind_unreliable(&kind)) {
        snprintf(why, nwhy,
                 "%s: a %s filter cannot say for certain what is not listed: "
                 "%s",
                 path, kind.name, kind_unreliable(&kind));
        return false;
    }
    if (!traits_of_filter(&l->is, l->filter)) {
        snprintf(why, nwhy, "%s: its metadata are not those of a list", path);
        return false;
    }
    return true;
}

bool blocklist_open(struct blocklist *l, const char *path,
                    const unsigned char *secret, char *why, size_t nwhy)
{
    /* Replaced while it is opened, again and again: not for ever. */
    for (int attempt = 0;; attempt++) {
        bool gone = false;
        *l = (struct blocklist){ 0 };
        bool ok = is_sorted_set(path)
                      ? prefixes_open(l, path, why, nwhy)
                      : filter_list_open(l, path, secret, why, nwhy);
        if (ok && l->is.allow[0])
            ok = allow_read(l, path, &gone, why, nwhy);
        if (ok)
            return true;
        blocklist_close(l);
        if (!gone || attempt == 10)
            return false;
    }
}

void blocklist_close(struct blocklist *l)
{
    bly_free(l->filter);
    bly_sorted_free(l->prefixes);
    text_set_free(&l->allow);
    *l = (struct blocklist){ 0 };
}

bool traits_peek(const char *path, struct list_traits *out)
{
    struct blocklist l = { 0 };
    char why[512];
    bool ok;
    if (is_sorted_set(path)) {
        ok = prefixes_open(&l, path, why, sizeof why);
    } else {
        /* What it says of itself is in its header. */
        const bly_access how = { .blind = true, .checking = BLY_CHECK_NOTHING };
        ok = bly_map(path, &how, &l.filter) == BLY_OK &&
             traits_of_filter(&l.is, l.filter);
    }
    *out = l.is;
    blocklist_close(&l);
    return ok;
}

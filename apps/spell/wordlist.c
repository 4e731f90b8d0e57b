/*
 * wordlist.c - words from lists and dictionaries
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/spell/wordlist.h"
#include "io/cutter.h"
#include "io/picker.h"
#include "io/texts.h"
#include "report/say.h"
#include "report/show.h"

/* Where the ".dic" of a name stands, which may be compressed; NULL: nowhere. */
static const char *dic_ending(const char *name)
{
    static const char *const packed[] = { "", ".gz", ".zst", ".xz", ".bz2" };
    const size_t n = strlen(name);
    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        const size_t len = 4 + strlen(packed[i]);
        const char *const at = name + n - len;
        if (n > len && memcmp(at, ".dic", 4) == 0 &&
            strcmp(at + 4, packed[i]) == 0)
            return at;
    }
    return NULL;
}

bool is_dictionary(const char *name)
{
    return dic_ending(name) != NULL;
}

char *affix_beside(const char *dictionary)
{
    const char *const at = dic_ending(dictionary);
    char *path;
    return at && asprintf(&path, "%.*s.aff%s", (int)(at - dictionary),
                          dictionary, at + 4) >= 0
               ? path
               : NULL;
}

/* ------------------------------------------------------------------- words */

/* One file that is being read. */
struct list_file {
    struct wordlist *list;
    const char *name;
    struct aff *aff;
    struct text_set forbidden;
    struct text_set parts; /* of compounds, of the words before this one */
    struct block fresh;    /* of this one, each with a NUL behind it */
    struct expansion expansion;
    bool forbids; /* forms of a forbidden word are coming */
    bool joins;   /* words have flags of COMPOUNDRULE */
};

static void bad_line(struct list_file *f, uint64_t line, const char *why)
{
    if (!f->list->skip_bad && f->list->nbad < BAD_SHOWN)
        fail("%s: line %llu: %s", f->name, (unsigned long long)line, why);
    f->list->nbad++;
}

/* No part of a compound may follow itself (CHECKCOMPOUNDDUP), but two words of
 * the dictionary that look alike may: such parts are noted. Those of one word
 * wait until the next one comes. False: no memory, or take() stops. */
static bool part_note(struct list_file *f, enum role role, const char *text,
                      size_t n)
{
    const bly_bytes part = { text, n };
    if (!f->aff->compound_dup || role < ROLE_BEGIN || role > ROLE_END)
        return true;
    if (text_set_has(&f->parts, part))
        return f->list->take(f->list->ctx, ROLE_TWICE, text, n);
    return block_put(&f->fresh, text, n) && block_put(&f->fresh, "", 1);
}

static bool parts_settle(struct list_file *f)
{
    const char *text;
    for (size_t at = 0; (text = spell_text(&f->fresh, &at));)
        if (!text_set_add(&f->parts, (bly_bytes){ text, strlen(text) }))
            return fail("out of memory") == YES;
    f->fresh.len = 0;
    return true;
}

static bool form_take(void *ctx, enum role role, const char *text, size_t n)
{
    struct list_file *const f = ctx;
    struct spell_traits *const is = f->list->is;
    if (f->forbids)
        role = ROLE_FORBIDDEN;
    else if (f->forbidden.n) {
        const size_t letter = role == ROLE_JOINED ||
                              role == ROLE_JOINED_LAST; /* before the text */
        if (text_set_has(&f->forbidden,
                         (bly_bytes){ text + letter, n - letter }))
            return true;
    }
    is->exact |= role == ROLE_EXACT;
    is->upper |= role == ROLE_UPPER;
    is->forbidden |= role == ROLE_FORBIDDEN;
    is->joined |= role == ROLE_JOINED || role == ROLE_JOINED_LAST;
    f->list->stopped = !f->list->take(f->list->ctx, role, text, n) ||
                       !part_note(f, role, text, n);
    return !f->list->stopped;
}

/* Give the forms of a word. False stops, with the reason printed unless it was
 * the taker. */
static bool word_forms(struct list_file *f, const struct word *w,
                       const struct aff_flags *flags, uint64_t line)
{
    f->list->nwords++;
    f->forbids = flags_have(flags, f->aff->forbidden);
    if (expand(&f->expansion, w, flags))
        return parts_settle(f);
    if (f->expansion.why)
        fail("%s: line %llu: %s; a filter is made from a finite list, and this "
             "one does not end; use another .aff",
             f->name, (unsigned long long)line, f->expansion.why);
    return false;
}

/* ------------------------------------------------------------- plain lists */

static bool is_control(const struct word *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->c[i] < 0x20 || w->c[i] == 0x7f)
            return true;
    return false;
}

static bool list_word(struct list_file *f, bly_bytes line, uint64_t number)
{
    static const struct aff_flags none;
    const char *const text = line.ptr;
    struct word w;
    while (line.len && strchr("\r \t", text[line.len - 1]))
        line.len--;
    if (!line.len)
        return true;
    if (!word_read(&w, text, line.len))
        bad_line(f, number, "not UTF-8, or more than 256 characters");
    else if (is_control(&w))
        bad_line(f, number, "control characters in a word");
    else
        return word_forms(f, &w, &none, number);
    return true;
}

static bool list_read_file(struct list_file *f)
{
    struct input in;
    struct block b = { 0 };
    bool ok = true;
    input_files(&in, &f->name, 1, false);
    in.numbered = true;
    in.normal.no_cr = true; /* list_word() does it */
    f->name = input_name(&in, &in.files[0]);
    while (ok && input_next(&in, &b)) {
        struct cutter cutter = cutter_start(b.at, b.len, in.separator);
        bly_bytes lines[256];
        uint64_t number = b.first;
        size_t n;
        while (ok && (n = cutter_next(&cutter, lines, 256)) > 0)
            for (size_t i = 0; ok && i < n; i++)
                ok = list_word(f, lines[i], ++number);
    }
    if (ok && in.error[0])
        ok = fail("%s", in.error) == YES;
    block_free(&b);
    input_close(&in);
    return ok;
}

/* ------------------------------------------------------------ dictionaries */

/* A line: its word and flags. False if there is none, or it is bad. */
static bool dic_line(struct list_file *f, const char *at, const char *end,
                     uint64_t number, bool tell, struct word *w,
                     struct aff_flags *flags)
{
    char text[WORD_BYTES];
    size_t n = 0;
    const char *why = NULL;
    *flags = (struct aff_flags){ 0 };
    const char *const tab = memchr(at, '\t', (size_t)(end - at));
    end = tab ? tab : end;
    /* Fields of morphology: " xx:". */
    for (const char *p = at; p + 3 < end; p++)
        if (*p == ' ' && p[3] == ':' && p > at)
            end = p;
    while (end > at && (end[-1] == '\r' || end[-1] == ' '))
        end--;
    const char *p = at;
    for (; p < end && n < sizeof text && (*p != '/' || p == at); p++) {
        if (*p == '\\' && p + 1 < end && p[1] == '/')
            p++;
        text[n++] = *p;
    }
    if (!n)
        return false;
    if (p < end && *p == '/' && p + 1 < end &&
        !aff_flags_read(f->aff, p + 1, (size_t)(end - p - 1), flags))
        why = "flags that the .aff does not allow";
    else if (!aff_word(f->aff, text, n, w) || n == sizeof text)
        why = "not in the encoding that the .aff says, or too long";
    else if (is_control(w))
        why = "control characters in a word";
    if (why && tell)
        bad_line(f, number, why);
    return !why && w->n;
}

/* What a dictionary is read for. Forbidden words come first, since no form of
 * another may be one. */
enum pass { PASS_FORBIDDEN, PASS_FORMS, PASS_JOINS };

static bool dic_pass(struct list_file *f, const struct block *text,
                     enum pass pass)
{
    const char *at = text->at;
    const char *const end = at + text->len;
    struct word w;
    struct aff_flags flags;
    if (text->len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
        at += 3;
    for (uint64_t number = 1; at < end; number++) {
        const char *const newline = memchr(at, '\n', (size_t)(end - at));
        const char *const stop = newline ? newline : end;
        const char *const line = at;
        at = stop + (newline != NULL);
        /* The first line says how many there are. */
        if (number == 1 && stop > line &&
            strspn(line, "0123456789\r \t") >= (size_t)(stop - line))
            continue;
        if (!dic_line(f, line, stop, number, pass == PASS_FORMS, &w, &flags))
            continue;
        if (pass == PASS_JOINS) {
            unsigned char letters[JOINING_LETTERS];
            f->joins |= joining_letters_of(f->expansion.letters, &w, &flags,
                                           letters) > 0;
            continue;
        }
        if (pass == PASS_FORBIDDEN) {
            char utf8[WORD_BYTES];
            if (flags_have(&flags, f->aff->forbidden) &&
                !text_set_add(&f->forbidden,
                              (bly_bytes){ utf8, word_write(&w, utf8) }))
                return fail("out of memory") == YES;
            continue;
        }
        if (!word_forms(f, &w, &flags, number))
            return false;
    }
    return true;
}

/* The rules of a dictionary. False, with the reason printed; aff_free() in any
 * case. */
static bool aff_of(const char *dictionary, const char *affix, struct aff *aff)
{
    struct block rules = { 0 };
    char why[160];
    char *const beside = affix ? NULL : affix_beside(dictionary);
    const char *const path = affix ? affix : beside;
    *aff = (struct aff){ 0 };
    bool ok = path ? text_read(path, TEXT_MOST, "is it an .aff?", &rules)
                   : fail("out of memory") == YES;
    if (ok &&
        !aff_read(aff, rules.at ? rules.at : "", rules.len, why, sizeof why))
        ok = fail("%s: %s", path, why) == YES;
    block_free(&rules);
    free(beside);
    return ok;
}

/* A dictionary whose .aff and text were read. */
struct dic_file {
    struct aff aff;
    struct joining_letters *letters; /* NULL: no rules that are followed */
    struct block text;
};

static void dic_close(struct dic_file *d)
{
    free(d->letters);
    aff_free(&d->aff);
    block_free(&d->text);
}

/* False, with the reason printed; dic_close() in any case. is: what others
 * before it said. */
static bool dic_open(struct list_file *f, const char *affix,
                     const struct spell_traits *is, struct dic_file *d)
{
    *d = (struct dic_file){ 0 };
    if (!aff_of(f->name, affix, &d->aff))
        return false;
    if (d->aff.nrules && !(d->letters = malloc(sizeof *d->letters)))
        return fail("out of memory") == YES;
    if (d->letters &&
        !joining_letters_give(d->letters, &d->aff, is->nletters, is->nstates)) {
        aff_not_followed(&d->aff, "COMPOUNDRULE");
        free(d->letters);
        d->letters = NULL;
    }
    f->expansion.aff = f->aff = &d->aff;
    f->expansion.letters = d->letters;
    if (!text_read(f->name, TEXT_MOST, "is it a dictionary?", &d->text))
        return false;
    if (!block_put(&d->text, "", 1))
        return fail("out of memory") == YES;
    d->text.len--;
    return true;
}

static bool dic_read_file(struct list_file *f, const char *affix)
{
    struct dic_file d;
    bool ok = dic_open(f, affix, f->list->is, &d) &&
              (!d.aff.forbidden || dic_pass(f, &d.text, PASS_FORBIDDEN)) &&
              dic_pass(f, &d.text, PASS_FORMS);
    if (ok && !spell_traits_add(f->list->is, &d.aff, d.letters))
        ok = fail("out of memory") == YES;
    if (ok && d.aff.unknown[0])
        snprintf(f->list->not_followed, sizeof f->list->not_followed,
                 "%.100s: %.140s", affix ? affix : f->name, d.aff.unknown);
    dic_close(&d);
    return ok;
}

/* -------------------------------------------------------------------- files */

bool wordlist_joins(const char *const *names, size_t n, const char *affix,
                    bool *joins)
{
    static const struct spell_traits none;
    bool ok = true;
    *joins = false;
    for (size_t i = 0; ok && !*joins && i < n; i++) {
        struct list_file f = { .name = names[i] };
        struct dic_file d;
        if (!affix && !is_dictionary(names[i]))
            continue;
        ok = dic_open(&f, affix, &none, &d);
        if (ok && d.letters)
            dic_pass(&f, &d.text, PASS_JOINS);
        *joins = ok && (d.aff.compound || d.aff.begin || f.joins);
        dic_close(&d);
    }
    return ok;
}

bool wordlist_read(struct wordlist *l, const char *const *names, size_t n,
                   const char *affix)
{
    static const char *const standard_input[] = { "-" };
    bool ok = true;
    if (!n) {
        names = standard_input;
        n = 1;
    }
    for (size_t i = 0; ok && i < n; i++) {
        struct aff none;
        char why[160];
        struct list_file f = { .list = l,
                               .name = names[i],
                               .expansion = { .take = form_take } };
        f.expansion.ctx = &f;
        f.expansion.nforms = l->nforms;
        if (affix || is_dictionary(names[i])) {
            ok = dic_read_file(&f, affix);
        } else {
            ok = aff_read(&none, NULL, 0, why, sizeof why);
            if (!ok)
                fail("%s", why);
            f.expansion.aff = f.aff = &none;
            ok = ok && list_read_file(&f);
            if (ok && !spell_traits_add(l->is, &none, NULL))
                ok = fail("out of memory") == YES;
            aff_free(&none);
        }
        l->nforms = f.expansion.nforms;
        text_set_free(&f.forbidden);
        text_set_free(&f.parts);
        block_free(&f.fresh);
    }
    return ok;
}

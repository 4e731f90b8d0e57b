/*
 * aff.c - reading hunspell's .aff
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/spell/aff.h"
#include "base/grow.h"
#include "io/utf8.h"

/* More than any language has; a file of outside must not take all memory. */
#define AFFIXES_MOST ((size_t)1 << 20)
#define ALIASES_MOST ((size_t)1 << 20)
#define RULES_MOST ((size_t)10000)
#define ICONVS_MOST ((size_t)20000) /* Korean has one per syllable, 11172 */

/* ------------------------------------------------------------------ memory */

/* What a file says lives until aff_free(), in pieces of at least this size. */
#define PIECE ((size_t)1 << 16)
struct aff_memory {
    struct aff_memory *next;
    size_t used, room;
    max_align_t bytes[];
};

static void *aff_get(struct aff *a, size_t n)
{
    n = (n + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    if (!a->memory || a->memory->room - a->memory->used < n) {
        const size_t room = n > PIECE ? n : PIECE;
        struct aff_memory *const more = malloc(sizeof *more + room);
        if (!more)
            return NULL;
        *more = (struct aff_memory){ a->memory, 0, room };
        a->memory = more;
    }
    char *const at = (char *)a->memory->bytes + a->memory->used;
    a->memory->used += n;
    return at;
}

static uint32_t *aff_chars(struct aff *a, const struct word *w)
{
    uint32_t *const at = aff_get(a, w->n * sizeof *at + 1);
    if (at)
        memcpy(at, w->c, w->n * sizeof *at);
    return at;
}

void aff_free(struct aff *a)
{
    while (a->memory) {
        struct aff_memory *const next = a->memory->next;
        free(a->memory);
        a->memory = next;
    }
    if (a->converts)
        iconv_close(a->convert);
    free(a->affixes);
    free(a->first);
    free(a->rules);
    free(a->aliases);
    block_free(&a->iconvs);
    block_free(&a->breaks);
    *a = (struct aff){ 0 };
}

/* ---------------------------------------------------------------- encodings */

/* The names of hunspell's encodings that iconv has under another name. */
static bool encoding_set(struct aff *a, const char *name, size_t n)
{
    if (n > 10 && strncasecmp(name, "microsoft-", 10) == 0) {
        name += 10;
        n -= 10;
    }
    if (n >= sizeof a->encoding)
        return false;
    memcpy(a->encoding, name, n);
    a->encoding[n] = '\0';
    if (strcasecmp(a->encoding, "TIS620-2533") == 0)
        strcpy(a->encoding, "TIS-620");
    if (a->converts)
        iconv_close(a->convert);
    a->converts = strcasecmp(a->encoding, "UTF-8") != 0 &&
                  strcasecmp(a->encoding, "UTF8") != 0;
    if (!a->converts)
        return true;
    a->convert = iconv_open("UTF-8", a->encoding);
    a->converts = a->convert != (iconv_t)-1;
    return a->converts;
}

static bool text_word(struct aff *a, const char *text, size_t n,
                      struct word *out)
{
    char utf8[WORD_BYTES], *to = utf8, *from = (char *)(uintptr_t)text;
    size_t left = sizeof utf8;
    if (!a->converts)
        return word_read(out, text, n);
    iconv(a->convert, NULL, NULL, NULL, NULL);
    return iconv(a->convert, &from, &n, &to, &left) != (size_t)-1 &&
           word_read(out, utf8, (size_t)(to - utf8));
}

bool aff_word(struct aff *a, const char *text, size_t n, struct word *out)
{
    if (!text_word(a, text, n, out))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < out->n; i++) {
        bool ignored = false;
        for (size_t k = 0; k < a->ignored.n; k++)
            ignored |= a->ignored.c[k] == out->c[i];
        if (!ignored)
            out->c[kept++] = out->c[i];
    }
    out->n = kept;
    return true;
}

/* -------------------------------------------------------------------- flags */

/* One flag; how many bytes it has, 0 if there is none. */
static size_t flag_read(const struct aff *a, const char *at, size_t n,
                        aff_flag *out)
{
    unsigned long number = 0;
    size_t used = 0;
    int32_t c;
    const char *p = at;
    switch (a->flags_are) {
    case FLAG_LONG:
        *out = 0;
        if (n < 2)
            return n; /* half a flag is not a flag, as in hunspell */
        *out = (aff_flag)((unsigned char)at[0] << 8 | (unsigned char)at[1]);
        return 2;
    case FLAG_NUMBER:
        for (; used < n && at[used] >= '0' && at[used] <= '9'; used++)
            if ((number = 10 * number + (unsigned)(at[used] - '0')) > 65535)
                return 0;
        if (!used)
            return 0;
        *out = (aff_flag)number; /* 0 too, in Turkish */
        /* What else stands there does not count: Nepali has 17X. */
        while (used < n && at[used] != ',')
            used++;
        return used < n ? used + 1 : used;
    case FLAG_UTF8:
        c = n ? utf8_next(&p, at + n) : -1;
        if (c <= 0 || c > 0xffff)
            return 0;
        *out = (aff_flag)c;
        return (size_t)(p - at);
    default:
        if (!n || !at[0])
            return 0;
        *out = (unsigned char)at[0];
        return 1;
    }
}

static bool flags_parse(struct aff *a, const char *text, size_t n,
                        struct aff_flags *out)
{
    size_t used;
    *out = (struct aff_flags){ .at = aff_get(a, (n + 1) * sizeof *out->at) };
    if (!out->at)
        return false;
    for (; n; text += used, n -= used) {
        aff_flag flag;
        if (!(used = flag_read(a, text, n, &flag)))
            return false;
        if (!flags_have(out, flag))
            out->at[out->n++] = flag;
    }
    return true;
}

bool aff_flags_read(struct aff *a, const char *text, size_t n,
                    struct aff_flags *out)
{
    if (!a->naliases)
        return flags_parse(a, text, n, out);
    size_t number = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || number > ALIASES_MOST)
            return false;
        number = 10 * number + (size_t)(text[i] - '0');
    }
    if (!number || number > a->naliases)
        return false;
    *out = a->aliases[number - 1];
    return true;
}

/* ------------------------------------------------------------------ putting */

static bool condition_fits(const struct aff_condition *k, uint32_t c)
{
    bool found = k->any;
    for (size_t i = 0; i < k->n && !found; i++)
        found = k->chars[i] == c;
    return found != k->except;
}

bool affix_put(const struct aff *a, const struct affix *x,
               const struct word *from, struct word *to)
{
    const size_t left = from->n - x->nstrip;
    if (x->nstrip > from->n || (!left && !a->full_strip) ||
        x->nconditions > from->n || left + x->nadd > WORD_CHARS)
        return false;
    const uint32_t *const end = from->c + (x->prefix ? 0 : left);
    if (memcmp(end, x->strip, x->nstrip * sizeof *end) != 0)
        return false;
    const uint32_t *const seen =
        from->c + (x->prefix ? 0 : from->n - x->nconditions);
    for (size_t i = 0; i < x->nconditions; i++)
        if (!condition_fits(&x->conditions[i], seen[i]))
            return false;
    to->n = left + x->nadd;
    memcpy(to->c + (x->prefix ? x->nadd : 0),
           from->c + (x->prefix ? x->nstrip : 0), left * sizeof *to->c);
    memcpy(to->c + (x->prefix ? 0 : left), x->add, x->nadd * sizeof *to->c);
    return true;
}

/* -------------------------------------------------------------------- lines */

#define FIELDS 8
struct aff_line {
    bly_bytes at[FIELDS]; /* what blanks separate */
    size_t n;
};

static void line_cut(struct aff_line *l, const char *at, const char *end)
{
    l->n = 0;
    while (l->n < FIELDS) {
        while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
            at++;
        const char *const from = at;
        while (at < end && *at != ' ' && *at != '\t' && *at != '\r')
            at++;
        if (at == from)
            return;
        l->at[l->n++] = (bly_bytes){ from, (size_t)(at - from) };
    }
}

static bool field_is(const struct aff_line *l, size_t i, const char *text)
{
    return i < l->n && l->at[i].len == strlen(text) &&
           memcmp(l->at[i].ptr, text, l->at[i].len) == 0;
}

static size_t field_number(const struct aff_line *l, size_t i, size_t most)
{
    size_t number = 0;
    for (size_t k = 0; i < l->n && k < l->at[i].len; k++) {
        const char c = ((const char *)l->at[i].ptr)[k];
        if (c < '0' || c > '9' || number > most)
            return most + 1;
        number = 10 * number + (size_t)(c - '0');
    }
    return i < l->n ? number : most + 1;
}

/* Where a file stands. */
struct aff_reading {
    struct aff *a;
    struct aff_line line;
    struct affix open; /* the class whose rules come; how many still do */
    size_t left;
    size_t nalias_left, nbreak_left, niconv_left; /* 0: a header comes */
    size_t nrule_left;
    const char *why;
};

static bool is_zero(bly_bytes b)
{
    return b.len == 1 && *(const char *)b.ptr == '0';
}

static bool conditions_read(struct aff_reading *r, bly_bytes text,
                            struct affix *x)
{
    struct word w;
    r->why = "a condition that cannot be read";
    if (!text_word(r->a, text.ptr, text.len, &w))
        return false;
    if (w.n == 1 && w.c[0] == '.')
        return true;
    struct aff_condition *const all = aff_get(r->a, w.n * sizeof *all + 1);
    uint32_t *const chars = aff_chars(r->a, &w);
    if (!all || !chars) {
        r->why = "out of memory";
        return false;
    }
    size_t n = 0;
    for (size_t i = 0; i < w.n; i++) {
        struct aff_condition *const k = &all[n++];
        *k = (struct aff_condition){ .chars = chars + i, .n = 1 };
        if (w.c[i] == '.')
            *k = (struct aff_condition){ .any = true };
        if (w.c[i] != '[')
            continue;
        k->except = ++i < w.n && w.c[i] == '^';
        i += k->except;
        k->chars = chars + i;
        for (k->n = 0; i < w.n && w.c[i] != ']'; i++)
            k->n++;
        if (i == w.n) {
            r->why = "a condition whose bracket is never closed";
            return false;
        }
    }
    x->conditions = all;
    x->nconditions = n;
    return true;
}

/* The place of the slash before flags; n if there is none. "\/" is none. */
static size_t flags_slash(bly_bytes b)
{
    const char *const at = b.ptr;
    for (size_t i = 0; i < b.len; i++)
        if (at[i] == '/' && (i == 0 || at[i - 1] != '\\'))
            return i;
    return b.len;
}

static bool rule_read(struct aff_reading *r, bool prefix)
{
    struct aff *const a = r->a;
    const struct aff_line *const l = &r->line;
    struct affix x = r->open;
    struct word w;
    x.prefix = prefix;
    r->why = "a rule has a flag, what is cut off, and what is put on";
    if (l->n < 4)
        return false;
    r->why = "letters that its encoding does not have, or too many";
    if (!is_zero(l->at[2])) {
        if (!aff_word(a, l->at[2].ptr, l->at[2].len, &w))
            return false;
        x.nstrip = w.n;
    } else
        w.n = 0;
    x.strip = aff_chars(a, &w);
    bly_bytes add = l->at[3];
    const size_t slash = flags_slash(add);
    const bly_bytes flags = { (const char *)add.ptr + slash + 1,
                              slash < add.len ? add.len - slash - 1 : 0 };
    add.len = slash;
    if (is_zero(add))
        w.n = 0;
    else if (!aff_word(a, add.ptr, add.len, &w))
        return false;
    x.nadd = w.n;
    x.add = aff_chars(a, &w);
    if (!x.strip || !x.add) {
        r->why = "out of memory";
        return false;
    }
    if (slash < l->at[3].len &&
        !aff_flags_read(a, flags.ptr, flags.len, &x.next)) {
        r->why = "flags behind the slash that are none";
        return false;
    }
    if (l->n > 4 && !conditions_read(r, l->at[4], &x))
        return false;
    r->why = "more than a million rules";
    if (a->naffixes == AFFIXES_MOST)
        return false;
    r->why = "out of memory";
    if (!GROW(&a->affixes, &a->room, a->naffixes + 1))
        return false;
    a->affixes[a->naffixes++] = x;
    r->left--;
    return true;
}

static bool affix_line(struct aff_reading *r, bool prefix)
{
    const struct aff_line *const l = &r->line;
    aff_flag flag;
    r->why = "no flag of the form that FLAG says";
    const size_t used =
        l->n < 2 ? 0 : flag_read(r->a, l->at[1].ptr, l->at[1].len, &flag);
    /* Flags of one byte in a file of UTF-8: the first byte of a letter counts,
     * as hunspell has it (Czech). */
    if (!used || (used != l->at[1].len && r->a->flags_are != FLAG_BYTE))
        return false;
    if (r->left && r->open.flag == flag && r->open.prefix == prefix)
        return rule_read(r, prefix);
    r->why = "a class has a flag, Y or N, and how many rules it has";
    const size_t n = field_number(l, 3, AFFIXES_MOST);
    if (n > AFFIXES_MOST || !(field_is(l, 2, "Y") || field_is(l, 2, "N")))
        return false;
    r->open = (struct affix){ .flag = flag,
                              .prefix = prefix,
                              .cross = field_is(l, 2, "Y") };
    r->left = n;
    return true;
}

/* --------------------------------------------------------------- directives */

/* Text of the file as UTF-8, with a NUL behind it, to the end of b. */
static bool put_text(struct aff *a, struct block *b, bly_bytes text)
{
    struct word w;
    char utf8[WORD_BYTES + 1];
    if (!text_word(a, text.ptr, text.len, &w))
        return false;
    const size_t n = word_write(&w, utf8);
    utf8[n] = '\0';
    return !memchr(utf8, '\0', n) && block_put(b, utf8, n + 1);
}

static bool alias_line(struct aff_reading *r)
{
    struct aff *const a = r->a;
    r->why = "flags of an alias that are none";
    if (!r->nalias_left) {
        r->nalias_left = field_number(&r->line, 1, ALIASES_MOST);
        return r->nalias_left <= ALIASES_MOST;
    }
    if (!GROW(&a->aliases, &a->nalias_room, a->naliases + 1))
        return false;
    if (r->line.n < 2 || a->naliases == ALIASES_MOST ||
        !flags_parse(a, r->line.at[1].ptr, r->line.at[1].len,
                     &a->aliases[a->naliases]))
        return false;
    a->naliases++;
    r->nalias_left--;
    return true;
}

static bool break_line(struct aff_reading *r)
{
    r->why = "BREAK takes how many there are, then one in each line";
    if (!r->nbreak_left && !r->a->breaks_given) {
        r->a->breaks_given = true;
        r->nbreak_left = field_number(&r->line, 1, 100);
        return r->nbreak_left <= 100;
    }
    if (r->line.n < 2 || !r->nbreak_left)
        return false;
    r->nbreak_left--;
    return put_text(r->a, &r->a->breaks, r->line.at[1]);
}

static bool iconv_line(struct aff_reading *r)
{
    r->why = "ICONV takes how many there are, then two texts in each line";
    if (!r->niconv_left) {
        r->niconv_left = field_number(&r->line, 1, ICONVS_MOST);
        return r->niconv_left <= ICONVS_MOST;
    }
    r->niconv_left--;
    return r->line.n >= 3 && put_text(r->a, &r->a->iconvs, r->line.at[1]) &&
           put_text(r->a, &r->a->iconvs, r->line.at[2]);
}

/* A rule: flags, in parentheses where they have more than one character, each
 * with a mark that says how often it may come. Marks that follow none count for
 * nothing, as hunspell has it. */
static bool rule_parts(struct aff *a, bly_bytes text, struct aff_rule *rule)
{
    const char *at = text.ptr;
    const char *const end = at + text.len;
    const bool grouped = memchr(at, '(', text.len) != NULL;
    *rule =
        (struct aff_rule){ aff_get(a, (text.len + 1) * sizeof *rule->at), 0 };
    if (!rule->at)
        return false;
    while (at < end) {
        struct aff_rule_part part = { 0 };
        const bool opens = *at == '(';
        if (rule->n && (*at == '*' || *at == '?')) {
            rule->at[rule->n - 1].times = *at++;
            continue;
        }
        at += opens;
        const char *const close =
            opens ? memchr(at, ')', (size_t)(end - at)) : NULL;
        const size_t left = close               ? (size_t)(close - at)
                            : grouped && !opens ? 1
                                                : (size_t)(end - at);
        const size_t used = flag_read(a, at, left, &part.flag);
        if (used)
            rule->at[rule->n++] = part;
        at += used ? used : left > 0;
        at += opens && at < end && *at == ')';
    }
    return true;
}

static bool rules_line(struct aff_reading *r)
{
    struct aff *const a = r->a;
    r->why = "COMPOUNDRULE takes how many there are, then one in each line";
    if (r->line.n < 2)
        return false;
    if (!r->nrule_left) {
        r->nrule_left = field_number(&r->line, 1, RULES_MOST);
        return r->nrule_left <= RULES_MOST;
    }
    r->nrule_left--;
    r->why = "out of memory";
    if (!GROW(&a->rules, &a->nrule_room, a->nrules + 1))
        return false;
    return rule_parts(a, r->line.at[1], &a->rules[a->nrules]) && ++a->nrules;
}

static bool flag_form(struct aff_reading *r)
{
    struct aff *const a = r->a;
    r->why = "FLAG is long, num or UTF-8";
    if (field_is(&r->line, 1, "long"))
        a->flags_are = FLAG_LONG;
    else if (field_is(&r->line, 1, "num"))
        a->flags_are = FLAG_NUMBER;
    else if (field_is(&r->line, 1, "UTF-8"))
        a->flags_are = FLAG_UTF8;
    else
        return false;
    return true;
}

void aff_not_followed(struct aff *a, const char *name)
{
    const size_t n = strlen(a->unknown);
    if (!strstr(a->unknown, name))
        snprintf(a->unknown + n, sizeof a->unknown - n, "%s%s", n ? ", " : "",
                 name);
}

/* Lines that give a flag a meaning; NULL is an old name of none. */
static aff_flag *meaning_of(struct aff *a, const struct aff_line *l)
{
    const struct {
        const char *name;
        aff_flag *flag;
    } meanings[] = {
        { "NEEDAFFIX", &a->need_affix },
        { "PSEUDOROOT", &a->need_affix },
        { "FORBIDDENWORD", &a->forbidden },
        { "KEEPCASE", &a->keep_case },
        { "ONLYINCOMPOUND", &a->only_compound },
        { "CIRCUMFIX", &a->circumfix },
        { "COMPOUNDFLAG", &a->compound },
        { "COMPOUNDBEGIN", &a->begin },
        { "COMPOUNDMIDDLE", &a->middle },
        { "COMPOUNDEND", &a->end },
        { "COMPOUNDLAST", &a->end },
        { "COMPOUNDPERMITFLAG", &a->permit },
        { "COMPOUNDFORBIDFLAG", &a->forbid },
    };
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (field_is(l, 0, meanings[i].name))
            return meanings[i].flag;
    return NULL;
}

/* Turkish, Azerbaijani and Crimean Tatar, as "tr" or "tr_TR". */
static bool is_turkic(bly_bytes lang)
{
    static const char *const names[] = { "tr", "az", "crh" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t n = strlen(names[i]);
        const char *const text = lang.ptr;
        if (lang.len >= n && memcmp(text, names[i], n) == 0 &&
            (lang.len == n || text[n] == '_' || text[n] == '-'))
            return true;
    }
    return false;
}

static bool directive_line(struct aff_reading *r)
{
    static const char *const others[] = {
        "COMPLEXPREFIXES", "CHECKCOMPOUNDREP",     "CHECKCOMPOUNDPATTERN",
        "COMPOUNDROOT",    "COMPOUNDMORESUFFIXES", "COMPOUNDSYLLABLE",
        "FORCEUCASE",
    };
    struct aff *const a = r->a;
    const struct aff_line *const l = &r->line;
    aff_flag *const flag = meaning_of(a, l);
    if (flag) {
        r->why = "no flag of the form that FLAG says";
        return l->n > 1 && flag_read(a, l->at[1].ptr, l->at[1].len, flag);
    }
    if (field_is(l, 0, "PFX") || field_is(l, 0, "SFX"))
        return affix_line(r, field_is(l, 0, "PFX"));
    if (field_is(l, 0, "SET")) {
        r->why = "an encoding that iconv does not know";
        return l->n > 1 && encoding_set(a, l->at[1].ptr, l->at[1].len);
    }
    if (field_is(l, 0, "FLAG"))
        return flag_form(r);
    if (field_is(l, 0, "AF"))
        return alias_line(r);
    if (field_is(l, 0, "BREAK"))
        return break_line(r);
    if (field_is(l, 0, "ICONV"))
        return iconv_line(r);
    if (field_is(l, 0, "COMPOUNDRULE"))
        return rules_line(r);
    r->why = "letters that its encoding does not have";
    if (field_is(l, 0, "IGNORE"))
        return l->n > 1 &&
               text_word(a, l->at[1].ptr, l->at[1].len, &a->ignored);
    r->why = "COMPOUNDMIN and COMPOUNDWORDMAX take a number";
    size_t n;
    if (field_is(l, 0, "COMPOUNDMIN")) {
        n = field_number(l, 1, 1000);
        a->compound_least = n ? (unsigned)n : 1;
        return n <= 1000;
    }
    if (field_is(l, 0, "COMPOUNDWORDMAX")) {
        n = field_number(l, 1, 1000);
        a->compound_words = (unsigned)n;
        return n <= 1000;
    }
    if (field_is(l, 0, "LANG") && l->n > 1)
        a->dotless = is_turkic(l->at[1]);
    a->full_strip |= field_is(l, 0, "FULLSTRIP");
    a->sharps |= field_is(l, 0, "CHECKSHARPS");
    a->compound_case |= field_is(l, 0, "CHECKCOMPOUNDCASE");
    a->compound_triple |= field_is(l, 0, "CHECKCOMPOUNDTRIPLE");
    a->compound_dup |= field_is(l, 0, "CHECKCOMPOUNDDUP");
    a->simplified_triple |= field_is(l, 0, "SIMPLIFIEDTRIPLE");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (field_is(l, 0, others[i]))
            aff_not_followed(a, others[i]);
    return true;
}

/* -------------------------------------------------------------------- files */

/* Place of a rule's class in a->first. */
static size_t class_of(const struct affix *x)
{
    return (size_t)x->prefix << 16 | x->flag;
}

static int by_class(const void *l, const void *r)
{
    const size_t a = class_of(l), b = class_of(r);
    return (a > b) - (a < b);
}

static bool index_classes(struct aff *a)
{
    const size_t n = (size_t)2 << 16;
    a->first = calloc(n + 1, sizeof *a->first);
    if (!a->first)
        return false;
    if (a->naffixes)
        qsort(a->affixes, a->naffixes, sizeof *a->affixes, by_class);
    for (size_t i = 0; i < a->naffixes; i++)
        a->first[class_of(&a->affixes[i]) + 1]++;
    for (size_t i = 0; i < n; i++)
        a->first[i + 1] += a->first[i];
    return true;
}

bool aff_read(struct aff *a, const char *text, size_t n, char *why, size_t nwhy)
{
    static const char breaks[] = "-\0^-\0-$"; /* hunspell's own */
    struct aff_reading r = { .a = a };
    const char *const end = text ? text + n : NULL;
    size_t number = 0;
    *a = (struct aff){ .compound_least = 3 };
    snprintf(why, nwhy, "out of memory");
    if (!encoding_set(a, text ? "ISO8859-1" : "UTF-8", text ? 9 : 5))
        return false;
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3;
    while (text < end) {
        const char *const newline = memchr(text, '\n', (size_t)(end - text));
        const char *const stop = newline ? newline : end;
        number++;
        line_cut(&r.line, text, stop);
        text = stop + (newline != NULL);
        if (!r.line.n || *(const char *)r.line.at[0].ptr == '#')
            continue;
        if (!directive_line(&r)) {
            snprintf(why, nwhy, "line %zu: %s", number, r.why);
            return false;
        }
    }
    if (!a->breaks_given && !block_put(&a->breaks, breaks, sizeof breaks))
        return false;
    return index_classes(a);
}

/*
 * spell_check.c - bloomery spell check
 *
 * A block of lines is cut into words, and the filter is asked for all of them
 * at once; in prose that settles nineteen words in twenty. The others are asked
 * for in lower case, again all at once, and only what is left goes through
 * hunspell's rules, word by word. Places are counted for words that are
 * flagged, and for no others.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/spell/spell.h"
#include "apps/spell/suggest.h"
#include "apps/spell/tokens.h"
#include "apps/spell/wordlist.h"
#include "io/filters.h"
#include "io/files.h"
#include "io/paths.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

struct spell_flagged {
    const char *file;
    uint64_t line, column;
    bly_bytes word;
    const char *const *suggestions; /* NULL: none were asked for */
    size_t nsuggestions;
};

const struct field spell_flagged_fields[] = {
    FIELD(struct spell_flagged, file, NONE, "the file"),
    FIELD(struct spell_flagged, line, NONE, "its line, from 1"),
    FIELD(struct spell_flagged, column, NONE,
          "the character of the line where the word begins, from 1"),
    FIELD(struct spell_flagged, word, NONE, "the word"),
    VALUES(struct spell_flagged, "suggestions", suggestions, nsuggestions,
           OPTIONAL | AT, "with --suggest: words of the list that are near"),
    { 0 },
};

struct spell_total {
    uint64_t words, flagged;
};

const struct field spell_total_fields[] = {
    FIELD(struct spell_total, words, NONE, "words that were read"),
    FIELD(struct spell_total, flagged, NONE,
          "of them, those that are certainly in no form in the filter"),
    { 0 },
};

/* What the rules said of a word, by its hash: a text says the same again. A
 * verdict is the hash with two of its bits replaced, and is never zero. */
#define MEMO ((size_t)16384)
enum { VERDICT_RIGHT = 1, VERDICT_KNOWN = 2 };

/* What a thread needs. */
struct worker {
    struct tokens tokens;
    uint64_t memo[MEMO];
    uint32_t *left; /* tokens that are not known to be right */
    size_t nleft, left_room;
    struct block out;
    uint64_t bad_line; /* 0: none */
};

struct checking_run {
    const struct spell_args *args;
    struct speller speller;
    struct suggester suggester;
    struct input *in;
    struct worker *workers;
    struct spell_total total;
    uint64_t nbad; /* files with bytes that are not UTF-8 */
    const struct input_file *bad_file;
    bool ended; /* at the first one; or writing failed: it is said */
    bool failed;
};

/* ------------------------------------------------------------------- asking */

#define ASK 512

/* Which of the keys may be in the filter, as a bitmap. */
static void ask_keys(const bly_filter *f, const bly_bytes *keys, size_t n,
                     uint64_t found[BLY_BITMAP_WORDS(ASK)])
{
    uint64_t hashes[ASK];
    bly_hash_keys(bly_hasher_of(f), keys, n, hashes);
    bly_has_hashes(f, hashes, n, found);
}

static bool is_found(const uint64_t *found, size_t i)
{
    return found[i / 64] >> i % 64 & 1;
}

/* All words as they stand; those that are not there are left, in order. */
static void ask_as_is(const struct checking_run *c, struct worker *w,
                      const char *text)
{
    bly_bytes keys[ASK];
    uint64_t found[BLY_BITMAP_WORDS(ASK)];
    w->nleft = 0;
    for (size_t i = 0, n; i < w->tokens.n; i += n) {
        const struct token *const t = &w->tokens.list[i];
        n = w->tokens.n - i < ASK ? w->tokens.n - i : ASK;
        for (size_t k = 0; k < n; k++)
            keys[k] = (bly_bytes){ text + t[k].at, t[k].len };
        ask_keys(c->speller.filter, keys, n, found);
        for (size_t k = 0; k < n; k++) {
            w->left[w->nleft] = (uint32_t)(i + k);
            w->nleft += !is_found(found, k);
        }
    }
}

/* A word that begins a sentence, in ASCII and short: in lower case into out. */
#define SHORT 32
static bool lower_of(const char *word, size_t n, char out[SHORT])
{
    if (n > SHORT || word[0] < 'A' || word[0] > 'Z')
        return false;
    out[0] = (char)(word[0] + 32);
    for (size_t i = 1; i < n; i++) {
        if ((word[i] >= 'A' && word[i] <= 'Z') || (unsigned char)word[i] > 0x7f)
            return false;
        out[i] = word[i];
    }
    return true;
}

/* Those that are left, in lower case where they are capitalised. A forbidden
 * word must not come back in this way, and Turkish has another i. */
static void ask_lower(const struct checking_run *c, struct worker *w,
                      const char *text)
{
    bly_bytes keys[ASK];
    char room[ASK][SHORT];
    uint64_t found[BLY_BITMAP_WORDS(ASK)];
    const size_t nleft = w->nleft;
    if (c->speller.is.forbidden || c->speller.is.dotless)
        return;
    w->nleft = 0;
    for (size_t i = 0, many; i < nleft; i += many) {
        bool asked[ASK];
        size_t n = 0;
        many = nleft - i < ASK ? nleft - i : ASK;
        for (size_t k = 0; k < many; k++) {
            const struct token *const t = &w->tokens.list[w->left[i + k]];
            asked[k] = lower_of(text + t->at, t->len, room[n]);
            keys[n] = (bly_bytes){ room[n], t->len };
            n += asked[k];
        }
        ask_keys(c->speller.filter, keys, n, found);
        for (size_t k = 0, at = 0; k < many; k++) {
            w->left[w->nleft] = w->left[i + k];
            w->nleft += !asked[k] || !is_found(found, at);
            at += asked[k];
        }
    }
}

/* The verdict on one word, remembered. */
static bool ask_rules(const struct checking_run *c, struct worker *w,
                      const char *word, size_t n, bool dotted)
{
    const uint64_t hash = bly_hash(bly_hasher_of(c->speller.filter), word, n);
    /* With a full stop behind it, it is another question. */
    const uint64_t asked =
        ((dotted ? ~hash : hash) & ~(uint64_t)VERDICT_RIGHT) | VERDICT_KNOWN;
    uint64_t *const v = &w->memo[(hash >> 32) % MEMO];
    if ((*v & ~(uint64_t)VERDICT_RIGHT) != asked)
        *v = asked |
             (speller_right(&c->speller, word, n, dotted) ? VERDICT_RIGHT : 0);
    return *v & VERDICT_RIGHT;
}

/* What is left, one by one. */
static void ask_slowly(const struct checking_run *c, struct worker *w,
                       const char *text, size_t n)
{
    const size_t nleft = w->nleft;
    w->nleft = 0;
    for (size_t i = 0; i < nleft; i++) {
        const struct token *const t = &w->tokens.list[w->left[i]];
        const size_t end = (size_t)t->at + t->len;
        w->left[w->nleft] = w->left[i];
        w->nleft +=
            !ask_rules(c, w, text + t->at, t->len, end < n && text[end] == '.');
    }
}

/* ------------------------------------------------------------------ telling */

/* Lines and characters up to a place in the text, which only moves on. */
struct place {
    const char *text;
    size_t at;
    uint64_t line, column;
};

static struct place place_begin(const struct checking_run *c,
                                const struct block *b)
{
    return (struct place){ .text = b->at,
                           .line = (c->in->whole ? 0 : b->first) + 1,
                           .column = 1 };
}

static void place_move(struct place *p, size_t to)
{
    const char *newline;
    while ((newline = memchr(p->text + p->at, '\n', to - p->at))) {
        p->at = (size_t)(newline - p->text) + 1;
        p->line++;
        p->column = 1;
    }
    for (; p->at < to; p->at++)
        p->column += ((unsigned char)p->text[p->at] & 0xc0) != 0x80;
}

static char *put_bytes(char *to, const void *bytes, size_t n)
{
    memcpy(to, bytes, n);
    return to + n;
}

static char *put_number(char *to, uint64_t n)
{
    char digits[24];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + n % 10);
    while (n /= 10);
    return put_bytes(to, digits + at, sizeof digits - at);
}

/* A text may be full of them, so they are printed without printf() and with a
 * single check of the room: either would take as long as all the rest. */
static bool put_line(struct block *b, const struct spell_flagged *f)
{
    const size_t nfile = strlen(f->file), most = nfile + f->word.len + 64;
    if (b->room - b->len < most && !block_fit(b, 2 * (b->len + most)))
        return false;
    char *to = put_bytes(b->at + b->len, f->file, nfile);
    *to++ = ':';
    to = put_number(to, f->line);
    *to++ = ':';
    to = put_number(to, f->column);
    to = put_bytes(to, ": ", 2);
    to = put_bytes(to, f->word.ptr, f->word.len);
    b->len = (size_t)(to - b->at);
    bool ok = true;
    for (size_t i = 0; ok && i < f->nsuggestions; i++)
        ok = block_put(b, i ? ", " : ": ", 2) &&
             block_put(b, f->suggestions[i], strlen(f->suggestions[i]));
    return ok && block_put(b, "\n", 1);
}

static bool put_flagged(struct checking_run *c, struct worker *w,
                        const struct spell_flagged *f)
{
    struct text text;
    if (!c->args->json)
        return put_line(&w->out, f);
    struct json j = { .to = text_begin(&text) };
    report_object(&j, spell_flagged_fields, f);
    json_end(&j);
    char *const made = text_end(&text);
    const bool ok = made && block_put(&w->out, made, strlen(made));
    free(made);
    return ok;
}

static bool tell_flagged(struct checking_run *c, struct worker *w,
                         const struct block *b)
{
    struct place place = place_begin(c, b);
    bool ok = true;
    for (size_t i = 0; ok && i < w->nleft; i++) {
        const struct token *const t = &w->tokens.list[w->left[i]];
        static char none[] = ""; /* the first is looked at in any case */
        char *found[SUGGESTIONS] = { none };
        struct spell_flagged f = { .file = input_name(c->in, b->file),
                                   .word = { b->at + t->at, t->len } };
        place_move(&place, t->at);
        f.line = place.line;
        f.column = place.column;
        if (c->args->suggest) {
            f.nsuggestions = suggest(&c->suggester, &c->speller, f.word.ptr,
                                     f.word.len, found);
            f.suggestions = (const char *const *)found;
        }
        ok = put_flagged(c, w, &f);
        for (size_t k = 0; k < f.nsuggestions; k++)
            free(found[k]);
    }
    return ok;
}

/* ------------------------------------------------------------------- blocks */

static bool check_block(void *ctx, unsigned worker, struct block *b)
{
    struct checking_run *const c = ctx;
    struct worker *const w = &c->workers[worker];
    w->out.len = 0;
    w->bad_line = 0;
    if (c->args->markdown)
        markdown_blank(b->at, b->len);
    if (c->args->latex)
        latex_blank(b->at, b->len);
    if (!tokens_cut(&w->tokens, b->at, b->len))
        return input_fail(c->in, "out of memory");
    if (w->tokens.n > w->left_room) {
        free(w->left);
        w->left_room = w->tokens.room;
        w->left = malloc(w->left_room * sizeof *w->left);
        if (!w->left) {
            w->left_room = 0;
            return input_fail(c->in, "out of memory");
        }
    }
    ask_as_is(c, w, b->at);
    ask_lower(c, w, b->at);
    ask_slowly(c, w, b->at, b->len);
    if (w->tokens.bad < b->len) {
        struct place place = place_begin(c, b);
        place_move(&place, w->tokens.bad);
        w->bad_line = place.line;
    }
    if (!quiet && !c->args->count && !tell_flagged(c, w, b))
        return input_fail(c->in, "out of memory");
    return true;
}

static bool check_turn(void *ctx, unsigned worker, struct block *b)
{
    struct checking_run *const c = ctx;
    struct worker *const w = &c->workers[worker];
    c->total.words += w->tokens.n;
    c->total.flagged += w->nleft;
    if (w->bad_line && c->bad_file != b->file) {
        c->bad_file = b->file;
        c->nbad++;
        if (!c->args->keys.select.skip_bad)
            fail("%s: line %llu: not UTF-8; words with such bytes are skipped",
                 input_name(c->in, b->file), (unsigned long long)w->bad_line);
    }
    if (out_is_terminal())
        text_clean(w->out.at, w->out.len, true);
    const int error = w->out.len ? out_write(w->out.at, w->out.len) : 0;
    if (error) {
        c->failed = true;
        fail_path("standard output", error);
    }
    c->ended = error || (quiet && c->total.flagged);
    return !c->ended;
}

/* ------------------------------------------------------------------ running */

static bool suggester_fill(struct checking_run *c)
{
    const struct spell_args *const args = c->args;
    struct spell_traits is = { 0 };
    struct wordlist l = {
        .take = suggest_take, .ctx = &c->suggester, .skip_bad = true, .is = &is
    };
    char *const dictionary =
        args->lang && !args->list.n ? lang_dictionary(args->lang) : NULL;
    const char *const names[] = { dictionary };
    const bool ok = (dictionary || args->list.n) &&
                    wordlist_read(&l, dictionary ? names : args->list.at,
                                  dictionary ? 1 : args->list.n, args->affix);
    if (l.stopped)
        fail("out of memory");
    spell_traits_free(&is);
    free(dictionary);
    return ok;
}

/* May this filter be asked for words? */
static bool filter_fits(struct checking_run *c, const char *path)
{
    const bly_keying keying = bly_keying_of(c->speller.filter);
    bly_kind_info kind;
    bly_kind_of(c->speller.filter, &kind);
    if (kind_unreliable(&kind)) {
        fail("%s: a %s filter would flag correct words: %s", path, kind.name,
             kind_unreliable(&kind));
        return false;
    }
    if (keying.type == BLY_KEYS_INT64 || keying.type == BLY_KEYS_UINT64 ||
        keying.forms & BLY_KEYS_FOLDED) {
        fail("%s: its keys are %s, not words as they are written; use a filter "
             "of bloomery spell build",
             path,
             keying.forms & BLY_KEYS_FOLDED ? "in folded case" : "integers");
        return false;
    }
    if (!spell_traits_read(&c->speller.is, c->speller.filter)) {
        fail("%s: what it says about its words makes no sense; is it damaged, "
             "or from a newer bloomery?",
             path);
        return false;
    }
    if (!c->speller.is.known)
        warn("%s: not made by bloomery spell build; taken as a plain list of "
             "words",
             path);
    return true;
}

static int check_end(const struct checking_run *c)
{
    if (bly_damage(c->speller.filter)) /* words passed that may be wrong */
        return fail_library();
    const bool skips = c->args->keys.select.skip_bad;
    if (c->args->count && !quiet && c->args->json)
        report(stdout, true, spell_total_fields, &c->total, NULL);
    else if (c->args->count && !quiet)
        printf("%llu\n", (unsigned long long)c->total.flagged);
    /* With -q too: what was told is trouble, though a word was flagged. */
    return c->in->trouble || (c->nbad && !skips) ? TROUBLE
           : c->total.flagged                    ? YES
                                                 : NO;
}

static int check_files(struct checking_run *c, const char *const *names,
                       size_t n)
{
    struct input in;
    int status = TROUBLE;
    if (c->args->markdown || c->args->latex) {
        /* Code may go on from one block to the next: a file is one. */
        static const char *const standard_input[] = { "-" };
        input_documents(&in, n ? names : standard_input, n ? n : 1);
        in.whole = true;
    } else {
        input_files(&in, names, n, false);
        in.numbered = true;
        in.normal.no_cr = true; /* a CR is not a letter */
        in.goes_on = true;
    }
    in.nthreads = thread_count(c->args->threads);
    c->in = &in;
    c->workers = calloc(ordered_workers(&in), sizeof *c->workers);
    if (!c->workers)
        fail("out of memory");
    else if (ordered_run(&in, check_block, check_turn, c) ||
             (c->ended && !c->failed)) {
        for (size_t i = 0; i < in.nfiles; i++)
            if (in.whole && in.files[i].error[0]) {
                fail("%s: %s", input_name(&in, &in.files[i]),
                     in.files[i].error);
                in.trouble = true;
            }
        status = check_end(c);
    } else if (in.error[0])
        fail("%s", in.error);
    for (size_t i = 0; c->workers && i < ordered_workers(&in); i++) {
        tokens_free(&c->workers[i].tokens);
        free(c->workers[i].left);
        block_free(&c->workers[i].out);
    }
    free(c->workers);
    input_close(&in);
    return status;
}

/* Do the options go together? */
static bool check_fits(const struct spell_args *args,
                       const struct list *operands)
{
    if (!args->lang && !operands->n)
        fail("no filter is given; usage: bloomery spell check FILTER "
             "[FILE]..., or with --lang");
    else if (args->lang && args->keys.key_file)
        fail("--key-file is for a filter of your own; that of --lang has no "
             "key");
    else if (args->suggest && !args->list.n && !args->lang)
        fail("--suggest needs the words themselves; use --list FILE, the list "
             "that the filter was made from, or --lang");
    else if (args->list.n && !args->suggest)
        fail("--list is for --suggest");
    else if (args->affix && !args->list.n)
        fail("--affix is for the dictionaries of --list");
    else if (args->markdown && args->latex)
        fail("--markdown or --latex, not both");
    else
        return true;
    return false;
}

int spell_check(const struct spell_args *args, const struct list *operands)
{
    struct checking_run c = { .args = args };
    const size_t skip = args->lang ? 0 : 1;
    if (!check_fits(args, operands))
        return TROUBLE;
    const char *const path = skip ? operands->at[0] : args->lang;
    bly_filter *const f =
        skip ? filter_to_ask(path, args->keys.key_file, &(struct checking){ 0 },
                             BLY_CAN(HAS))
             : lang_filter(args);
    int status = TROUBLE;
    c.speller.filter = f;
    if (f && filter_fits(&c, path) && (!args->suggest || suggester_fill(&c)))
        status = check_files(&c, operands->at + skip, operands->n - skip);
    spell_traits_free(&c.speller.is);
    suggester_free(&c.suggester);
    bly_free(f);
    return status;
}

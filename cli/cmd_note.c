/*
 * cmd_note.c - what a filter on disk says of its keys
 *
 * The keys themselves stay as they are. A type that is set wrongly makes the
 * filter answer wrongly, so one that is there is not replaced by another in one
 * step.
 */
#include <string.h>

#include "cli/rows.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/notes.h"
#include "io/paths.h"

static struct {
    struct meta_args meta;
    struct list forms;
    unsigned keys;
    bool json;
} note_args;

/* Of --keys. */
static const bly_key_type note_types[] = { BLY_KEYS_TEXT, BLY_KEYS_BYTES,
                                           BLY_KEYS_INT64, BLY_KEYS_UINT64,
                                           BLY_KEYS_UNKNOWN };

static bool note_forms(uint32_t *out)
{
    static const struct {
        const char *word;
        uint32_t form;
    } forms[] = { { "folded", BLY_KEYS_FOLDED },
                  { "trimmed", BLY_KEYS_TRIMMED },
                  { "no-cr", BLY_KEYS_NO_CR } };
    *out = 0;
    for (size_t i = 0; i < note_args.forms.n; i++) {
        size_t f = 0;
        while (f < 3 && strcmp(forms[f].word, note_args.forms.at[i]) != 0)
            f++;
        if (f == 3) {
            fail("--form '%s': not a form of text; expected folded, trimmed or "
                 "no-cr",
                 note_args.forms.at[i]);
            return false;
        }
        *out |= forms[f].form;
    }
    return true;
}

struct noted {
    const char *file;
    struct meta meta;
};

static const struct field noted_fields[] = {
    FIELD(struct noted, file, NONE, "the filter"),
    MEMBERS(struct noted, meta, NONE, meta_fields),
    { 0 },
};

struct noting {
    const char *path;
    bly_keying keying;
    bool said; /* why it failed */
};

static bly_status note_change(bly_filter *f, void *ctx)
{
    struct noting *const n = ctx;
    const bly_keying old = bly_keying_of(f);
    bly_status st = BLY_OK;
    if (was_given(&note_args.keys) && n->keying.type && old.type &&
        (old.type != n->keying.type || old.forms != n->keying.forms)) {
        fail("%s: already says that its keys are %s; if that is wrong, use "
             "--keys unknown first",
             n->path, bly_key_type_name(old.type));
        n->said = true;
        return BLY_EUNFIT;
    }
    if (was_given(&note_args.keys))
        st = bly_set_keying(f, n->keying);
    if (!st)
        st = meta_set(&note_args.meta, f);
    return st;
}

static int note_run(struct list *operands)
{
    if (operands->n == 0)
        return fail("no filter is given; usage: bloomery note FILTER [TEXT]");
    if (operands->n > 2)
        return fail("a note is one word for the shell; usage: bloomery note "
                    "FILTER 'TEXT'");
    if (operands->n == 2 && note_args.meta.note)
        return fail("the note is given twice: behind the filter, and with "
                    "--note");
    struct noting n = { .path = operands->at[0],
                        .keying.type = note_types[note_args.keys] };
    if (operands->n == 2)
        note_args.meta.note = operands->at[1];
    if (note_args.forms.n &&
        (!was_given(&note_args.keys) || note_args.keys != 0))
        return fail("--form says how text was added; use it with --keys text");
    if (!note_args.meta.note && !note_args.meta.pairs.n &&
        !was_given(&note_args.keys))
        return fail("nothing to note: give a text, --meta NAME=VALUE or --keys "
                    "TYPE; bloomery info shows what there is");
    if (!meta_check(&note_args.meta, true) || !note_forms(&n.keying.forms) ||
        !can_change(n.path))
        return TROUBLE;
    /* The secret is not needed: keys are not touched. */
    const bly_access how = { .blind = true, .wait = wait_for_lock };
    if (bly_update(n.path, &how, note_change, &n))
        return n.said ? TROUBLE : fail_library();
    if (!quiet) {
        bly_filter *const f = filter_map(n.path, &how);
        if (!f)
            return TROUBLE;
        const struct noted r = { n.path, meta_of(f) };
        report(stdout, note_args.json, noted_fields, &r, "{file}\n" META_TEXT);
        bly_free(f);
    }
    return YES;
}

static const struct opt note_options[] = {
    { "keys", 0, OPT_CHOICE, &note_args.keys, "text|bytes|int64|uint64|unknown",
      "its keys are text, bytes, int64 or uint64; unknown: nobody knows" },
    { "form", 0, OPT_LIST, &note_args.forms, "folded|trimmed|no-cr",
      "with --keys text: all its keys were folded, trimmed, or without "
      "carriage return when they were added; may be repeated" },
    META_OPTIONS(note_args.meta),
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(note_args),
    { 0 },
};

static const struct example note_examples[] = {
    { "bloomery note leaked.bly 'release 8, from the list of March'",
      "a note; bloomery info shows it" },
    { "bloomery note old.bly --keys text",
      "a file of an older bloomery, made from lines" },
    { "bloomery note seen.bly --meta owner=ops --meta ticket",
      "one pair more, one less" },
    { 0 },
};

const struct command cmd_note = {
    .name = "note",
    .usage = "FILTER [TEXT] [OPTION]...",
    .summary = "say in a filter what its keys are, or anything else",
    .about =
        "Puts a note into the file, replaces the one that is there, or takes "
        "it away (\"\"). --meta NAME=VALUE sets a pair, --meta NAME removes "
        "it. A note and a value are one line of text, of up to 1024 bytes; all "
        "of it together has up to 3696.\n\n"
        "--keys says what the keys in it are. Commands that query the filter "
        "then convert to that, or refuse. It does not change the keys: say "
        "what is true. build says it by itself, so that this is for files of "
        "older versions and of other programs.\n\n"
        "The filter is replaced at the end, under its lock, as by bloomery "
        "add. A keyed filter does not need its secret for this.",
    .options = note_options,
    .examples = note_examples,
    .reports = REPORTS({ "", noted_fields, ONE }),
    .run = note_run,
};

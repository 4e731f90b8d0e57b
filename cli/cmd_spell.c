/*
 * cmd_spell.c - words spelt right: bloomery spell VERB ...
 */
#include "apps/spell/spell.h"
#include "cli/rows.h"

static struct spell_args spell_args;

static const struct opt spell_options[] = {
    { "output", 'o', OPT_TEXT, &spell_args.output, "FILE",
      "build: write the filter to FILE" },
    { "lang", 0, OPT_TEXT, &spell_args.lang, "LANG",
      "the dictionary of a language, such as en_US, from the system's folders; "
      "check: instead of a filter" },
    { "affix", 0, OPT_TEXT, &spell_args.affix, "FILE",
      "the .aff of all dictionaries; if not given, it stands beside each" },
    SIZING_OPTIONS(spell_args.sizing),
    FLAG("suggest", 0, spell_args.suggest,
         "check: add words that differ by one letter; needs --list, or --lang"),
    { "list", 0, OPT_LIST, &spell_args.list, "FILE",
      "check: a list or dictionary that the filter was made from; may be "
      "repeated" },
    FLAG("markdown", 0, spell_args.markdown,
         "check: pass over code, targets of links and tags of Markdown"),
    FLAG("latex", 0, spell_args.latex,
         "check: pass over commands, formulas and comments of LaTeX"),
    FLAG("count", 'c', spell_args.count,
         "check: print only how many words are flagged"),
    { "key-file", 'K', OPT_TEXT, &spell_args.keys.key_file, "FILE",
      "the secret of a keyed filter" },
    SKIP_BAD_OPTION(spell_args.keys),
    META_OPTIONS(spell_args.meta),
    THREADS_OPTION(spell_args.threads),
    WAIT_OPTION,
    QUIET_OPTION("print nothing but errors; check: stop at the first word "
                 "that is flagged"),
    FLAG("json", 0, spell_args.json,
         "print JSON; check: one object per line for each flagged word"),
    { 0 },
};

static const struct old_verb spell_verbs[] = {
    { "build", "-o FILE [LIST]...", 0,
      " output lang affix items fpr bits memory kind option key-file skip-bad "
      "note meta threads wait quiet json " },
    { "check", "FILTER [FILE]...", 0,
      " lang affix suggest list markdown latex count key-file skip-bad threads "
      "quiet json " },
};
static int (*const spell_functions[])(const struct spell_args *,
                                      const struct list *) = {
    spell_build,
    spell_check,
};
#define NVERBS (sizeof spell_verbs / sizeof spell_verbs[0])

static int spell_run(struct list *operands)
{
    struct list rest;
    const size_t i =
        verb_find(&cmd_spell, spell_verbs, NVERBS, operands, &rest);
    return i == NVERBS ? TROUBLE : spell_functions[i](&spell_args, &rest);
}

static const struct example spell_examples[] = {
    { "bloomery spell check --lang en_US README.md --markdown",
      "with the dictionary of the system" },
    { "bloomery spell build -o en.bly /usr/share/hunspell/en_US.dic names.txt",
      "a filter from a dictionary and a list" },
    { "bloomery spell check en.bly *.txt", "words that are in no form in it" },
    { "bloomery spell check en.bly --suggest --list "
      "/usr/share/hunspell/en_US.dic letter.txt",
      "with words that are near" },
    { 0 },
};

const struct command cmd_spell = {
    .name = "spell",
    .old_verbs = "build check",
    .usage = "VERB [OPERAND]... [OPTION]...",
    .summary = "check the spelling of texts, a hundred times faster",
    .about =
        "A dictionary becomes a filter of some hundred kilobytes, and texts "
        "are checked against it at millions of words per second. "
        "docs/spell.md says more.\n\n"
        "build -o FILE [LIST]... reads lists of words in UTF-8, one per line, "
        "and dictionaries of hunspell: files named .dic, with the .aff beside "
        "them. All forms that the affixes give are in the filter; the parts of "
        "compounds too, so that check can divide them. Without options it is "
        "wrong about one misspelling in a thousand, or one form in 100,000 "
        "where compounds are divided. An .aff whose forms do not end is "
        "refused.\n\n"
        "check FILTER [FILE]... prints FILE:LINE:COLUMN: WORD for each word "
        "that is in no form in the filter; columns are counted in characters. "
        "A word is a run of letters, with apostrophes and hyphens inside. It "
        "is right as it stands; or in lower case, or as a name, if it is "
        "capitalised; or if all parts between its hyphens are. What has digits "
        "in it, URLs, addresses and paths are passed over. What is flagged is "
        "certainly not in the dictionary; a misspelling slips through at the "
        "filter's rate for each form that is asked for. Text is UTF-8, and may "
        "be compressed. The exit status is 0 if a word was flagged, 1 if "
        "none, 2 after an error.\n\n"
        "With --lang, check takes the dictionary of a language from "
        "/usr/share/hunspell, /usr/share/myspell or the folders of DICPATH, "
        "and keeps its filter in ~/.cache/bloomery (or that of "
        "XDG_CACHE_HOME) for the next run.",
    .options = spell_options,
    .examples = spell_examples,
    .reports = REPORTS({ "build", spell_built_fields, ONE },
                       { "check", spell_flagged_fields, LINES },
                       { "check --count", spell_total_fields, ONE }),
    .run = spell_run,
};

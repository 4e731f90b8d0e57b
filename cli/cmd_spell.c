/*
 * cmd_spell.c - words spelt right: bloomery spell VERB ...
 */
#include "apps/spell/spell.h"
#include "cli/rows.h"

static struct spell_args spell_args;

#define SPELL_SHARED                                                          \
    OPTION(                                                                   \
        "affix", 0, OPT_TEXT, &spell_args.affix, "FILE",                      \
        "the .aff of all dictionaries; if not given, it stands beside each"), \
        OPTION("key-file", 'K', OPT_TEXT, &spell_args.keys.key_file, "FILE",  \
               "the secret of a keyed filter")

static const struct opt spell_build_options[] = {
    { "output", 'o', OPT_TEXT, &spell_args.output, "FILE",
      "write the filter to FILE" },
    { "lang", 0, OPT_TEXT, &spell_args.lang, "LANG",
      "the dictionary of a language, such as en_US, from the system's "
      "folders" },
    SPELL_SHARED,
    SIZING_OPTIONS(spell_args.sizing),
    SKIP_BAD_OPTION(spell_args.keys),
    META_OPTIONS(spell_args.meta),
    THREADS_OPTION(spell_args.threads),
    WAIT_OPTION,
    QUIET_ERRORS,
    FLAG("json", 0, spell_args.json, "print JSON"),
    { 0 },
};

static const struct opt spell_check_options[] = {
    { "lang", 0, OPT_TEXT, &spell_args.lang, "LANG",
      "the dictionary of a language, such as en_US, from the system's folders; "
      "instead of a filter" },
    SPELL_SHARED,
    FLAG("suggest", 0, spell_args.suggest,
         "add words that differ by one letter; needs --list, or --lang"),
    { "list", 0, OPT_LIST, &spell_args.list, "FILE",
      "a list or dictionary that the filter was made from; may be repeated" },
    FLAG("markdown", 0, spell_args.markdown,
         "pass over code, targets of links and tags of Markdown"),
    FLAG("latex", 0, spell_args.latex,
         "pass over commands, formulas and comments of LaTeX"),
    FLAG("count", 'c', spell_args.count,
         "print only how many words are flagged"),
    SKIP_BAD_OPTION(spell_args.keys),
    THREADS_OPTION(spell_args.threads),
    QUIET_OPTION(
        "print nothing but errors; stop at the first word that is flagged"),
    FLAG("json", 0, spell_args.json,
         "print JSON; one object per line for each flagged word"),
    { 0 },
};

RUNS(spell_build, spell_args)
RUNS(spell_check, spell_args)

static const struct verb spell_verbs[] = {
    { .name = "build",
      .operands = "-o FILE [LIST]...",
      .summary = "make a filter from lists and dictionaries",
      .about = "build -o FILE [LIST]... reads lists of words in UTF-8, one per "
               "line, and dictionaries of hunspell: files named .dic, with the "
               ".aff beside them. All forms that the affixes give are in the "
               "filter; the parts of compounds too, so that check can divide "
               "them. Without options it is wrong about one misspelling in a "
               "thousand, or one form in 100,000 where compounds are divided. "
               "An .aff whose forms do not end is refused.",
      .options = spell_build_options,
      .reports = REPORTS({ "", spell_built_fields, ONE }),
      .run = run_spell_build },
    { .name = "check",
      .operands = "[FILTER] [FILE]...",
      .summary = "print words that are in no form in the filter",
      .about =
          "check FILTER [FILE]... prints FILE:LINE:COLUMN: WORD for each word "
          "that is in no form in the filter; columns are counted in "
          "characters. "
          "A word is a run of letters, with apostrophes and hyphens inside. It "
          "is right as it stands; or in lower case, or as a name, if it is "
          "capitalised; or if all parts between its hyphens are. What has "
          "digits "
          "in it, URLs, addresses and paths are passed over. What is flagged "
          "is "
          "certainly not in the dictionary; a misspelling slips through at the "
          "filter's rate for each form that is asked for. Text is UTF-8, and "
          "may "
          "be compressed. The exit status is 0 if a word was flagged, 1 if "
          "none, 2 after an error.\n\n"
          "With --lang, check takes the dictionary of a language from "
          "/usr/share/hunspell, /usr/share/myspell or the folders of DICPATH, "
          "and keeps its filter in ~/.cache/bloomery (or that of "
          "XDG_CACHE_HOME) for the next run.",
      .options = spell_check_options,
      .reports = REPORTS({ "", spell_flagged_fields, LINES },
                         { "with --count", spell_total_fields, ONE }),
      .run = run_spell_check },
    { 0 },
};

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
    .summary = "check the spelling of texts, a hundred times faster",
    .about =
        "A dictionary becomes a filter of some hundred kilobytes, and texts "
        "are checked against it at millions of words per second. "
        "docs/spell.md says more.",
    .verbs = spell_verbs,
    .examples = spell_examples,
};

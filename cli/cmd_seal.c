/*
 * cmd_seal.c - search in one's own encrypted archive: bloomery seal VERB ...
 */
#include "apps/seal/seal_args.h"
#include "cli/program.h"
#include "cli/rows.h"

static struct seal_args seal_args;

#define SEAL_KEY_FILE                                         \
    OPTION("key-file", 'K', OPT_TEXT, &seal_args.key, "FILE", \
           "the key of the archive")

static const struct opt seal_init_options[] = {
    { "output", 'o', OPT_TEXT, &seal_args.output, "FILE", "the new key" },
    QUIET_ERRORS,
    { 0 },
};

static const struct opt seal_add_options[] = {
    SEAL_KEY_FILE,
    { "fpr", 'p', OPT_RATE, &seal_args.fpr, "P",
      "of a new archive: rate of documents that are found without having "
      "the word; 1 % if not given" },
    FLAG("replace", 0, seal_args.replace,
         "remove the documents that had the names of these files"),
    HTML_OPTIONS(seal_args.pages),
    WAIT_OPTION,
    QUIET_ERRORS,
    JSON_OPTION(seal_args),
    { 0 },
};

static const struct opt seal_rm_options[] = {
    WAIT_OPTION,
    QUIET_ERRORS,
    JSON_OPTION(seal_args),
    { 0 },
};

static const struct opt seal_trapdoor_options[] = {
    SEAL_KEY_FILE,
    { 0 },
};

static const struct opt seal_search_options[] = {
    QUIET_ERRORS,
    JSON_OPTION(seal_args),
    { 0 },
};

static const struct opt seal_open_options[] = {
    SEAL_KEY_FILE,
    { "output", 'o', OPT_TEXT, &seal_args.output, "FILE",
      "a folder that documents are written to, under the names they had, in "
      "the folders they were in" },
    { "word", 'w', OPT_TEXT, &seal_args.word, "WORD",
      "only documents that really have WORD" },
    HTML_OPTIONS(seal_args.pages),
    FLAG("names", 0, seal_args.names,
         "only the names of documents, and their sizes"),
    WAIT_OPTION,
    QUIET_ERRORS,
    JSON_OPTION(seal_args),
    { 0 },
};

RUNS_IN("net", seal_init, seal_args)
RUNS_IN("net", seal_add, seal_args)
RUNS_IN("net", seal_rm, seal_args)
RUNS_IN("net", seal_trapdoor, seal_args)
RUNS_IN("net", seal_search, seal_args)
RUNS_IN("net", seal_open, seal_args)

static const struct verb seal_verbs[] = {
    { .name = "init",
      .operands = "-o KEY",
      .summary = "write a new key",
      .about = "init -o KEY writes a new key to a new file.",
      .options = seal_init_options,
      .run = run_seal_init },
    { .name = "add",
      .operands = "-K KEY ARCHIVE FILE...",
      .summary = "encrypt files, and index their words",
      .about = "add -K KEY ARCHIVE FILE... encrypts files, and all files of "
               "folders, into the folder ARCHIVE, which is made if it is not "
               "there, and adds a filter of the words of each to its index. A "
               "word is a run of letters and digits of UTF-8, and its case "
               "does not matter. If one file fails, none is added.",
      .options = seal_add_options,
      .reports = REPORTS({ "", sealed_fields, ONE }),
      .run = run_seal_add },
    { .name = "rm",
      .operands = "ARCHIVE [ID]...",
      .summary = "remove documents; needs no key",
      .about = "rm ARCHIVE [ID]... removes documents, whose ids may come on "
               "standard input, from the index and then from the folder: all "
               "of them, or none if the archive lacks one. The exit status is "
               "1 if no id was given.",
      .options = seal_rm_options,
      .reports = REPORTS({ "", removed_fields, ONE }),
      .run = run_seal_rm },
    { .name = "trapdoor",
      .operands = "-K KEY WORD...",
      .summary = "what the other side needs to search for a word",
      .about = "trapdoor -K KEY WORD... prints a line for each word.",
      .options = seal_trapdoor_options,
      .run = run_seal_trapdoor },
    { .name = "search",
      .operands = "ARCHIVE TRAPDOOR...",
      .summary = "which documents have these words? needs no key",
      .about = "search ARCHIVE TRAPDOOR... needs no key. It prints the ids of "
               "the documents that have all these words, and a few that do not "
               "(--fpr of add). The exit status is 0 if there are some, 1 if "
               "there are none, 2 after an error.",
      .options = seal_search_options,
      .reports = REPORTS({ "", searched_fields, ONE }),
      .run = run_seal_search },
    { .name = "open",
      .operands = "-K KEY ARCHIVE [ID]...",
      .summary = "decrypt documents",
      .about =
          "open -K KEY ARCHIVE [ID]... decrypts documents, whose ids may come "
          "on standard input, to standard output or with -o to a folder. With "
          "--word it leaves out those that do not have the word after all. A "
          "document that was changed or cut off is refused. With -o, the "
          "newest of several documents of one name is written, files that are "
          "there already stay as they are (the exit status is then 2), and "
          "nothing is written outside the folder.",
      .options = seal_open_options,
      .reports = REPORTS({ "with --names or -o", opened_fields, LINES }),
      .run = run_seal_open },
    { 0 },
};

static const struct example seal_examples[] = {
    { "bloomery seal init -o key", "a new secret, once" },
    { "bloomery seal add -K key archive/ letters/",
      "seal all files of a folder" },
    { "bloomery seal trapdoor -K key invoice",
      "what the other side needs to search for a word" },
    { "bloomery seal search archive/ bly-seal-1:2f4c...",
      "there, without the key: ids of documents" },
    { "bloomery seal open -K key archive/ -w invoice -o found/ < ids",
      "open those that really have it" },
    { 0 },
};

const struct command cmd_seal = {
    .name = "seal",
    .summary = "encrypt documents, and let others search them unread",
    .about =
        "An archive is a folder of encrypted documents and one index, which "
        "may lie on a machine that is not trusted. Whoever has the key can "
        "make a trapdoor for a word; whoever has the index and that trapdoor "
        "can say which documents have the word, and learns nothing about any "
        "other. docs/seal.md says what it does learn.",
    .verbs = seal_verbs,
    .examples = seal_examples,
};

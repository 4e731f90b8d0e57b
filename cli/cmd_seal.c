/*
 * cmd_seal.c - search in one's own encrypted archive: bloomery seal VERB ...
 */
#include "apps/seal/seal_args.h"
#include "cli/rows.h"
#ifdef BLY_SODIUM
#include "apps/seal/seal.h"
#endif

static struct seal_args seal_args;

static const struct opt seal_options[] = {
    { "key-file", 'K', OPT_TEXT, &seal_args.key, "FILE",
      "add, trapdoor, open: the key of the archive" },
    { "output", 'o', OPT_TEXT, &seal_args.output, "FILE",
      "init: the new key; open: a folder that documents are written to, under "
      "the names they had, in the folders they were in" },
    { "fpr", 'p', OPT_RATE, &seal_args.fpr, "P",
      "add, to a new archive: rate of documents that are found without having "
      "the word; 1 % if not given" },
    { "word", 'w', OPT_TEXT, &seal_args.word, "WORD",
      "open: only documents that really have WORD" },
    FLAG("names", 0, seal_args.names,
         "open: only the names of documents, and their sizes"),
    WAIT_OPTION,
    QUIET_OPTION("print nothing but errors"),
    JSON_OPTION(seal_args),
    { 0 },
};

#ifdef BLY_SODIUM

static const struct old_verb seal_verbs[] = {
    { "init", "-o KEY", 0, " output quiet " },
    { "add", "-K KEY ARCHIVE FILE...", 2, " key-file fpr wait quiet json " },
    { "trapdoor", "-K KEY WORD...", 1, " key-file " },
    { "search", "ARCHIVE TRAPDOOR...", 2, " quiet json " },
    { "open", "-K KEY ARCHIVE [ID]...", 1,
      " key-file output word names wait quiet json " },
};
static seal_verb *const seal_functions[] = {
    seal_init, seal_add, seal_trapdoor, seal_search, seal_open,
};
#define NVERBS (sizeof seal_verbs / sizeof seal_verbs[0])

static int seal_run(struct list *operands)
{
    struct list rest;
    const size_t i = verb_find(&cmd_seal, seal_verbs, NVERBS, operands, &rest);
    return i == NVERBS ? TROUBLE : seal_functions[i](&seal_args, &rest);
}

#else

static int seal_run(struct list *operands)
{
    (void)operands;
    return fail("this bloomery was built without libsodium (libsodium-dev) and "
                "cannot seal");
}

#endif

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
    .old_verbs = "init add trapdoor search open",
    .usage = "VERB [OPERAND]... [OPTION]...",
    .summary = "encrypt documents, and let others search them unread",
    .about =
        "An archive is a folder of encrypted documents and one index, which "
        "may lie on a machine that is not trusted. Whoever has the key can "
        "make a trapdoor for a word; whoever has the index and that trapdoor "
        "can say which documents have the word, and learns nothing about any "
        "other. docs/seal.md says what it does learn.\n\n"
        "init -o KEY writes a new key to a new file.\n\n"
        "add -K KEY ARCHIVE FILE... encrypts files, and all files of folders, "
        "into the folder ARCHIVE, which is made if it is not there, and adds a "
        "filter of the words of each to its index. A word is a run of letters "
        "and digits of UTF-8, and its case does not matter. If one file fails, "
        "none is added.\n\n"
        "trapdoor -K KEY WORD... prints a line for each word.\n\n"
        "search ARCHIVE TRAPDOOR... needs no key. It prints the ids of the "
        "documents that have all these words, and a few that do not (--fpr of "
        "add). The exit status is 0 if there are some, 1 if there are none, 2 "
        "after an error.\n\n"
        "open -K KEY ARCHIVE [ID]... decrypts documents, whose ids may come on "
        "standard input, to standard output or with -o to a folder. With "
        "--word it leaves out those that do not have the word after all. A "
        "document that was changed or cut off is refused. With -o, the newest "
        "of several documents of one name is written, files that are there "
        "already stay as they are (the exit status is then 2), and nothing is "
        "written outside the folder.",
    .options = seal_options,
    .examples = seal_examples,
    .reports = seal_reports,
    .run = seal_run,
};

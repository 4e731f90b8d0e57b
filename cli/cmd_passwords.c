/*
 * cmd_passwords.c - leaked passwords: bloomery passwords VERB ...
 */
#include "apps/passwords/passwords.h"
#include "cli/rows.h"

static struct passwords_args passwords_args;

static const struct opt passwords_options[] = {
    { "output", 'o', OPT_TEXT, &passwords_args.output, "FILE",
      "build: write the filter to FILE; - is standard output" },
    { "list", 0, OPT_TEXT, &passwords_args.list, "sha1|ntlm",
      "the hash that the list is made of; sha1 if not given, and for check "
      "what the filter says" },
    FLAG("words", 0, passwords_args.words,
         "build: lines are passwords, not hashes of them"),
    { "min-count", 0, OPT_POSITIVE, &passwords_args.min_count, "N",
      "build: leave out passwords that were seen less often" },
    FORMAT_OPTION(passwords_args,
                  "build: guava, the filter that Keycloak's password policy "
                  "loads; takes --words"),
    SIZING_OPTIONS(passwords_args.sizing),
    { "max-memory", 0, OPT_POSITIVE, &passwords_args.max_memory, "SIZE",
      "build: use no more memory than this: 500MB, 2GiB" },
    { "spill", 0, OPT_TEXT, &passwords_args.spill, "DIR",
      "build: folder for a temporary file with what does not fit into "
      "--max-memory" },
    FLAG("hashes", 0, passwords_args.hashes,
         "check: the lines of FILE, or of standard input, are hashes; those "
         "in the list are printed"),
    { "mirror", 0, OPT_TEXT, &passwords_args.mirror, "PATH",
      "check: look what may be leaked up in the list itself, a folder of range "
      "files or one file sorted by hash, which gives exact answers" },
    { "listen", 0, OPT_TEXT, &passwords_args.listen, "ADDRESS:PORT",
      "serve: where to listen; 127.0.0.1:8080 if not given" },
    { "ntlm-mirror", 0, OPT_TEXT, &passwords_args.ntlm_mirror, "PATH",
      "serve: a list of NTLM hashes, for those who ask with ?mode=ntlm" },
    FLAG("invert", 'v', passwords_args.invert,
         "check: tell those that are not in the list"),
    FLAG("count", 'c', passwords_args.count,
         "check: print only how many there are"),
    SKIP_BAD_OPTION(passwords_args.keys),
    FLAG("crlf", 0, passwords_args.keys.select.crlf,
         "build: a carriage return at the end does not belong to a word; "
         "without --null this is so anyway"),
    FLAG("null", '0', passwords_args.keys.nul,
         "passwords end at NUL bytes, not at newlines"),
    { "key-file", 'K', OPT_TEXT, &passwords_args.keys.key_file, "FILE",
      "the secret of a keyed filter: 16 raw bytes or 32 hexadecimal digits" },
    BINARY_OPTION,
    THREADS_OPTION(passwords_args.threads),
    WAIT_OPTION,
    QUIET_OPTION("print nothing but errors; check: stop at the first that "
                 "would be told"),
    JSON_OPTION(passwords_args),
    { 0 },
};

static const struct old_verb passwords_verbs[] = {
    { "build", "-o FILE [LIST]...", 0,
      " output list words min-count format items fpr bits memory kind option "
      "max-memory spill skip-bad crlf null key-file binary threads wait quiet "
      "json " },
    { "check", "FILTER", 1,
      " list hashes mirror invert count skip-bad null key-file binary threads "
      "quiet json " },
    { "serve", "MIRROR", 1, " list listen ntlm-mirror quiet json " },
};

#ifndef BLY_MICROHTTPD
int passwords_serve(const struct passwords_args *args,
                    const struct list *operands)
{
    (void)args, (void)operands;
    return fail("this bloomery was built without libmicrohttpd "
                "(libmicrohttpd-dev) and cannot serve");
}
#endif

static passwords_verb *const passwords_functions[] = {
    passwords_build,
    passwords_check,
    passwords_serve,
};
#define NVERBS (sizeof passwords_verbs / sizeof passwords_verbs[0])

static int passwords_run(struct list *operands)
{
    struct list rest;
    const size_t i =
        verb_find(&cmd_passwords, passwords_verbs, NVERBS, operands, &rest);
    return i == NVERBS ? TROUBLE
                       : passwords_functions[i](&passwords_args, &rest);
}

static const struct example passwords_examples[] = {
    { "bloomery passwords build -o pwned.bly pwned-passwords-sha1.txt.zst",
      "a filter of the published list" },
    { "bloomery passwords check pwned.bly",
      "ask for a password, which is not shown" },
    { "bloomery passwords check pwned.bly --hashes dump.txt",
      "which of these hashes are in the list?" },
    { "bloomery passwords serve --listen 127.0.0.1:8080 pwned/",
      "the range protocol, from a local mirror" },
    { "bloomery passwords build -o words.bin --words --format guava "
      "common-passwords.txt",
      "for Keycloak's password policy" },
    { 0 },
};

const struct command cmd_passwords = {
    .name = "passwords",
    .old_verbs = "build check serve",
    .usage = "VERB [OPERAND]... [OPTION]...",
    .summary = "filters of leaked passwords, and passwords checked with them",
    .about =
        "Lists of leaked passwords are published as hashes, with the number of "
        "times that each was seen. A filter of such a list fits into memory, "
        "and a check takes less than a microsecond and tells nobody what was "
        "asked.\n\n"
        "build -o FILE [LIST]... reads lists and writes a filter. A line is "
        "the SHA-1 hash in 40 hexadecimal digits, a colon and a count, or the "
        "hash alone; with --list ntlm it has 32 digits. Files may be "
        "compressed, and sorted or not. A folder stands for the files in it: "
        "those of a mirror of the range service, whose names are the first "
        "five digits. With --words lines are plain passwords. The rate is 0.1 "
        "% unless something else is said. A line that is none of this is named "
        "with its file, and the exit status is 2, but the filter of all others "
        "is written; with --skip-bad such lines are only counted.\n\n"
        "check FILTER asks for passwords on the terminal, until an empty one, "
        "and does not show them; or it reads them from standard input, a line "
        "each, and tells the numbers of the lines that are in the list. A "
        "password stays in memory that is locked and wiped, and is never "
        "printed. One that is not in the list is never taken for one that is "
        "more often than the filter's rate; one that is in it is always "
        "found. With --mirror the list itself decides.\n\n"
        "check --hashes FILTER [FILE]... does the same for lines of hashes, "
        "and prints those that are in the list, whole.\n\n"
        "serve MIRROR answers the range protocol, which programs that check "
        "passwords with the public service speak: GET /range/ABCDE gives the "
        "hashes that begin with these five digits, without them, and their "
        "counts; with the header Add-Padding: true there are lines with a "
        "count of 0 among them, so that every answer has about the same "
        "length. MIRROR is a folder of range files or one file that is sorted "
        "by hash; it may be replaced meanwhile file by file. Ends with SIGINT "
        "or SIGTERM.\n\n"
        "The exit status of check is 0 if one is in the list, 1 if none is, "
        "and 2 after an error.",
    .options = passwords_options,
    .examples = passwords_examples,
    .reports = passwords_reports,
    .run = passwords_run,
};

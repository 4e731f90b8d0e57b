/*
 * cmd_passwords.c - leaked passwords: bloomery passwords VERB ...
 */
#include "apps/passwords/passwords.h"
#include "cli/program.h"
#include "cli/rows.h"
#include "io/foreign_files.h"

static struct passwords_args passwords_args;

#define PASSWORDS_LIST                                                         \
    OPTION(                                                                    \
        "list", 0, OPT_CHOICE, &passwords_args.list, "sha1|ntlm",              \
        "the hash that the list is made of; sha1 if not given, and for check " \
        "what the filter says")
#define PASSWORDS_BUILD_CHECK                                                  \
    FLAG("null", '0', passwords_args.keys.nul,                                 \
         "passwords end at NUL bytes, not at newlines"),                       \
        OPTION("key-file", 'K', OPT_TEXT, &passwords_args.keys.key_file,       \
               "FILE",                                                         \
               "the secret of a keyed filter: 16 raw bytes or 32 hexadecimal " \
               "digits")

static const struct opt passwords_build_options[] = {
    { "output", 'o', OPT_TEXT, &passwords_args.output, "FILE",
      "write the filter to FILE; - is standard output" },
    PASSWORDS_LIST,
    FLAG("words", 0, passwords_args.words,
         "lines are passwords, not hashes of them"),
    { "min-count", 0, OPT_POSITIVE, &passwords_args.min_count, "N",
      "leave out passwords that were seen less often" },
    FORMAT_OPTION(passwords_args, "guava, the filter that Keycloak's password "
                                  "policy loads; takes --words"),
    SIZING_OPTIONS(passwords_args.sizing),
    { "max-memory", 0, OPT_POSITIVE, &passwords_args.max_memory, "SIZE",
      "use no more memory than this: 500MB, 2GiB" },
    { "spill", 0, OPT_TEXT, &passwords_args.spill, "DIR",
      "folder for a temporary file with what does not fit into --max-memory" },
    SKIP_BAD_OPTION(passwords_args.keys),
    FLAG("crlf", 0, passwords_args.keys.select.crlf,
         "a carriage return at the end does not belong to a word; without "
         "--null this is so anyway"),
    PASSWORDS_BUILD_CHECK,
    BINARY_OPTION,
    THREADS_OPTION(passwords_args.threads),
    WAIT_OPTION,
    QUIET_ERRORS,
    JSON_OPTION(passwords_args),
    { 0 },
};

static const struct opt passwords_check_options[] = {
    PASSWORDS_LIST,
    FLAG("hashes", 0, passwords_args.hashes,
         "the lines of FILE, or of standard input, are hashes; those in the "
         "list are printed"),
    { "mirror", 0, OPT_TEXT, &passwords_args.mirror, "PATH",
      "look what may be leaked up in the list itself, a folder of range files "
      "or one file sorted by hash, which gives exact answers" },
    FLAG("invert", 'v', passwords_args.invert,
         "tell those that are not in the list"),
    FLAG("count", 'c', passwords_args.count, "print only how many there are"),
    SKIP_BAD_OPTION(passwords_args.keys),
    PASSWORDS_BUILD_CHECK,
    BINARY_OPTION,
    THREADS_OPTION(passwords_args.threads),
    QUIET_OPTION(
        "print nothing but errors; stop at the first that would be told"),
    JSON_OPTION(passwords_args),
    { 0 },
};

static const struct opt passwords_serve_options[] = {
    PASSWORDS_LIST,
    { "listen", 0, OPT_TEXT, &passwords_args.listen, "ADDRESS:PORT",
      "where to listen; 127.0.0.1:8080 if not given" },
    { "ntlm-mirror", 0, OPT_TEXT, &passwords_args.ntlm_mirror, "PATH",
      "a list of NTLM hashes, for those who ask with ?mode=ntlm" },
    QUIET_ERRORS,
    JSON_OPTION(passwords_args),
    { 0 },
};

RUNS(passwords_build, passwords_args)
RUNS(passwords_check, passwords_args)
RUNS_IN("web", passwords_serve, passwords_args)

static const struct verb passwords_verbs[] = {
    { .name = "build",
      .operands = "-o FILE [LIST]...",
      .summary = "make a filter of a list",
      .about =
          "build -o FILE [LIST]... reads lists and writes a filter. A line is "
          "the SHA-1 hash in 40 hexadecimal digits, a colon and a count, or "
          "the hash alone; with --list ntlm it has 32 digits. Files may be "
          "compressed, and sorted or not. A folder stands for the files in it: "
          "those of a mirror of the range service, whose names are the first "
          "five digits. With --words lines are plain passwords. The rate is "
          "0.1 % unless something else is said. A line that is none of this is "
          "named with its file, and the exit status is 2, but the filter of "
          "all others is written; with --skip-bad such lines are only counted.",
      .options = passwords_build_options,
      .reports = REPORTS({ "", built_fields, ONE },
                         { "with --format", foreign_made_fields, ONE }),
      .run = run_passwords_build },
    { .name = "check",
      .operands = "FILTER [FILE]...",
      .summary = "are these passwords in the list?",
      .about =
          "check FILTER asks for passwords on the terminal, until an empty "
          "one, "
          "and does not show them; or it reads them from standard input, a "
          "line "
          "each, and tells the numbers of the lines that are in the list. A "
          "password stays in memory that is locked and wiped, and is never "
          "printed. One that is not in the list is never taken for one that is "
          "more often than the filter's rate; one that is in it is always "
          "found. With --mirror the list itself decides.\n\n"
          "check --hashes FILTER [FILE]... does the same for lines of hashes, "
          "and prints those that are in the list, whole.\n\n"
          "The exit status is 0 if one is in the list, 1 if none is, and 2 "
          "after an error.",
      .options = passwords_check_options,
      .reports = REPORTS({ "", verdict_fields, LINES },
                         { "with --count", checked_fields, ONE }),
      .run = run_passwords_check },
    { .name = "serve",
      .operands = "MIRROR",
      .summary = "the range protocol, from a local mirror",
      .about =
          "serve MIRROR answers the range protocol, which programs that check "
          "passwords with the public service speak: GET /range/ABCDE gives the "
          "hashes that begin with these five digits, without them, and their "
          "counts; with the header Add-Padding: true there are lines with a "
          "count of 0 among them, so that every answer has about the same "
          "length. MIRROR is a folder of range files or one file that is "
          "sorted by hash; it may be replaced meanwhile file by file. Ends "
          "with SIGINT or SIGTERM.",
      .options = passwords_serve_options,
      .reports = REPORTS({ "at the start", range_serving_fields, LINES },
                         { "at the end", range_served_fields, LINES }),
      .run = run_passwords_serve },
    { 0 },
};

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
    .summary = "filters of leaked passwords, and passwords checked with them",
    .about =
        "Lists of leaked passwords are published as hashes, with the number of "
        "times that each was seen. A filter of such a list fits into memory, "
        "and a check takes less than a microsecond and tells nobody what was "
        "asked.",
    .verbs = passwords_verbs,
    .examples = passwords_examples,
};

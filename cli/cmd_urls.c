/*
 * cmd_urls.c - lists of URLs and domains: bloomery urls VERB ...
 */
#include "apps/urls/urls.h"
#include "cli/rows.h"

static struct urls_args urls_args;

#define URLS_DOMAINS                      \
    FLAG("domains", 0, urls_args.domains, \
         "entries are names that cover all names below them, instead of URLs")
#define URLS_BUILD_COMPARE                                                  \
    OPTION("prefix-bytes", 0, OPT_POSITIVE, &urls_args.prefix_bytes, "N",   \
           "bytes of a prefix, 2 to 8; 4 if not given"),                    \
        FLAG("ignore-case", 'i', urls_args.keys.normal.fold,                \
             "fold the case of whole URLs; whoever asks the list does the " \
             "same")
#define URLS_PUBLIC_SUFFIX                                                     \
    OPTION(                                                                    \
        "public-suffix", 0, OPT_TEXT, &urls_args.suffixes, "FILE",             \
        "with --domains, the list of publicsuffix.org: build refuses entries " \
        "that are public suffixes, has stops asking one label below them")
#define URLS_JSON FLAG("json", 0, urls_args.json, "print JSON")

static const struct opt urls_build_options[] = {
    FLAG("exact", 0, urls_args.exact,
         "with --domains: entries are names alone, and cover no names below "
         "them, as in a hosts file"),
    { "output", 'o', OPT_TEXT, &urls_args.output, "FILE",
      "write the list to FILE" },
    URLS_DOMAINS,
    { "store", 0, OPT_CHOICE, &urls_args.store, "filter|prefixes",
      "a filter (the default), or the sorted prefixes of SHA-256 that browsers "
      "use" },
    URLS_BUILD_COMPARE,
    SIZING_OPTIONS(urls_args.sizing),
    URLS_PUBLIC_SUFFIX,
    BINARY_OPTION,
    KEY_FILE_OPTION(urls_args.keys),
    SKIP_BAD_OPTION(urls_args.keys),
    META_OPTIONS(urls_args.meta),
    THREADS_OPTION(urls_args.threads),
    WAIT_OPTION,
    QUIET_ERRORS,
    URLS_JSON,
    { 0 },
};

static const struct opt urls_has_options[] = {
    URLS_DOMAINS,
    URLS_PUBLIC_SUFFIX,
    { "full", 0, OPT_LIST, &urls_args.full, "FILE",
      "print only what this full list confirms: a list as for build, or lines "
      "of SHA-256; may be repeated" },
    FLAG("invert", 'v', urls_args.invert,
         "print what is not listed, which is certain"),
    FLAG("count", 'c', urls_args.count, "print only how many there are"),
    FILES_OPTIONS(urls_args.keys),
    SELECT_OPTIONS(urls_args.keys),
    THREADS_OPTION(urls_args.threads),
    QUIET_OPTION("print nothing but errors; stop at the first that is listed"),
    FLAG("json", 0, urls_args.json,
         "print JSON; one object per line, also for those that are not listed"),
    { 0 },
};

static const struct opt urls_show_options[] = {
    URLS_DOMAINS,
    URLS_PUBLIC_SUFFIX,
    FILE_OPTION(urls_args.keys.files, "URLs"),
    NULL_OPTION(urls_args.keys.nul, "URLs"),
    QUIET_ERRORS,
    URLS_JSON,
    { 0 },
};

static const struct opt urls_compare_options[] = {
    URLS_DOMAINS,
    URLS_BUILD_COMPARE,
    SIZING_OPTIONS(urls_args.sizing),
    { "sample", 0, OPT_POSITIVE, &urls_args.sample, "N",
      "ask for N entries that are not listed; 1 million if not given" },
    BINARY_OPTION,
    SKIP_BAD_OPTION(urls_args.keys),
    THREADS_OPTION(urls_args.threads),
    QUIET_ERRORS,
    URLS_JSON,
    { 0 },
};

static const struct opt urls_helper_options[] = {
    URLS_DOMAINS,
    KEY_FILE_OPTION(urls_args.keys),
    QUIET_ERRORS,
    { 0 },
};

RUNS(urls_verb_build, urls_args)
RUNS(urls_verb_has, urls_args)
RUNS(urls_verb_show, urls_args)
RUNS(urls_verb_compare, urls_args)
RUNS(urls_verb_helper, urls_args)

static const struct verb urls_verbs[] = {
    { .name = "build",
      .operands = "-o FILE [LIST]...",
      .summary = "make a list of URLs or domains",
      .about =
          "build -o FILE [LIST]... reads lists of any form: URLs or names, one "
          "per line; hosts files; adblock rules for hosts and pages "
          "(||example.org^, and exceptions @@||example.org^); RPZ zones; for "
          "--store prefixes also lines of SHA-256. Rules that say more than an "
          "entry can (options, wildcards) are skipped and counted. Lines that "
          "are none of these are named on standard error; the list is made of "
          "the others, and the exit status is 2 unless --skip-bad is given. "
          "Exceptions are written to a file beside FILE, which belongs to it. "
          "A filter is of kind ribbon for one false positive in a million "
          "unless options say otherwise, and is an ordinary .bly file.",
      .options = urls_build_options,
      .reports = REPORTS({ "", urls_built_fields, ONE }),
      .run = run_urls_verb_build },
    { .name = "has",
      .operands = "FILTER [URL]...",
      .summary = "print the URLs or names that are listed",
      .about =
          "has LIST [URL]... prints the URLs or names that are listed, from "
          "arguments, files or standard input; whole lines, if the URL is a "
          "part of them. A URL is listed if one of its expressions is (host "
          "and up to four suffixes, times path and prefixes of it), a name if "
          "it or a name above it is, and none of them is an exception. The "
          "list may be wrong about what is not listed: --full confirms. The "
          "exit status is 0 if one was printed, 1 if none, 2 after an error.",
      .options = urls_has_options,
      .reports = REPORTS({ "", urls_asked_fields, LINES },
                         { "with --count", urls_total_fields, ONE }),
      .run = run_urls_verb_has },
    { .name = "show",
      .operands = "[URL]...",
      .summary = "the canonical form, and what a list may hold of it",
      .about =
          "show [URL]... prints canonical forms, and their entries with the "
          "first four bytes of their SHA-256.",
      .options = urls_show_options,
      .reports = REPORTS({ "", urls_shown_fields, LINES }),
      .run = run_urls_verb_show },
    { .name = "compare",
      .operands = "[LIST]...",
      .summary = "a filter and sorted prefixes side by side",
      .about = "compare [LIST]... prints size and error of a filter, of sorted "
               "prefixes, and of a Bloom filter of the same size as these.",
      .options = urls_compare_options,
      .reports = REPORTS({ "", urls_compared_fields, ARRAY }),
      .run = run_urls_verb_compare },
    { .name = "helper",
      .operands = "FILTER",
      .summary = "answer Squid, as an external ACL helper",
      .about = "helper LIST answers Squid as an external ACL helper, for %URI, "
               "or for %DST with a list of domains: OK if it is listed, ERR if "
               "not. The list may be replaced while it runs; a new one is used "
               "once it is verified.",
      .options = urls_helper_options,
      .run = run_urls_verb_helper },
    { 0 },
};

static const struct example urls_examples[] = {
    { "bloomery urls build -o bad.bly urlhaus.txt",
      "a list of URLs, wrong about one entry in a million" },
    { "bloomery urls has bad.bly -f access.log --field 7 -d blanks",
      "the lines of a log whose URL is listed" },
    { "bloomery urls build -o ads.bly --domains easylist.txt hosts rpz.zone",
      "domains from lists of any form" },
    { "bloomery urls has ads.bly www.example.org",
      "is the name, or one above it, listed?" },
    { "bloomery urls has bad.bly --full urlhaus.txt -f urls.txt",
      "without false alarms" },
    { "bloomery urls compare urlhaus.txt",
      "a filter and sorted prefixes side by side" },
    { "bloomery urls show 'http://a.b.c/1/2.html?param=1'",
      "the canonical form, and what a list may hold of it" },
    { "external_acl_type listed concurrency=100 %URI /usr/bin/bloomery urls "
      "helper /var/lib/lists/bad.bly",
      "in squid.conf; then: acl bad external listed" },
    { 0 },
};

const struct command cmd_urls = {
    .name = "urls",
    .summary = "lists of dangerous URLs and domains, in little memory",
    .about =
        "A list of URLs or domains becomes a file of a few bytes per entry "
        "that is asked locally: no request tells anybody what is visited. "
        "docs/urls.md says more.\n\n"
        "Where others choose what is asked or listed, make a keyed filter with "
        "--key-file, so that nobody can search for false positives.",
    .verbs = urls_verbs,
    .examples = urls_examples,
};

/*
 * cmd_urls.c - lists of URLs and domains: bloomery urls VERB ...
 */
#include "apps/urls/urls.h"
#include "cli/rows.h"

static struct urls_args urls_args;

static const struct opt urls_options[] = {
    { "output", 'o', OPT_TEXT, &urls_args.output, "FILE",
      "build: write the list to FILE" },
    FLAG("domains", 0, urls_args.domains,
         "entries are names that cover all names below them, instead of URLs"),
    { "store", 0, OPT_TEXT, &urls_args.store, "filter|prefixes",
      "build: a filter (the default), or the sorted prefixes of SHA-256 that "
      "browsers use" },
    { "prefix-bytes", 0, OPT_POSITIVE, &urls_args.prefix_bytes, "N",
      "build, compare: bytes of a prefix, 2 to 8; 4 if not given" },
    SIZING_OPTIONS(urls_args.sizing),
    { "public-suffix", 0, OPT_TEXT, &urls_args.suffixes, "FILE",
      "with --domains, the list of publicsuffix.org: build refuses entries "
      "that are public suffixes, has stops asking one label below them" },
    { "full", 0, OPT_LIST, &urls_args.full, "FILE",
      "has: print only what this full list confirms: a list as for build, or "
      "lines of SHA-256; may be repeated" },
    FLAG("invert", 'v', urls_args.invert,
         "has: print what is not listed, which is certain"),
    FLAG("count", 'c', urls_args.count, "has: print only how many there are"),
    FLAG("ignore-case", 'i', urls_args.keys.normal.fold,
         "build, compare: fold the case of whole URLs; whoever asks the list "
         "does the same"),
    { "sample", 0, OPT_POSITIVE, &urls_args.sample, "N",
      "compare: ask for N entries that are not listed; 1 million if not "
      "given" },
    FILES_OPTIONS(urls_args.keys),
    SELECT_OPTIONS(urls_args.keys),
    META_OPTIONS(urls_args.meta),
    THREADS_OPTION(urls_args.threads),
    WAIT_OPTION,
    QUIET_OPTION("print nothing but errors; has: stop at the first that is "
                 "listed"),
    FLAG("json", 0, urls_args.json,
         "print JSON; has: one object per line, "
         "also for those that are not listed"),
    { 0 },
};

#define URLS_SIZES " items fpr bits memory kind option "
static const struct old_verb urls_verbs[] = {
    { "build", "-o FILE [LIST]...", 0,
      " output domains store prefix-bytes public-suffix ignore-case key-file "
      "note meta threads wait quiet json binary skip-bad " URLS_SIZES },
    { "has", "LIST [URL]...", 1,
      " domains public-suffix full invert count file null key-file binary "
      "field csv jsonl regex delimiter no-header skip-bad threads quiet "
      "json " },
    { "show", "[URL]...", 0, " domains public-suffix file null quiet json " },
    { "compare", "[LIST]...", 0,
      " domains prefix-bytes ignore-case sample threads quiet json binary "
      "skip-bad " URLS_SIZES },
    { "helper", "LIST", 1, " domains key-file quiet " },
};
static int (*const urls_functions[])(const struct urls_args *,
                                     const struct list *) = {
    urls_verb_build,   urls_verb_has,    urls_verb_show,
    urls_verb_compare, urls_verb_helper,
};
#define NVERBS (sizeof urls_verbs / sizeof urls_verbs[0])

static int urls_run(struct list *operands)
{
    struct list rest;
    const size_t i = verb_find(&cmd_urls, urls_verbs, NVERBS, operands, &rest);
    return i == NVERBS ? TROUBLE : urls_functions[i](&urls_args, &rest);
}

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
    .old_verbs = "build has show compare helper",
    .usage = "VERB [OPERAND]... [OPTION]...",
    .summary = "lists of dangerous URLs and domains, in little memory",
    .about =
        "A list of URLs or domains becomes a file of a few bytes per entry "
        "that is asked locally: no request tells anybody what is visited. "
        "docs/urls.md says more.\n\n"
        "build -o FILE [LIST]... reads lists of any form: URLs or names, one "
        "per line; hosts files; adblock rules for hosts and pages "
        "(||example.org^, and exceptions @@||example.org^); RPZ zones; for "
        "--store prefixes also lines of SHA-256. Rules that say more than an "
        "entry can (options, wildcards) are skipped and counted. Lines that "
        "are none of these are named on standard error; the list is made of "
        "the others, and the exit status is 2 unless --skip-bad is given. "
        "Exceptions are written to a file beside FILE, which belongs to it. "
        "A filter is of kind ribbon for one false positive in a million unless "
        "options say otherwise, and is an ordinary .bly file.\n\n"
        "has LIST [URL]... prints the URLs or names that are listed, from "
        "arguments, files or standard input; whole lines, if the URL is a part "
        "of them. A URL is listed if one of its expressions is (host and up to "
        "four suffixes, times path and prefixes of it), a name if it or a name "
        "above it is, and none of them is an exception. The list may be wrong "
        "about what is not listed: --full confirms. The exit status is 0 if "
        "one was printed, 1 if none, 2 after an error.\n\n"
        "show [URL]... prints canonical forms, and their entries with the "
        "first four bytes of their SHA-256.\n\n"
        "compare [LIST]... prints size and error of a filter, of sorted "
        "prefixes, and of a Bloom filter of the same size as these.\n\n"
        "helper LIST answers Squid as an external ACL helper, for %URI, or "
        "for %DST with a list of domains: OK if it is listed, ERR if not. The "
        "list may be replaced while it runs; a new one is used once it is "
        "verified.\n\n"
        "Where others choose what is asked or listed, make a keyed filter with "
        "--key-file, so that nobody can search for false positives.",
    .options = urls_options,
    .examples = urls_examples,
    .reports = REPORTS({ "build", urls_built_fields, ONE },
                       { "has", urls_asked_fields, LINES },
                       { "has --count", urls_total_fields, ONE },
                       { "show", urls_shown_fields, LINES },
                       { "compare", urls_compared_fields, ARRAY }),
    .run = urls_run,
};

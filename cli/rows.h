/*
 * rows.h - rows of option tables that several commands have
 */
#ifndef BLY_CLI_ROWS_H
#define BLY_CLI_ROWS_H

#include "cli/cli.h"
#include "io/files.h"
#include "io/source.h"
#include "report/say.h"

#define BINARY_OPTION                                                      \
    FLAG("binary", 0, binary_input,                                        \
         "read the bytes of input files as they are: unpack nothing, and " \
         "do not refuse archives or databases")

#define HTML_OPTIONS(w)                                                       \
    FLAG("html", 0, (w).html,                                                 \
         "texts are web pages: what their readers see counts, without menus " \
         "and the like; not needed for files that are named *.html or begin " \
         "like a page"),                                                      \
        FLAG("tags", 0, (w).tags,                                             \
             "web pages are texts like any other: tags and scripts count")

/* Which part of a line is the key; `use` is what the delimiter separates. */
#define SELECT_OPTIONS(k)                                                     \
    OPTION("field", 0, OPT_TEXT, &(k).select.field, "N",                      \
           "the key is field N of a line, the last one being -1; fields are " \
           "separated by tabs"),                                              \
        OPTION("csv", 0, OPT_TEXT, &(k).select.csv, "COLUMN",                 \
               "the key is a column of CSV, by its name in the header or by " \
               "its number"),                                                 \
        OPTION("jsonl", 0, OPT_TEXT, &(k).select.jsonl, "PATH",               \
               "the key is a field of JSON lines: name, or user.id inside "   \
               "of an object"),                                               \
        OPTION("regex", 0, OPT_TEXT, &(k).select.regex, "RE",                 \
               "the key is what the first group of a POSIX extended regular " \
               "expression matches, or all that it matches"),                 \
        OPTION("delimiter", 'd', OPT_TEXT, &(k).select.delimiter, "C",        \
               "the character between fields, instead of a tab, or of a "     \
               "comma with --csv; \\t is a tab, and \"blanks\" are runs of "  \
               "blanks and tabs"),                                            \
        FLAG("no-header", 0, (k).select.no_header,                            \
             "the first record of CSV is not a header"),                      \
        SKIP_BAD_OPTION(k)
#define GROUP_OPTION(k)                                                      \
    OPTION("group", 0, OPT_TEXT, &(k).select.group, "FIELD",                 \
           "keys stand in groups, which are named by this second field, as " \
           "--field, --csv or --jsonl names the first")
#define SKIP_BAD_OPTION(k)                   \
    FLAG("skip-bad", 0, (k).select.skip_bad, \
         "leave out lines that have no key, and say only how many")
#define NORMAL_OPTIONS(k)                                                      \
    FLAG("ignore-case", 'i', (k).normal.fold,                                  \
         "fold the case of keys, as Unicode does for single characters"),      \
        FLAG("trim", 0, (k).normal.trim,                                       \
             "blanks and tabs at both ends do not belong to a key"),           \
        FLAG(                                                                  \
            "crlf", 0, (k).select.crlf,                                        \
            "a carriage return before the newline does not belong to a line, " \
            "nor does a byte order mark at the beginning of a file")
#define META_OPTIONS(m)                                                     \
    OPTION("note", 0, OPT_TEXT, &(m).note, "TEXT",                          \
           "a note in the file, one line of up to 1024 bytes; \"\": none"), \
        OPTION("meta", 0, OPT_LIST, &(m).pairs, "NAME=VALUE",               \
               "something else to note, under a name; may be repeated")
#define SELECT_ABOUT                                                          \
    "With --field, --csv, --jsonl or --regex the key is a part of a line. A " \
    "line that has no such part is bad: too few fields, a quote that is "     \
    "never closed, invalid JSON, a value that is neither text nor a "         \
    "number, no match. The first ten are named on standard error with file "  \
    "and line, the others counted, and the exit status is 2; --skip-bad "     \
    "leaves them out. docs/fields.md says more."

#define KEYS_OPTIONS(k) FILES_OPTIONS(k), SELECT_OPTIONS(k), NORMAL_OPTIONS(k)
#define FILES_OPTIONS(k)                           \
    BINARY_OPTION, FILE_OPTION((k).files, "keys"), \
        NULL_OPTION((k).nul, "keys"), KEY_FILE_OPTION(k)
#define FILE_OPTION(list, what)                    \
    OPTION("file", 'f', OPT_LIST, &(list), "FILE", \
           "read " what " from FILE; may be repeated; - is standard input")
#define NULL_OPTION(to, what) \
    FLAG("null", '0', to,     \
         what " end at NUL bytes, not at newlines; printed ones too")
#define KEY_FILE_OPTION(k)                                   \
    OPTION("key-file", 'K', OPT_TEXT, &(k).key_file, "FILE", \
           "the secret of a keyed filter")
#define THREADS_OPTION(n)                           \
    OPTION("threads", 't', OPT_POSITIVE, &(n), "N", \
           "threads to use; all processors if not given")

#define CHECK_OPTIONS(c)                                                      \
    FLAG("verify", 0, (c).always,                                             \
         "compare all of the filter with its checksums first, even if it is " \
         "larger than 64 MiB"),                                               \
        FLAG("no-verify", 0, (c).never,                                       \
             "compare nothing: a damaged filter gives wrong answers")
#define CHECK_ABOUT                                                            \
    "A filter of up to 64 MiB is compared with its checksum before it is "     \
    "queried. A larger one is queried at once, whatever its size: it has a "   \
    "checksum for each 64 KiB, and only the blocks that keys fall on are "     \
    "read and compared, once each. If one is damaged, the command ends with "  \
    "status 2 and prints no answer that depends on it. A larger file from an " \
    "older bloomery has one checksum for all of it, and is compared only "     \
    "with --verify (bloomery info names the version of its format). What "     \
    "comes through a pipe, or forgets with time, is read and compared in any " \
    "case."

#define SIZING_OPTIONS(s)                                           \
    OPTION("items", 'n', OPT_POSITIVE, &(s).items, "N",             \
           "capacity: how many different keys it is for"),          \
        OPTION("fpr", 'p', OPT_RATE, &(s).fpr, "P",                 \
               "rate of false positives at capacity: 1%, 0.001"),   \
        OPTION("bits", 'b', OPT_POSITIVE, &(s).bits, "B",           \
               "memory of the filter in bits, instead of a rate"),  \
        OPTION("memory", 'm', OPT_POSITIVE, &(s).memory, "SIZE",    \
               "the same in bytes: 64MiB, 100k"),                   \
        OPTION("kind", 'k', OPT_TEXT, &(s).kind, "KIND",            \
               "kind of filter; see bloomery kinds"),               \
        OPTION("option", 'O', OPT_LIST, &(s).options, "NAME=VALUE", \
               "an option of the kind; may be repeated")

#define MISS_OPTION(s)                                                       \
    OPTION("miss", 0, OPT_RATE, &(s).miss, "P",                              \
           "the most of its own keys that it may miss at capacity, where a " \
           "\"no\" is only likely (kind generalized); other kinds miss none")

#define CUTTING_OPTIONS(c)                                      \
    OPTION("unit", 'u', OPT_CHOICE, &(c).unit, "word|char",     \
           "shingles of words (word, the default) or of bytes " \
           "(char), for scripts without blanks"),               \
        OPTION("size", 0, OPT_POSITIVE, &(c).size, "N",         \
               "units in a shingle; 5 words or 10 characters if not given")

#define DELIMITER_OPTION(text)                                           \
    OPTION("delimiter", 'd', OPT_TEXT, &(text), "C",                     \
           "the character between key and value, instead of a tab; the " \
           "last one in a line counts")

#define FORMAT_OPTION(a, what) \
    OPTION("format", 'F', OPT_TEXT, &(a).format, "FORMAT", what)
#define FORMAT_READ_OPTIONS(a)                                               \
    FORMAT_OPTION(a, "the file has this format of another system; see "      \
                     "bloomery formats; most are recognised by themselves"), \
        OPTION("option", 'O', OPT_LIST, &(a).options, "NAME=VALUE",          \
               "an option of the format, such as the form of keys; may be "  \
               "repeated")

/* Of commands that make sketches; a has `sketch` and `keys`. */
#define SKETCH_OPTIONS(a)                                                      \
    OPTION("output", 'o', OPT_TEXT, &(a).sketch.output, "FILE",                \
           "save the sketch to FILE; - is standard output"),                   \
        OPTION(                                                                \
            "into", 0, OPT_TEXT, &(a).sketch.into, "FILE",                     \
            "go on with the sketch in FILE, which is made if there is none, "  \
            "and save it there; the result is that of all its keys"),          \
        OPTION("seed", 's', OPT_COUNT, &(a).sketch.seed, "S",                  \
               "seed of the hash; sketches merge only if their seeds agree"),  \
        OPTION("key-file", 'K', OPT_TEXT, &(a).keys.key_file, "FILE",          \
               "hash with the secret in FILE, 16 raw bytes or 32 hexadecimal " \
               "digits, if somebody may choose keys to mislead")

#define QUIET_OPTION(what) FLAG("quiet", 'q', quiet, what)
#define QUIET_ERRORS QUIET_OPTION("print nothing but errors")
#define QUIET_HELP \
    "print nothing, not even warnings or --json; errors are still reported"

#define WAIT_OPTION                                                           \
    OPTION("wait", 0, OPT_SECONDS, &wait_seconds, "SECONDS",                  \
           "wait at most this long for another process that is changing the " \
           "file; 0: not at all; 60 if not given")

#endif

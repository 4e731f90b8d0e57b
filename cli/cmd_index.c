/*
 * cmd_index.c - which of ten thousand files? bloomery index VERB ...
 */
#include "apps/index/index_job.h"
#include "cli/rows.h"

static struct index_args index_args = {
    .points = INDEX_UNGIVEN,
    .gram_rate = 0.3,
    .word_rate = 0.001,
    .after = INDEX_UNGIVEN,
    .before = INDEX_UNGIVEN,
    .context = INDEX_UNGIVEN,
    .most = INDEX_UNGIVEN,
};

#define INDEX_OUTPUT \
    OPTION("output", 'o', OPT_TEXT, &index_args.output, "FILE", "the index")

static const struct opt index_build_options[] = {
    INDEX_OUTPUT,
    FLAG("ignore-case", 'i', index_args.fold,
         "fold case, so that the index serves searches with -i too"),
    { "block", 0, OPT_POSITIVE, &index_args.block, "SIZE",
      "text of a block, 4KiB to 256MiB; 1MiB if not given" },
    { "points", 0, OPT_COUNT, &index_args.points, "SIZE",
      "text between two points at which a gzip file can be entered; each takes "
      "about 10 KB; 16MiB if not given, 0: none" },
    { "grams", 0, OPT_RATE, &index_args.gram_rate, "P",
      "rate of blocks that have one gram, or kmer, by mistake; 30% if not "
      "given" },
    { "words", 0, OPT_RATE, &index_args.word_rate, "P",
      "the same of one word; 0.1% if not given" },
    FLAG("no-grams", 0, index_args.no_grams,
         "index words alone, for searches with -w"),
    FLAG("no-words", 0, index_args.no_words, "index grams alone"),
    { "kmers", 0, OPT_POSITIVE, &index_args.kmers, "K",
      "index sequences (FASTA, FASTQ): every K bases of either strand, 11 to "
      "32; a file is one block" },
    OPTION("jsonl", 0, OPT_TEXT, &index_args.jsonl, "PATH",
           "index one field of JSON lines, such as message or error.text"),
    OPTION("csv", 0, OPT_TEXT, &index_args.csv, "COLUMN",
           "the same of CSV: a column, by its name in the header or its "
           "number"),
    OPTION("field", 0, OPT_TEXT, &index_args.field, "N",
           "the same of lines: field N, the last one being -1; fields are "
           "separated by tabs"),
    OPTION("delimiter", 'd', OPT_TEXT, &index_args.delimiter, "C",
           "the character between fields, instead of a tab, or of a comma "
           "with --csv; \\t is a tab, and \"blanks\" are runs of blanks and "
           "tabs"),
    FLAG("no-header", 0, index_args.no_header,
         "the first record of CSV is not a header"),
    OPTION("id", 0, OPT_TEXT, &index_args.id, "FIELD",
           "a second field, which names the record: a search prints it in "
           "place of the number of the line"),
    { "part", 0, OPT_TEXT, &index_args.part, "I/N",
      "index part I of N of the files, for N machines; bloomery index merge "
      "makes one of all" },
    FLAG("binary", 0, index_args.binary,
         "index files with NUL bytes too, and archives"),
    THREADS_OPTION(index_args.threads),
    WAIT_OPTION,
    QUIET_ERRORS,
    JSON_OPTION(index_args),
    { 0 },
};

static const struct opt index_add_options[] = {
    THREADS_OPTION(index_args.threads),
    WAIT_OPTION,
    QUIET_ERRORS,
    JSON_OPTION(index_args),
    { 0 },
};

static const struct opt index_search_options[] = {
    FLAG("word-regexp", 'w', index_args.words,
         "the match must be a whole word; opens far fewer files in vain"),
    FLAG("ignore-case", 'i', index_args.ignore_case, "ignore case"),
    FLAG("fixed-strings", 'F', index_args.fixed, "patterns are plain texts"),
    FLAG("extended-regexp", 'E', index_args.extended,
         "patterns are extended regular expressions"),
    FLAG("basic-regexp", 'G', index_args.basic,
         "patterns are basic regular expressions, as they are if nothing is "
         "said"),
    { "regexp", 'e', OPT_LIST, &index_args.patterns, "PATTERN",
      "a pattern; a line counts if one of several matches" },
    { "file", 'f', OPT_LIST, &index_args.pattern_files, "FILE",
      "the same for each line of FILE; with --coverage, what to ask for" },
    FLAG("count", 'c', index_args.count,
         "print the number of lines of each file"),
    FLAG("files-with-matches", 'l', index_args.list,
         "print names of files alone"),
    FLAG("line-number", 'n', index_args.number,
         "print numbers of lines, which is done anyway"),
    FLAG("no-line-number", 0, index_args.no_number, "leave them out"),
    FLAG("with-filename", 'H', index_args.with_name,
         "print names of files, which is done anyway"),
    FLAG("no-filename", 'h', index_args.no_name, "leave them out"),
    FLAG("only-matching", 'o', index_args.only,
         "print what matches, not all of the line"),
    { "after-context", 'A', OPT_COUNT, &index_args.after, "N",
      "print N lines behind each" },
    { "before-context", 'B', OPT_COUNT, &index_args.before, "N",
      "print N lines before each" },
    { "context", 'C', OPT_COUNT, &index_args.context, "N",
      "print N lines before and behind each" },
    { "max-count", 'm', OPT_COUNT, &index_args.most, "N",
      "stop after N lines of a file" },
    { "color", 0, OPT_CHOICE, &index_args.color, "auto|always|never",
      "mark what matches; auto, as if nothing is said: on a terminal" },
    FLAG("invert-match", 'v', index_args.invert,
         "refused: an index cannot help"),
    FLAG("maybe", 0, index_args.maybe,
         "print the files that may match, and read none of them"),
    { "coverage", 0, OPT_BETWEEN(REAL, 0, 1), &index_args.coverage, "SHARE",
      "print the files that may have this share of the different kmers, or "
      "words, of what is asked for, and the share" },
    QUIET_OPTION("print nothing; stop at the first match"),
    THREADS_OPTION(index_args.threads),
    FLAG("json", 0, index_args.json,
         "with --maybe or --coverage: print JSON, an object per file"),
    { 0 },
};

static const struct opt index_info_options[] = {
    JSON_OPTION(index_args),
    { 0 },
};

static const struct opt index_merge_options[] = {
    INDEX_OUTPUT, WAIT_OPTION, QUIET_ERRORS, JSON_OPTION(index_args), { 0 },
};

RUNS(index_build, index_args)
RUNS(index_add, index_args)
RUNS(index_search, index_args)
RUNS(index_info, index_args)
RUNS(index_merge, index_args)

static const struct verb index_verbs[] = {
    { .name = "build",
      .operands = "-o INDEX FILE...",
      .summary = "index files, and all files of folders",
      .about =
          "build -o INDEX FILE... indexes files, and all files below folders: "
          "plain ones and those compressed with gzip, zstd, xz or bzip2. A "
          "large file is cut into blocks of about 1 MiB, which are searched "
          "one by one: directly in plain files, from the nearest frame of "
          "zstd, block of xz, member or access point of gzip in others. Every "
          "four bytes of a line are indexed, so that any text or regular "
          "expression can be searched for, and every word.\n\n"
          "With --jsonl, --csv or --field, one field of each record is "
          "indexed, "
          "and its text takes the place of the record in every search; "
          "newlines inside of it are blanks.\n\n"
          "A file with NUL bytes at its beginning is binary and left out. One "
          "that cannot be read is named, and a search tries it again; the exit "
          "status is then 2.",
      .options = index_build_options,
      .reports = REPORTS({ "", index_built_fields, ONE }),
      .run = run_index_build },
    { .name = "add",
      .operands = "INDEX [FILE]...",
      .summary = "read new and changed files, drop removed ones",
      .about =
          "add INDEX [FILE]... reads files that are new or have changed, with "
          "the options that INDEX was built with; without FILE, those below "
          "the folders that it was built from. Files that are gone are "
          "dropped. Whoever searches meanwhile has the old index.",
      .options = index_add_options,
      .reports = REPORTS({ "", index_built_fields, ONE }),
      .run = run_index_add },
    { .name = "search",
      .operands = "INDEX... [PATTERN]...",
      .summary = "print lines that match, as zgrep -Hn does",
      .about =
          "search INDEX PATTERN prints the lines that match, byte for byte as "
          "zgrep -Hn prints them, but opens only files that may have one. "
          "Several PATTERNs must all be in a file; lines that match one of "
          "them are printed. Patterns of -e are alternatives.\n\n"
          "Files that are new or have changed since they were indexed are "
          "searched without the index, after saying so; so is everything if "
          "the index cannot help with a pattern. Patterns that are not plain "
          "text are matched by grep itself, which must be GNU grep. The exit "
          "status is that of grep: 0 if a line matches, 1 if none does, 2 "
          "after an error.",
      .options = index_search_options,
      .reports = REPORTS({ "with --maybe", index_candidate_fields, LINES },
                         { "with --coverage", index_covered_fields, LINES }),
      .run = run_index_search },
    { .name = "info",
      .operands = "INDEX...",
      .summary = "what an index has; checks all of it",
      .about = "info INDEX... prints what an index has and promises, and "
               "compares all of it with its checksums.",
      .options = index_info_options,
      .reports = REPORTS({ "", index_told_fields, LINES }),
      .run = run_index_info },
    { .name = "merge",
      .operands = "-o INDEX PART...",
      .summary = "make one index of several",
      .about = "merge -o INDEX PART... makes one index of several that were "
               "built with the same options, such as the parts of build "
               "--part.",
      .options = index_merge_options,
      .reports = REPORTS({ "", index_built_fields, ONE }),
      .run = run_index_merge },
    { 0 },
};

static const struct example index_examples[] = {
    { "bloomery index build -o logs.blx /var/log/archive/",
      "once: every file below it" },
    { "bloomery index search logs.blx -w trace-7f3a91",
      "the lines, with file and number" },
    { "bloomery index search logs.blx -l ERROR user=4711",
      "files that contain both" },
    { "bloomery index add logs.blx",
      "every night: new files, changed ones, removed ones" },
    { "bloomery index build --kmers 31 -o samples.blx *.fasta.gz",
      "sequences" },
    { "bloomery index search samples.blx --coverage 0.8 -f query.fasta",
      "samples with four fifths of a sequence" },
    { 0 },
};

const struct command cmd_index = {
    .name = "index",
    .summary = "find which of thousands of files contain something",
    .about =
        "An index has a filter of the contents of each file, side by side, so "
        "that one question is put to all of them at once, and only files that "
        "may have the answer are opened. It takes a few per cent of the text. "
        "docs/index.md has figures.",
    .verbs = index_verbs,
    .examples = index_examples,
};

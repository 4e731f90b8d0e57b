/*
 * cmd_dedup.c - a corpus without its near-copies: the options
 *
 * dedup_run.c reads them and runs the steps of apps/dedup/; dedup_filter.c does
 * with a filter what can be done in one pass.
 */
#include "apps/dedup/args.h"
#include "cli/rows.h"
#include "io/keys.h"

static const struct opt dedup_options[] = {
    { "output", 'o', OPT_TEXT, &dedup_args.output, "OUT",
      "write the corpus without near-copies to OUT: a file, - for standard "
      "output, or a folder (FOLDER/) with one file per input" },
    { "pairs", 0, OPT_TEXT, &dedup_args.pairs, "FILE",
      "write the pairs at the threshold or above: id, id, likeness" },
    { "clusters", 0, OPT_TEXT, &dedup_args.clusters, "FILE",
      "write the clusters: id, number" },
    { "removed", 0, OPT_TEXT, &dedup_args.removed, "FILE",
      "write what was removed: id, id of the document that stays in its place, "
      "likeness" },
    BINARY_OPTION,
    { "text-field", 0, OPT_TEXT, &dedup_args.text_field, "FIELD",
      "where a line of JSON has its text: the name of a field or a JSON "
      "pointer; text if not given" },
    { "field", 0, OPT_TEXT, &dedup_args.text_field, "FIELD",
      "the same, shorter" },
    { "id-field", 0, OPT_TEXT, &dedup_args.id_field, "FIELD",
      "where it has its id; FILE:LINE if not given" },
    { "id", 0, OPT_TEXT, &dedup_args.id_field, "FIELD", "the same, shorter" },
    { "lines", 'l', OPT_FLAG, &dedup_args.lines, NULL,
      "the input is plain text, not JSON: each line is a document" },
    { "files", 0, OPT_FLAG, &dedup_args.files, NULL,
      "each file is a document; folders are searched recursively; -o lists the "
      "files that stay, or copies them into a folder" },
    { "threshold", 'T', OPT_RATE, &dedup_args.threshold, "J",
      "likeness at or above which a document is a copy; 0.8 if not given" },
    { "verify", 0, OPT_TEXT, &dedup_args.verify, "HOW",
      "exact: compare the texts (default); estimate: trust the sketches; none: "
      "trust the bands" },
    { "policy", 0, OPT_TEXT, &dedup_args.policy, "HOW",
      "greedy: each document removed is like one that stays (default); "
      "component: one of all that are linked stays" },
    { "max-cluster", 0, OPT_POSITIVE, &dedup_args.max_cluster, "N",
      "handle components with more documents by the greedy policy" },
    { "priority", 0, OPT_TEXT, &dedup_args.priority, "HOW",
      "which document stays: first (default), longest, or field:NAME, the one "
      "with the largest number, or with :asc the smallest" },
    { "drop-empty", 0, OPT_FLAG, &dedup_args.drop_empty, NULL,
      "also remove texts without words" },
    { "drop-all", 0, OPT_FLAG, &dedup_args.drop_all, NULL,
      "remove every document that has a copy, and the copied one too" },
    { "strict", 0, OPT_FLAG, &dedup_args.strict, NULL,
      "stop at the first malformed line" },
    { "exact", 0, OPT_FLAG, &dedup_args.exact, NULL,
      "remove only texts that are equal byte for byte" },
    { "profile", 0, OPT_TEXT, &dedup_args.profile, "NAME",
      "corpus: 5 words, k 128 (default); lecture: 10 characters, k 100, "
      "linear" },
    { "unit", 0, OPT_TEXT, &dedup_args.unit, "UNIT",
      "shingles of words or of characters: word, char" },
    { "size", 0, OPT_POSITIVE, &dedup_args.size, "N", "units in a shingle" },
    { "k", 'k', OPT_POSITIVE, &dedup_args.k, "K",
      "components of a sketch; 128 if "
      "not given, 512 with --index bloom" },
    { "family", 0, OPT_TEXT, &dedup_args.family, "NAME",
      "of sketches: fss, oph, linear, linear61" },
    { "seed", 0, OPT_COUNT, &dedup_args.seed, "N",
      "seed of the hash of words" },
    { "recall", 0, OPT_RATE, &dedup_args.recall, "P",
      "probability of finding a pair at the threshold, for choosing bands; "
      "0.995 if not given, 0.25 with --index bloom" },
    { "bands", 0, OPT_TEXT, &dedup_args.bands, "B,R",
      "bands and rows; or area, which balances errors and misses many pairs; "
      "with --index bloom B,R,KNOWN, where KNOWN is how many bands must be "
      "known" },
    { "max-bucket", 0, OPT_POSITIVE, &dedup_args.max_bucket, "N",
      "with --pairs and components: compare every pair in buckets of up to "
      "this size; 1000 if not given" },
    { "save-index", 0, OPT_TEXT, &dedup_args.save_index, "FILE",
      "write the sketches of what was kept" },
    { "with-shingles", 0, OPT_FLAG, &dedup_args.with_shingles, NULL,
      "with its shingles, 8 bytes per word, so that --against compares "
      "exactly" },
    { "against", 0, OPT_TEXT, &dedup_args.against, "FILE",
      "treat the documents of an index as kept, before all others" },
    { "work", 0, OPT_TEXT, &dedup_args.work, "DIR",
      "keep sketches, and what --resume needs, in files in this folder instead "
      "of in memory; it is made if it does not exist, and serves one run at a "
      "time" },
    { "resume", 0, OPT_FLAG, &dedup_args.resume, NULL,
      "continue a run that ended too early, from its folder --work" },
    { "index", 0, OPT_TEXT, &dedup_args.index, "FORM",
      "memory (default), or bloom: one pass with a filter and without a check, "
      "so that documents are removed at about the threshold, not exactly" },
    { "paragraphs", 0, OPT_FLAG, &dedup_args.paragraphs, NULL,
      "remove lines of texts that occurred before, in one pass; lines are "
      "compared by their words, so case, punctuation and spacing do not "
      "matter" },
    { "filter", 0, OPT_TEXT, &dedup_args.filter, "F.bly",
      "the filter for these: read if it exists, and written at the end" },
    { "read-only", 0, OPT_FLAG, &dedup_args.read_only, NULL,
      "add nothing to the filter" },
    { "kind", 0, OPT_TEXT, &dedup_args.kind, "KIND",
      "kind of a new filter; see bloomery kinds" },
    { "items", 'n', OPT_POSITIVE, &dedup_args.items, "N",
      "how many documents, paragraphs or n-grams it is for; it grows if not "
      "given" },
    { "ngrams", 0, OPT_POSITIVE, &dedup_args.items, "N",
      "the same, for dedup ngrams; if not given, they are counted in a pass of "
      "their own" },
    { "fpr", 'p', OPT_RATE, &dedup_args.documents_rate, "P",
      "rate at which a filter removes what is new; 1e-5 if not given" },
    { "rate", 0, OPT_RATE, &dedup_args.documents_rate, "P", "the same" },
    { "level", 0, OPT_TEXT, &dedup_args.level, "LEVEL",
      "what dedup ngrams removes: paragraphs (default), documents, or both" },
    { "ngram", 0, OPT_POSITIVE, &dedup_args.ngram_size, "N",
      "words per n-gram, for dedup ngrams; 13 if not given" },
    { "share", 0, OPT_RATE, &dedup_args.share, "S",
      "share of known n-grams above which a paragraph is removed; 0.8 if not "
      "given" },
    { "min-words", 0, OPT_COUNT, &dedup_args.min_words, "N",
      "paragraphs of fewer words always stay; 5 if not given" },
    { "memory", 'm', OPT_POSITIVE, &dedup_args.memory, "SIZE",
      "memory for sorting and comparing, besides the sketches; 1 GiB if not "
      "given" },
    { "max-line", 0, OPT_POSITIVE, &dedup_args.max_line, "SIZE",
      "longest line, or with --files longest file, that is accepted; a longer "
      "one ends the run; 128 MiB if not given" },
    THREADS_OPTION(dedup_args.threads),
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    { "json", 0, OPT_FLAG, &dedup_args.json, NULL,
      "print the report as one object" },
    { 0 },
};

static const struct example dedup_examples[] = {
    { "bloomery dedup corpus.jsonl.zst -o clean.jsonl",
      "remove near-copies, keep the order" },
    { "bloomery dedup a.jsonl b.jsonl -o clean/ --removed gone.tsv --id id",
      "file by file, and which copy was removed for which document" },
    { "bloomery dedup --files /usr/share/doc --clusters alike.tsv",
      "find files that are alike" },
    { "bloomery dedup new.jsonl --against old.idx --save-index old.idx -o "
      "add.jsonl",
      "add what is new since then" },
    { "bloomery dedup --paragraphs --filter seen.bly crawl.jsonl -o out.jsonl",
      "remove paragraphs seen before" },
    { 0 },
};

const struct command cmd_dedup = {
    .name = "dedup",
    .usage = "[ngrams] [OPTION]... [INPUT]... [-o OUT]",
    .summary = "remove near-copies from a corpus",
    .about = "Reads documents, one line of JSON each, and writes those that "
             "are not near-copies of others, byte for byte and in their order. "
             "Two documents are compared by their shingles, 5 words in a row: "
             "their likeness is the number of shingles in both divided by the "
             "number in either. Sketches find the candidates, and the texts "
             "themselves decide: no document is removed unless one that stays "
             "is at least that similar to it.\n\n"
             "Malformed lines are kept, counted and reported; texts without "
             "words resemble nothing and are kept. gzip, zstd, xz and bzip2 "
             "are recognised.\n\n"
             "With --paragraphs, with ngrams as the first word, and with "
             "--index bloom, a filter of any kind that adds takes the place of "
             "sketches: one pass, and memory that does not grow with the text. "
             "A filter sees words, not bytes: case, punctuation and spacing do "
             "not matter. It cannot compare: with --index bloom, a document "
             "may be removed that is somewhat less similar to an earlier one "
             "than the threshold says; the report says how likely that is.",
    .options = dedup_options,
    .examples = dedup_examples,
    .run = dedup_run,
};

/*
 * cmd_similar.c - how alike are a few texts?
 */
#include "apps/similar/similar.h"
#include "cli/program.h"
#include "cli/rows.h"

static struct similar_args similar_args = { .fpr = 0.01 };

static int similar_run(struct list *operands)
{
    const struct html_wish *const w = &similar_args.pages;
    bool pages = w->html;
    for (size_t i = 0; i < operands->n && !pages && !w->tags; i++)
        pages = html_file(operands->at[i]);
    if (pages && !html_works())
        return program_run("html");
    return similar(&similar_args, operands);
}

static const struct opt similar_options[] = {
    CUTTING_OPTIONS(similar_args.cutting),
    { "components", 0, OPT_POSITIVE, &similar_args.components, "K",
      "components of a sketch, at most 512; 128 if not given" },
    { "family", 0, OPT_TEXT, &similar_args.family, "fss|oph|linear|linear61",
      "how sketches are made: fss (the default), oph, linear, linear61" },
    { "measure", 0, OPT_LIST, &similar_args.measures,
      "jaccard|cosine|angle|hamming",
      "show this measure of the sets, and what the hashing that keeps it says; "
      "may be repeated, for several side by side" },
    { "fpr", 'p', OPT_RATE, &similar_args.fpr, "P",
      "rate of the Bloom filters; 1% if not given" },
    { "max-text", 0, OPT_POSITIVE, &similar_args.max_text, "SIZE",
      "the longest text that is read; 128MiB if not given" },
    { "output", 'o', OPT_TEXT, &similar_args.output, "FILE",
      "save the sketch of the text, or of all texts together, to FILE; - is "
      "standard output" },
    HTML_OPTIONS(similar_args.pages),
    BINARY_OPTION,
    WAIT_OPTION,
    JSON_OPTION(similar_args),
    { 0 },
};

static const struct example similar_examples[] = {
    { "bloomery similar draft1.txt draft2.txt",
      "how much of one is in the other?" },
    { "bloomery similar --unit char *.txt", "every pair, by characters" },
    { "bloomery similar old.html new.html", "what readers of pages see" },
    { "bloomery similar --measure angle --measure hamming draft1.txt "
      "draft2.txt",
      "the angle in degrees, and how many shingles only one of them has" },
    { "bloomery similar -o draft1.bly draft1.txt",
      "keep the sketch, of 1.4 KB, instead of the text" },
    { "bloomery similar draft1.bly draft2.txt",
      "how alike, by the sketch that was saved?" },
    { 0 },
};

const struct command cmd_similar = {
    .name = "similar",
    .usage = "[OPTION]... TEXT...",
    .summary = "measure how alike a few texts are",
    .about =
        "Cuts each text into shingles, overlapping runs of words, and compares "
        "the sets: the number of shingles in both divided by the number in "
        "either. Case (of ASCII), punctuation and white space do not matter. "
        "Three values are shown side by side: the exact one, with the share of "
        "the smaller text that is contained in the other; the estimate from "
        "sketches, with its standard deviation; and the estimate from Bloom "
        "filters of the shingles, with the share of cells that both have set "
        "and the share to expect by chance.\n\n"
        "Compressed files (gzip, zstd, xz, bzip2) are decompressed; - is "
        "standard input. A text without words resembles nothing.\n\n"
        "Of a web page what its reader sees is compared, without menus, "
        "headers "
        "and footers of the site; docs/dedup.md states the rule.\n\n"
        "A TEXT may also be a sketch that was saved with -o: it is compared by "
        "sketch alone, and the texts beside it are sketched like it unless "
        "options say how. bloomery merge makes one sketch of several, which is "
        "that of all their shingles.",
    .options = similar_options,
    .examples = similar_examples,
    .reports = REPORTS({ "", similar_fields, ONE }),
    .run = similar_run,
};

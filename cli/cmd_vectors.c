/*
 * cmd_vectors.c - vectors that are close to each other: bloomery vectors VERB
 */
#include "apps/vectors/vectors_verbs.h"
#include "cli/rows.h"

static struct vectors_args vectors_args = { .threshold = 0.9, .recall = 0.995 };

#define VECTOR_OPTIONS                                                         \
    { "threshold",                                                             \
      'T',                                                                     \
      OPT_BETWEEN(REAL, 0, 1),                                                 \
      &vectors_args.threshold,                                                 \
      "C",                                                                     \
      "least cosine of the angle; 0.9 if not given" },                         \
        { "recall",                                                            \
          0,                                                                   \
          OPT_RATE,                                                            \
          &vectors_args.recall,                                                \
          "P",                                                                 \
          "probability of finding what is at the threshold; 0.995 if not "     \
          "given" },                                                           \
        { "dims",                                                              \
          0,                                                                   \
          OPT_BETWEEN(POSITIVE, 1, 65536),                                     \
          &vectors_args.file.dims,                                             \
          "N",                                                                 \
          "the file is raw floats, N for each vector" },                       \
        FLAG("double", 0, vectors_args.file.doubles,                           \
             "raw numbers are doubles of 8 bytes; numbers in text become "     \
             "doubles, not floats"),                                           \
        { "field",                                                             \
          0,                                                                   \
          OPT_TEXT,                                                            \
          &vectors_args.file.field,                                            \
          "FIELD",                                                             \
          "of JSON lines: where the array is, the name of a field or a JSON "  \
          "pointer; embedding if not given" },                                 \
        { "id",                                                                \
          0,                                                                   \
          OPT_TEXT,                                                            \
          &vectors_args.file.id,                                               \
          "FIELD",                                                             \
          "where the id is: a field of JSON lines, or a column of CSV by its " \
          "name or number; numbers from 0 on if not given" },                  \
        { "delimiter",                                                         \
          'd',                                                                 \
          OPT_TEXT,                                                            \
          &vectors_args.file.delimiter,                                        \
          "C",                                                                 \
          "the character between numbers of CSV, instead of a comma" },        \
        FLAG("skip-bad", 0, vectors_args.skip_bad,                             \
             "leave out vectors that have no direction: zeros alone, "         \
             "infinite, not a number"),                                        \
        { "seed",    's',                                                      \
          OPT_COUNT, &vectors_args.seed,                                       \
          "S",       "seed of the random planes" },                            \
        THREADS_OPTION(vectors_args.threads), BINARY_OPTION

static const struct opt pairs_options[] = {
    VECTOR_OPTIONS,
    FLAG("all", 0, vectors_args.all,
         "also all pairs among equal vectors; else only the first of them is "
         "in a pair, with each of its copies and with what is close to it"),
    QUIET_OPTION("print nothing but pairs and errors"),
    JSON_OPTION(vectors_args),
    { 0 },
};

static const struct opt dedup_options[] = {
    VECTOR_OPTIONS,
    { "output", 'o', OPT_TEXT, &vectors_args.output, "FILE",
      "write the vectors that stay to FILE, in the format of the input; - is "
      "standard output" },
    { "removed", 0, OPT_TEXT, &vectors_args.gone, "FILE",
      "write what goes to FILE: id, id of the vector that stays in its place, "
      "cosine" },
    WAIT_OPTION,
    QUIET_OPTION(QUIET_HELP),
    JSON_OPTION(vectors_args),
    { 0 },
};

static const struct opt near_options[] = {
    VECTOR_OPTIONS,
    { "top", 0, OPT_POSITIVE, &vectors_args.top, "N",
      "the N closest ones of each query; all if not given" },
    QUIET_OPTION("print nothing but neighbours and errors"),
    JSON_OPTION(vectors_args),
    { 0 },
};

RUNS(vectors_pairs, vectors_args)
RUNS(vectors_dedup, vectors_args)
RUNS(vectors_near, vectors_args)

static const struct verb vectors_verbs[] = {
    { .name = "pairs",
      .operands = "FILE",
      .summary = "print the pairs of vectors that are close to each other",
      .about = "pairs prints two ids and the cosine of their angle, with tabs "
               "between, for every two vectors with a cosine of at least the "
               "threshold. The exit status is 0 if there was any, 1 if none, 2 "
               "after an error.",
      .options = pairs_options,
      .reports = REPORTS({ "", vector_pair_fields, LINES }),
      .run = run_vectors_pairs },
    { .name = "dedup",
      .operands = "FILE",
      .summary = "keep one vector of each group that are close",
      .about =
          "dedup goes through the vectors in their order, and removes each one "
          "that is close to an earlier one that stays. With -o it writes those "
          "that stay: rows of .npy and raw numbers, lines of text byte for "
          "byte. With --removed it writes what goes, each with a witness that "
          "stays.",
      .options = dedup_options,
      .reports = REPORTS({ "", vector_dedup_fields, ONE }),
      .run = run_vectors_dedup },
    { .name = "near",
      .operands = "FILE QUERIES",
      .summary = "print the neighbours of each query",
      .about =
          "near prints the id of a query, that of a vector in FILE and their "
          "cosine, for each vector that is close to the query, the closest "
          "first. The exit status is 0 if there was any, 1 if none, 2 after "
          "an error.",
      .options = near_options,
      .reports = REPORTS({ "", vector_pair_fields, LINES }),
      .run = run_vectors_near },
    { 0 },
};

static const struct example vectors_examples[] = {
    { "bloomery vectors pairs embeddings.npy",
      "every two with a cosine of 0.9" },
    { "bloomery vectors dedup -T 0.95 -o clean.npy --removed gone.tsv "
      "embeddings.npy",
      "one of each group, and who stays for whom" },
    { "bloomery vectors near --top 5 embeddings.npy queries.npy",
      "the five closest ones of each query" },
    { "bloomery vectors pairs --id name --field vec products.jsonl.gz",
      "JSON lines: {\"name\": \"mug\", \"vec\": [0.1, -2, ...]}" },
    { 0 },
};

const struct command cmd_vectors = {
    .name = "vectors",
    .summary = "find vectors that are close to each other",
    .about =
        "Finds vectors (embeddings of texts or images, say) whose angle has a "
        "cosine of at least a threshold, without comparing each with each: "
        "every vector is sketched by the sides of random planes on which it "
        "lies, vectors that agree in a band of bits are compared exactly. What "
        "is printed is right, and what is at the threshold is found with the "
        "probability of --recall, what is closer more often.\n\n"
        "FILE is an .npy file of NumPy with two dimensions of floats, doubles "
        "or halves; JSON lines, each an array of numbers or an object that has "
        "one; CSV with a number in each column, with or without a header; or, "
        "with --dims, raw floats or doubles in little-endian order. It is "
        "decompressed (gzip, zstd, xz, bzip2) and read into memory; - is "
        "standard input. Vectors have numbers from 0 on, as in NumPy, unless "
        "--id names them. All vectors of a file have equally many coordinates; "
        "their lengths do not matter.",
    .verbs = vectors_verbs,
    .examples = vectors_examples,
};

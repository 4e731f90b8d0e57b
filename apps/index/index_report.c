/*
 * index_report.c - what the verbs of bloomery index report
 */
#include "apps/index/index_job.h"

const struct field index_built_fields[] = {
    FIELD(struct index_built, file, NONE, "the index"),
    FIELD(struct index_built, files, NONE, "files that were read"),
    FIELD(struct index_built, documents, NONE, "blocks that were added"),
    FIELD(struct index_built, text, BYTES, "bytes of text in them"),
    FIELD(struct index_built, unchanged, NONE,
          "files that are as they were, and were not read"),
    FIELD(struct index_built, removed, NONE, "files that are gone"),
    FIELD(struct index_built, binary, NONE,
          "files that were left out because they are not text"),
    FIELD(struct index_built, unread, NONE,
          "files that could not be read; a search tries them again"),
    FIELD(struct index_built, bad, NONE,
          "records that have no such field, or cannot be read"),
    NAMED(struct index_built, "all_files", all_files, NONE,
          "files that the index knows now"),
    NAMED(struct index_built, "all_documents", all_documents, NONE,
          "blocks that it has now"),
    NAMED(struct index_built, "bytes", nbytes, BYTES, "size of the index"),
    FIELD(struct index_built, share, SHARE | MAYBE,
          "of the text, where all of it was read"),
    FIELD(struct index_built, seconds, SECONDS, "how long it took"),
    { 0 },
};

static const struct field index_class_fields[] = {
    FIELD(struct index_class_told, name, NONE, "grams, words or kmers"),
    FIELD(struct index_class_told, rate, RATE,
          "promised share of blocks that are opened in vain for one term"),
    FIELD(struct index_class_told, expected, RATE, "the share as built"),
    FIELD(struct index_class_told, rows, NONE, "rows that a term reads"),
    FIELD(struct index_class_told, terms, NONE, "terms, summed over blocks"),
    NAMED(struct index_class_told, "bytes", nbytes, BYTES, "size of the rows"),
    { 0 },
};

const struct field index_told_fields[] = {
    FIELD(struct index_told, file, NONE, "the index"),
    FIELD(struct index_told, files, NONE, "files that it knows"),
    FIELD(struct index_told, documents, NONE, "blocks"),
    FIELD(struct index_told, dropped, NONE,
          "blocks of older versions, which the next compaction forgets"),
    FIELD(struct index_told, binary, NONE,
          "files that were left out because they are not text"),
    FIELD(struct index_told, unread, NONE,
          "files that could not be read, and are searched without the index"),
    FIELD(struct index_told, text, BYTES, "bytes of text"),
    NAMED(struct index_told, "bytes", nbytes, BYTES, "size of the index"),
    NAMED(struct index_told, "blob_bytes", blob_bytes, BYTES,
          "of which names, places and access points"),
    FIELD(struct index_told, share, SHARE | MAYBE, "of the text"),
    FIELD(struct index_told, folds, NONE, "built with -i, to serve search -i"),
    FIELD(struct index_told, field, NONE | MAYBE,
          "the field that is indexed; null: all of each line"),
    FIELD(struct index_told, id, NONE | MAYBE,
          "the field that names a record; null: its line does"),
    FIELD(struct index_told, segments, NONE, "parts that were added"),
    FIELD(struct index_told, groups, NONE, "groups of blocks of like size"),
    LIST(struct index_told, "classes", classes, nclasses, AT,
         index_class_fields, "what is indexed"),
    VALUES(struct index_told, "roots", roots, nroots, AT,
           "folders and files that it was built from"),
    { 0 },
};

const struct field index_covered_fields[] = {
    FIELD(struct index_covered, file, NONE, "the file"),
    FIELD(struct index_covered, query, NONE, "the file with the question"),
    FIELD(struct index_covered, share, SHARE,
          "of the different terms of the question that the file may have"),
    FIELD(struct index_covered, terms, NONE, "different terms of the question"),
    { 0 },
};

const struct field index_candidate_fields[] = {
    FIELD(struct index_candidate, file, NONE, "the file"),
    FIELD(struct index_candidate, blocks, NONE, "blocks that may match"),
    FIELD(struct index_candidate, of, NONE, "blocks of the file"),
    { 0 },
};

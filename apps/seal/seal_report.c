/*
 * seal_report.c - what bloomery seal reports
 */
#include "apps/seal/seal_args.h"

const struct field sealed_fields[] = {
    FIELD(struct sealed_report, archive, NONE, "the folder"),
    FIELD(struct sealed_report, documents, NONE, "documents that were sealed"),
    FIELD(struct sealed_report, replaced, NONE,
          "documents of the same names that were removed, with --replace"),
    FIELD(struct sealed_report, all, NONE, "how many the archive has now"),
    FIELD(struct sealed_report, bytes, BYTES, "of their texts"),
    FIELD(struct sealed_report, index_bytes, BYTES, "of their filters"),
    FIELD(struct sealed_report, rate, RATE,
          "of documents that are found without having the word"),
    { 0 },
};

const struct field removed_fields[] = {
    FIELD(struct removed_report, archive, NONE, "the folder"),
    FIELD(struct removed_report, removed, NONE, "documents that were removed"),
    FIELD(struct removed_report, all, NONE, "how many the archive has now"),
    { 0 },
};

const struct field searched_fields[] = {
    FIELD(struct searched, documents, NONE, "documents of the archive"),
    FIELD(struct searched, found, NONE, "those that may have the words"),
    FIELD(struct searched, rate, RATE,
          "of documents that are found without having a word"),
    { 0 },
};

const struct field opened_fields[] = {
    FIELD(struct opened_report, id, NONE, "the document"),
    FIELD(struct opened_report, name, NONE,
          "the name it had, with its folders"),
    FIELD(struct opened_report, bytes, BYTES, "of its text"),
    FIELD(struct opened_report, older, NONE,
          "a newer document of that name was opened too; -o does not write "
          "this one"),
    { 0 },
};

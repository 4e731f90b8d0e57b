/*
 * parquet_report.c - what parquet add prints
 */
#include "apps/parquet/parquet_verbs.h"

const struct field parquet_added_fields[] = {
    NAMED(struct parquet_added, "column", name, NONE, "the column"),
    NAMED(struct parquet_added, "bytes", nbytes, BYTES, "size of its filters"),
    NAMED(struct parquet_added, "values_estimate", values, ESTIMATE | MAYBE,
          "different values in each row group, summed"),
    NAMED(struct parquet_added, "fpr", worst, RATE | MAYBE,
          "false positives, where there are most"),
    NAMED(struct parquet_added, "left_alone", kept, NONE,
          "it had filters, and kept them"),
    { 0 },
};

const struct field parquet_adding_fields[] = {
    FIELD(struct parquet_adding, output, NONE, "the file that was written"),
    NAMED(struct parquet_adding, "row_groups", groups, NONE,
          "its groups of rows"),
    LIST(struct parquet_adding, "columns", columns, n, AT, parquet_added_fields,
         "the columns"),
    { 0 },
};

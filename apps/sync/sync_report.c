/*
 * sync_report.c - what syncs and intersections report
 */
#include <math.h>

#include "apps/sync/client.h"
#include "apps/sync/isect.h"
#include "apps/sync/sync.h"

const struct field sync_fields[] = {
    FIELD(struct sync_report, path, NONE, "this side: a list or a folder"),
    FIELD(struct sync_report, peer, NONE, "the other side"),
    FIELD(struct sync_report, verb, NONE, "compare, pull, push or both"),
    FIELD(struct sync_report, form, NONE, "lines, files or objects"),
    FIELD(struct sync_report, method, NONE,
          "how differences were found: rateless, iblt, tree, bloom or exact"),
    FIELD(struct sync_report, complete, NONE,
          "all differences were found; bloom and tree miss some"),
    FIELD(struct sync_report, dry_run, NONE, "nothing was changed"),
    FIELD(struct sync_report, here, NONE, "lines or files of this side"),
    FIELD(struct sync_report, there, NONE, "and of the other"),
    FIELD(struct sync_report, same, NONE, "no differences were found"),
    FIELD(struct sync_report, only_here, NONE, "that only this side has"),
    FIELD(struct sync_report, only_there, NONE, "that only the other has"),
    FIELD(struct sync_report, changed, NONE,
          "files that both have, with other contents"),
    FIELD(struct sync_report, estimate, OPTIONAL | ZERO,
          "of differences, where it was asked for"),
    FIELD(struct sync_report, symbols, NONE, "symbols or cells that came"),
    FIELD(struct sync_report, taken, NONE, "lines or files that came here"),
    FIELD(struct sync_report, given, NONE, "that went to the other side"),
    FIELD(struct sync_report, removed, NONE, "that were removed (--delete)"),
    FIELD(struct sync_report, refused, NONE,
          "files that could not be brought, each with a warning"),
    FIELD(struct sync_report, taken_bytes, BYTES, "contents that came here"),
    FIELD(struct sync_report, given_bytes, BYTES,
          "and that went to the other side"),
    FIELD(struct sync_report, sent, BYTES, "bytes sent, in all"),
    FIELD(struct sync_report, received, BYTES, "bytes received, in all"),
    FIELD(struct sync_report, rounds, NONE, "questions, each with its answer"),
    FIELD(struct sync_report, compared, BYTES,
          "bytes both ways until the differences were known"),
    FIELD(struct sync_report, plain, BYTES,
          "what the plain list of the other side takes: its lines, or the "
          "records of its files"),
    FIELD(struct sync_report, rsync, BYTES | OPTIONAL | ZERO,
          "about what rsync -a sends to compare these folders"),
    FIELD(struct sync_report, saved, NONE | MAYBE,
          "the plain list, in times of what was compared"),
    FIELD(struct sync_report, seconds, SECONDS, "that it took"),
    { 0 },
};

const struct field sync_serve_fields[] = {
    FIELD(struct serving_at, path, NONE, "the list or folder"),
    FIELD(struct serving_at, address, NONE, "where it is served"),
    FIELD(struct serving_at, port, NONE, "its port"),
    { 0 },
};

static const struct field isect_list_fields[] = {
    FIELD(struct isect_list, name, NONE, "the list"),
    FIELD(struct isect_list, items, NONE, "different lines in it"),
    FIELD(struct isect_list, passed, NONE,
          "of them, how many passed the filter of the lists before it"),
    FIELD(struct isect_list, filter, BYTES,
          "bytes that it sent to the next: a filter, or the hashes"),
    { 0 },
};

const struct field isect_fields[] = {
    LIST(struct isect_report, "lists", lists, nlists, AT, isect_list_fields,
         "the lists, in the order of the chain"),
    FIELD(struct isect_report, common, NONE, "lines that all lists have"),
    FIELD(struct isect_report, falsely, NONE,
          "that passed all filters, and are not in all lists"),
    FIELD(struct isect_report, filters, BYTES, "of filters"),
    FIELD(struct isect_report, answers, BYTES,
          "of hashes that came back, and were confirmed"),
    FIELD(struct isect_report, bytes, BYTES, "both: from list to list"),
    FIELD(struct isect_report, plain, BYTES,
          "what the shortest list takes, as hashes of 8 bytes, on its way "
          "along the chain"),
    FIELD(struct isect_report, saved, NONE | MAYBE, "plain, in times of bytes"),
    FIELD(struct isect_report, moved, BYTES,
          "bytes that went over lines, both ways, with the lines of the "
          "result"),
    { 0 },
};

double isect_bits(double a, double b, double j)
{
    const double ratio = 2.081 * a / (b * j);
    return a > 0 && ratio < 1 ? a * log(ratio) / log(0.6185) : 0;
}

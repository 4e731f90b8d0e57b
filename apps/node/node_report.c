/*
 * node_report.c - what the verbs of node print
 */
#include "apps/node/chord_files.h"

const struct field node_file_fields[] = {
    FIELD(struct node_file, file, NONE, "its name on the ring"),
    FIELD(struct node_file, bytes, BYTES, "its size"),
    FIELD(struct node_file, blocks, NONE, "blocks that it is cut into"),
    FIELD(struct node_file, copies, OPTIONAL | ZERO,
          "of put: copies that the block with the fewest has now"),
    { 0 },
};

static const struct field member_fields[] = {
    FIELD(struct status_member, id, NONE, "its place on the ring"),
    FIELD(struct status_member, phase, NONE,
          "\"out\", \"joining\", \"in\" or \"left\""),
    NAMED(struct status_member, "predecessor", pred, NONE,
          "the member before it: it owns what lies between"),
    FIELD(struct status_member, uncertain, NONE,
          "whether that one did not answer lately"),
    WORDS(struct status_member, "successors", succ, NONE,
          "addresses of the members behind it, in order"),
    FIELD(struct status_member, fingers, NONE,
          "different members that its fingers name"),
    { 0 },
};

const struct field node_status_fields[] = {
    FIELD(struct node_status, address, NONE, "where it listens"),
    FIELD(struct node_status, records, NONE, "blocks, manifests, tombstones"),
    FIELD(struct node_status, bytes, BYTES, "of these"),
    FIELD(struct node_status, files, NONE, "manifests among them"),
    FIELD(struct node_status, tombstones, NONE, "of files that were removed"),
    FIELD(struct node_status, exchanges, NONE, "comparisons with others"),
    FIELD(struct node_status, fetched, NONE, "records that it lacked"),
    FIELD(struct node_status, sent, NONE, "records that others lacked"),
    FIELD(struct node_status, dropped, NONE, "records that others keep now"),
    FIELD(struct node_status, connections, NONE, "open now"),
    FIELD(struct node_status, asked, NONE, "questions to others"),
    FIELD(struct node_status, silent, NONE, "of them without an answer"),
    FIELD(struct node_status, refused, NONE, "questions that it refused"),
    FIELD(struct node_status, bytes_in, BYTES, "received"),
    FIELD(struct node_status, bytes_out, BYTES, "sent"),
    FIELD(struct node_status, bad, NONE, "connections cut for what they said"),
    FIELD(struct node_status, epoch, NONE,
          "number of the roster of those who keep names"),
    FIELD(struct node_status, voters, NONE, "processes of that roster"),
    FIELD(struct node_status, voter, NONE, "1: this process is one of them"),
    FIELD(struct node_status, ready, NONE,
          "1: it has all names that it has to keep, and answers for them"),
    FIELD(struct node_status, damaged, NONE,
          "records that wait for another copy"),
    FIELD(struct node_status, scrubbed, NONE,
          "records that were read to see whether they can be"),
    FIELD(struct node_status, reclaimed, NONE,
          "blocks that no file used any more"),
    LIST(struct node_status, "members", members, nmembers, AT, member_fields,
         "its virtual nodes"),
    { 0 },
};

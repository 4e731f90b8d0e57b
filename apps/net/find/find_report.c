/*
 * find_report.c - what find and status print
 */
#include "apps/net/find/find.h"

const struct field find_row_fields[] = {
    FIELD(struct find_row, name, NONE, "the service"),
    FIELD(struct find_row, where, NONE, "where it is reached"),
    VALUES(struct find_row, "tags", tags, ntags, NONE, "what it is"),
    FIELD(struct find_row, at, NONE,
          "the server, or member of the ring, that "
          "told of it"),
    FIELD(struct find_row, by, NONE, "how it was found: near, tree or ring"),
    FIELD(struct find_row, hops, NONE, "steps from the first server"),
    FIELD(struct find_row, asked, NONE, "servers asked until then"),
    { 0 },
};

const struct field find_status_fields[] = {
    FIELD(struct find_status, services, NONE, "announced here"),
    FIELD(struct find_status, links, NONE, "neighbours"),
    FIELD(struct find_status, heard, NONE, "of these, that tell something"),
    FIELD(struct find_status, children, NONE, "servers below it"),
    FIELD(struct find_status, bytes, BYTES, "of memory in its filters"),
    FIELD(struct find_status, looks, NONE, "questions for services"),
    FIELD(struct find_status, news, NONE, "messages of neighbours"),
    FIELD(struct find_status, refused, NONE, "of these, refused"),
    FIELD(struct find_status, expired, NONE, "services that were forgotten"),
    FIELD(struct find_status, full, NONE, "announcements without room"),
    { 0 },
};

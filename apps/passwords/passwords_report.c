/*
 * passwords_report.c - what bloomery passwords reports
 */
#include "apps/passwords/passwords.h"
#include "io/foreign_files.h"

struct range_serving {
    const char *mirror, *url;
    uint64_t port;
};

const struct field range_serving_fields[] = {
    FIELD(struct range_serving, mirror, NONE, "the list that is served"),
    FIELD(struct range_serving, url, NONE, "where, without the five digits"),
    FIELD(struct range_serving, port, NONE, "its port"),
    { 0 },
};

void passwords_tell_serving(const struct passwords_args *args,
                            const char *mirror, const char *url, uint64_t port)
{
    report(stdout, args->json, range_serving_fields,
           &(struct range_serving){ mirror, url, port }, "{mirror}: {url}\n");
}

struct range_served {
    uint64_t requests, ranges;
};

const struct field range_served_fields[] = {
    FIELD(struct range_served, requests, NONE, "requests that were answered"),
    FIELD(struct range_served, ranges, NONE, "those that got a range"),
    { 0 },
};

void passwords_tell_served(const struct passwords_args *args,
                           uint64_t nrequests, uint64_t nranges)
{
    report(stdout, args->json, range_served_fields,
           &(struct range_served){ nrequests, nranges },
           "{requests} requests, {ranges} answered with a range\n");
}

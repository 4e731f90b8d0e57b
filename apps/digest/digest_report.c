/*
 * digest_report.c - what the verbs of `bloomery digest` report
 */
#include "apps/digest/jobs.h"
#include "io/paths.h"

/* A digest. */
struct content {
    bly_foreign_stats s;
    uint64_t mask_bytes, file_bytes;
    double per_entry;
    bool useless;
};

static const struct field content_fields[] = {
    NAMED(struct content, "entries", s.items, NONE, "objects that it holds"),
    NAMED(struct content, "capacity", s.capacity, NONE, "that it was made for"),
    FIELD(struct content, mask_bytes, BYTES, "size of the array of bits"),
    NAMED(struct content, "ones", s.ones, BITS, "bits that are set"),
    NAMED(struct content, "fill", s.fill, SHARE | MAYBE, "bits that are set"),
    NAMED(struct content, "fpr_now", s.fpr_now, RATE | MAYBE,
          "false positives with these entries"),
    FACTS(struct content, s.facts, s.nfacts),
    FIELD(struct content, file_bytes, BYTES, NULL),
    FIELD(struct content, per_entry, NONE, NULL),
    FIELD(struct content, useless, NONE, NULL),
    { 0 },
};

static struct content content_of(const bly_foreign_stats *s)
{
    return (struct content){
        .s = *s,
        .mask_bytes = s->bits / 8,
        .file_bytes = DIGEST_HEADER + s->bits / 8,
        .per_entry = (double)s->bits / (double)s->capacity,
        .useless = s->fill > 0.65,
    };
}

struct got {
    const char *url, *file;
    uint64_t modified, expires;
    struct content content;
};

const struct field got_fields[] = {
    FIELD(struct got, url, NONE, "where it came from"),
    FIELD(struct got, file, MAYBE, "where it was written"),
    FIELD(struct got, modified, SECONDS | MAYBE | ZERO,
          "when it was made, since 1970"),
    FIELD(struct got, expires, SECONDS | MAYBE | ZERO,
          "when there is a newer one, since 1970"),
    MEMBERS(struct got, content, NONE, content_fields),
    { 0 },
};

void digest_tell_got(const struct digest_args *args, const char *url,
                     const struct digest_copy *copy)
{
    const struct got got = { url, args->output,
                             copy->modified > 0 ? (uint64_t)copy->modified : 0,
                             copy->expires > 0 ? (uint64_t)copy->expires : 0,
                             content_of(&copy->stats) };
    report(stdout, args->json, got_fields, &got,
           "{url}\n"
           "  entries    {entries} of {capacity}\n"
           "  mask       {mask_bytes}, {per_entry} bits per entry, {fill} of "
           "them set\n"
           "  rate       {fpr_now} false positives\n"
           "[{?useless}  useless    Squid refuses a digest with more than 65 % "
           "of its bits set\n]"
           "[  file       {file}\n]");
}

struct built {
    const char *file;
    uint64_t lines, kept, unknown;
    struct content content;
};

const struct field digest_built_fields[] = {
    FIELD(struct built, file, NONE, "where the digest was written"),
    FIELD(struct built, lines, NONE, "lines or records that were read"),
    FIELD(struct built, kept, NONE, "those that a cache keeps"),
    FIELD(struct built, unknown, NONE, "lines that say nothing"),
    MEMBERS(struct built, content, NONE, content_fields),
    { 0 },
};

void digest_tell_built(const struct digest_args *args, const bly_foreign *f,
                       uint64_t nkept, const struct digest_counts *counts)
{
    bly_foreign_stats s;
    bly_foreign_stat(f, BLY_WHOLE, &s);
    const struct built built = { args->output, counts->lines, nkept,
                                 counts->unknown, content_of(&s) };
    report(report_to(args->output), args->json, digest_built_fields, &built,
           "{file}: {lines} lines or records, {kept} of which a cache keeps; "
           "digest for {capacity} entries, {file_bytes}, {fpr_now} false "
           "positives\n");
}

struct asked {
    uint64_t asked, maybe, skipped, picked;
};

const struct field asked_fields[] = {
    FIELD(struct asked, asked, NONE, "keys that were asked for"),
    FIELD(struct asked, maybe, NONE, "those that may be in it"),
    FIELD(struct asked, skipped, NONE, "lines without a key"),
    FIELD(struct asked, picked, NONE, NULL),
    { 0 },
};

void digest_tell_asked(const struct digest_args *args, uint64_t nasked,
                       uint64_t nmaybe, uint64_t nskipped, uint64_t picked)
{
    const struct asked asked = { nasked, nmaybe, nskipped, picked };
    report(stdout, args->json, asked_fields, &asked, "{picked}\n");
}

struct serving {
    const char *source, *url;
    uint64_t port;
};

const struct field serving_fields[] = {
    FIELD(struct serving, source, NONE, "where the digest comes from"),
    FIELD(struct serving, url, NONE, "where it is served"),
    FIELD(struct serving, port, NONE, "the port of that"),
    { 0 },
};

void digest_tell_serving(const struct digest_args *args, const char *source,
                         const char *url, uint64_t port)
{
    report(stdout, args->json, serving_fields,
           &(struct serving){ source, url, port }, "{source}: {url}\n");
}

struct served {
    uint64_t requests, digests;
};

const struct field served_fields[] = {
    FIELD(struct served, requests, NONE, "requests that were answered"),
    FIELD(struct served, digests, NONE, "those for the digest"),
    { 0 },
};

void digest_tell_served(const struct digest_args *args, uint64_t nrequests,
                        uint64_t ndigests)
{
    report(stdout, args->json, served_fields,
           &(struct served){ nrequests, ndigests },
           "{requests} requests, {digests} for the digest\n");
}

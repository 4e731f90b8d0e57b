/*
 * convert_foreign.c - filters into formats of other systems, and out of them
 *
 * Positions are part of a format, so bits can be carried over only where two
 * formats place keys alike and differ in form. Everything else is rebuilt from
 * the keys, with the size of the old filter; keys that the old one certainly
 * does not have are left out.
 */
#include "cli/convert_foreign.h"
#include "io/filters.h"
#include "io/notes.h"
#include "io/paths.h"
#include "report/say.h"

/* ------------------------------------------------------------- telling */

struct converted {
    const char *file, *from;
    const uint64_t *keys, *left_out;
    struct made made;
};

const struct field converted_fields[] = {
    FIELD(struct converted, file, NONE, "where the filter was written"),
    FIELD(struct converted, from, OPTIONAL, "kind that it was made from"),
    FIELD(struct converted, keys, KEYS | OPTIONAL, "keys that were read"),
    FIELD(struct converted, left_out, OPTIONAL,
          "of them, those left out because the old filter has them not"),
    MEMBERS(struct converted, made, NONE, made_fields),
    { 0 },
};

void convert_report(FILE *to, bool json, const char *output, const char *from,
                    const struct job *job, const bly_filter *f)
{
    bly_stats s;
    bly_stat(f, &s);
    const uint64_t left_out = job ? job->nkeys - job->npicked : 0;
    const struct converted r = { output, from, job ? &job->nkeys : NULL,
                                 job ? &left_out : NULL, made_of(&s) };
    report(
        to, json, converted_fields, &r,
        "{file}: [from {from}[, {keys} read][{?left_out}, {left_out} left out "
        "because they were not in it]|{keys} read, {left_out} left out "
        "because they were not in it]; " MADE_TEXT);
    warn_past_capacity(output, &s);
}

/* What is converted: one of the two. */
struct origin {
    const bly_filter *ours;
    const bly_foreign *theirs;
    bool sifts; /* it can say which keys it does not have */
};

static bly_status origin_sift(const void *ctx, struct batch *b)
{
    const struct origin *const o = ctx;
    if (o->theirs && o->sifts)
        return foreign_ask(o->theirs, b);
    if (o->sifts) {
        uint64_t hashes[BATCH];
        const bly_status st =
            bly_hash_as(bly_hasher_of(o->ours), bly_keying_of(o->ours),
                        BLY_KEYS_TEXT, b->keys, b->n, hashes, NULL);
        if (st)
            return st;
        bly_has_hashes(o->ours, hashes, b->n, b->picked);
    } else {
        batch_invert(b);
    }
    return BLY_OK;
}

/* The capacity and the rate that it was made for, as far as it knows. */
static void origin_sizes(const struct origin *o, uint64_t *items, double *fpr)
{
    double rate;
    uint64_t capacity;
    if (o->theirs) {
        bly_foreign_stats s;
        bly_foreign_stat(o->theirs, BLY_WHOLE, &s);
        rate = s.fpr_planned;
        capacity = s.nparts == 1 ? s.capacity : 0;
    } else {
        bly_stats s;
        bly_stat(o->ours, &s);
        rate = s.fpr_at_capacity;
        capacity = has_grown(&s) || is_past_capacity(&s) ? 0 : s.capacity;
    }
    if (!*items)
        *items = capacity;
    if (!(*fpr > 0) && rate > 0 && rate < 1)
        *fpr = rate;
}

/* ------------------------------------------------------ into a format */

static bly_foreign *convert_into(const struct foreign_conversion *c,
                                 const struct origin *o, bly_foreign_spec *spec,
                                 struct job *job)
{
    if (!c->keys->files.n) {
        bly_foreign *f = NULL;
        if (!o->theirs)
            fail("%s: another system places keys differently, so its bits "
                 "cannot be made from these: give the keys with -f INPUT",
                 c->path);
        else if (bly_foreign_repack(spec, o->theirs, &f))
            fail("%s: %s; give them with -f INPUT", c->path, bly_error());
        return f;
    }
    struct input in;
    if (!keys_files(c->keys, c->keys->files.at, c->keys->files.n, &in))
        return NULL;
    /* The format cannot say how keys were folded or trimmed, so what goes in is
     * what the old filter holds, not the lines. */
    if (o->ours && !keys_follow(bly_keying_of(o->ours), c->path, &in)) {
        input_close(&in);
        return NULL;
    }
    bly_foreign *const f =
        foreign_build(spec, &in, origin_sift, o, spec->items != 0, job);
    input_close(&in);
    return f;
}

static int convert_to(const struct foreign_conversion *c,
                      const struct origin *o)
{
    const struct foreign_args args = { c->to, c->sizing->options };
    bly_foreign_spec spec = { .items = c->sizing->items,
                              .fpr = c->sizing->fpr };
    struct job job = { 0 };
    if (c->sizing->kind || c->sizing->bits || c->sizing->memory)
        return fail("--kind, --bits and --memory have no meaning for a format "
                    "of another system; use --items, --fpr and -O");
    if (!foreign_spec(&args, &spec))
        return TROUBLE;
    if (c->keys->files.n)
        origin_sizes(o, &spec.items, &spec.fpr);
    bly_foreign *const f = convert_into(c, o, &spec, &job);
    if (!f)
        return TROUBLE;
    FILE *const to = report_to(c->output);
    const int status = foreign_save(f, c->output);
    if (status == YES && !quiet)
        foreign_report(to, c->json, c->output, &job, f);
    if (status == YES && o->ours && *meta_lost(o->ours))
        warn("%s: the format has no place for what %s says: %s", c->output,
             c->path, meta_lost(o->ours));
    bly_foreign_free(f);
    return status;
}

/* -------------------------------------------------------- out of one */

static int convert_from(const struct foreign_conversion *c,
                        const struct origin *o)
{
    bly_spec spec = { 0 };
    struct job job;
    if (!c->keys->files.n)
        return fail("%s: another system placed its keys differently, so its "
                    "bits mean nothing here: give the keys with -f INPUT",
                    c->path);
    if (!sizing_spec(c->sizing, &spec))
        return TROUBLE;
    if (!spec.bits)
        origin_sizes(o, &spec.items, &spec.fpr);
    spec.keying = keys_keying(c->keys);
    bly_filter *const f = sifted_filter(&spec, c->keys, c->path, c->threads,
                                        origin_sift, o, &job);
    if (!f)
        return TROUBLE;
    FILE *const to = report_to(c->output);
    const int status = filter_save(f, c->output);
    if (status == YES && !quiet)
        convert_report(to, c->json, c->output, NULL, &job, f);
    bly_free(f);
    return status;
}

/* --------------------------------------------------------------- both ways */

int convert_foreign(const struct foreign_conversion *c,
                    const struct foreign_file *file, const bly_access *how)
{
    struct origin o = { .theirs = file->f };
    if (o.theirs) {
        bly_format_info format;
        bly_format_named(bly_foreign_format(o.theirs), &format);
        o.sifts = format.can & BLY_FORMAT_HAS;
        return c->to ? convert_to(c, &o) : convert_from(c, &o);
    }
    bly_access all = *how;
    all.checking = BLY_CHECK_ALL;
    bly_filter *const f = filter_map(c->path, &all);
    if (!f)
        return TROUBLE;
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    o.ours = f;
    o.sifts = (kind.can & BLY_CAN(HAS)) && !(kind.traits & BLY_LIKELY_NO);
    const int status = convert_to(c, &o);
    bly_free(f);
    return status;
}

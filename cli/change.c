/*
 * change.c - a filter on disk, changed key by key: remove and set
 *
 * The library locks the file and puts the new one in its place. A refused key
 * is named, and does not stop the others. One thread does it all, so that lines
 * take effect, and refusals are reported, in their order.
 */
#include "cli/change.h"
#include "io/files.h"
#include "io/filters.h"
#include "io/paths.h"
#include "report/say.h"
#include "report/show.h"

struct change_run {
    struct job *job;
    struct input in;
    bool began;
};

/* BLY_EABSENT, which leaves the file alone, where nothing was changed. */
static bly_status change_all(bly_filter *f, void *ctx)
{
    struct change_run *const r = ctx;
    r->began = true;
    r->job->hasher = bly_hasher_of(f);
    r->job->ctx = f;
    bly_status st = filter_tick(f);
    if (!st)
        st = pipeline_run(r->job, &r->in);
    return st ? st : r->job->npicked ? BLY_OK : BLY_EABSENT;
}

static bly_status change_foreign(bly_foreign *f, void *ctx)
{
    struct change_run *const r = ctx;
    r->began = true;
    r->job->ctx = f;
    const bly_status st = pipeline_run(r->job, &r->in);
    return st ? st : r->job->npicked ? BLY_OK : BLY_EABSENT;
}

void change_refused(const bly_bytes *key, const char *why)
{
    if (!quiet)
        fail("%s: %s", show_text(key->ptr, key->len), why);
}

int change_keys(struct change *c, const struct list *operands)
{
    const char *const path = operands->at[0];
    struct change_run r = { .job = &c->job };
    if (!can_change(path))
        return TROUBLE;
    const int foreign =
        c->format_can ? foreign_changes(path, c->foreign, c->format_can) : 0;
    struct keys keys = *c->keys;
    keys.changes = true;
    if (foreign < 0 || !keys_input(&keys, operands, &r.in))
        return TROUBLE;
    bool ok;
    const bly_access how = { .secret = secret_read(c->keys->key_file, &ok),
                             .wait = wait_for_lock };
    bly_kind_info kind;
    bly_foreign_spec spec = { 0 };
    if (!ok ||
        (foreign ? !foreign_spec(c->foreign, &spec)
                 : !filter_to_change(path, &how, c->ability, &r.in, &kind))) {
        input_close(&r.in);
        return TROUBLE;
    }

    c->job.nthreads = 1;
    c->job.path = path;
    if (foreign)
        c->job.batch = c->foreign_batch;
    const bly_status st =
        foreign ? bly_foreign_update(path, &how, &spec, change_foreign, &r)
                : bly_update(path, &how, change_all, &r);
    input_close(&r.in);
    if (st && c->job.error[0])
        return fail("%s", c->job.error);
    if (st && !(st == BLY_EABSENT && r.began))
        return fail_library();
    const struct changed done = { path, c->job.nkeys, c->job.npicked,
                                  c->job.nkeys - c->job.npicked };
    if (!quiet)
        report(stdout, c->json, c->fields, &done, c->text);
    return c->job.npicked < c->job.nkeys ? NO : YES;
}

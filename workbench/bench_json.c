/*
 * bench_json.c - what a bench found, for programs: one object
 */
#include <math.h>

#include "workbench/bench.h"

static const struct field figure_fields[] = {
    FIELD(struct bench_figure, median, MAYBE, "the middle over the rounds"),
    FIELD(struct bench_figure, q1, MAYBE, "a quarter of them lie below"),
    FIELD(struct bench_figure, q3, MAYBE, "a quarter of them lie above"),
    { 0 },
};

/* A figure, and what it is held to. */
struct judged {
    struct bench_figure ns, f; /* f: multiples of F, or of one thread */
    double target;
    const bool *met; /* NULL: there is no target */
};

#define JUDGED_FIELDS                                                     \
    FIELD(struct judged, target, OPTIONAL, "what the figure is held to"), \
        FIELD(struct judged, met, OPTIONAL, "whether it is as good as that")

static const struct field operation_fields[] = {
    OBJECT(struct judged, "ns", ns, NANOSECONDS, figure_fields, "per key"),
    OBJECT(struct judged, "F", f, NONE, figure_fields, "the same, by F"),
    JUDGED_FIELDS,
    { 0 },
};

static const struct field threads_fields[] = {
    OBJECT(struct judged, "times", f, NONE, figure_fields,
           "as fast as one thread"),
    JUDGED_FIELDS,
    { 0 },
};

/* NULL: was not measured. */
struct measured {
    const struct bench_cell *cell;
    double rate;
    struct bench_figure floor;
    const struct judged *op[NOPS], *times[NTIMES];
    struct judged ops[NOPS], ratios[NTIMES];
};

static const struct field ops_fields[] = {
#define BENCH_FIELD_(NAME, name, head, text)                    \
    OBJECT(struct measured, name, op[OP_##NAME], AT | OPTIONAL, \
           operation_fields, text),
    BENCH_OPS(BENCH_FIELD_)
#undef BENCH_FIELD_
        { 0 },
};

static const struct field size_fields[] = {
    NAMED(struct bench_cell, "rounds", nrounds, NONE, "that it was measured"),
    FIELD(struct bench_cell, bytes, BYTES, "size of the filter"),
    FIELD(struct bench_cell, bits_per_key, BITS | MAYBE, "the same, by keys"),
    FIELD(struct bench_cell, layers, NONE, "filters that it is made of"),
    NAMED(struct bench_cell, "fpr_planned", planned, RATE | MAYBE,
          "false positives by the plan"),
    { 0 },
};

static const struct field asked_fields[] = {
    NAMED(struct bench_cell, "absent_asked", nasked, NONE,
          "absent keys that it was asked for"),
    NAMED(struct bench_cell, "present_missed", nmissed, NONE,
          "present keys that it did not find"),
    { 0 },
};

static const struct field measured_fields[] = {
    MEMBERS(struct measured, cell, AT, size_fields),
    NAMED(struct measured, "fpr_measured", rate, RATE | MAYBE,
          "false positives found"),
    MEMBERS(struct measured, cell, AT, asked_fields),
    OBJECT(struct measured, "F_ns", floor, NANOSECONDS, figure_fields,
           "F: reading a random line of as many bytes"),
    WHOLE("operations", ops_fields, "by what was done"),
    OBJECT(struct measured, "ask_threads", times[TIMES_ASK], AT | OPTIONAL,
           threads_fields, "asking with several threads"),
    OBJECT(struct measured, "build_threads", times[TIMES_BUILD], AT | OPTIONAL,
           threads_fields, "building with several threads"),
    OBJECT(struct measured, "build_items_threads", times[TIMES_SIZED],
           AT | OPTIONAL, threads_fields,
           "the same with the number of keys told before"),
    { 0 },
};

struct cell {
    const char *name, *kind, *skipped;
    uint64_t items;
    const struct measured *at;
    struct measured measured;
};

static const struct field cell_fields[] = {
    FIELD(struct cell, name, NONE, "what was measured"),
    FIELD(struct cell, kind, MAYBE, "its kind; null for a peer"),
    FIELD(struct cell, items, KEYS, "keys"),
    FIELD(struct cell, skipped, OPTIONAL | ZERO, "why it was not measured"),
    MEMBERS(struct cell, at, AT | OPTIONAL, measured_fields),
    { 0 },
};

static const struct judged *judge(struct judged *j, bool met)
{
    static const bool answers[] = { false, true };
    j->met = isnan(j->target) ? NULL : &answers[met];
    return isnan(j->f.median) && isnan(j->ns.median) ? NULL : j;
}

static void make_cell(const void *from, size_t i, void *element)
{
    const struct bench_results *const r = from;
    const struct bench_cell *const c = &r->cells[i];
    struct cell *const out = element;
    struct measured *const m = &out->measured;
    *out = (struct cell){ c->who->name, c->who->kind,         c->why,
                          c->items,     c->why[0] ? NULL : m, { .cell = c } };
    m->rate = bench_rate(c);
    m->floor = bench_floor_figure(c);
    for (int op = 0; op < NOPS; op++) {
        struct judged *const j = &m->ops[op];
        *j = (struct judged){ bench_ns(c, op), bench_multiple(c, op),
                              bench_target(c, op, r->fpr), NULL };
        m->op[op] =
            isnan(j->ns.median) ? NULL : judge(j, j->f.median <= j->target);
    }
    for (int which = 0; which < NTIMES; which++) {
        struct judged *const j = &m->ratios[which];
        *j = (struct judged){ { NAN, NAN, NAN },
                              bench_times(c, which),
                              bench_target_times(which, r->nthreads),
                              NULL };
        m->times[which] = judge(j, j->f.median >= j->target);
    }
}

struct floor {
    uint64_t items, bytes;
    struct bench_floor ns;
};

static const struct field floor_fields[] = {
    FIELD(struct floor, items, KEYS, "keys"),
    FIELD(struct floor, bytes, BYTES, "memory that is read"),
    NAMED(struct floor, "read_ns", ns.read, NANOSECONDS | MAYBE,
          "F: reading a random line"),
    NAMED(struct floor, "update_ns", ns.update, NANOSECONDS | MAYBE,
          "the same, read and written"),
    NAMED(struct floor, "farther_ns", ns.deep, NANOSECONDS | MAYBE,
          "the same, fetched farther ahead"),
    NAMED(struct floor, "unfetched_ns", ns.bare, NANOSECONDS | MAYBE,
          "the same, not fetched ahead"),
    NAMED(struct floor, "far", ns.far, NONE, "accesses ahead, first stage"),
    NAMED(struct floor, "near", ns.near, NONE, "accesses ahead, second stage"),
    { 0 },
};

static void make_floor(const void *from, size_t i, void *element)
{
    const struct bench_results *const r = from;
    *(struct floor *)element =
        (struct floor){ r->sizes[i], r->footprints[i], r->floors[i] };
}

static const struct field cost_fields[] = {
    OBJECT(struct bench_command, "cpu_ns", ns, NANOSECONDS, figure_fields,
           "processor time per line"),
    NAMED(struct bench_command, "peak_bytes", peak, BYTES, "memory it held"),
    { 0 },
};

struct command {
    const char *command, *job, *skipped;
    uint64_t lines;
    const struct bench_command *cost; /* NULL: was not measured */
};

static const struct field command_fields[] = {
    FIELD(struct command, command, NONE, "the command"),
    FIELD(struct command, job, NONE, "what it did"),
    FIELD(struct command, lines, NONE, "lines it was given"),
    FIELD(struct command, skipped, OPTIONAL | ZERO, "why it was not measured"),
    MEMBERS(struct command, cost, AT | OPTIONAL, cost_fields),
    { 0 },
};

static void make_command(const void *from, size_t i, void *element)
{
    const struct bench_command *const c =
        &((const struct bench_lines *)from)->at[i];
    *(struct command *)element =
        (struct command){ c->who, c->job, c->why, c->nlines,
                          c->why[0] ? NULL : c };
}

static const struct field machine_fields[] = {
    FIELD(struct bench_machine, cpu, NONE, "the processor"),
    NAMED(struct bench_machine, "processors", nprocessors, NONE, "how many"),
    NAMED(struct bench_machine, "l1_bytes", l1, BYTES, "first-level cache"),
    NAMED(struct bench_machine, "l2_bytes", l2, BYTES, "second-level cache"),
    NAMED(struct bench_machine, "l3_bytes", l3, BYTES, "third-level cache"),
    NAMED(struct bench_machine, "memory_bytes", memory, BYTES, "memory"),
    NAMED(struct bench_machine, "huge_pages_setting", pages, NONE,
          "of the system"),
    { 0 },
};

/* Everything; `from` is where the elements of its lists are made from. */
struct found {
    const struct bench_results *from;
    const struct bench_machine *machine;
    const struct bench_lines *lines;
    const char *pages, *missing;
    double huge_share, fpr;
    uint64_t nthreads;
    size_t nsizes, ncells, nlines, nrows;
    bly_fact rows[BLY_MAX_FACTS];
};

static const struct field found_machine_fields[] = {
    MEMBERS(struct found, machine, AT, machine_fields),
    FIELD(struct found, pages, NONE, "that memory was asked for in"),
    FIELD(struct found, huge_share, SHARE | MAYBE, "memory in huge pages"),
    VALUES(struct found, "code", rows, nrows, NONE,
           "which variant of the code runs here, for each job"),
    { 0 },
};

const struct field bench_fields[] = {
    WHOLE("machine", found_machine_fields, "what it ran on"),
    FIELD(struct found, fpr, RATE, "false positives that were asked for"),
    NAMED(struct found, "threads", nthreads, NONE, "threads; 0: one"),
    EACH(struct found, "floor", from, nsizes, NONE, make_floor, struct floor,
         floor_fields, "what reading memory costs, for each number of keys"),
    EACH(struct found, "results", from, ncells, NONE, make_cell, struct cell,
         cell_fields, "a contender at a number of keys"),
    FIELD(struct found, missing, OPTIONAL | ZERO, "peers that are not here"),
    EACH(struct found, "commands", lines, nlines, OPTIONAL, make_command,
         struct command, command_fields, "commands beside other commands"),
    { 0 },
};

void bench_json(const struct bench_results *r)
{
    struct found found = { r,
                           &r->machine,
                           r->lines,
                           r->small_pages ? "4k" : "huge",
                           r->missing,
                           r->huge_share,
                           r->fpr,
                           r->nthreads,
                           r->nsizes,
                           r->ncells,
                           r->lines ? r->lines->n : 0,
                           0,
                           { { 0 } } };
    bly_fact *const rows = found.rows;
    for (unsigned i = 0; i < BLY_MAX_FACTS; i++, found.nrows++)
        if (!(rows[i].word = bly_cpu_row(i, &rows[i].name)))
            break;
        else
            rows[i].type = BLY_CHOICE;
    report(stdout, true, bench_fields, &found, NULL);
}

/*
 * vectors_verbs.c - vectors that are close to each other: the verbs
 *
 * Finding them is the library's work (bloomery/vectors.h). Here files are read,
 * and what was found is printed with the ids that the files give.
 */
#include <stdlib.h>
#include <string.h>

#include "apps/vectors/vectors_verbs.h"
#include "io/files.h"
#include "io/paths.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

/* ------------------------------------------------------------------ printing
 */

struct vector_pair {
    uint64_t a, b;
    bly_bytes id_a, id_b;
    double cosine;
};

const struct field vector_pair_fields[] = {
    FIELD(struct vector_pair, a, NONE,
          "one vector, by its number in the file, from 0 on; of near: the "
          "query, in its file"),
    FIELD(struct vector_pair, b, NONE, "the other one"),
    FIELD(struct vector_pair, id_a, OPTIONAL | ZERO, "the id of a, with --id"),
    FIELD(struct vector_pair, id_b, OPTIONAL | ZERO, "the id of b, likewise"),
    FIELD(struct vector_pair, cosine, NONE, "of the angle between them"),
    { 0 },
};

/* Where pairs go. */
struct printing {
    const struct vectors_args *args;
    const struct vector_file *a, *b; /* the files of both */
};

static bly_bytes id_of(const struct vector_file *f, size_t i)
{
    return f->ids ? f->ids[i] : (bly_bytes){ NULL, 0 };
}

static void print_id(const struct vector_file *f, size_t i)
{
    if (f->ids)
        print_key(f->ids[i].ptr, f->ids[i].len);
    else
        printf("%zu", i);
}

static bly_status print_pairs(const bly_near_pair *pairs, size_t n, void *ctx)
{
    const struct printing *const p = ctx;
    for (size_t i = 0; i < n; i++) {
        const size_t a = (size_t)pairs[i].a, b = (size_t)pairs[i].b;
        if (p->args->json) {
            const struct vector_pair pair = { a, b, id_of(p->a, a),
                                              id_of(p->b, b), pairs[i].cosine };
            report(stdout, true, vector_pair_fields, &pair, NULL);
            continue;
        }
        print_id(p->a, a);
        putchar('\t');
        print_id(p->b, b);
        printf("\t%.6f\n", pairs[i].cosine);
    }
    return BLY_OK;
}

/* ------------------------------------------------------------------- common */

static bool spec_of(const struct vectors_args *a, bly_near_spec *out)
{
    *out = (bly_near_spec){ .threshold = a->threshold,
                            .recall = a->recall,
                            .seed = a->seed,
                            .most = a->top };
    out->nthreads = a->threads > 1000 ? 1000 : (uint32_t)a->threads;
    out->flags =
        (a->skip_bad ? BLY_NEAR_SKIP : 0) | (a->all ? BLY_NEAR_ALL : 0);
    return a->threshold > 0 ||
           refuse("--threshold 0: expected a cosine above 0 and at most 1");
}

/* What the library says of its last failure, with the file that it is about. */
static int fail_vectors(const char *name)
{
    const char *const said = bly_error();
    return fail("%s: %s%s", name,
                strncmp(said, "queries: ", 9) ? said : said + 9,
                strstr(said, "(from 0 on)") || strstr(said, "(both from 0 on)")
                    ? "; --skip-bad leaves such vectors out"
                    : "");
}

/* How it was done, for people. */
static void note_stats(const bly_near_stats *s, double threshold)
{
    if (s->nbad)
        note("%llu vector%s without a direction left out",
             (unsigned long long)s->nbad, s->nbad == 1 ? "" : "s");
    if (!s->bands)
        note("all were compared");
    else
        note("%u bands of %u bits; what has a cosine of %g is found with a "
             "probability of %.4g, what is closer more often",
             s->bands, s->rows, threshold, s->recall);
}

/* --------------------------------------------------------------- pairs, near
 */

static int vectors_search(const struct vectors_args *a, const char *name,
                          const char *queries)
{
    struct vector_file f, q = { .name = queries };
    bly_near_spec spec;
    bly_near_stats stats;
    int status = TROUBLE;
    if (!spec_of(a, &spec))
        return TROUBLE;
    if (queries && is_stdin(name) && is_stdin(queries))
        return fail("standard input can be FILE or QUERIES, not both");
    if (vector_file_open(&f, name, &a->file) &&
        (!queries || vector_file_open(&q, queries, &a->file))) {
        struct printing p = { a, queries ? &q : &f, &f };
        bly_status st;
        if (queries && q.v.n && f.v.n && q.v.dims != f.v.dims)
            st = BLY_EINVAL, fail("%s: vectors of %zu coordinates; those of %s "
                                  "have %zu",
                                  queries, q.v.dims, name, f.v.dims);
        else if (queries && q.v.doubles != f.v.doubles)
            st = BLY_EINVAL,
            fail("%s: %s, and %s has %s; save both in one type", queries,
                 q.v.doubles ? "doubles" : "floats", name,
                 f.v.doubles ? "doubles" : "floats");
        else if (!f.v.n || (queries && !q.v.n))
            st = BLY_OK, stats = (bly_near_stats){ .recall = 1 };
        else if ((st = queries ? bly_near_of(&f.v, &q.v, &spec, print_pairs, &p,
                                             &stats)
                               : bly_near_pairs(&f.v, &spec, print_pairs, &p,
                                                &stats)))
            fail_vectors(queries && !strncmp(bly_error(), "queries", 7)
                             ? queries
                             : name);
        if (!st) {
            note_stats(&stats, a->threshold);
            status = stats.nfound ? YES : NO;
        }
    }
    vector_file_close(&f);
    vector_file_close(&q);
    return status;
}

int vectors_pairs(const struct vectors_args *a, const struct list *operands)
{
    return vectors_search(a, operands->at[0], NULL);
}

int vectors_near(const struct vectors_args *a, const struct list *operands)
{
    return vectors_search(a, operands->at[0], operands->at[1]);
}

/* -------------------------------------------------------------------- dedup */

struct vector_dedup {
    const char *file;
    uint64_t vectors, coordinates, kept, removed;
    bly_near_stats stats;
    const struct vectors_args *args;
    struct vector_file f;
    uint64_t *witness;
    double *cosines;
    bool everything, single;
};

const struct field vector_dedup_fields[] = {
    FIELD(struct vector_dedup, file, NONE, "the file"),
    FIELD(struct vector_dedup, vectors, NONE, "vectors in it"),
    FIELD(struct vector_dedup, coordinates, NONE, "of each"),
    FIELD(struct vector_dedup, kept, NONE, "vectors that stay"),
    FIELD(struct vector_dedup, removed, NONE, "vectors that go"),
    NAMED(struct vector_dedup, "equal", stats.nequal, NONE,
          "of these, equal to an earlier one"),
    NAMED(struct vector_dedup, "bad", stats.nbad, NONE,
          "vectors that have no direction, and stay"),
    NAMED(struct vector_dedup, "bands", stats.bands, NONE,
          "bands of sketches; 0: all vectors were compared"),
    NAMED(struct vector_dedup, "rows", stats.rows, NONE, "bits in a band"),
    NAMED(struct vector_dedup, "recall", stats.recall, NONE,
          "probability of seeing two vectors at the threshold"),
    NAMED(struct vector_dedup, "candidates", stats.ncandidates, NONE,
          "pairs that met in a band"),
    NAMED(struct vector_dedup, "compared", stats.nchecked, NONE,
          "of these, compared exactly"),
    FIELD(struct vector_dedup, everything, NONE, NULL),
    FIELD(struct vector_dedup, single, NONE, NULL),
    { 0 },
};

static bly_status put_all(bly_put *put, void *ctx, const void *at, size_t n)
{
    return !n || put(ctx, at, n) ? BLY_OK : BLY_EIO;
}

/* The file without those that go. */
static bly_status write_kept(const void *what, bly_put *put, void *ctx)
{
    const struct vector_dedup *const d = what;
    char room[NPY_HEADER];
    const bly_bytes head = vector_file_head(&d->f, (size_t)d->kept, room);
    bly_status st = put_all(put, ctx, head.ptr, head.len);
    for (size_t i = 0; !st && i < d->f.v.n; i++) {
        const bly_bytes row = vector_file_row(&d->f, i);
        if (d->witness[i] == i)
            st = put_all(put, ctx, row.ptr, row.len);
    }
    return st;
}

static bly_status put_id(bly_put *put, void *ctx, const struct vector_file *f,
                         size_t i)
{
    char text[32];
    if (f->ids)
        return put_all(put, ctx, f->ids[i].ptr, f->ids[i].len);
    return put_all(put, ctx, text,
                   (size_t)snprintf(text, sizeof text, "%zu", i));
}

/* What goes, who stays for it, and how close they are. */
static bly_status write_gone(const void *what, bly_put *put, void *ctx)
{
    const struct vector_dedup *const d = what;
    bly_status st = BLY_OK;
    char text[40];
    for (size_t i = 0; !st && i < d->f.v.n; i++) {
        if (d->witness[i] == i)
            continue;
        st = put_id(put, ctx, &d->f, i);
        if (!st)
            st = put_all(put, ctx, "\t", 1);
        if (!st)
            st = put_id(put, ctx, &d->f, (size_t)d->witness[i]);
        if (!st)
            st = put_all(
                put, ctx, text,
                (size_t)snprintf(text, sizeof text, "\t%.6f\n", d->cosines[i]));
    }
    return st;
}

static int dedup_write(struct vector_dedup *d)
{
    const struct vectors_args *const a = d->args;
    FILE *const to = a->output && is_dash(a->output) ? stderr
                     : a->gone && is_dash(a->gone)   ? stderr
                                                     : stdout;
    int status = YES;
    if (a->output)
        status = file_save(a->output, write_kept, d);
    if (status == YES && a->gone)
        status = file_save(a->gone, write_gone, d);
    if (status == YES && !quiet)
        report(to, a->json, vector_dedup_fields, d,
               "{vectors} vector[{!single}s] of {coordinates} coordinates: "
               "{kept} stay, "
               "{removed} go[{?equal}, {equal} of them equal to an earlier "
               "one][{?bad}; {bad} without a direction stay]\n"
               "[{?everything}all were compared|{bands} bands of {rows} bits: "
               "two vectors at the threshold are seen with a probability of "
               "{recall:.4}]\n");
    return status;
}

int vectors_dedup(const struct vectors_args *a, const struct list *operands)
{
    struct vector_dedup d = { .file = operands->at[0], .args = a };
    bly_near_spec spec;
    int status = TROUBLE;
    if (!spec_of(a, &spec))
        return TROUBLE;
    if ((a->output && (!output_works(a->output, a->json) ||
                       !output_spares(a->output, operands->at, 1))) ||
        (a->gone && (!output_works(a->gone, a->json) ||
                     !output_spares(a->gone, operands->at, 1))))
        return TROUBLE;
    if (a->output && a->gone &&
        (!strcmp(a->output, a->gone) || is_same_file(a->output, a->gone)))
        return fail("-o and --removed name the same file");
    if (vector_file_open(&d.f, d.file, &a->file)) {
        const size_t n = d.f.v.n;
        d.witness = calloc(n + 1, sizeof *d.witness);
        d.cosines = calloc(n + 1, sizeof *d.cosines);
        d.stats.recall = 1;
        if (!d.witness || !d.cosines)
            fail("out of memory");
        else if (n &&
                 bly_near_dedup(&d.f.v, &spec, d.witness, d.cosines, &d.stats))
            fail_vectors(d.file);
        else
            status = YES;
    }
    if (status == YES) {
        d.vectors = d.f.v.n;
        d.coordinates = d.f.v.dims;
        d.removed = d.stats.nfound;
        d.kept = d.vectors - d.removed;
        d.single = d.vectors == 1;
        d.everything = !d.stats.bands;
        status = dedup_write(&d);
    }
    free(d.witness);
    free(d.cosines);
    vector_file_close(&d.f);
    return status;
}

/*
 * plan_index.c - what an index of documents costs, rate by rate
 *
 * A lower rate takes more bytes, and opens fewer documents in vain. The library
 * weighs both (index/bit_sliced.c); here its answer stands between those for
 * usual rates, or alone where a rate is given.
 */
#include "workbench/plan_index.h"

#include <stdio.h>

#include "report/say.h"

struct index_row {
    bly_index_plan plan;
    bool best;
};

struct plan_of_index {
    bly_index_wish wish;
    uint64_t terms, asked, questions; /* of it, as whole numbers */
    struct index_row rows[8];
    size_t n;
};

static const struct field index_row_fields[] = {
    NAMED(struct index_row, "fpr", plan.fpr, RATE,
          "rate of false positives of one term"),
    NAMED(struct index_row, "bits_per_term", plan.bits, BITS,
          "bits per term of a document"),
    NAMED(struct index_row, "rows", plan.k, NONE,
          "rows that a term reads in each group"),
    NAMED(struct index_row, "bytes", plan.nbytes, BYTES,
          "size of the index, as far as this class of terms goes"),
    NAMED(struct index_row, "opened", plan.opened, NONE,
          "documents that a question opens in vain"),
    NAMED(struct index_row, "cost", plan.cost, NONE,
          "seconds: openings in vain, and what the bytes are worth"),
    FIELD(struct index_row, best, NONE, "the one of least cost"),
    { 0 },
};

const struct field plan_index_fields[] = {
    NAMED(struct plan_of_index, "documents", wish.documents, NONE,
          "documents, or blocks of large ones"),
    FIELD(struct plan_of_index, terms, NONE, "different terms of each"),
    FIELD(struct plan_of_index, asked, NONE, "independent terms of a question"),
    FIELD(struct plan_of_index, questions, NONE,
          "questions as long as the index is kept"),
    NAMED(struct plan_of_index, "opening", wish.opening, NONE,
          "seconds to open a document"),
    LIST(struct plan_of_index, "rows", rows, n, NONE, index_row_fields,
         "a row for each rate"),
    { 0 },
};

static bool row_add(struct plan_of_index *p, double fpr, bool best)
{
    bly_index_wish wish = p->wish;
    struct index_row *const row = &p->rows[p->n];
    wish.fpr = fpr;
    if (bly_index_plan_for(&wish, &row->plan))
        return false;
    row->best = best;
    p->n++;
    return true;
}

static void set_usual(bly_index_wish *w)
{
    w->documents = w->documents ? w->documents : 10000;
    w->terms = w->terms > 0 ? w->terms : 75000;
    w->asked = w->asked > 0 ? w->asked : 1;
    w->questions = w->questions > 0 ? w->questions : 1000;
    w->opening = w->opening > 0 ? w->opening : 0.001;
}

int plan_index(const bly_index_wish *wish, bool json)
{
    static const double usual[] = { 0.5, 0.3, 0.1, 0.03, 0.01, 0.001 };
    const size_t nusual = sizeof usual / sizeof usual[0];
    struct plan_of_index p = { .wish = *wish };
    bly_index_plan best;
    set_usual(&p.wish);
    p.terms = (uint64_t)p.wish.terms;
    p.asked = (uint64_t)p.wish.asked;
    p.questions = (uint64_t)p.wish.questions;
    if (bly_index_plan_for(&p.wish, &best))
        return fail_library();
    bool ok = true, placed = wish->fpr > 0;
    if (placed)
        ok = row_add(&p, wish->fpr, false);
    for (size_t i = 0; i < nusual && ok && !(wish->fpr > 0); i++) {
        if (!placed && best.fpr > usual[i]) {
            ok = row_add(&p, best.fpr, true);
            placed = true;
        }
        ok = ok && row_add(&p, usual[i], false);
    }
    if (ok && !placed)
        ok = row_add(&p, best.fpr, true);
    if (!ok)
        return fail_library();
    if (json) {
        report(stdout, true, plan_index_fields, &p, NULL);
        return YES;
    }
    report_text(stdout, plan_index_fields, &p,
                "documents~{documents}, of {terms} different terms each\n"
                "questions~{questions}\n"
                "terms asked~{asked} per question, independent of each other\n"
                "opening~{opening} s per document\n\n");
    printf("%10s  %13s  %4s  %10s  %14s  %10s\n", "rate", "bits per term",
           "rows", "index", "opened in vain", "cost");
    for (size_t i = 0; i < p.n; i++) {
        report_text(stdout, index_row_fields, &p.rows[i],
                    "{fpr:10}  {bits_per_term:13.3}  {rows:4}  {bytes:10}  "
                    "{opened:14.3}  {cost:8.3} s");
        puts(p.rows[i].best ? "  <- least" : "");
    }
    return YES;
}

/*
 * cmd_kinds.c - the table of kinds and what each can do
 */
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "io/sizing.h"
#include "report/say.h"
#include "report/show.h"

static struct {
    bool json;
} kinds_args;

/* What is unusual about a kind, for programs and for people. */
static const struct {
    uint32_t bit;
    const char *name, *text;
} traits[] = {
    { BLY_SELF_SIZED, "self-sized",
      "its options may set its size, instead of items, rate and memory" },
    { BLY_LIKELY_NO, "likely-no",
      "its \"no\" may be wrong too, at a known rate" },
    { BLY_CODED, "coded",
      "its files are coded by default, and the bits given and promised are "
      "those that are sent" },
    { BLY_DIRECTED, "directed",
      "a filter merged into it is a neighbour, whose keys are one step further "
      "away" },
};
#define NTRAITS (sizeof traits / sizeof traits[0])

struct option {
    const char *name, *type, *help;
    bly_fact def; /* not a number: the plan chooses */
    double min, max;
    const char *const *choices;
};

static void option_at(const void *from, size_t i, void *element)
{
    const bly_param *p = bly_param_at(from, 0);
    for (size_t at = 1; !p->settable || i--; at++)
        p = bly_param_at(from, at);
    const bool choice = p->type == BLY_CHOICE;
    *(struct option *)element = (struct option){
        .name = p->name,
        .type = choice                ? "choice"
                : p->type == BLY_UINT ? "uint"
                                      : "real",
        .help = p->help,
        .def = { .type = choice && !p->automatic ? BLY_CHOICE : BLY_REAL,
                 .real = p->automatic ? NAN : p->def,
                 .word = choice ? p->choices[(size_t)p->def] : NULL },
        .min = choice ? NAN : p->min,
        .max = choice ? NAN : p->max,
        .choices = choice ? p->choices : NULL,
    };
}

static const struct field option_fields[] = {
    FIELD(struct option, name, NONE, "its name, for -O NAME=VALUE"),
    FIELD(struct option, type, NONE, "\"uint\", \"real\" or \"choice\""),
    NAMED(struct option, "default", def, NONE,
          "its value if not given; null if the plan chooses"),
    FIELD(struct option, min, MAYBE, "smallest value; null for a choice"),
    FIELD(struct option, max, MAYBE, "largest value; null for a choice"),
    FIELD(struct option, help, NONE, "what it means"),
    WORDS(struct option, "choices", choices, AT | OPTIONAL,
          "words that a choice can be"),
    { 0 },
};

struct kind {
    bly_kind_info k;
    const char *can[33], *traits[33];
    size_t noptions;
};

static const struct field kind_fields[] = {
    NAMED(struct kind, "kind", k.name, NONE, "name of the kind"),
    NAMED(struct kind, "summary", k.summary, NONE, "what it is"),
    WORDS(struct kind, "can", can, NONE, "what it can do"),
    WORDS(struct kind, "traits", traits, NONE, "what is unusual about it"),
    EACH(struct kind, "options", k.params, noptions, NONE, option_at,
         struct option, option_fields, "its options"),
    { 0 },
};

static void kind_json(struct json *j, const bly_kind_info *kind)
{
    struct kind k = { .k = *kind };
    for (unsigned bit = 0, n = 0; bly_can_name(bit); bit++)
        if (kind->can >> bit & 1)
            k.can[n++] = bly_can_name(bit);
    for (size_t i = 0, n = 0; i < NTRAITS; i++)
        if (kind->traits & traits[i].bit)
            k.traits[n++] = traits[i].name;
    for (size_t i = 0; i < kind->nparams; i++)
        k.noptions += bly_param_at(kind->params, i)->settable;
    report_object(j, kind_fields, &k);
}

/* Where texts begin; nearly all names are shorter. */
#define KINDS_COLUMN 14

/* In the table: what it is and what it can do. */
static void kind_row(const bly_kind_info *kind, bool is_default)
{
    struct text text;
    FILE *const to = text_begin(&text);
    fprintf(to, "%s%s\ncan", kind->summary, is_default ? " (the default)" : "");
    const char *comma = " ";
    for (unsigned bit = 0; bly_can_name(bit); bit++) {
        if (!(kind->can >> bit & 1))
            continue;
        fprintf(to, "%s%s", comma, bly_can_name(bit));
        comma = ", ";
    }
    print_row(kind->name, KINDS_COLUMN, text_end(&text));
}

static void option_row(const bly_param *p)
{
    struct text text;
    FILE *const to = text_begin(&text);
    fprintf(to, "%s; ", p->help);
    if (p->type == BLY_CHOICE)
        for (size_t i = 0; p->choices[i]; i++)
            fprintf(to, "%s%s", i ? " or " : "", p->choices[i]);
    else
        fprintf(to, "%.15g to %.15g", p->min, p->max);
    if (p->automatic)
        fputs("; chosen by the plan if not given", to);
    else if (p->type == BLY_CHOICE)
        fprintf(to, "; %s if not given", p->choices[(size_t)p->def]);
    else
        fprintf(to, "; %.15g if not given", p->def);
    print_row(p->name, KINDS_COLUMN, text_end(&text));
}

/* All about one kind. */
static void kind_page(const bly_kind_info *kind)
{
    printf("%s: %s\n\nIt can\n", kind->name, kind->summary);
    for (unsigned bit = 0; bly_can_name(bit); bit++)
        if (kind->can >> bit & 1)
            printf("%-*s%s\n", KINDS_COLUMN, bly_can_name(bit),
                   bly_can_help(bit));
    for (size_t i = 0; i < NTRAITS; i++)
        if (kind->traits & traits[i].bit)
            printf("\nNote: %s.\n", traits[i].text);
    bool any = false;
    for (size_t i = 0; i < kind->nparams; i++) {
        if (!bly_param_at(kind->params, i)->settable)
            continue;
        if (!any)
            puts("\nIts options, for -O NAME=VALUE, are");
        any = true;
        option_row(bly_param_at(kind->params, i));
    }
}

static int kinds_run(struct list *operands)
{
    for (size_t i = 0; i < operands->n; i++)
        if (!kind_exists(operands->at[i] = kind_meant(operands->at[i])))
            return TROUBLE;
    struct json j = { .to = stdout };
    if (kinds_args.json)
        json_open(&j, '[');
    bly_kind_info kind;
    bool any = false;
    for (size_t i = 0; bly_kind_at(i, &kind); i++) {
        if (operands->n && !list_has(operands, kind.name))
            continue;
        if (kinds_args.json) {
            kind_json(&j, &kind);
        } else if (operands->n) {
            if (any)
                putchar('\n');
            kind_page(&kind);
        } else {
            kind_row(&kind, i == 0);
        }
        any = true;
    }
    if (kinds_args.json) {
        json_close(&j, ']');
        json_end(&j);
    } else if (!operands->n) {
        puts("\nbloomery kinds KIND describes one, with its options.");
    }
    return YES;
}

static const struct opt kinds_options[] = {
    FLAG("json", 0, kinds_args.json, "print an array of JSON objects"),
    { 0 },
};

static const struct example kinds_examples[] = {
    { "bloomery kinds", "all of them" },
    { 0 },
};

const struct command cmd_kinds = {
    .name = "kinds",
    .usage = "[--json] [KIND]...",
    .summary = "list the kinds of filter and what each can do",
    .about = "Prints one line about every kind and what it can do or, for "
             "kinds given by name, everything about them and their options.",
    .options = kinds_options,
    .examples = kinds_examples,
    .reports = REPORTS({ "", kind_fields, ARRAY }),
    .run = kinds_run,
};

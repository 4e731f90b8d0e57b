/*
 * cmd_formats.c - the table of other systems' formats and what can be done
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "io/foreign_files.h"
#include "report/say.h"
#include "report/show.h"

static struct {
    bool json;
} formats_args;

/* What can be done with a format, for programs and for people. */
static const struct {
    uint32_t bit;
    const char *name, *text;
} abilities[] = {
    { BLY_FORMAT_KNOWN, "known", "recognised by its contents" },
    { BLY_FORMAT_HAS, "has", "asked for keys" },
    { BLY_FORMAT_NEW, "build", "made from keys" },
    { BLY_FORMAT_ADD, "add", "added to" },
};
#define NABILITIES (sizeof abilities / sizeof abilities[0])

struct format {
    bly_format_info t;
    const char *can[NABILITIES + 2];
};

struct option {
    bly_param p;
    const char *def;
};

static void option_at(const void *from, size_t i, void *element)
{
    const bly_param *const p = bly_param_at(from, i);
    *(struct option *)element = (struct option){
        *p,
        p->type == BLY_CHOICE ? p->choices[(size_t)p->def] : p->def_text,
    };
}

static const struct field option_fields[] = {
    NAMED(struct option, "name", p.name, NONE, "its name, for -O NAME=VALUE"),
    NAMED(struct option, "default", def, MAYBE, "its value if not given"),
    WORDS(struct option, "choices", p.choices, AT,
          "values that it can have; none if it can have any"),
    NAMED(struct option, "help", p.help, NONE, "what it means"),
    { 0 },
};

static const struct field format_fields[] = {
    NAMED(struct format, "format", t.name, NONE, "name of the format"),
    NAMED(struct format, "systems", t.systems, NONE, "what writes it"),
    NAMED(struct format, "summary", t.summary, NONE, "what it is"),
    WORDS(struct format, "can", can, NONE, "what can be done with such a file"),
    EACH(struct format, "options", t.options, t.noptions, NONE, option_at,
         struct option, option_fields, "its options"),
    { 0 },
};

static void format_json(struct json *j, const bly_format_info *t)
{
    struct format f = { *t, { "info" } };
    for (size_t i = 0, n = 1; i < NABILITIES; i++)
        if (t->can & abilities[i].bit)
            f.can[n++] = abilities[i].name;
    report_object(j, format_fields, &f);
}

#define FORMATS_COLUMN 18

static void format_row(const bly_format_info *t)
{
    struct text text;
    FILE *const to = text_begin(&text);
    fprintf(to, "%s\n%s; info%s%s%s", t->summary, t->systems,
            t->can & BLY_FORMAT_HAS ? ", has" : "",
            t->can & BLY_FORMAT_NEW ? ", build, convert" : "",
            t->can & BLY_FORMAT_ADD ? ", add" : "");
    print_row(t->name, FORMATS_COLUMN, text_end(&text));
}

static void format_option_row(const bly_format_info *t, size_t i)
{
    struct text text;
    struct option o;
    FILE *const to = text_begin(&text);
    option_at(t->options, i, &o);
    fputs(o.p.help, to);
    for (size_t c = 0; o.p.choices && o.p.choices[c]; c++)
        fprintf(to, "%s%s", c ? " or " : "; ", o.p.choices[c]);
    if (o.def)
        fprintf(to, "; %s if not given", o.def);
    print_row(o.p.name, FORMATS_COLUMN, text_end(&text));
}

/* All about one. */
static void format_page(const bly_format_info *t)
{
    printf("%s: %s\n%s\n\nIts files can be\n%-*sdescribed by bloomery info\n",
           t->name, t->summary, t->systems, FORMATS_COLUMN, "info");
    for (size_t i = 0; i < NABILITIES; i++)
        if (t->can & abilities[i].bit)
            printf("%-*s%s\n", FORMATS_COLUMN, abilities[i].name,
                   abilities[i].text);
    if (!(t->can & BLY_FORMAT_KNOWN))
        puts("\nNothing in such a file identifies it: give --format.");
    if (t->noptions)
        puts("\nIts options, for -O NAME=VALUE, are");
    for (size_t i = 0; i < t->noptions; i++)
        format_option_row(t, i);
}

static int formats_run(struct list *operands)
{
    for (size_t i = 0; i < operands->n; i++)
        if (!format_exists(operands->at[i]))
            return TROUBLE;
    struct json j = { .to = stdout };
    if (formats_args.json)
        json_open(&j, '[');
    bly_format_info t;
    bool any = false;
    for (size_t i = 0; bly_format_at(i, &t); i++) {
        if (operands->n && !list_has(operands, t.name))
            continue;
        if (formats_args.json) {
            format_json(&j, &t);
        } else if (operands->n) {
            if (any)
                putchar('\n');
            format_page(&t);
        } else {
            format_row(&t);
        }
        any = true;
    }
    if (formats_args.json) {
        json_close(&j, ']');
        json_end(&j);
    } else if (!operands->n) {
        puts("\nbloomery formats FORMAT describes one format, with its "
             "options.");
    }
    return YES;
}

static const struct opt formats_options[] = {
    FLAG("json", 0, formats_args.json, "print an array of JSON objects"),
    { 0 },
};

static const struct example formats_examples[] = {
    { "bloomery formats", "all of them" },
    { "bloomery formats guava", "one format, with its options" },
    { 0 },
};

const struct command cmd_formats = {
    .name = "formats",
    .usage = "[--json] [FORMAT]...",
    .summary = "list the filters of other systems that can be opened or made",
    .about =
        "Prints one line about every format of another system, and what can be "
        "done with its files: describe them (info), query them (has), make "
        "them from keys (build --format, convert --to). For formats given by "
        "name it prints everything about them and their options.\n\n"
        "Files are recognised by their contents if possible. Bits go from one "
        "format to another only if both place keys in the same way; otherwise "
        "convert needs the keys.",
    .options = formats_options,
    .examples = formats_examples,
    .reports = REPORTS({ "", format_fields, ARRAY }),
    .run = formats_run,
};

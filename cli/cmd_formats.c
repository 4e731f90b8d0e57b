/*
 * cmd_formats.c - the table of other systems' formats and what can be done
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

#include "cli/cli.h"
#include "io/foreign.h"
#include "report/json.h"
#include "report/say.h"
#include "report/show.h"
#include "report/words.h"

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

static void format_json(struct json *j, const bly_format_info *t)
{
    json_open(j, '{');
    json_key(j, "format");
    json_text(j, t->name);
    json_key(j, "systems");
    json_text(j, t->systems);
    json_key(j, "summary");
    json_text(j, t->summary);
    json_key(j, "can");
    json_open(j, '[');
    json_text(j, "info");
    for (size_t i = 0; i < NABILITIES; i++)
        if (t->can & abilities[i].bit)
            json_text(j, abilities[i].name);
    json_close(j, ']');
    json_key(j, "options");
    json_open(j, '[');
    for (size_t i = 0; i < t->noptions; i++) {
        const bly_format_option *const o = &t->options[i];
        json_open(j, '{');
        json_key(j, "name");
        json_text(j, o->name);
        json_key(j, "default");
        json_text(j, o->def);
        json_key(j, "choices");
        json_open(j, '[');
        for (size_t c = 0; o->choices && o->choices[c]; c++)
            json_text(j, o->choices[c]);
        json_close(j, ']');
        json_key(j, "help");
        json_text(j, o->help);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
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

static void format_option_row(const bly_format_option *o)
{
    struct text text;
    FILE *const to = text_begin(&text);
    fputs(o->help, to);
    for (size_t i = 0; o->choices && o->choices[i]; i++)
        fprintf(to, "%s%s", i ? " or " : "; ", o->choices[i]);
    if (o->def)
        fprintf(to, "; %s if not given", o->def);
    print_row(o->name, FORMATS_COLUMN, text_end(&text));
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
        format_option_row(&t->options[i]);
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
    { "json", 0, OPT_FLAG, &formats_args.json, NULL,
      "print an array of JSON objects" },
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
    .run = formats_run,
};

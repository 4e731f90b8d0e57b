/*
 * cli.h - commands and their options
 *
 * A command is a row: what it is called, what it does, its options, and a
 * function. main.c holds the table. The parser, help.c (help and man pages) and
 * complete.c (what shells complete) all read the same rows, so they cannot
 * disagree. To add a command, write cmd_NAME.c with a row at its end, and the
 * row's name in COMMANDS below.
 *
 * Exit status as grep's: 0 yes or done, 1 no, 2 trouble.
 */
#ifndef BLY_CLI_H
#define BLY_CLI_H

#include "report/fields.h"
#include "report/say.h"
#include "report/words.h"

/* All commands, under the headings of help. */
#define HEADINGS(X)                 \
    X(FILTERS, "filters")           \
    X(STREAMS, "streams and files") \
    X(GUARDS, "lists that guard")   \
    X(NETWORKS, "networks")         \
    X(ENGINES, "engines and languages")

#define FILTERS(X) \
    X(plan)        \
    X(kinds)       \
    X(formats)     \
    X(build)       \
    X(add)         \
    X(remove)      \
    X(has)         \
    X(count)       \
    X(get)         \
    X(set)         \
    X(info)        \
    X(note)        \
    X(shell)       \
    X(live)        \
    X(watch)       \
    X(merge)       \
    X(intersect)   \
    X(compare)     \
    X(shrink)      \
    X(convert)     \
    X(compress)    \
    X(raw)         \
    X(delta)       \
    X(apply)       \
    X(figures)     \
    X(explain)     \
    X(bench)
#define STREAMS(X) \
    X(unique)      \
    X(distinct)    \
    X(quantiles)   \
    X(top)         \
    X(dedup)       \
    X(similar)     \
    X(vectors)     \
    X(join)        \
    X(table)       \
    X(parquet)     \
    X(index)       \
    X(basket)
#define GUARDS(X) \
    X(urls)       \
    X(passwords)  \
    X(spell)      \
    X(seal)
#define NETWORKS(X) \
    X(sync)         \
    X(isect)        \
    X(traffic)      \
    X(digest)       \
    X(node)         \
    X(ring)         \
    X(net)
#define ENGINES(X) \
    X(redis)       \
    X(web)         \
    X(help)

#define COMMANDS(X) FILTERS(X) STREAMS(X) GUARDS(X) NETWORKS(X) ENGINES(X)

/* -------------------------------------------------------------- options */

/* What an option takes. A number may have bounds; 0, 0: whatever is one. */
struct opt_type {
    enum {
        IS_FLAG,     /* bool */
        IS_COUNT,    /* uint64_t, any */
        IS_POSITIVE, /* uint64_t, 1 at least */
        IS_RATE,     /* double, above 0 and below 1 */
        IS_REAL,     /* double, 0 at least */
        IS_SECONDS,  /* the same, of time */
        IS_CHOICE,   /* unsigned: which word of arg, "this|that", from 0 */
        IS_TEXT,     /* const char *; the last one given counts */
        IS_LIST      /* struct list: every one given counts */
    } is;
    double least, most;
};
#define OPT_BETWEEN(WHAT, least, most) \
    {                                  \
        IS_##WHAT, least, most         \
    }
#define OPT_FLAG OPT_BETWEEN(FLAG, 0, 0)
#define OPT_COUNT OPT_BETWEEN(COUNT, 0, 0)
#define OPT_POSITIVE OPT_BETWEEN(POSITIVE, 0, 0)
#define OPT_RATE OPT_BETWEEN(RATE, 0, 0)
#define OPT_REAL OPT_BETWEEN(REAL, 0, 0)
#define OPT_SECONDS OPT_BETWEEN(SECONDS, 0, 0)
#define OPT_CHOICE OPT_BETWEEN(CHOICE, 0, 0)
#define OPT_TEXT OPT_BETWEEN(TEXT, 0, 0)
#define OPT_LIST OPT_BETWEEN(LIST, 0, 0)

/* A row of a table of options; the table ends with a name of NULL. `to` points
 * to a variable of the type above, which begins as what holds if the option is
 * not given. What the argument is called tells complete.c what it may be: KIND
 * is a kind, this|that is one of both. */
struct opt {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    struct opt_type type;
    void *to;
    const char *arg; /* what the argument is called in help; NULL: a flag */
    const char *help;
};

/* A row, for macros that give several; the row of a flag, and of the one that
 * most commands have. */
#define OPTION(...) \
    {               \
        __VA_ARGS__ \
    }
#define FLAG(name, letter, to, help) \
    OPTION(name, letter, OPT_FLAG, &(to), NULL, help)
#define JSON_OPTION(a) FLAG("json", 0, (a).json, "print the result as JSON")

struct example {
    const char *line, *what;
};

/* One of the things that a command with verbs does. */
struct verb {
    const char *name;     /* a word, or two: "sim loop" */
    const char *operands; /* "KEY [ITEM]...": what is not in brackets must be
                             there */
    const char *summary;  /* one line, without a dot */
    const char *about;    /* paragraphs; NULL: the summary says it all */
    const struct opt *options;
    const struct report *reports; /* with --json; NULL: none */
    int (*run)(struct list *operands);
};

/* A command has verbs, or else options, reports and run of its own. */
struct command {
    const char *name;
    const char *usage;        /* what follows the name: "-o FILE [INPUT...]" */
    const char *summary;      /* one line, without a dot */
    const char *about;        /* paragraphs, an empty line between them */
    const struct verb *verbs; /* ends with a name of NULL */
    const char *implied;      /* the verb where as many operands as it needs
                                 stand there, and none of them is a verb */
    const struct opt *options;
    const struct example *examples; /* ends with a line of NULL */
    const struct report *reports;   /* with --json; ends with fields of NULL */
    int (*run)(struct list *operands);
};

/* Define run_FUNCTION() for a row: `function` of the options and operands. */
#define RUNS(function, args)                         \
    static int run_##function(struct list *operands) \
    {                                                \
        return function(&(args), operands);          \
    }

/* The same where only bloomery-PROGRAM has the function (program.h).
 * ELSEWHERE() lets a name be NULL in a program that has no such function. */
#define ELSEWHERE(function) \
    extern __typeof__(function) function __attribute__((weak))
#define RUNS_IN(program, function, args)                                      \
    ELSEWHERE(function);                                                      \
    static int run_##function(struct list *operands)                          \
    {                                                                         \
        return function ? function(&(args), operands) : program_run(program); \
    }

#define COMMAND_DECLARE_(name) extern const struct command cmd_##name;
COMMANDS(COMMAND_DECLARE_)
#undef COMMAND_DECLARE_

/* The command of a row, NULL past the last, or of a name, NULL for none. */
const struct command *command_at(size_t i);
const struct command *command_named(const char *name);

/* A command line, read. */
struct line {
    const struct command *command;
    const struct verb *verb; /* NULL: the command has none, or --help alone */
    struct list operands;    /* behind the verb; at is the caller's to free */
};

/* The same for what people type who come from elsewhere: "query" is has, and
 * --capacity is --items; and a kind by the name that is meant. */
const struct command *command_meant(const char *word);
const struct opt *option_meant(const struct command *c, const struct verb *v,
                               const char *name, size_t n);
const char *kind_meant(const char *word);

/* Set what the options of c or of its verb point to, and leave in *out whatever
 * is not an option. False where nothing must run: *status is then the exit
 * status. */
bool options_parse(const struct command *c, int argc, char **argv,
                   struct line *out, int *status);

/* Run what was read. */
int line_run(struct line *line);

/* -------------------------------------------------------------------- verbs */

/* The options of a verb, or of the command if that is NULL. */
const struct opt *options_of(const struct command *c, const struct verb *v);

/* The option of v, or without it of c or any of its verbs, that a word is, as
 * --name or a letter; NULL: none. */
const struct opt *option_named(const struct command *c, const struct verb *v,
                               const char *name, size_t n);
const struct opt *option_letter(const struct command *c, const struct verb *v,
                                char letter);

/* The option that a word leaves without its value; NULL if there is none. */
const struct opt *wants_value(const struct command *c, const struct verb *v,
                              const char *word);

/* The verb that a line names, and how many words its name has; NULL for none.
 * The line need not be right. */
const struct verb *verb_of_line(const struct command *c, size_t n,
                                const char *const *words, size_t *nwords);

/* The verb that the operands begin with. NULL, with the reason printed, if they
 * do not. */
const struct verb *verb_of_operands(const struct command *c,
                                    const struct list *operands,
                                    size_t *nwords);

/* The one address to ask, an operand or that of --at. NULL, with the reason
 * printed, if it is not one. */
const char *operand_or_at(const char *verb, const struct list *operands,
                          const struct list *at);

/* The next word of a usage that stands for an operand, of n letters: no
 * brackets, no OPTION, no option with its argument. NULL at the end. */
const char *next_operand(const char **usage, size_t *n);

/* How many of them must be there. */
size_t operands_needed(const char *usage);

/* --------------------------------------------------------------------- help */

/* For people: the everyday commands and the names of the others, all of them
 * with the conventions, or one. On standard output. */
void help_overview(bool all);
void help_command(const struct command *c, const struct verb *v);

/* What follows the name of a command. */
const char *usage_of(const struct command *c);

/* Manual pages in roff: bloomery(1), or bloomery-NAME(1). */
void man_overview(void);
void man_command(const struct command *c);

void help_schema(void);

/* What the last of these words may become, the first being a command: lines of
 * candidates, as complete.c says. */
void complete(FILE *to, const struct list *words);

/* Print the script that lets a shell ask for that: bash, zsh, fish. */
int completion_script(unsigned shell);

/* fail() with an unknown command's name and the nearest that exists. */
int fail_command(const char *name);

#endif

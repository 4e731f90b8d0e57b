/*
 * cli.h - commands and their options
 *
 * A command is a row: what it is called, what it does, its options, and a
 * function. main.c holds the table and help.c prints it, as help, as man pages
 * while complete.c tells shells what may be typed, so that none of them can say
 * something else than the parser does. Adding a command: cmd_NAME.c with a row
 * at its end, and the row's name in COMMANDS below.
 *
 * Exit status as grep's: 0 yes or done, 1 no, 2 trouble.
 */
#ifndef BLY_CLI_H
#define BLY_CLI_H

#include "report/fields.h"
#include "report/words.h"

#define COMMANDS(X) \
    X(plan)         \
    X(kinds)        \
    X(formats)      \
    X(build)        \
    X(add)          \
    X(remove)       \
    X(has)          \
    X(count)        \
    X(get)          \
    X(set)          \
    X(info)         \
    X(shell)        \
    X(note)         \
    X(merge)        \
    X(intersect)    \
    X(compare)      \
    X(shrink)       \
    X(convert)      \
    X(compress)     \
    X(raw)          \
    X(delta)        \
    X(apply)        \
    X(figures)      \
    X(explain)      \
    X(top)          \
    X(unique)       \
    X(distinct)     \
    X(join)         \
    X(sync)         \
    X(isect)        \
    X(table)        \
    X(dedup)        \
    X(digest)       \
    X(redis)        \
    X(similar)      \
    X(parquet)      \
    X(urls)         \
    X(web)          \
    X(basket)       \
    X(passwords)    \
    X(seal)         \
    X(spell)        \
    X(traffic)      \
    X(bench)        \
    X(node)         \
    X(ring)         \
    X(net)          \
    X(help)

/* -------------------------------------------------------------- options */

enum opt_type {
    OPT_FLAG,     /* bool */
    OPT_COUNT,    /* uint64_t, any */
    OPT_POSITIVE, /* uint64_t, 1 at least */
    OPT_RATE,     /* double, above 0 and below 1 */
    OPT_TEXT,     /* const char *; the last one given counts */
    OPT_LIST,     /* struct list: every one given counts */
    OPT_WAIT      /* --wait: seconds, for wait_limit() */
};

/* A row of a command's option table; the table ends with a name of NULL. `to`
 * points to a variable of the type above. What the argument is called tells
 * complete.c what it may be: KIND is a kind, this|that is one of both. */
struct opt {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum opt_type type;
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

struct command {
    const char *name;
    const char *usage;   /* what follows the name: "-o FILE [INPUT...]" */
    const char *verbs;   /* words that its first operand is one of; NULL: any */
    const char *summary; /* one line, without a dot */
    const char *about;   /* paragraphs, an empty line between them */
    const struct opt *options;
    const struct example *examples; /* ends with a line of NULL */
    const struct report *reports;   /* with --json; ends with fields of NULL */
    int (*run)(struct list *operands);
};

#define COMMAND_DECLARE_(name) extern const struct command cmd_##name;
COMMANDS(COMMAND_DECLARE_)
#undef COMMAND_DECLARE_

/* The command of a row, NULL past the last, or of a name, NULL for none. */
const struct command *command_at(size_t i);
const struct command *command_named(const char *name);

/* Set what the options of c point to and leave in operands whatever is not an
 * option. False where the command must not run: *status is then the exit
 * status. */
bool options_parse(const struct command *c, int argc, char **argv,
                   struct list *operands, int *status);

/* -------------------------------------------------------------------- verbs */

/* Of commands whose first operand says what to do. One table of options serves
 * all verbs of a command; a row here says which of them a verb takes, and one
 * that it does not take is an error, not ignored. */
struct verb {
    const char *name, *operands; /* the latter for messages: "KEY [ITEM]..." */
    size_t least;                /* operands behind the verb */
    const char *options;         /* " host port ", a blank around each */
};

/* The row among n that the first operand names; *rest becomes the operands
 * behind it. n, with the reason printed, where there is none, where an option
 * was given that it does not take, or where operands are missing. The variables
 * of c's options must have begun as zero. */
size_t verb_find(const struct command *c, const struct verb *verbs, size_t n,
                 const struct list *operands, struct list *rest);

/* --------------------------------------------------------------------- help */

/* For people: all commands, or one. On standard output. */
void help_overview(FILE *to);
void help_command(const struct command *c);

/* Manual pages in roff: bloomery(1), or bloomery-NAME(1). */
void man_overview(void);
void man_command(const struct command *c);

void help_schema(void);

/* What the last of these words may become, the first being a command: lines of
 * candidates, as complete.c says. */
void complete(FILE *to, const struct list *words);

/* The script that lets a shell ask for that: YES, or TROUBLE where there is
 * none for it. */
int completion_script(const char *shell);

/* fail() with an unknown command's name and the nearest that exists. */
int fail_command(const char *name);

#endif

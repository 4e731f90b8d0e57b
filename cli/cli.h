/*
 * cli.h - what the commands share
 *
 * A command is a row: what it is called, what it does, its options, and a
 * function. main.c holds the table and help.c prints it, as help, as man pages
 * and as a completion script, so that none of them can say something else than
 * the parser does. Adding a command: cmd_NAME.c with a row at its end, and the
 * row's name in COMMANDS below.
 *
 * Exit status as grep's: 0 yes or done, 1 no, 2 trouble.
 */
#ifndef BLY_CLI_H
#define BLY_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <bloomery.h>

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
    X(merge)        \
    X(intersect)    \
    X(compare)      \
    X(shrink)       \
    X(convert)      \
    X(compress)     \
    X(delta)        \
    X(apply)        \
    X(figures)      \
    X(explain)      \
    X(top)          \
    X(dedup)        \
    X(digest)       \
    X(redis)        \
    X(similar)      \
    X(parquet)      \
    X(basket)       \
    X(bench)        \
    X(help)

enum { YES = 0, NO = 1, TROUBLE = 2 };

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

/* Words in the order they were given; the words belong to argv. */
struct list {
    const char **at;
    size_t n;
    size_t literal; /* of operands: the last so many stood behind -- */
};

bool list_has(const struct list *words, const char *word);

/* A row of a command's option table; the table ends with a name of NULL. `to`
 * points to a variable of the type above. An argument called KIND is completed
 * with the kinds there are. */
struct opt {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum opt_type type;
    void *to;
    const char *arg; /* what the argument is called in help; NULL: a flag */
    const char *help;
};

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
    int (*run)(struct list *operands);
};

#define COMMAND_DECLARE_(name) extern const struct command cmd_##name;
COMMANDS(COMMAND_DECLARE_)
#undef COMMAND_DECLARE_

/* The command of a row, NULL past the last, or of a name, NULL for none. */
const struct command *command_at(size_t i);
const struct command *command_named(const char *name);

/* Set what the options of c point to and leave in operands what is no option.
 * False where the command must not run: *status is then the exit status. */
bool options_parse(const struct command *c, int argc, char **argv,
                   struct list *operands, int *status);

/* The word among n that is nearest to a misspelt one; NULL if none is near.
 * word(i, ctx) gives the words, which may be NULL. */
const char *nearest_word(const char *wrong, size_t n,
                         const char *(*word)(size_t i, const void *ctx),
                         const void *ctx);

/* --------------------------------------------------------------- trouble */

/* Say on standard error, in one line, "bloomery: COMMAND: ...". fail() returns
 * TROUBLE, so that a command can end in `return fail("...", ...)`. */
__attribute__((format(printf, 1, 2))) int fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) void warn(const char *format, ...);

/* The same for what is neither; not with --quiet. */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

/* The command that runs, for the two above; NULL before it is known. */
void set_running(const char *command);
const char *running_command(void);

/* Say nothing that is no error: no report, for people or programs, and no
 * warning. An option of every command that reports. */
extern bool quiet;
#define QUIET_OPTION(what)                         \
    {                                              \
        "quiet", 'q', OPT_FLAG, &quiet, NULL, what \
    }
#define QUIET_HELP \
    "print nothing, not even warnings or --json; errors are still reported"

/* An error that the system reported for a path. */
int fail_path(const char *path, int error);

/* ---------------------------------------------------------------- output */

/* All of it to standard output, past stdio; 0, or an errno. */
int out_write(const void *bytes, size_t n);

/* A key, or what else is data, to standard output: the bytes as they are, and
 * clean where that is a terminal. */
bool out_is_terminal(void);
void print_key(const void *key, size_t n);
void print_key_end(bool nul); /* a NUL, or a newline */

/* Send what stdio still holds and report what went wrong with it: status, or
 * TROUBLE. The last thing a command's exit goes through. */
int out_finish(int status);

/* Numbers for people, into one of a few buffers that are used in turn: a size
 * as "58.5 KiB", a real number as "10.1". A rate is "2.16 %", and below 0.01 %
 * "1 in 1.11 billion"; no command has another form. */
const char *show_bytes(uint64_t nbytes);
static inline uint64_t bits_to_bytes(uint64_t nbits)
{
    return nbits / 8 + (nbits % 8 != 0);
}
const char *show_keys(uint64_t nkeys); /* "1 key", "5 keys" */
const char *show_rate(double rate);

/* Three digits: "1230", "19.9 million". An estimate is "about 19.9 million".
 * The number of different keys that a filter is for, or was given, is all
 * digits up to a million; past that it was estimated where nobody said it, and
 * is "about" unless it is round. */
const char *show_rounded(double value);
const char *show_estimate(double value);
const char *show_count(uint64_t n);
const char *show_real(double value);

/* How wide a column of rates is: *wide becomes as much as this one takes. */
void rate_column(double rate, int *wide);
const char *show_fact(const bly_fact *fact);

/* How wide a column is that holds the names of facts, and one more. */
int fact_column(const bly_fact *facts, size_t n, const char *other);

/* Bytes from outside, for people: what would steer a terminal becomes question
 * marks, one a byte, as ls has it. That is control characters, those of UTF-8
 * past ASCII too, what turns the direction of writing around, and what is no
 * UTF-8; keep_lines leaves newlines and tabs, and makes newlines of NULs. All
 * that people read goes through this: messages of fail() and warn() as a whole,
 * names by the two below, keys on a terminal by print_key(). */
void text_clean(void *text, size_t n, bool keep_lines);

/* The length of the UTF-8 character that n bytes begin with; 0 if it is none.
 * And how many bytes of one of that length are not for a terminal: 0 or all. */
size_t utf8_length(const unsigned char *s, size_t n);
size_t steers(const unsigned char *s, size_t len);

/* Names of files and keys, clean, into one of two buffers of the thread. */
const char *show_name(const char *name);
const char *show_text(const void *text, size_t nbytes);

/* Words of text, wrapped: every line after the first begins with indent
 * blanks, and no line passes column 79 unless a word does. `at` is the column
 * where the first one starts. A newline in text breaks the line. */
#define HARD_BLANK '\x1f' /* printed as a blank; no line breaks there */
void print_wrapped(FILE *to, const char *text, int at, int indent);

/* A row of a table: a name, and from a column on what text says of it, wrapped.
 * The text is freed; NULL: there was no memory for it. */
void print_row(const char *name, int column, char *text);

/* Text that is made by printing: text_end() gives it to the caller, who frees
 * it. Where memory is short both end the command: half a text must not look
 * like a whole one. */
struct text {
    FILE *to;
    char *at;
    size_t n;
};
FILE *text_begin(struct text *t);
char *text_end(struct text *t);

/* ------------------------------------------------------------------ json */

/* Where a JSON writer stands. Starts as { .to = stdout }. */
struct json {
    FILE *to;
    bool comma; /* something stands before this */
    bool keyed; /* a key stands before this */
};

/* Brackets: json_open(j, '{') ... json_close(j, '}'). */
void json_open(struct json *j, char bracket);
void json_close(struct json *j, char bracket);
void json_key(struct json *j, const char *key);
void json_text(struct json *j, const char *text); /* NULL: null */
void json_bytes(struct json *j, const void *text, size_t nbytes);
void json_uint(struct json *j, uint64_t value);
void json_real(struct json *j, double value); /* not finite: null */
void json_bool(struct json *j, bool value);
void json_null(struct json *j);
void json_end(struct json *j); /* a newline, ready for the next value */

/* All facts as one object, under the key "params". */
void json_facts(struct json *j, const bly_fact *facts, size_t n);

/* ------------------------------------------------- filters and their keys */

/* What a filter is to be, from options. */
struct sizing {
    const char *kind;
    uint64_t items;
    double fpr;
    uint64_t bits, memory;
    struct list options;
};

#define SIZING_OPTIONS(s)                                                      \
    { "items",    'n', OPT_POSITIVE,                                           \
      &(s).items, "N", "capacity: how many different keys it is for" },        \
        { "fpr",    'p', OPT_RATE,                                             \
          &(s).fpr, "P", "rate of false positives at capacity: 1%, 0.001" },   \
        { "bits",    'b', OPT_POSITIVE,                                        \
          &(s).bits, "B", "memory of the filter in bits, instead of a rate" }, \
        { "memory",    'm',    OPT_POSITIVE,                                   \
          &(s).memory, "SIZE", "the same in bytes: 64MiB, 100k" },             \
        { "kind",    'k',    OPT_TEXT,                                         \
          &(s).kind, "KIND", "kind of filter; see bloomery kinds" },           \
    {                                                                          \
        "option", 'O', OPT_LIST, &(s).options, "NAME=VALUE",                   \
            "an option of the kind; may be repeated"                           \
    }

/* NAME=VALUE words as options, which live until the command ends. False, and
 * said why, if one is not of that form. */
bool option_words(const struct list *words, const bly_option **out);

/* Whether there is a kind of that name; false, and said so, if not. */
bool kind_exists(const char *name);

/* Does spec say how large the filter will be, whatever the keys are? */
bool is_sized(const bly_spec *spec);

/* Fill in kind, items, fpr, bits and options of spec. False, and said why, if
 * that cannot be meant. */
bool sizing_spec(const struct sizing *s, bly_spec *spec);

/* Read the secret in a key file: 16 raw bytes, or 32 hexadecimal digits and
 * perhaps the end of a line. NULL, and said why, if it is anything else. What
 * comes back is wiped by secret_wipe(), and at exit. path NULL gives NULL with
 * *ok. */
const unsigned char *secret_read(const char *path, bool *ok);
void secret_wipe(void);

/* Open a file with something secret in it. Negative, and said why, if that
 * fails. *open_to_all: others may read it, which is worth a warning. */
int secret_open(const char *path, bool *open_to_all);

/* Open the filter in path ("-": standard input) to read it, where it lies if
 * that is a file. NULL, and said why, if that fails. Who maps two at once tells
 * cut_watch() both names. */
bly_filter *filter_map(const char *path, const bly_access *how);

/* The same into memory, to change it. */
bly_filter *filter_open(const char *path, const bly_access *how);

/* Combine f with the filter in path ("-": standard input), which is read once.
 * Says nothing; the name of a file is in bly_error(). */
bly_status filter_combine(bly_filter *f, bly_combination how, const char *path);

/* Whether f can do what an ability is, BLY_CAN(...); if not, says which kinds
 * can. path is where f comes from. */
bool filter_can(const bly_filter *f, const char *path, uint32_t ability);

/* Tell a filter that forgets with time what time it is. */
bly_status filter_tick(bly_filter *f);

/* From here on, a mapped file that is cut while it is read ends the command
 * with a line that names it (b NULL: there is one), not with a signal. */
void cut_watch(const char *a, const char *b);

/* At most nbytes from fd, fewer only at its end; negative: errno is set. */
int64_t read_all(int fd, void *buf, size_t nbytes);

/* A bly_put to standard output; ctx is an int that gets the errno. */
bool put_stdout(void *ctx, const void *bytes, size_t nbytes);

/* Write f to path, "-" being standard output: YES, or said why not. */
int filter_save(const bly_filter *f, const char *path);

/* The same for anything else. */
int file_save(const char *path, bly_writes *write, const void *what);

/* The command's bly_wait: says after a second what it waits for, and gives up
 * after the seconds of --wait, which every command has that writes files. */
bool wait_for_lock(void *ctx, const char *path, uint64_t ms);
bool wait_limit(const char *text); /* false: not a number of seconds */
bool wait_given(void);
#define WAIT_OPTION                                                            \
    {                                                                          \
        "wait", 0, OPT_WAIT, NULL, "SECONDS",                                  \
            "wait at most this long for another process that is changing the " \
            "file; 0: not at all; as long as it takes if not given"            \
    }

/* Say what the library says of its last failure. */
int fail_library(void);

/* Does the filter hold more than it was made for? Beyond doubt: the estimate
 * lies three deviations and 2 % above the capacity. One that grows does not,
 * and of one with keys of others nobody knows. */
bool is_past_capacity(const bly_stats *s);
void warn_past_capacity(const char *path, const bly_stats *s);

/* Did it grow past the first of its layers? Then the capacity is that one's. */
bool has_grown(const bly_stats *s);

/* The value of a fact that s has; NAN if it has none of that name. */
double fact_value(const bly_stats *s, const char *name);

/* The memory of a filter's own cells, from its bits. Where these are what it
 * takes when it is sent, as its facts say, it is the fact "bits". */
uint64_t own_bytes(uint64_t bits, const bly_fact *facts, size_t n);

/* What was made: "classic filter for 9 different, 12 B, ...", or as
 * members of an object. Sizes are the filter's own, as plan gives them. */
double bits_per_key(const bly_stats *s);
uint64_t filter_size(const bly_stats *s); /* in bytes */
void print_made(FILE *to, const bly_stats *s);
void json_made(struct json *j, const bly_stats *s);

/* The kinds that have an ability, as "one, other". The caller frees it;
 * NULL if there is no memory. */
char *kinds_that_can(uint32_t ability);

/* merge and intersect: the inputs combined into the file output. */
int combine(const char *output, const struct list *inputs, bool json,
            bly_combination how);

/* ----------------------------------------------------------------- paths */

bool is_dash(const char *path);

/* Does path name what is open as standard input, or output? "-" does. */
bool is_stdin(const char *path);
bool is_stdout(const char *path);

/* Are the two one regular file? "-" is the standard stream of its side. */
bool is_same_file(const char *output, const char *input);

/* Asked before a long run. Could a filter be written to path at all, with a
 * report beside it? False, and said why, if not. */
bool output_works(const char *path, bool json);

/* Would a filter written to output take the place of one of n inputs, "-" being
 * standard input? False, and said so, if it would. A NULL is no input. */
bool output_spares(const char *output, const char *const *inputs, size_t n);

/* Where the report goes for people: not among the bytes of the filter. To be
 * asked before output is replaced, and is another file. */
FILE *report_to(const char *output);

/* Can the filter in path be changed there? False, and said why, if not. */
bool can_change(const char *path);

/* -------------------------------------------------------------- progress */

/* A line on standard error, rewritten now and then, once the work has lasted a
 * second; nothing where standard error is no terminal. progress_at() may be
 * called from any one thread at a time. total 0: not known. */
void progress_start(bool prints_to_stdout);
void progress_unit(const char *unit); /* what is counted, if not keys */
void progress_at(uint64_t nkeys, uint64_t done, uint64_t total);
void progress_clear(void);

#endif

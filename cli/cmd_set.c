/*
 * cmd_set.c - other values for keys of a filter on disk
 */
#include <stdlib.h>
#include <string.h>

#include "cli/change.h"
#include "cli/rows.h"
#include "io/values.h"

static struct {
    struct keys keys;
    const char *delimiter;
    bool json;
} set_args;

static bly_status set_batch(struct job *job, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const bly_status st =
            bly_set_hash(job->ctx, b->hashes[i], b->values[i]);
        /* What is refused for one key may be right for the next. */
        if (st && st != BLY_EABSENT && st != BLY_ERANGE)
            return st;
        if (!st)
            b->picked[i / 64] |= UINT64_C(1) << i % 64;
        else
            change_refused(&b->keys[i],
                           st == BLY_EABSENT ? "absent" : bly_error());
    }
    return BLY_OK;
}

/* The filter, and each pair of operands behind it as one line. Words that are
 * made are the caller's to free. False, with the reason printed, if they are no
 * pairs. */
static bool set_pairs(const struct list *operands, char delimiter,
                      struct list *lines)
{
    uint64_t value;
    if (operands->n == 2 && operand_is_stdin(operands, 1))
        return true;
    for (size_t i = 1; i < operands->n; i += 2) {
        const char *const key = operands->at[i];
        if (!operand_is_key(operands, i))
            return false;
        if (i + 1 == operands->n) {
            fail("%s: its value is missing; usage: bloomery set FILTER [KEY "
                 "VALUE]...",
                 key);
            return false;
        }
        const char *const text = operands->at[i + 1];
        if (!value_read(text, strlen(text), &value)) {
            fail("%s: '%s' is not a value; expected " VALUE_RIGHT, key, text);
            return false;
        }
        const size_t nkey = strlen(key), ntext = strlen(text);
        char *const line = malloc(nkey + ntext + 2);
        if (!line) {
            fail("out of memory");
            return false;
        }
        memcpy(line, key, nkey);
        line[nkey] = delimiter;
        memcpy(line + nkey + 1, text, ntext + 1);
        lines->at[lines->n++] = line;
    }
    return true;
}

static const struct field set_fields[] = { CHANGED_FIELDS("set") };

static int set_run(struct list *operands)
{
    struct change c = {
        .keys = &set_args.keys,
        .ability = BLY_CAN(SET),
        .fields = set_fields,
        .text = "{file}: {set} set, {refused} refused\n",
        .json = set_args.json,
        .job = { .batch = set_batch, .valued = true },
    };
    if (operands->n == 0)
        return fail(
            "no filter is given; usage: bloomery set FILTER [KEY VALUE]...");
    if (!delimiter_read(set_args.delimiter, '\t', &c.job.delimiter))
        return TROUBLE;
    struct list lines = { .at = calloc(operands->n + 1, sizeof(char *)) };
    if (!lines.at)
        return fail("out of memory");
    lines.at[lines.n++] = operands->at[0];
    lines.literal = operands->n; /* set_pairs() looked at the keys */
    const int status = set_pairs(operands, c.job.delimiter, &lines)
                           ? change_keys(&c, &lines)
                           : TROUBLE;
    for (size_t i = 1; i < lines.n; i++)
        free((char *)(uintptr_t)lines.at[i]);
    free(lines.at);
    return status;
}

static const struct opt set_options[] = {
    FILES_OPTIONS(set_args.keys),
    NORMAL_OPTIONS(set_args.keys),
    DELIMITER_OPTION(set_args.delimiter),
    SKIP_BAD_OPTION(set_args.keys),
    WAIT_OPTION,
    QUIET_OPTION("print nothing, not even with --json, and do not name what is "
                 "refused; errors are still reported"),
    FLAG("json", 0, set_args.json,
         "print {\"file\":..,\"keys\":..,\"set\":..,\"refused\":..}"),
    { 0 },
};

static const struct example set_examples[] = {
    { "bloomery set ages.bly ann 32 bob 41", "two keys" },
    { "bloomery set ages.bly -f birthdays.tsv", "the lines of a file" },
    { 0 },
};

const struct command cmd_set = {
    .name = "set",
    .usage = "FILTER [KEY VALUE]... [-f FILE]... [OPTION]...",
    .summary = "change the values of keys in a filter on disk",
    .about = "Gives new values to keys that the filter was built with: pairs "
             "of arguments, or lines with a key, a tab and its value in the "
             "files given with -f or on standard input. A value is " VALUE_RIGHT
             ". If a key gets several values, the last counts.\n\n"
             "Set only keys that are in the filter: a false positive cannot be "
             "told from a key that is, and setting it changes the value of "
             "another key.\n\n"
             "A key that is refused is named on standard error, with the "
             "reason: it is absent, or its value has more bits than the filter "
             "stores. The rest is set all the same, and the exit status is 1. "
             "A malformed line is an error, and nothing is changed.\n\n"
             "The filter is replaced at the end, under its lock, as by "
             "bloomery add.",
    .options = set_options,
    .examples = set_examples,
    .reports = REPORTS({ "", set_fields, ONE }),
    .run = set_run,
};

/*
 * docs.c - a line of arguments as the structure that COMMAND DOCS wants
 *
 *     key error_rate:double [EXPANSION expansion:integer] [NONSCALING] item...
 *
 *     key (item increment:integer)...
 *
 * A word is an argument, a string unless it says otherwise; "key" is a key.
 * Capitals are a word to be typed. Brackets: may be left out. Parentheses: come
 * together. Dots: one or more. Several words in brackets or parentheses are a
 * block, but for a word in capitals and its one value.
 */
#define _GNU_SOURCE
#include "adapters/redis/docs.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGS 16
#define MAX_SUBARGS 4

/* All of one command; the server copies what it takes. */
struct docs {
    char text[300];
    server_arg args[MAX_ARGS];
    server_arg subargs[MAX_ARGS][MAX_SUBARGS];
    char names[MAX_ARGS][32]; /* of blocks and words: in small letters */
    int required;             /* words that must be there, the name included */
    bool more;                /* there may be others */
};

static bool is_token(const char *word)
{
    return isupper((unsigned char)word[0]);
}

/* One word, without brackets: "item...", "capacity:integer", "key". */
static void read_word(char *word, server_arg *out)
{
    const size_t n = strlen(word);
    *out = (server_arg){ .type = SERVER_ARG_STRING, .key_spec_index = -1 };
    if (n > 3 && strcmp(word + n - 3, "...") == 0) {
        word[n - 3] = '\0';
        out->flags |= SERVER_ARG_MULTIPLE;
    }
    char *colon = strchr(word, ':');
    if (colon) {
        *colon++ = '\0';
        out->type = strcmp(colon, "integer") == 0  ? SERVER_ARG_INTEGER
                    : strcmp(colon, "double") == 0 ? SERVER_ARG_DOUBLE
                                                   : SERVER_ARG_STRING;
    }
    if (strcmp(word, "key") == 0 || strcmp(word, "destination") == 0 ||
        strcmp(word, "other") == 0 || strcmp(word, "source") == 0) {
        out->type = SERVER_ARG_KEY;
        out->key_spec_index =
            strcmp(word, "source") == 0 || strcmp(word, "other") == 0;
    }
    out->name = word;
}

static void name_token(struct docs *d, size_t i, server_arg *arg)
{
    size_t k = 0;
    for (; arg->token[k] && k + 1 < sizeof d->names[i]; k++)
        d->names[i][k] = (char)tolower((unsigned char)arg->token[k]);
    d->names[i][k] = '\0';
    arg->name = d->names[i];
}

/* The words of one argument, brackets removed, become args[i]. */
static void read_argument(struct docs *d, size_t i, char *words, bool optional)
{
    server_arg *arg = &d->args[i];
    char *rest = words, *first = strsep(&rest, " ");
    if (!is_token(first) && rest) { /* a block without a word of its own */
        int n = 0;
        for (char *word = first; word && n + 1 < MAX_SUBARGS;
             word = strsep(&rest, " "))
            read_word(word, &d->subargs[i][n++]);
        *arg = (server_arg){ .name = "block",
                             .type = SERVER_ARG_BLOCK,
                             .key_spec_index = -1,
                             .subargs = d->subargs[i] };
        d->required += optional ? 0 : n;
    } else if (is_token(first)) {
        *arg = (server_arg){ .type = SERVER_ARG_PURE_TOKEN,
                             .token = first,
                             .key_spec_index = -1 };
        size_t n = 0;
        for (char *word; n + 1 < MAX_SUBARGS && (word = strsep(&rest, " "));)
            read_word(word, &d->subargs[i][n++]);
        if (n) {
            arg->type = SERVER_ARG_BLOCK;
            arg->subargs = d->subargs[i];
        }
        if (n == 1) { /* a word and its value: one argument with a token */
            const char *token = arg->token;
            *arg = d->subargs[i][0];
            arg->token = token;
        } else {
            name_token(d, i, arg);
        }
        d->required += optional ? 0 : 1 + (int)n;
    } else {
        read_word(first, arg);
        d->required += !optional;
    }
    if (optional)
        arg->flags |= SERVER_ARG_OPTIONAL;
    d->more |= optional || (arg->flags & SERVER_ARG_MULTIPLE) ||
               (arg->subargs && arg->subargs[0].flags & SERVER_ARG_MULTIPLE);
}

static void read_arguments(struct docs *d, const char *line)
{
    strncpy(d->text, line, sizeof d->text - 1);
    d->required = 1;
    size_t n = 0;
    for (char *at = d->text; *at && n + 1 < MAX_ARGS; n++) {
        const bool optional = *at == '[', together = *at == '(';
        char *end = optional       ? strchr(at, ']')
                    : together     ? strchr(at, ')')
                    : is_token(at) ? at + strlen(at)
                                   : at + strcspn(at, " ");
        char *next = *end ? end + 1 : end;
        *end = '\0';
        read_argument(d, n, at + (optional || together), optional);
        if (strncmp(next, "...", 3) == 0) {
            d->args[n].flags |= SERVER_ARG_MULTIPLE;
            d->more = true;
            next += 3;
        }
        at = next + strspn(next, " ");
    }
}

/* What looks at a key as it is now is not to be kept by a proxy. */
static const char *tips_of(const char *name)
{
    const char *word = strchr(name, '.') + 1;
    return strcmp(word, "info") == 0 || strcmp(word, "debug") == 0 ||
                   strcmp(word, "scandump") == 0 || strcmp(word, "export") == 0
               ? "dont_cache"
               : NULL;
}

/* Commands that write and reply with counts or items that are in the key, as
 * INCR does: who may only write (%W) may not use them. Whether an item was new
 * is not such a reply, as it is not of SADD. */
static bool tells(const char *name)
{
    static const char *const names[] = { "cms.incrby", "topk.add",
                                         "topk.incrby" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

int docs_tell(server_command *command, const command_row *row)
{
    if (!srv.SetCommandInfo)
        return SERVER_OK;
    static const server_info_version version = {
        .version = 1,
        .sizeof_history = 2 * sizeof(char *),
        .sizeof_keyspec = sizeof(server_keyspec),
        .sizeof_arg = sizeof(server_arg),
    };
    struct docs d = { 0 };
    read_arguments(&d, row->arguments);
    const bool reads = strstr(row->flags, "readonly") != NULL;
    server_keyspec keys[] = {
        { .flags = reads ? SERVER_KEYSPEC_RO | SERVER_KEYSPEC_ACCESS
                         : SERVER_KEYSPEC_RW | SERVER_KEYSPEC_UPDATE |
                               (tells(row->name) ? SERVER_KEYSPEC_ACCESS : 0),
          .begin_search_type = 2,
          .bs.index = { .pos = 1 },
          .find_keys_type = 2,
          .fk.range = { .lastkey = 0, .keystep = 1 } },
        { 0 },
        { 0 },
    };
    if (row->numkeys < 0) /* all that follow are keys that are read */
        keys[1] = (server_keyspec){
            .flags = SERVER_KEYSPEC_RO | SERVER_KEYSPEC_ACCESS,
            .begin_search_type = 2,
            .bs.index = { .pos = 2 },
            .find_keys_type = 2,
            .fk.range = { .lastkey = -1, .keystep = 1 },
        };
    if (row->numkeys > 0) /* a number, then so many keys that are read */
        keys[1] = (server_keyspec){
            .flags = SERVER_KEYSPEC_RO | SERVER_KEYSPEC_ACCESS,
            .begin_search_type = 2,
            .bs.index = { .pos = row->numkeys },
            .find_keys_type = 3,
            .fk.keynum = { .keynumidx = 0, .firstkey = 1, .keystep = 1 },
        };
    const server_command_info info = {
        .version = &version,
        .summary = row->summary,
        .complexity = row->complexity,
        .since = row->since,
        .tips = tips_of(row->name),
        .arity = d.more ? -d.required : d.required,
        .key_specs = keys,
        .args = d.args,
    };
    return srv.SetCommandInfo(command, &info);
}

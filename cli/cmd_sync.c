/*
 * cmd_sync.c - what two machines do not share: bloomery sync VERB ...
 */
#include <string.h>

#include "apps/sync/sync.h"
#include "cli/rows.h"

static struct sync_args sync_args;

static const struct opt sync_options[] = {
    { "method", 0, OPT_TEXT, &sync_args.method,
      "auto|rateless|iblt|exact|tree|bloom",
      "how differences are found: rateless, iblt, exact, tree or bloom; if not "
      "given, rateless or exact, whichever takes fewer bytes" },
    FLAG("dry-run", 0, sync_args.dry_run,
         "pull, push, both: change nothing; print what differs, < for what "
         "only this side has, > for what only the other has, ! for files that "
         "changed"),
    FLAG("delete", 0, sync_args.deletes,
         "pull, push: also remove what only the side has that is changed"),
    { "output", 'o', OPT_TEXT, &sync_args.output, "FILE",
      "pull, of lists: write the missing lines to FILE and leave the list as "
      "it is" },
    FLAG("objects", 0, sync_args.objects,
         "folders of objects whose names stand for their contents, as git's: "
         "names alone are compared, and no object is replaced"),
    FLAG("null", '0', sync_args.nul, "lines end at NUL bytes, not at newlines"),
    { "rsh", 0, OPT_TEXT, &sync_args.rsh, "CMD",
      "the other side is HOST:PATH, and CMD runs bloomery on HOST: ssh" },
    { "remote", 0, OPT_TEXT, &sync_args.remote, "PROGRAM",
      "with --rsh: what bloomery is called on HOST" },
    { "pipe", 0, OPT_TEXT, &sync_args.pipe, "CMD",
      "the other side is this command, run by sh, which ends in bloomery sync "
      "serve --stdio PATH" },
    { "listen", 0, OPT_TEXT, &sync_args.listen, "ADDRESS:PORT",
      "serve: where to listen; " SYNC_LISTEN
      " if not given; port 0 is any free one" },
    FLAG("stdio", 0, sync_args.standard,
         "serve: on standard input and output, for --rsh and --pipe"),
    FLAG("write", 0, sync_args.writes,
         "serve: others may push; without it they only read"),
    { "connections", 0, OPT_POSITIVE, &sync_args.connections, "N",
      "serve: most connections that are served at once; 16 if not given" },
    { "timeout", 0, OPT_POSITIVE, &sync_args.timeout, "SECONDS",
      "how long a message of the other side may take, and the wait for it; 60 "
      "if not given" },
    OPTION("key-file", 'K', OPT_TEXT, &sync_args.key_file, "FILE",
           "the secret that both sides have, 16 raw bytes or 32 hexadecimal "
           "digits, if somebody may choose lines or files to do harm"),
    THREADS_OPTION(sync_args.threads),
    WAIT_OPTION,
    QUIET_OPTION("print nothing but errors"),
    JSON_OPTION(sync_args),
    { 0 },
};

#define EVERY " method null objects key-file threads timeout quiet json "
#define MOVES EVERY "dry-run delete rsh remote pipe wait "

static const struct old_verb sync_verbs[] = {
    { "local", "A B", 2, EVERY },
    { "pull", "PATH PEER", 1, MOVES "output " },
    { "push", "PATH PEER", 1, MOVES },
    { "both", "PATH PEER", 1, MOVES },
    { "serve", "PATH", 1,
      " null objects key-file threads timeout quiet json wait listen stdio "
      "write connections " },
};
static sync_verb *const sync_functions[] = {
    sync_local, sync_pull, sync_push, sync_both, sync_serve,
};
#define NVERBS (sizeof sync_verbs / sizeof sync_verbs[0])

static bool is_verb(const char *word)
{
    for (size_t i = 0; i < NVERBS; i++)
        if (!strcmp(sync_verbs[i].name, word))
            return true;
    return false;
}

static int sync_run(struct list *operands)
{
    const char *with_verb[3] = { "local" };
    struct list rest, all = *operands;
    /* sync A B compares the two. */
    if (operands->n == 2 && !is_verb(operands->at[0])) {
        with_verb[1] = operands->at[0];
        with_verb[2] = operands->at[1];
        all = (struct list){ with_verb, 3, operands->literal };
    }
    if (sync_args.timeout > 86400 || sync_args.connections > 10000)
        return fail("at most --timeout 86400 (seconds) and --connections "
                    "10000");
    const size_t i = verb_find(&cmd_sync, sync_verbs, NVERBS, &all, &rest);
    return i == NVERBS ? TROUBLE : sync_functions[i](&sync_args, &rest);
}

static const struct example sync_examples[] = {
    { "bloomery sync old.txt new.txt", "in what do two lists differ?" },
    { "bloomery sync serve /srv/photos",
      "let others read a folder, from this machine" },
    { "bloomery sync pull photos/ nas:3130",
      "bring what is new or changed there, over TCP" },
    { "bloomery sync both --rsh ssh notes/ me@home:notes/",
      "bring two folders together, over ssh" },
    { "bloomery sync pull ids.txt news:3130 -o missing.txt",
      "which message ids does the other server have?" },
    { "bloomery sync push --objects .git/objects mirror/.git/objects",
      "bring objects that the other store lacks" },
    { 0 },
};

const struct command cmd_sync = {
    .name = "sync",
    .old_verbs = "local pull push both serve",
    .usage = "VERB PATH PEER [OPTION]...",
    .summary = "find what two lists or folders do not share, for few bytes",
    .about =
        "Two sides have lists of lines, or folders of files, that are nearly "
        "the same. What they differ in is found for bytes in proportion to "
        "the differences, not to the lists: some 20 bytes for each of them.\n\n"
        "sync A B (or sync local A B) compares two lists or two folders and "
        "prints what differs: < before what only A has, > before what only B "
        "has, ! before files that both have with other contents. Nothing is "
        "changed. The exit status is 0 if they are the same, 1 if they "
        "differ, and 2 after an error.\n\n"
        "pull PATH PEER brings to PATH what only PEER has, and files that "
        "PEER has changed. push does the reverse. both does both, and of a "
        "file that both have, the newer version stays; if only its mode "
        "differs, the mode that was changed last. PEER is another path, "
        "HOST:PORT of a bloomery sync serve, HOST:PATH with --rsh, or the "
        "command of --pipe. Lines are put behind the others, files appear "
        "under their names when they are whole, and the exit status is 0, or "
        "2 after an error or when a file could not be brought. A sync that was "
        "cut off goes on where it was when it is run again.\n\n"
        "serve PATH answers others over TCP, or with --stdio on standard input "
        "and output. There is neither a password nor encryption: beyond one's "
        "own machine, use --rsh ssh.\n\n"
        "Files are compared by their names, sizes, contents and whether they "
        "may be executed. Links, devices and empty folders are left out. Of a "
        "changed file, only chunks that the other version lacks are sent.",
    .options = sync_options,
    .examples = sync_examples,
    .reports =
        REPORTS({ "", sync_fields, ONE }, { "serve", sync_serve_fields, ONE }),
    .run = sync_run,
};

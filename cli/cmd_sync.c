/*
 * cmd_sync.c - what two machines do not share: bloomery sync VERB ...
 */
#include "apps/sync/sync.h"
#include "cli/program.h"
#include "cli/rows.h"

static struct sync_args sync_args;

#define SYNC_REPORTS REPORTS({ "", sync_fields, ONE })

#define SYNC_METHOD                                                            \
    OPTION("method", 0, OPT_CHOICE, &sync_args.method,                         \
           "auto|bloom|tree|iblt|rateless|exact",                              \
           "how differences are found: rateless, iblt, exact, tree or bloom; " \
           "if not "                                                           \
           "given, rateless or exact, whichever takes fewer bytes")
#define SYNC_SHARED                                                            \
    FLAG("objects", 0, sync_args.objects,                                      \
         "folders of objects whose names stand for their contents, as git's: " \
         "names alone are compared, and no object is replaced"),               \
        FLAG("null", '0', sync_args.nul,                                       \
             "lines end at NUL bytes, not at newlines"),                       \
        OPTION("timeout", 0, OPT_BETWEEN(POSITIVE, 1, 86400),                  \
               &sync_args.timeout, "SECONDS",                                  \
               "how long a message of the other side may take, and the wait "  \
               "for it; 60 "                                                   \
               "if not given"),                                                \
        OPTION("key-file", 'K', OPT_TEXT, &sync_args.key_file, "FILE",         \
               "the secret that both sides have, which seals what they say "   \
               "to each other and keys the hashes: 16 raw bytes, or 32 or 64 " \
               "hexadecimal digits (bloomery node key makes one)")
#define SYNC_MOVES                                                             \
    FLAG("dry-run", 0, sync_args.dry_run,                                      \
         "change nothing; print what differs, < for what only this side has, " \
         "> for what only the other has, ! for files that changed"),           \
        OPTION("rsh", 0, OPT_TEXT, &sync_args.rsh, "CMD",                      \
               "the other side is HOST:PATH, and CMD runs bloomery on HOST: "  \
               "ssh"),                                                         \
        OPTION("remote", 0, OPT_TEXT, &sync_args.remote, "PROGRAM",            \
               "with --rsh: what bloomery is called on HOST"),                 \
        OPTION("pipe", 0, OPT_TEXT, &sync_args.pipe, "CMD",                    \
               "the other side is this command, run by sh, which ends in "     \
               "bloomery sync "                                                \
               "serve --stdio PATH")
#define SYNC_DELETE                      \
    FLAG("delete", 0, sync_args.deletes, \
         "also remove what only the side has that is changed")

static const struct opt sync_local_options[] = {
    SYNC_METHOD,
    SYNC_SHARED,
    THREADS_OPTION(sync_args.threads),
    QUIET_ERRORS,
    JSON_OPTION(sync_args),
    { 0 },
};

static const struct opt sync_pull_options[] = {
    SYNC_METHOD,
    SYNC_MOVES,
    SYNC_DELETE,
    { "output", 'o', OPT_TEXT, &sync_args.output, "FILE",
      "of lists: write the missing lines to FILE and leave the list as "
      "it is" },
    SYNC_SHARED,
    THREADS_OPTION(sync_args.threads),
    WAIT_OPTION,
    QUIET_ERRORS,
    JSON_OPTION(sync_args),
    { 0 },
};

static const struct opt sync_push_options[] = {
    SYNC_METHOD,
    SYNC_MOVES,
    SYNC_DELETE,
    SYNC_SHARED,
    THREADS_OPTION(sync_args.threads),
    WAIT_OPTION,
    QUIET_ERRORS,
    JSON_OPTION(sync_args),
    { 0 },
};

static const struct opt sync_both_options[] = {
    SYNC_METHOD,
    SYNC_MOVES,
    FLAG("delete", 0, sync_args.deletes, ""),
    SYNC_SHARED,
    THREADS_OPTION(sync_args.threads),
    WAIT_OPTION,
    QUIET_ERRORS,
    JSON_OPTION(sync_args),
    { 0 },
};

static const struct opt sync_serve_options[] = {
    SYNC_SHARED,
    { "listen", 0, OPT_TEXT, &sync_args.listen, "ADDRESS:PORT",
      "serve: where to listen; " SYNC_LISTEN
      " if not given; port 0 is any free one" },
    FLAG("stdio", 0, sync_args.standard,
         "on standard input and output, for --rsh and --pipe"),
    FLAG("write", 0, sync_args.writes,
         "others may push; without it they only read"),
    { "connections", 0, OPT_BETWEEN(POSITIVE, 1, 10000), &sync_args.connections,
      "N", "most connections that are served at once; 16 if not given" },
    THREADS_OPTION(sync_args.threads),
    WAIT_OPTION,
    QUIET_ERRORS,
    JSON_OPTION(sync_args),
    { 0 },
};

RUNS_IN("net", sync_local, sync_args)
RUNS_IN("net", sync_pull, sync_args)
RUNS_IN("net", sync_push, sync_args)
RUNS_IN("net", sync_both, sync_args)
RUNS_IN("net", sync_serve, sync_args)

static const struct verb sync_verbs[] = {
    { .name = "local",
      .operands = "FILE FILE",
      .summary = "in what do two lists or folders differ?",
      .about =
          "sync A B (or sync local A B) compares two lists or two folders and "
          "prints what differs: < before what only A has, > before what only B "
          "has, ! before files that both have with other contents. Nothing is "
          "changed. The exit status is 0 if they are the same, 1 if they "
          "differ, and 2 after an error.",
      .options = sync_local_options,
      .reports = SYNC_REPORTS,
      .run = run_sync_local },
    { .name = "pull",
      .operands = "OUT [PEER]",
      .summary = "bring here what only the other side has",
      .about =
          "pull PATH PEER brings to PATH what only PEER has, and files that "
          "PEER has changed. push does the reverse. both does both, and of a "
          "file that both have, the newer version stays; if only its mode "
          "differs, the mode that was changed last. PEER is another path, "
          "HOST:PORT of a bloomery sync serve, HOST:PATH with --rsh, or the "
          "command of --pipe. Lines are put behind the others, files appear "
          "under their names when they are whole, and the exit status is 0, or "
          "2 after an error or when a file could not be brought. A sync that "
          "was cut off goes on where it was when it is run again.",
      .options = sync_pull_options,
      .reports = SYNC_REPORTS,
      .run = run_sync_pull },
    { .name = "push",
      .operands = "FILE [PEER]",
      .summary = "bring there what only this side has",
      .options = sync_push_options,
      .reports = SYNC_REPORTS,
      .run = run_sync_push },
    { .name = "both",
      .operands = "OUT [PEER]",
      .summary = "bring both sides together",
      .options = sync_both_options,
      .reports = SYNC_REPORTS,
      .run = run_sync_both },
    { .name = "serve",
      .operands = "FILE",
      .summary = "let others pull, and push with --write",
      .about = "serve PATH answers others over TCP, or with --stdio on "
               "standard input and output. With --key-file FILE, whoever lacks "
               "the same secret learns nothing and changes nothing; without "
               "it, all is readable on the way, and anybody may connect: "
               "beyond one's own machine, use --key-file or --rsh ssh.",
      .options = sync_serve_options,
      .reports = REPORTS({ "", sync_serve_fields, ONE }),
      .run = run_sync_serve },
    { 0 },
};

static const struct example sync_examples[] = {
    { "bloomery sync old.txt new.txt", "in what do two lists differ?" },
    { "bloomery sync serve /srv/photos",
      "let others read a folder, from this machine" },
    { "bloomery sync pull photos/ nas:3130",
      "bring what is new or changed there, over TCP" },
    { "bloomery sync pull -K secret photos/ nas:3130",
      "likewise, sealed with a secret that both sides have" },
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
    .summary = "find what two lists or folders do not share, for few bytes",
    .about =
        "Two sides have lists of lines, or folders of files, that are nearly "
        "the same. What they differ in is found for bytes in proportion to "
        "the differences, not to the lists: some 20 bytes for each of them.\n\n"
        "Files are compared by their names, sizes, contents and whether they "
        "may be executed. Links, devices and empty folders are left out. Of a "
        "changed file, only chunks that the other version lacks are sent.",
    .verbs = sync_verbs,
    .implied = "local",
    .examples = sync_examples,
};

/*
 * cmd_web.c - bloomery web: the playground in a browser
 */
#include "apps/web/web.h"
#include "cli/cli.h"
#include "cli/program.h"
#include "report/say.h"

static struct web_args web_args;

RUNS_IN("web", web_serve, web_args)

static const struct opt web_options[] = {
    { "listen", 0, OPT_TEXT, &web_args.listen, "ADDRESS:PORT",
      "where to listen; 127.0.0.1:8081 if not given; port 0 is any free one" },
    { "folder", 0, OPT_TEXT, &web_args.folder, "DIR",
      "where the files are; beside the program or where it was installed if "
      "not given" },
    FLAG("quiet", 'q', quiet, "say nothing"),
    FLAG("json", 0, web_args.json, "print a JSON object"),
    { 0 },
};

static const struct example web_examples[] = {
    { "bloomery web", "then open http://127.0.0.1:8081/ in a browser" },
    { "bloomery web --listen 127.0.0.1:0 --json", "on a free port" },
    { 0 },
};

const struct command cmd_web = {
    .name = "web",
    .usage = "[--listen ADDRESS:PORT] [--folder DIR]",
    .summary = "serve the playground: filters at work in a browser",
    .about = "Serves the playground on this machine, until Ctrl-C: see keys "
             "and cells, plan, measure, open a filter from a file. The page "
             "runs the library as WebAssembly; nothing is sent anywhere. The "
             "files are made by make web, and may be served by any web server "
             "instead. Where make site has built the handbook, or the package "
             "with it is installed, that is served beside it, at /handbook/.",
    .options = web_options,
    .examples = web_examples,
    .reports =
        (const struct report[]){ { "when it begins", web_serving_fields, ONE },
                                 { 0 } },
    .run = run_web_serve,
};

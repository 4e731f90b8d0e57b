/*
 * cmd_digest.c - cache digests, for people who run Squid: bloomery digest VERB
 */
#include "apps/digest/jobs.h"
#include "cli/rows.h"

static struct digest_args digest_args;

static const struct opt digest_options[] = {
    { "output", 'o', OPT_TEXT, &digest_args.output, "FILE",
      "get, build: write the digest to FILE; - is standard output" },
    { "from", 0, OPT_LIST, &digest_args.from, "INPUT",
      "build: access.log, a list of URLs or swap.state; may be repeated" },
    { "items", 'n', OPT_POSITIVE, &digest_args.items, "N",
      "build: capacity in entries; as many as there are if not given" },
    { "fpr", 'p', OPT_RATE, &digest_args.fpr, "P",
      "build: rate of false positives; 1% if not given" },
    { "bits", 'b', OPT_LIST, &digest_args.bits, "N",
      "build: bits per entry instead of a rate, up to 127 (Squid uses 5); "
      "simulate: bits per document, may be repeated; 8, 16 and 32 if not "
      "given" },
    { "file", 'f', OPT_LIST, &digest_args.files, "FILE",
      "has: read URLs, or lines of access.log, from FILE; may be repeated; - "
      "is standard input" },
    FLAG("invert", 'v', digest_args.invert,
         "has: print those that are certainly not in the digest"),
    FLAG("count", 'c', digest_args.count,
         "has: print only the number of those that would be printed"),
    { "listen", 0, OPT_TEXT, &digest_args.listen, "ADDRESS:PORT",
      "serve, relay: where to listen; 127.0.0.1:3129 if not given; port 0 is "
      "any free one" },
    { "lifetime", 0, OPT_POSITIVE, &digest_args.lifetime, "SECONDS",
      "serve: how long a digest is valid, 3600 if not given; relay: the same "
      "if the peer does not say, 300" },
    { "pause", 0, OPT_POSITIVE, &digest_args.pause, "MS",
      "serve, relay: pause this long after the header and after the control "
      "block; 125 if not given" },
    { "connections", 0, OPT_POSITIVE, &digest_args.connections, "N",
      "serve, relay: most connections at once; 200 if not given" },
    { "per-address", 0, OPT_POSITIVE, &digest_args.per_address, "N",
      "serve, relay: most connections at once from one address; 32 if not "
      "given" },
    { "request-time", 0, OPT_POSITIVE, &digest_args.request_time, "SECONDS",
      "serve, relay: how long a client may take to send a request; 10 if not "
      "given" },
    { "answer-time", 0, OPT_POSITIVE, &digest_args.answer_time, "SECONDS",
      "serve, relay: how long a client may take to receive the answer; 300 if "
      "not given" },
    { "refresh", 0, OPT_POSITIVE, &digest_args.refresh, "SECONDS",
      "relay: the least time between two fetches, whatever the peer says; 60 "
      "if not given" },
    { "timeout", 0, OPT_POSITIVE, &digest_args.timeout, "SECONDS",
      "get, relay: how long a fetch may take; 30 if not given" },
    { "max-size", 0, OPT_POSITIVE, &digest_args.max_size, "SIZE",
      "get, relay: the largest digest that is fetched; 64MiB if not given" },
    { "proxies", 0, OPT_POSITIVE, &digest_args.proxies, "N",
      "simulate: how many proxies, up to 64; 16 if not given" },
    { "cache", 0, OPT_POSITIVE, &digest_args.cache, "N",
      "simulate: documents that each proxy keeps; 2000 if not given" },
    { "documents", 0, OPT_POSITIVE, &digest_args.documents, "N",
      "simulate: how many documents there are; 60000 if not given" },
    { "zipf", 0, OPT_TEXT, &digest_args.zipf, "A",
      "simulate: document r is requested in proportion to r to the power -A; "
      "0.8 if not given" },
    { "requests", 0, OPT_POSITIVE, &digest_args.requests, "N",
      "simulate: how many requests; 300000 if not given" },
    { "warmup", 0, OPT_RATE, &digest_args.warmup, "P",
      "simulate: share of requests at the start that do not count; a third if "
      "not given" },
    { "threshold", 'T', OPT_LIST, &digest_args.thresholds, "P",
      "simulate: share of new documents at which a summary is sent again; may "
      "be repeated; 1%, 5% and 10% if not given" },
    { "seed", 0, OPT_COUNT, &digest_args.seed, "N",
      "simulate: seed of the trace and of the hashes" },
    BINARY_OPTION,
    WAIT_OPTION,
    QUIET_OPTION("print nothing but errors; has: stop at the first one that "
                 "would be printed"),
    JSON_OPTION(digest_args),
    { 0 },
};

#define EVERY " quiet json "
#define SERVER                                                    \
    "listen lifetime pause connections per-address request-time " \
    "answer-time "

static const struct verb digest_verbs[] = {
    { "get", "URL|HOST:PORT [-o FILE]", 1,
      EVERY "output wait timeout max-size " },
    { "build", "--from INPUT -o FILE", 0,
      EVERY "output wait from items fpr bits binary " },
    { "has", "FILE [METHOD] URL", 1, EVERY "file invert count binary " },
    { "serve", "FILE [--listen ADDRESS:PORT]", 1, EVERY SERVER },
    { "relay", "URL|HOST:PORT [--listen ADDRESS:PORT]", 1,
      EVERY SERVER "timeout max-size refresh " },
    { "simulate", "[ACCESS.LOG]...", 0,
      EVERY "bits threshold proxies cache documents zipf requests warmup "
            "seed binary " },
};
static digest_verb *const digest_functions[] = {
    digest_get,   digest_build, digest_has,
    digest_serve, digest_relay, digest_simulate,
};
#define NVERBS (sizeof digest_verbs / sizeof digest_verbs[0])

/* What was left out where the command was built. */
#ifndef BLY_CURL
int digest_get(const struct digest_args *args, struct list *operands)
{
    (void)args;
    (void)operands;
    return fail("this bloomery was built without libcurl "
                "(libcurl4-openssl-dev) and cannot fetch");
}
#endif
#ifndef BLY_MICROHTTPD
int digest_serve(const struct digest_args *args, struct list *operands)
{
    (void)args;
    (void)operands;
    return fail("this bloomery was built without libmicrohttpd "
                "(libmicrohttpd-dev) and cannot serve");
}
#endif
#if !defined(BLY_CURL) || !defined(BLY_MICROHTTPD)
int digest_relay(const struct digest_args *args, struct list *operands)
{
    (void)args;
    (void)operands;
    return fail("this bloomery was built without libcurl or libmicrohttpd "
                "(libcurl4-openssl-dev, libmicrohttpd-dev) and cannot relay");
}
#endif

static int digest_run(struct list *operands)
{
    struct list rest;
    const size_t verb =
        verb_find(&cmd_digest, digest_verbs, NVERBS, operands, &rest);
    if (verb == NVERBS)
        return TROUBLE;
    struct digest_args *const a = &digest_args;
    if (a->pause > 10000 || a->timeout > 86400 || a->lifetime > 31536000)
        return fail("at most --pause 10000 (ms), --timeout 86400 and "
                    "--lifetime 31536000 (seconds)");
    if (a->request_time > 86400 || a->answer_time > 86400 ||
        a->refresh > 86400 || a->connections > 10000)
        return fail("at most --request-time, --answer-time and --refresh 86400 "
                    "(seconds) and --connections 10000");
    a->connections = a->connections ? a->connections : 200;
    a->per_address = a->per_address ? a->per_address : 32;
    a->request_time = a->request_time ? a->request_time : 10;
    a->answer_time = a->answer_time ? a->answer_time : 300;
    a->refresh = a->refresh ? a->refresh : 60;
    a->pause = a->pause ? a->pause : 125;
    a->timeout = a->timeout ? a->timeout : 30;
    a->max_size = a->max_size ? a->max_size : UINT64_C(64) << 20;
    a->listen = a->listen ? a->listen : "127.0.0.1:3129";
    return digest_functions[verb](a, &rest);
}

static const struct example digest_examples[] = {
    { "bloomery digest get proxy.example.net:3128 -o peer.digest",
      "fetch the digest of a neighbour" },
    { "bloomery digest has peer.digest GET http://www.debian.org/",
      "may it have this page?" },
    { "bloomery digest has -c peer.digest -f /var/log/squid/access.log",
      "how many of our requests could it have answered?" },
    { "bloomery digest build --from /var/spool/squid/swap.state -o my.digest",
      "make a digest of a cache without asking the proxy" },
    { "bloomery digest relay sibling:3128 --listen 127.0.0.1:3129",
      "for cache_peer ... digest-url=http://127.0.0.1:3129" DIGEST_PATH },
    { "bloomery digest simulate /var/log/squid/access.log --proxies 4 --cache "
      "50000",
      "how much would four neighbours save each other?" },
    { 0 },
};

const struct command cmd_digest = {
    .name = "digest",
    .verbs = "get build has serve relay simulate",
    .usage = "VERB [OPERAND]... [OPTION]...",
    .summary = "fetch, make, query, serve and repair Squid's cache digests",
    .about =
        "A cache digest is a Bloom filter of what a Squid proxy has in its "
        "cache. Neighbours fetch it over HTTP and ask the proxy only for what "
        "may be there.\n\n"
        "get URL|HOST:PORT fetches a proxy's digest, checks it and describes "
        "it; -o keeps it.\n\n"
        "build makes a digest from an access.log (in Squid's own format or "
        "that of web servers), a list (URL, METHOD URL, or MD5 keys in "
        "hexadecimal, one per line) or the swap.state of a disk cache. Files "
        "may be compressed. From a log it takes the answers that the proxy may "
        "have kept.\n\n"
        "has FILE [METHOD] URL says whether the proxy may have that URL. "
        "METHOD is GET if not given. Without a URL, lines are read from -f or "
        "standard input, lists or logs as build takes them, and those that may "
        "be there are printed. URLs are brought into Squid's canonical form "
        "first. The exit status is 0 if something was printed (or would have "
        "been), 1 if nothing was, and 2 after an error.\n\n"
        "serve FILE answers requests for " DIGEST_PATH
        " with a digest, which is read again when the file has changed, so "
        "that Squids take this address for a sibling (or find its digest with "
        "digest-url=). It has no objects: when they ask for one, the answer is "
        "504, and they go to the origin.\n\n"
        "relay URL|HOST:PORT fetches a proxy's digest, fetches it again when "
        "it has expired, and serves it in the proxy's place; clients get the "
        "last copy meanwhile. Squids from before October 2025 spoil a digest "
        "whose parts arrive together (bug 5510) and then find only a fraction "
        "of it. serve and relay send header, control block and mask "
        "separately, with pauses, so that such a Squid gets all of it.\n\n"
        "simulate replays access.log files, or an artificial trace, through "
        "proxies with caches of their own, and compares asking all neighbours "
        "(ICP) with summaries of their caches: how many remote hits are found, "
        "at the cost of how many messages and bytes. The client's address "
        "decides which proxy it uses.",
    .options = digest_options,
    .examples = digest_examples,
    .reports = REPORTS(
        { "get", got_fields, ONE }, { "build", digest_built_fields, ONE },
        { "has", asked_fields, ONE },
        { "serve and relay, at the start", serving_fields, LINES },
        { "serve and relay, at the end", served_fields, LINES },
        { "simulate", simulated_fields, ONE }),
    .run = digest_run,
};

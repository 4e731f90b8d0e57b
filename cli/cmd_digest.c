/*
 * cmd_digest.c - cache digests, for people who run Squid: bloomery digest VERB
 */
#include "apps/digest/jobs.h"
#include "cli/program.h"
#include "cli/rows.h"

static struct digest_args digest_args = {
    .listen = "127.0.0.1:3129",
    .connections = 200,
    .per_address = 32,
    .request_time = 10,
    .answer_time = 300,
    .refresh = 60,
    .pause = 125,
    .timeout = 30,
    .max_size = UINT64_C(64) << 20,
    .proxies = 16,
    .cache = 2000,
    .documents = 60000,
    .requests = 300000,
    .zipf = 0.8,
    .warmup = 1.0 / 3,
};

#define DIGEST_OUTPUT                                            \
    OPTION("output", 'o', OPT_TEXT, &digest_args.output, "FILE", \
           "write the digest to FILE; - is standard output")
#define DIGEST_LIFETIME(text)                                 \
    OPTION("lifetime", 0, OPT_BETWEEN(POSITIVE, 1, 31536000), \
           &digest_args.lifetime, "SECONDS", text)
#define DIGEST_SERVER                                                          \
    OPTION("listen", 0, OPT_TEXT, &digest_args.listen, "ADDRESS:PORT",         \
           "where to listen; 127.0.0.1:3129 if not given; port 0 is any free " \
           "one"),                                                             \
        OPTION("pause", 0, OPT_BETWEEN(COUNT, 0, 10000), &digest_args.pause,   \
               "MS",                                                           \
               "pause this long after the header and after the control "       \
               "block; 125 if not given"),                                     \
        OPTION("connections", 0, OPT_BETWEEN(POSITIVE, 1, 10000),              \
               &digest_args.connections, "N",                                  \
               "most connections at once; 200 if not given"),                  \
        OPTION("per-address", 0, OPT_POSITIVE, &digest_args.per_address, "N",  \
               "most connections at once from one address; 32 if not given"),  \
        OPTION(                                                                \
            "request-time", 0, OPT_BETWEEN(POSITIVE, 1, 86400),                \
            &digest_args.request_time, "SECONDS",                              \
            "how long a client may take to send a request; 10 if not given"),  \
        OPTION("answer-time", 0, OPT_BETWEEN(POSITIVE, 1, 86400),              \
               &digest_args.answer_time, "SECONDS",                            \
               "how long a client may take to receive the answer; 300 if not " \
               "given")
#define DIGEST_FETCH                                                       \
    OPTION("timeout", 0, OPT_BETWEEN(POSITIVE, 1, 86400),                  \
           &digest_args.timeout, "SECONDS",                                \
           "how long a fetch may take; 30 if not given"),                  \
        OPTION("max-size", 0, OPT_POSITIVE, &digest_args.max_size, "SIZE", \
               "the largest digest that is fetched; 64MiB if not given")
#define DIGEST_EVERY(what) QUIET_OPTION(what), JSON_OPTION(digest_args)

static const struct opt digest_get_options[] = {
    DIGEST_OUTPUT, DIGEST_FETCH,
    WAIT_OPTION,   DIGEST_EVERY("print nothing but errors"),
    { 0 },
};

static const struct opt digest_build_options[] = {
    DIGEST_OUTPUT,
    { "from", 0, OPT_LIST, &digest_args.from, "INPUT",
      "access.log, a list of URLs or swap.state; may be repeated" },
    { "items", 'n', OPT_POSITIVE, &digest_args.items, "N",
      "capacity in entries; as many as there are if not given" },
    { "fpr", 'p', OPT_RATE, &digest_args.fpr, "P",
      "rate of false positives; 1% if not given" },
    { "bits", 'b', OPT_LIST, &digest_args.bits, "N",
      "bits per entry instead of a rate, up to 127 (Squid uses 5)" },
    BINARY_OPTION,
    WAIT_OPTION,
    DIGEST_EVERY("print nothing but errors"),
    { 0 },
};

static const struct opt digest_has_options[] = {
    { "file", 'f', OPT_LIST, &digest_args.files, "FILE",
      "read URLs, or lines of access.log, from FILE; may be repeated; - is "
      "standard input" },
    FLAG("invert", 'v', digest_args.invert,
         "print those that are certainly not in the digest"),
    FLAG("count", 'c', digest_args.count,
         "print only the number of those that would be printed"),
    BINARY_OPTION,
    DIGEST_EVERY("print nothing but errors, and stop at the first one that "
                 "would be printed"),
    { 0 },
};

static const struct opt digest_serve_options[] = {
    DIGEST_LIFETIME("how long a digest is valid; 3600 if not given"),
    DIGEST_SERVER,
    DIGEST_EVERY("print nothing but errors"),
    { 0 },
};

static const struct opt digest_relay_options[] = {
    DIGEST_LIFETIME("how long a digest is valid if the peer does not say; 300 "
                    "if not given"),
    DIGEST_SERVER,
    { "refresh", 0, OPT_BETWEEN(POSITIVE, 0, 86400), &digest_args.refresh,
      "SECONDS",
      "the least time between two fetches, whatever the peer says; 60 if not "
      "given" },
    DIGEST_FETCH,
    DIGEST_EVERY("print nothing but errors"),
    { 0 },
};

#define DIGEST_KEY                                                   \
    OPTION("key-file", 'K', OPT_TEXT, &digest_args.key_file, "FILE", \
           "seal what is told with the secret in FILE, which all must have")

static const struct opt digest_follow_options[] = {
    { "begin", 0, OPT_LIST, &digest_args.begin, "FILE",
      "for a store.log: the swap.state of the first cache_dir, and so on; what "
      "the cache holds to begin with; may be repeated" },
    { "tell", 0, OPT_TEXT, &digest_args.tell, "ADDRESS:PORT",
      "tell peers there what has changed" },
    { "threshold", 'T', OPT_RATE, &digest_args.threshold, "P",
      "tell them when this share of the entries is new; 1% if not given" },
    { "every", 0, OPT_BETWEEN(POSITIVE, 1, 86400), &digest_args.every,
      "SECONDS",
      "and after this time, if anything has changed; 300 if not given" },
    DIGEST_KEY,
    { "items", 'n', OPT_POSITIVE, &digest_args.items, "N",
      "the least capacity in entries; it grows with the cache; 1000 if not "
      "given" },
    { "fpr", 'p', OPT_RATE, &digest_args.fpr, "P",
      "rate of false positives; 1% if not given" },
    { "bits", 'b', OPT_LIST, &digest_args.bits, "N",
      "bits per entry instead of a rate, up to 127 (Squid uses 5)" },
    DIGEST_LIFETIME("how long a digest is valid for Squid; 300 if not given"),
    DIGEST_SERVER,
    DIGEST_EVERY("print nothing but errors"),
    { 0 },
};

static const struct opt digest_peers_options[] = {
    { "peer", 0, OPT_LIST, &digest_args.peers, "NAME=HOST:PORT",
      "a peer, and where its digest follow --tell is; may be repeated" },
    DIGEST_KEY,
    FLAG("helper", 0, digest_args.helper,
         "answer the lines of Squid's external_acl_type on standard input"),
    { "icp", 0, OPT_LIST, &digest_args.icp, "ADDRESS:PORT",
      "answer ICP there, for the first peer, the second and so on; may be "
      "repeated; port 0 is any free one" },
    { "timeout", 0, OPT_BETWEEN(POSITIVE, 1, 86400), &digest_args.timeout,
      "SECONDS", "how long to wait for the peers' digests; 30 if not given" },
    { "max-size", 0, OPT_POSITIVE, &digest_args.max_size, "SIZE",
      "the largest digest that is taken from a peer; 64MiB if not given" },
    DIGEST_EVERY("print nothing but errors"),
    { 0 },
};

static const struct opt digest_simulate_options[] = {
    { "bits", 'b', OPT_LIST, &digest_args.bits, "N",
      "bits per document, may be repeated; 8, 16 and 32 if not given" },
    { "threshold", 'T', OPT_LIST, &digest_args.thresholds, "P",
      "share of new documents at which a summary is sent again; may be "
      "repeated; 1%, 5% and 10% if not given" },
    { "proxies", 0, OPT_BETWEEN(POSITIVE, 2, DIGEST_MAX_PROXIES),
      &digest_args.proxies, "N", "how many proxies; 16 if not given" },
    { "cache", 0, OPT_BETWEEN(POSITIVE, 0, 0x1p30), &digest_args.cache, "N",
      "documents that each proxy keeps; 2000 if not given" },
    { "documents", 0, OPT_BETWEEN(POSITIVE, 0, UINT32_MAX),
      &digest_args.documents, "N",
      "how many documents there are; 60000 if not given" },
    { "zipf", 0, OPT_BETWEEN(REAL, 0, 10), &digest_args.zipf, "A",
      "document r is requested in proportion to r to the power -A; 0.8 if not "
      "given" },
    { "requests", 0, OPT_BETWEEN(POSITIVE, 0, 0x1p40), &digest_args.requests,
      "N", "how many requests; 300000 if not given" },
    { "warmup", 0, OPT_RATE, &digest_args.warmup, "P",
      "share of requests at the start that do not count; a third if not "
      "given" },
    { "seed", 0, OPT_COUNT, &digest_args.seed, "N",
      "seed of the trace and of the hashes" },
    BINARY_OPTION,
    DIGEST_EVERY("print nothing but errors"),
    { 0 },
};

/* What was left out where the command was built. */
#define DIGEST_SERVES                                  \
    REPORTS({ "at the start", serving_fields, LINES }, \
            { "at the end", served_fields, LINES })

RUNS_IN("web", digest_get, digest_args)
RUNS(digest_build, digest_args)
RUNS(digest_has, digest_args)
RUNS_IN("web", digest_serve, digest_args)
RUNS_IN("web", digest_relay, digest_args)
RUNS_IN("web", digest_follow, digest_args)
RUNS_IN("web", digest_peers, digest_args)
RUNS(digest_simulate, digest_args)

static const struct verb digest_verbs[] = {
    { .name = "get",
      .operands = "PEER",
      .summary = "fetch a proxy's digest, check and describe it",
      .about =
          "get URL|HOST:PORT fetches a proxy's digest, checks it and describes "
          "it; -o keeps it.",
      .options = digest_get_options,
      .reports = REPORTS({ "", got_fields, ONE }),
      .run = run_digest_get },
    { .name = "build",
      .operands = "-o FILE [INPUT]...",
      .summary = "make a digest from a log, a list or a disk cache",
      .about = "build makes a digest from an access.log (in Squid's own format "
               "or that of web servers), a list (URL, METHOD URL, or MD5 keys "
               "in hexadecimal, one per line) or the swap.state of a disk "
               "cache. Files may be compressed. From a log it takes the "
               "answers that the proxy may have kept.",
      .options = digest_build_options,
      .reports = REPORTS({ "", digest_built_fields, ONE }),
      .run = run_digest_build },
    { .name = "has",
      .operands = "FILE [METHOD] [URL]",
      .summary = "may the proxy have this URL?",
      .about =
          "has FILE [METHOD] URL says whether the proxy may have that URL. "
          "METHOD is GET if not given. Without a URL, lines are read from -f "
          "or standard input, lists or logs as build takes them, and those "
          "that may be there are printed. URLs are brought into Squid's "
          "canonical form first. The exit status is 0 if something was printed "
          "(or would have been), 1 if nothing was, and 2 after an error.",
      .options = digest_has_options,
      .reports = REPORTS({ "", asked_fields, ONE }),
      .run = run_digest_has },
    { .name = "serve",
      .operands = "FILE",
      .summary = "answer requests for a digest, as a proxy does",
      .about = "serve FILE answers requests for " DIGEST_PATH
               " with a digest, which is read again when the file has changed, "
               "so that Squids take this address for a sibling (or find its "
               "digest with digest-url=). It has no objects: when they ask for "
               "one, the answer is 504, and they go to the origin.",
      .options = digest_serve_options,
      .reports = DIGEST_SERVES,
      .run = run_digest_serve },
    { .name = "relay",
      .operands = "PEER",
      .summary = "serve another proxy's digest in its place",
      .about =
          "relay URL|HOST:PORT fetches a proxy's digest, fetches it again when "
          "it has expired, and serves it in the proxy's place; clients get the "
          "last copy meanwhile. Squids from before October 2025 spoil a digest "
          "whose parts arrive together (bug 5510) and then find only a "
          "fraction of it. serve and relay send header, control block and mask "
          "separately, with pauses, so that such a Squid gets all of it.",
      .options = digest_relay_options,
      .reports = DIGEST_SERVES,
      .run = run_digest_relay },
    { .name = "follow",
      .operands = "FILE...",
      .summary = "keep the digest of a cache up to date, and tell peers",
      .about =
          "follow stays beside a Squid, reads what it writes about its cache "
          "(the swap.state of each cache_dir, or store.log), and keeps a "
          "counting filter of what is there. Requests for " DIGEST_PATH
          " get the digest of that moment. With --tell, digest peers "
          "processes elsewhere are told what changes: the whole digest once, "
          "then compressed deltas.",
      .options = digest_follow_options,
      .reports = REPORTS({ "at the start", following_fields, LINES },
                         { "then", serving_fields, LINES },
                         { "at the end", served_fields, LINES },
                         { "and", followed_fields, LINES }),
      .run = run_digest_follow },
    { .name = "peers",
      .operands = "[URL]...",
      .summary = "which peer may have this URL?",
      .about =
          "peers listens to the digest follow --tell of other caches and says "
          "which of them may have a URL: to you, once; to Squid, as the helper "
          "of an external_acl_type (OK peer_=NAME, or ERR), or by ICP at an "
          "address for each peer, which takes the place of its ICP port in "
          "cache_peer. The exit status is 0 if a peer may have one of the "
          "URLs, 1 if none has, and 2 after an error.",
      .options = digest_peers_options,
      .reports =
          REPORTS({ "for each URL", peer_url_fields, LINES },
                  { "at the start, with --icp", peer_start_fields, LINES },
                  { "at the end, with --icp", peer_end_fields, LINES }),
      .run = run_digest_peers },
    { .name = "simulate",
      .operands = "[INPUT]...",
      .summary = "how much would neighbours save each other?",
      .about = "simulate replays access.log files, or an artificial trace, "
               "through proxies with caches of their own, and compares asking "
               "all neighbours (ICP) with summaries of their caches: how many "
               "remote hits are found, at the cost of how many messages and "
               "bytes. The client's address decides which proxy it uses.",
      .options = digest_simulate_options,
      .reports = REPORTS({ "", simulated_fields, ONE }),
      .run = run_digest_simulate },
    { 0 },
};

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
    { "bloomery digest follow /var/spool/squid/swap.state --tell 10.0.0.1:3131",
      "an always fresh digest of this cache, for Squids and for peers" },
    { "bloomery digest peers --peer west=10.0.0.2:3131 http://www.debian.org/",
      "may the peer have this page?" },
    { "bloomery digest simulate /var/log/squid/access.log --proxies 4 --cache "
      "50000",
      "how much would four neighbours save each other?" },
    { 0 },
};

const struct command cmd_digest = {
    .name = "digest",
    .summary = "fetch, make, query, serve and repair Squid's cache digests",
    .about =
        "A cache digest is a Bloom filter of what a Squid proxy has in its "
        "cache. Neighbours fetch it over HTTP and ask the proxy only for what "
        "may be there.",
    .verbs = digest_verbs,
    .examples = digest_examples,
};

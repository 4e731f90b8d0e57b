/*
 * peers.c - which peer may have a URL?
 *
 * The digests come from `digest follow` processes beside the peers (hearer.c).
 * Three may ask: a person, once; Squid as the user of a helper, in lines; and
 * Squid by ICP, a question to each of its siblings by UDP. Since Squid knows a
 * sibling that answers by where the answer comes from, each peer has a socket
 * of its own here, and its address takes the place of the sibling's ICP port.
 *
 * A peer that was not heard yet has nothing: a sibling that is not asked costs
 * a fetch from the origin, as without all this.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/digest/follow_report.h"
#include "apps/digest/icp.h"
#include "base/signals.h"
#include "report/out.h"
#include "report/say.h"
#include "wire/secure.h"

#define PEERS_MOST 64

struct asker {
    const struct digest_args *args;
    struct secure_secret secret;
    struct peer peers[PEERS_MOST];
    int icp[PEERS_MOST]; /* sockets; -1: none */
    uint64_t asked[PEERS_MOST], hits[PEERS_MOST], wrong[PEERS_MOST];
    size_t n;
    struct hearers *hearers;
};

/* -------------------------------------------------------------- reporting */

static void tell_end(struct asker *a)
{
    for (size_t i = 0; i < a->n && !quiet; i++) {
        const struct asked_peer end = {
            a->peers[i].text, NULL,        a->asked[i],
            a->hits[i],       a->wrong[i], hearers_count(a->hearers, i)
        };
        report(stdout, a->args->json, peer_end_fields, &end,
               "{peer}: questions: {questions}, hits: {hits}; whole digests: "
               "{wholes}, deltas: {deltas}, {bytes}\n");
    }
}

/* ------------------------------------------------------------------ asking */

/* Which peers may have it: their names behind `before` each, as text that the
 * caller frees. NULL: no memory. */
static char *who_has(struct asker *a, bly_bytes key, const char *before)
{
    struct bytes out = { 0 };
    for (size_t i = 0; i < a->n; i++) {
        const bool may = hearers_ask(a->hearers, i, key);
        a->asked[i]++;
        a->hits[i] += may;
        if (!may)
            continue;
        if (out.n)
            bytes_put(&out, " ", 1);
        bytes_put(&out, before, strlen(before));
        bytes_put(&out, a->peers[i].name, a->peers[i].nname);
    }
    if (bytes_put(&out, "", 1))
        return (char *)out.at;
    free(out.at);
    return NULL;
}

static int ask_once(struct asker *a, const struct list *urls)
{
    int status = NO;
    if (!hearers_wait(a->hearers, a->args->timeout * 1000)) {
        for (size_t i = 0; i < a->n; i++)
            if (!hearers_count(a->hearers, i).heard)
                return fail("%s: it has not told its digest within %llu s",
                            a->peers[i].text,
                            (unsigned long long)a->args->timeout);
    }
    for (size_t i = 0; i < urls->n; i++) {
        const bly_bytes key = { urls->at[i], strlen(urls->at[i]) };
        char *const names = who_has(a, key, "");
        if (!names)
            return fail("out of memory");
        if (names[0])
            status = YES;
        const struct asked_url url = { urls->at[i], names };
        if (!quiet && (names[0] || a->args->json))
            report(stdout, a->args->json, peer_url_fields, &url,
                   "{key}\t{peers}\n");
        free(names);
    }
    return status;
}

/* ------------------------------------------------------------------ helper */

/* "URL" or "CHANNEL URL", and perhaps more words. */
static bool answer_line(struct asker *a, char *line)
{
    const size_t channel = strspn(line, "0123456789");
    const bool has_channel = channel && line[channel] == ' ';
    char *const url = line + (has_channel ? channel + 1 : 0);
    const size_t n = strcspn(url, " \r\n");
    char *const names = who_has(a, (bly_bytes){ url, n }, "peer_=");
    if (!names)
        return refuse("out of memory");
    if (has_channel)
        printf("%.*s ", (int)channel, line);
    printf("%s%s\n", names[0] ? "OK " : "ERR", names);
    free(names);
    return fflush(stdout) == 0;
}

static int help_squid(struct asker *a)
{
    char *line = NULL;
    size_t room = 0;
    bool ok = true;
    while (ok && getline(&line, &room, stdin) > 0)
        ok = answer_line(a, line);
    free(line);
    return ok ? YES : TROUBLE;
}

/* --------------------------------------------------------------------- ICP */

static bool icp_open(struct asker *a, size_t i, const char *text)
{
    struct address at;
    struct sockaddr_storage s;
    if (!address_parse(text, &at))
        return false;
    const socklen_t n = address_socket(&at, &s);
    a->icp[i] =
        socket(s.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (a->icp[i] < 0 || bind(a->icp[i], (struct sockaddr *)&s, n) ||
        !address_of_socket(a->icp[i], &at))
        return refuse("%s: %s", text, strerror(errno));
    char where[ADDRESS_TEXT];
    address_text(&at, where);
    const struct asked_peer start = { .peer = a->peers[i].text, .icp = where };
    if (!quiet)
        report(stdout, a->args->json, peer_start_fields, &start,
               "{peer}: ICP is answered at {icp}\n");
    return true;
}

/* All questions that wait at a socket; those that are none get no answer. */
static void answer_packets(struct asker *a, size_t i)
{
    static unsigned char packet[ICP_MOST], answer[ICP_MOST];
    struct sockaddr_storage from;
    socklen_t nfrom = sizeof from;
    ssize_t n;
    while ((n = recvfrom(a->icp[i], packet, sizeof packet, 0,
                         (struct sockaddr *)&from, &nfrom)) >= 0) {
        bly_bytes url;
        if (icp_query(packet, (size_t)n, &url)) {
            const bool may = hearers_ask(a->hearers, i, url);
            a->asked[i]++;
            a->hits[i] += may;
            const size_t len = icp_answer(packet, may, answer);
            (void)sendto(a->icp[i], answer, len, MSG_DONTWAIT,
                         (struct sockaddr *)&from, nfrom);
        } else {
            a->wrong[i]++;
        }
        nfrom = sizeof from;
    }
}

static int answer_icp(struct asker *a)
{
    struct pollfd wait[PEERS_MOST];
    for (size_t i = 0; i < a->n; i++)
        wait[i] = (struct pollfd){ .fd = a->icp[i], .events = POLLIN };
    fflush(stdout);
    while (!signals_told()) {
        if (poll(wait, a->n, 500) < 0 && errno != EINTR)
            return fail("poll: %s", strerror(errno));
        for (size_t i = 0; i < a->n; i++)
            if (wait[i].revents)
                answer_packets(a, i);
    }
    tell_end(a);
    return YES;
}

/* ------------------------------------------------------ beginning and end */

static bool peer_read(struct asker *a, const char *text)
{
    struct peer *const p = &a->peers[a->n];
    const char *const equals = strchr(text, '=');
    *p = (struct peer){ text, equals ? (size_t)(equals - text) : 0, text };
    if (!p->nname || strcspn(text, " \t\"\\%,") < p->nname)
        return refuse("--peer '%s': expected NAME=HOST:PORT, the name without "
                      "blanks, commas, quotes and percent signs",
                      text);
    for (size_t i = 0; i < a->n; i++)
        if (a->peers[i].nname == p->nname &&
            memcmp(a->peers[i].name, text, p->nname) == 0)
            return refuse("--peer '%s': there are two of that name", text);
    a->icp[a->n++] = -1;
    return true;
}

static bool peers_open(struct asker *a)
{
    const struct digest_args *const args = a->args;
    bool ok = true;
    if (!args->peers.n || args->peers.n > PEERS_MOST)
        return refuse("--peer NAME=HOST:PORT says whom to listen to; 1 to %d "
                      "of them",
                      PEERS_MOST);
    for (size_t i = 0; i < args->peers.n && ok; i++)
        ok = peer_read(a, args->peers.at[i]);
    if (ok && args->icp.n && args->icp.n != a->n)
        return refuse("each --peer needs an --icp of its own: Squid tells "
                      "siblings apart by the port that answers");
    if (!ok || !secure_read(args->key_file, &a->secret))
        return false;
    for (size_t i = 0; i < args->icp.n && ok; i++)
        ok = icp_open(a, i, args->icp.at[i]);
    if (ok)
        a->hearers = hearers_open(a->peers, a->n, args->max_size, &a->secret);
    return a->hearers;
}

static int peers_run(struct asker *a, const struct list *urls)
{
    signals_no_pipe();
    if (a->args->icp.n)
        signals_watch(NULL);
    return !peers_open(a)    ? TROUBLE
           : a->args->helper ? help_squid(a)
           : a->args->icp.n  ? answer_icp(a)
                             : ask_once(a, urls);
}

int digest_peers(const struct digest_args *args, struct list *operands)
{
    struct asker *const a = calloc(1, sizeof *a);
    if (!a)
        return fail("out of memory");
    a->args = args;
    int status = TROUBLE;
    if (args->helper + (args->icp.n > 0) + (operands->n > 0) != 1)
        fail("one of these: URLs, --helper, or --icp for each --peer");
    else
        status = peers_run(a, operands);
    hearers_close(a->hearers);
    for (size_t i = 0; i < a->n; i++)
        if (a->icp[i] >= 0)
            close(a->icp[i]);
    free(a);
    return status;
}

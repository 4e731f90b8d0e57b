/*
 * scan_verb.c - bloomery traffic scan: strings in files and captures
 */
#include "apps/traffic/scan_verb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/source.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"
#include "report/words.h"

#define BLOCK ((size_t)1 << 18)

/* ---------------------------------------------------------------- printing */

static void match_print(const struct scan_run *r, const struct flow_key *flow,
                        uint64_t packet, const struct scan_match *m)
{
    const struct scan_string *const s = &r->rules.strings[m->string];
    const struct key_choice all = { .form = KEY_5TUPLE };
    char text[FLOW_TEXT];
    const struct scan_row row = { .file = r->file,
                                  .flow =
                                      flow ? key_text(all, flow, text) : NULL,
                                  .packet = packet,
                                  .offset = m->start,
                                  .rule = s->rule,
                                  .line = s->line,
                                  .string = { s->at, s->n } };
    if (r->args->json) {
        report(stdout, true, scan_row_fields, &row, NULL);
        return;
    }
    /* There may be millions. */
    fputs(show_text(row.file, strlen(row.file)), stdout);
    if (flow)
        printf(" %s packet %llu", row.flow, (unsigned long long)row.packet);
    printf(" %llu: %llu ", (unsigned long long)row.offset,
           (unsigned long long)row.rule);
    fputs(show_text(s->at, s->n), stdout);
    putchar('\n');
}

bool scan_print(struct scan_run *r, const struct flow_key *flow,
                uint64_t packet, const struct scan_piece *p)
{
    const struct scan_match *matches;
    size_t nmatches;
    if (!scanner_scan(r->scanner, p, &matches, &nmatches))
        return refuse("out of memory");
    for (size_t i = 0; i < nmatches && !r->args->scan.summary; i++)
        match_print(r, flow, packet, &matches[i]);
    if (nmatches && r->args->interface)
        fflush(stdout);
    return true;
}

static void summary_print(struct scan_run *r)
{
    const struct scan_load *const load = scanner_load(r->scanner);
    const double bytes = load->bytes ? (double)load->bytes : 1;
    struct scan_summary *const s = &r->sum;
    s->strings = r->rules.n;
    s->groups = scanner_groups(r->scanner);
    s->memory = scanner_bytes(r->scanner);
    s->bytes = load->bytes;
    s->matches = load->matches;
    s->passed = (double)load->passed / bytes;
    s->computed = load->computed / bytes;
    s->compared = (double)load->compared / bytes;
    s->without = r->rules.without;
    s->absent = r->rules.absent;
    if (!quiet)
        report(r->args->json ? stdout : stderr, r->args->json, scan_fields, s,
               "{matches match/es} of {strings string/s} in {bytes}"
               "[; {?packets}{packets packet/s}, {streams stream/s}]"
               "[; {?gaps}{gaps gap/s} in them]"
               "[; {?cut}{cut packet/s} cut short]"
               "[; {?fragments}{fragments fragment/s}, each by itself]"
               "[; {?late}{late} late or out of place]"
               "[; {?changed}{changed} sent again with other values]"
               "[; {?other}{other packet/s} other than IP left out]"
               "[; {?absent}{absent content/s} that must be absent left out]"
               "[; {?without}{without rule/s} without content]\n");
}

/* ------------------------------------------------------------------- files */

/* pcap in both orders of bytes, with micro- and nanoseconds, and pcapng. */
static bool looks_captured(const unsigned char *at, size_t n)
{
    static const unsigned char magics[][4] = { { 0xa1, 0xb2, 0xc3, 0xd4 },
                                               { 0xd4, 0xc3, 0xb2, 0xa1 },
                                               { 0xa1, 0xb2, 0x3c, 0x4d },
                                               { 0x4d, 0x3c, 0xb2, 0xa1 },
                                               { 0x0a, 0x0d, 0x0d, 0x0a } };
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if (n >= 4 && memcmp(at, magics[i], 4) == 0)
            return true;
    return false;
}

/* The bytes of a file: YES, NO if it is a capture, TROUBLE. */
static int file_scan(struct scan_run *r, const char *name)
{
    const size_t keeps = scanner_keeps(r->scanner);
    const enum source_use use = r->args->scan.raw ? SOURCE_RAW : SOURCE_ANY;
    struct source *const s = source_open(name, -1, use);
    unsigned char *const buf = s ? calloc(1, keeps + BLOCK + SCAN_AHEAD) : NULL;
    if (!s)
        return fail_path(name, errno);
    int status = buf ? YES : fail("out of memory");
    uint64_t done = 0; /* bytes of the file in front of buf */
    size_t seen = 0;
    while (status == YES) {
        size_t n = seen;
        ptrdiff_t got = 0;
        while (n < keeps + BLOCK &&
               (got = source_read(s, buf + n, keeps + BLOCK - n)) > 0)
            n += (size_t)got;
        if (got < 0)
            status = fail("%s: %s", name, source_error(s));
        if (done == 0 && seen == 0 && !r->args->scan.raw &&
            looks_captured(buf, n)) {
            status = NO;
            break;
        }
        if (n == seen)
            break;
        const struct scan_piece piece = { buf, seen, n, done, SCAN_AHEAD };
        if (!scan_print(r, NULL, 0, &piece))
            status = TROUBLE;
        const size_t left = n < keeps ? n : keeps;
        memmove(buf, buf + n - left, left);
        done += n - left;
        seen = left;
    }
    free(buf);
    source_close(s);
    return status;
}

/* ----------------------------------------------------------------- the verb */

/* Were strings in the captures possibly missed? Then each reason is printed:
 * "no match" would be wrong, and so would be a number of matches. */
static bool parts_missed(const struct scan_summary *s)
{
    if (s->evicted)
        fail("%llu streams were forgotten before they ended, and strings "
             "across that place were not looked for; use a higher --memory, "
             "which helps unless one pair of ports begins many connections",
             (unsigned long long)s->evicted);
    if (s->late)
        fail("%llu bytes came too late or too far from the rest of their "
             "stream; they were looked at segment by segment, so a string "
             "across the ends of such a segment may have been missed",
             (unsigned long long)s->late);
    if (s->changed)
        fail("%llu bytes were sent again with other values, and which of them "
             "arrived is unknown; the second ones were looked at segment by "
             "segment, so a string across the ends of such a segment may "
             "have been missed",
             (unsigned long long)s->changed);
    if (s->fragments)
        fail("%llu packets are later fragments; they were looked at by "
             "themselves, so a string across two of them may have been missed",
             (unsigned long long)s->fragments);
    return s->evicted || s->late || s->changed || s->fragments;
}

static bool strings_read(struct scan_run *r)
{
    const struct traffic_args *const a = r->args;
    if (!a->scan.rules == !a->scan.strings)
        return refuse("no strings are given; use --strings FILE, one per line, "
                      "or --rules FILE, with Snort's content");
    if (a->scan.nocase && a->scan.rules)
        return refuse("--nocase is for --strings; rules have their own nocase");
    const bool read =
        a->scan.rules
            ? rules_read(&r->rules, RULES_SNORT, a->scan.rules)
            : rules_read(&r->rules,
                         a->scan.nocase ? RULES_LINES_NOCASE : RULES_LINES,
                         a->scan.strings);
    if (!read)
        return false;
    if (r->rules.n == 0)
        return refuse(r->rules.without
                          ? "%s: no rule in it has content; use Snort's rules, "
                            "or --strings for a list of strings"
                          : "%s: no strings in it",
                      a->scan.rules ? a->scan.rules : a->scan.strings);
    const struct scan_spec spec = { .per_length = a->scan.per_length,
                                    .exact = a->scan.automaton,
                                    .seed = a->seed };
    r->scanner = scanner_new(r->rules.strings, r->rules.n, &spec);
    return r->scanner || refuse("out of memory: %llu strings",
                                (unsigned long long)r->rules.n);
}

static int operand_scan(struct scan_run *r, const char *name,
                        scan_capture_fn *capture)
{
    r->file = name;
    int status = file_scan(r, name);
    if (status != NO)
        return status;
    if (!capture)
        return fail("%s: a capture, and this bloomery was built without "
                    "libpcap (libpcap-dev); --raw scans its bytes",
                    name);
    if (strcmp(name, "-") == 0)
        return fail("standard input is a capture, and part of it has been read "
                    "already; name its file, or use --raw for its bytes");
    return capture(r, name, false);
}

int scan_all(const struct traffic_args *args, const struct list *operands,
             scan_capture_fn *capture)
{
    struct scan_run r = { .args = args };
    int status = YES;
    if (args->scan.automaton && args->scan.per_length)
        return fail("--automaton and --per-length exclude each other");
    if (!args->interface == !operands->n)
        return fail(
            "usage: bloomery traffic scan FILE..., or --interface NAME");
    if (args->interface && !capture)
        return fail("this bloomery was built without libpcap (libpcap-dev)");
    if (strings_read(&r)) {
        if (args->interface) {
            r.file = args->interface;
            status = capture(&r, args->interface, true);
        }
        for (size_t i = 0; i < operands->n; i++)
            if (operand_scan(&r, operands->at[i], capture) == TROUBLE)
                status = TROUBLE;
        summary_print(&r);
        if (parts_missed(&r.sum))
            status = TROUBLE;
        if (status == YES)
            status = r.sum.matches ? YES : NO;
    } else {
        status = TROUBLE;
    }
    scanner_free(r.scanner);
    rules_free(&r.rules);
    return status;
}

/*
 * prefix_list.c - lists of addresses and prefixes, as people keep them
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "apps/traffic/packet.h"
#include "apps/traffic/prefix.h"
#include "io/input.h"
#include "io/line_words.h"
#include "report/say.h"

#define ENTRY_MOST 96 /* two addresses of IPv6 and a dash */
#define BAD_NAMED 3

/* ----------------------------------------------------------------- entries */

static unsigned address_read(const char *text, unsigned char out[16])
{
    memset(out, 0, 16);
    if (inet_pton(AF_INET, text, out) == 1)
        return 4;
    return inet_pton(AF_INET6, text, out) == 1 ? 6 : 0;
}

static bool prefix_give(struct prefix_reader *r, const struct prefix *p)
{
    struct prefix timed = *p;
    timed.seconds = r->seconds;
    r->entries++;
    if (!r->take(r->ctx, &timed))
        r->stopped = true;
    return true;
}

/* Does every bit from number `bits` on have this value? */
static bool tail_is(const unsigned char *at, unsigned bits, unsigned all,
                    bool value)
{
    for (unsigned i = bits; i < all; i++)
        if ((at[i / 8] >> (7 - i % 8) & 1) != value)
            return false;
    return true;
}

static void all_ones(unsigned char *at, unsigned bits, unsigned all)
{
    for (unsigned i = bits; i < all; i++)
        at[i / 8] |= (unsigned char)(0x80 >> i % 8);
}

/* at + 1; false if that was the last address. */
static bool address_next(unsigned char *at, size_t n)
{
    while (n-- > 0)
        if (++at[n])
            return true;
    return false;
}

/* From a to b: each time the largest prefix that begins at a and does not end
 * behind b. At most two of each length. */
static bool range_give(struct prefix_reader *r, uint8_t version,
                       unsigned char a[16], const unsigned char b[16])
{
    const unsigned all = version == 4 ? 32 : 128;
    const size_t n = all / 8;
    while (memcmp(a, b, n) <= 0 && !r->stopped) {
        unsigned bits = all;
        while (bits > 0 && tail_is(a, bits - 1, all, false)) {
            unsigned char end[16];
            memcpy(end, a, 16);
            all_ones(end, bits - 1, all);
            if (memcmp(end, b, n) > 0)
                break;
            bits--;
        }
        const struct prefix p = prefix_of(version, a, bits);
        prefix_give(r, &p);
        all_ones(a, bits, all);
        if (!address_next(a, n))
            break;
    }
    return true;
}

static bool bits_read(const char *text, unsigned most, unsigned *out)
{
    unsigned n = 0;
    if (!*text || strlen(text) > 3)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        n = n * 10 + (unsigned)(*text - '0');
    }
    *out = n;
    return n <= most;
}

/* An address, a prefix, or a range of addresses. */
static bool entry_read(struct prefix_reader *r, struct words w,
                       const char **why)
{
    char text[ENTRY_MOST];
    unsigned char a[16], b[16];
    unsigned bits;
    *why = "neither an address nor a prefix nor a range of addresses";
    if (!w.n || w.n >= sizeof text || memchr(w.at, '\0', w.n))
        return false;
    memcpy(text, w.at, w.n);
    text[w.n] = '\0';
    char *const slash = strchr(text, '/'), *const dash = strchr(text, '-');
    if (strchr(text, ',')) {
        *why = "asks for more than an address";
        return false;
    }
    if (slash)
        *slash = '\0';
    else if (dash)
        *dash = '\0';
    const unsigned version = address_read(text, a);
    const unsigned all = version == 4 ? 32 : 128;
    if (!version)
        return false;
    if (slash) {
        *why = "a prefix has 0 to 32 bits, of IPv6 0 to 128";
        if (!bits_read(slash + 1, all, &bits))
            return false;
    } else if (dash) {
        *why = "a range ends with an address that is not below the first";
        return address_read(dash + 1, b) == version &&
               memcmp(a, b, all / 8) <= 0 &&
               range_give(r, (uint8_t)version, a, b);
    } else {
        bits = all;
    }
    const struct prefix p = prefix_of((uint8_t)version, a, bits);
    return prefix_give(r, &p);
}

/* -------------------------------------------------------------------- times */

/* "300", "1d2h3m4s", with parts of a second left out: 1 at least, and 0 stays
 * for ever. */
static bool seconds_read(struct words w, uint32_t *out)
{
    static const struct {
        char unit;
        uint32_t seconds;
    } units[] = { { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };
    uint64_t sum = 0;
    size_t i = 0;
    if (!w.n)
        return false;
    while (i < w.n) {
        uint64_t n = 0;
        const size_t digits = i;
        for (; i < w.n && w.at[i] >= '0' && w.at[i] <= '9'; i++)
            if ((n = n * 10 + (uint64_t)(w.at[i] - '0')) > UINT32_MAX)
                return false;
        if (i == digits)
            return false;
        if (i == w.n && !digits) { /* a bare number */
            sum = n;
            break;
        }
        if (i + 2 == w.n && w.at[i] == 'm' && w.at[i + 1] == 's') {
            sum += digits == 0 && n;
            break;
        }
        size_t u = 0;
        while (u < 4 && (i == w.n || units[u].unit != w.at[i]))
            u++;
        if (u == 4)
            return false;
        sum += n * units[u].seconds;
        i++;
    }
    *out = sum ? (uint32_t)(sum < PREFIX_EVER ? sum : PREFIX_EVER - 1)
               : PREFIX_EVER;
    return true;
}

/* What stands behind an entry: a time, or what is passed over. */
static bool times_read(struct prefix_reader *r, struct words rest,
                       const char **why)
{
    struct words word, value;
    r->seconds = 0;
    while (words_next(&rest, &word)) {
        if (!words_are(word, "timeout") && !words_are(word, "expires"))
            continue;
        if (!words_next(&rest, &value) || !seconds_read(value, &r->seconds)) {
            *why = "a time is a number of seconds, or as 1d2h3m4s";
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- nftables */

/* Where a character of n comes first outside of quotes; n: nowhere. */
static size_t unquoted(struct words w, char a, char b)
{
    bool quoted = false;
    for (size_t i = 0; i < w.n; i++) {
        if (w.at[i] == '"')
            quoted = !quoted;
        else if (!quoted && (w.at[i] == a || w.at[i] == b))
            return i;
    }
    return w.n;
}

/* "192.0.2.7 timeout 1h expires 59m" */
static bool element_read(struct prefix_reader *r, struct words w,
                         const char **why)
{
    struct words entry, next;
    if (!words_next(&w, &entry))
        return true;
    const struct words times = w;
    if (words_next(&w, &next) &&
        (words_are(next, ".") || words_are(next, ":"))) {
        *why = "asks for more than an address";
        return false;
    }
    return times_read(r, times, why) && entry_read(r, entry, why);
}

/* What stands inside of braces, as far as this line has it. */
static bool elements_read(struct prefix_reader *r, struct words w,
                          const char **why)
{
    while (!r->stopped) {
        const size_t end = unquoted(w, ',', '}');
        if (!element_read(r, (struct words){ w.at, end }, why))
            return false;
        if (end == w.n)
            return true;
        if (w.at[end] == '}') {
            r->elements = false;
            return true;
        }
        w = (struct words){ w.at + end + 1, w.n - end - 1 };
    }
    return true;
}

/* A line of a table: sets have elements, the rest is passed over. */
static bool table_line(struct prefix_reader *r, struct words line,
                       const char **why)
{
    struct words rest = line, first, second;
    if (!words_next(&rest, &first))
        return true;
    const bool equal = words_are(first, "elements") &&
                       words_next(&rest, &second) && words_are(second, "=");
    const size_t brace = unquoted(line, '{', '{');
    if (!equal || brace == line.n)
        return true;
    r->elements = true;
    return elements_read(
        r, (struct words){ line.at + brace + 1, line.n - brace - 1 }, why);
}

/* "add element inet filter bad { 192.0.2.7 }" */
static bool element_line(struct prefix_reader *r, struct words line,
                         const char **why)
{
    const size_t brace = unquoted(line, '{', '{');
    if (brace == line.n)
        return true;
    r->elements = true;
    return elements_read(
        r, (struct words){ line.at + brace + 1, line.n - brace - 1 }, why);
}

/* ------------------------------------------------------------------- lines */

/* "add NAME ENTRY timeout 300" */
static bool ipset_line(struct prefix_reader *r, struct words rest,
                       const char **why)
{
    struct words name, entry, option;
    *why = "add, but not what";
    if (!words_next(&rest, &name) || !words_next(&rest, &entry))
        return false;
    const struct words times = rest;
    while (words_next(&rest, &option))
        if (words_are(option, "nomatch")) {
            *why = "an exception; put it into a file of its own, for --allow";
            return false;
        }
    return times_read(r, times, why) && entry_read(r, entry, why);
}

static bool is_any(struct words w, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (words_are(w, list[i]))
            return true;
    return false;
}

bool prefix_line(struct prefix_reader *r, const char *line, size_t n,
                 const char **why)
{
    static const char *const passed[] = { "create", "-n",   "flush",  "-f",
                                          "commit", "swap", "destroy" };
    struct words w = { line, n }, rest, first, second;
    *why = NULL;
    if (r->elements)
        return elements_read(r, w, why);
    w.n = unquoted(w, '#', ';');
    rest = w;
    if (!words_next(&rest, &first))
        return true;
    if (words_are(first, "table"))
        r->nft = true;
    if (r->nft) /* until the file ends: a table says what its parts are */
        return table_line(r, w, why);
    if (is_any(first, passed, sizeof passed / sizeof passed[0]))
        return true;
    if (words_are(first, "add") || words_are(first, "-a")) {
        struct words after = rest;
        if (words_next(&after, &second) && words_are(second, "element"))
            return element_line(r, after, why);
        return ipset_line(r, rest, why);
    }
    return times_read(r, rest, why) && entry_read(r, first, why);
}

/* ------------------------------------------------------------------- files */

struct list_run {
    struct prefix_reader reader;
    struct prefix_counts *counts;
    const char *name;
    bool skip_bad;
};

static bool list_key(void *ctx, bly_bytes line)
{
    struct list_run *const l = ctx;
    const char *why;
    l->counts->lines++;
    if (prefix_line(&l->reader, line.ptr, line.len, &why))
        return !l->reader.stopped;
    if (!l->skip_bad)
        return refuse("%s: line %llu: %s; expected an address or prefix per "
                      "line, ipset save, nft list ruleset; or --skip-bad",
                      l->name, (unsigned long long)l->counts->lines, why);
    if (++l->counts->bad <= BAD_NAMED)
        warn("%s: line %llu skipped: %s", l->name,
             (unsigned long long)l->counts->lines, why);
    return true;
}

bool prefix_file(const char *name, bool skip_bad, prefix_take *take, void *ctx,
                 struct prefix_counts *counts)
{
    struct prefix_counts own = { 0 };
    struct list_run l = { .reader = { .take = take, .ctx = ctx },
                          .counts = &own,
                          .name = name,
                          .skip_bad = skip_bad };
    struct input in;
    input_files(&in, &name, 1, false);
    in.normal.no_cr = true; /* no part of an address */
    const bool ok = input_each(&in, list_key, &l);
    if (in.error[0])
        fail("%s", in.error);
    input_close(&in);
    counts->lines += own.lines;
    counts->entries += l.reader.entries;
    counts->bad += own.bad;
    return ok;
}

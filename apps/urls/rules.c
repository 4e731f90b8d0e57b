/*
 * rules.c - lines of lists that are more than a name: adblock's and RPZ's
 *
 *     ||example.org^             the host and what is below it
 *     ||example.org/a.exe^       a page, for lists of URLs
 *     ||example.org^$popup       only sometimes: skipped
 *     @@||good.example.org^      an exception
 *
 *     example.org    CNAME .               no such name
 *     *.example.org  CNAME .               the same below it
 *     good.example.org CNAME rpz-passthru. an exception
 *     ads.example.org A 192.0.2.1          answered with something else
 *
 * An entry covers a name and everything below it. So does an exception, which
 * wins against all entries. A zone may mean less than that, but what it means
 * is always covered.
 */
#include <arpa/inet.h>
#include <string.h>

#include "apps/urls/rules.h"

/* ----------------------------------------------------------------- adblock */

/* Do these options, separated by commas, leave a rule as wide as it is? */
static bool options_widen(struct words options)
{
    static const char *const wide[] = { "all", "important", "document", "doc" };
    while (options.n) {
        const char *const comma = memchr(options.at, ',', options.n);
        const size_t n = comma ? (size_t)(comma - options.at) : options.n;
        bool known = false;
        for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
            known |= words_are((struct words){ options.at, n }, wide[i]);
        if (!known)
            return false;
        options.at += n + (comma != NULL);
        options.n -= n + (comma != NULL);
    }
    return true;
}

bool adblock_line(struct list_reader *r, struct words line)
{
    enum entry_kind kind = ENTRY_LISTED;
    const char *why, *mark = NULL;
    if (line.n > 2 && memcmp(line.at, "@@", 2) == 0) {
        kind = ENTRY_ALLOWED;
        line = (struct words){ line.at + 2, line.n - 2 };
    }
    if (line.n < 2 || memcmp(line.at, "||", 2) != 0)
        goto skipped;
    line = (struct words){ line.at + 2, line.n - 2 };
    for (size_t i = 0; i < line.n; i++)
        if (line.at[i] == '$')
            mark = line.at + i;
    if (mark) {
        const size_t n = (size_t)(mark - line.at);
        if (!options_widen((struct words){ mark + 1, line.n - n - 1 }))
            goto skipped;
        line.n = n;
    }
    if (line.n && line.at[line.n - 1] == '|')
        line.n--;
    const bool closed = line.n && line.at[line.n - 1] == '^';
    line.n -= closed;
    const bool page = memchr(line.at, '/', line.n) != NULL;
    /* ||example.co, without an end, is example.com as well. */
    if (!line.n || memchr(line.at, '*', line.n) ||
        memchr(line.at, '^', line.n) ||
        !(closed || (page && line.at[line.n - 1] == '/')))
        goto skipped;
    if (r->domains ? page || !entry_name(r, line, kind, &why)
                   : !entry_url(r, line, kind, &why))
        goto skipped;
    r->n.caseless += page;
    return true;
skipped:
    r->n.skipped++;
    return true;
}

/* --------------------------------------------------------------------- RPZ */

/* Keep a name of a zone; false if it is too long for one. */
static bool zone_keep(char to[NAME_ROOM], struct words w)
{
    if (w.n >= NAME_ROOM)
        return false;
    memcpy(to, w.at, w.n);
    to[w.n] = '\0';
    for (size_t i = 0; i < w.n; i++)
        if (to[i] >= 'A' && to[i] <= 'Z')
            to[i] = (char)(to[i] + 32);
    return true;
}

bool rpz_directive(struct list_reader *r, struct words line, const char **why)
{
    struct words w;
    words_next(&line, &w);
    if (!words_are(w, "$origin")) {
        if (words_are(w, "$ttl"))
            return true;
        *why = "$INCLUDE and $GENERATE are not followed: give the whole zone";
        return false;
    }
    *why = "$ORIGIN without a name that ends in a dot";
    if (!words_next(&line, &w) || w.at[w.n - 1] != '.' ||
        !zone_keep(r->origin, w))
        return false;
    if (!r->apex[0])
        memcpy(r->apex, r->origin, sizeof r->apex);
    return true;
}

/* Parentheses of a line, up to a comment, that stay open. */
static void rpz_depth(struct list_reader *r, struct words line)
{
    for (size_t i = 0; i < line.n && line.at[i] != ';'; i++)
        if (line.at[i] == '(')
            r->depth++;
        else if (line.at[i] == ')' && r->depth)
            r->depth--;
}

bool rpz_more(struct list_reader *r, struct words line)
{
    rpz_depth(r, line);
    return true;
}

/* What a name of the zone is about: the zone's own name is cut off. False if it
 * is the zone itself, or does not belong to it. */
static bool rpz_trigger(const struct list_reader *r, char name[NAME_ROOM],
                        struct words *out)
{
    size_t n = strlen(r->owner), apex = strlen(r->apex);
    if (strcmp(r->owner, "@") == 0 || !n)
        return false;
    memcpy(name, r->owner, n + 1);
    if (name[n - 1] != '.' && r->origin[0]) { /* relative */
        const size_t more = strlen(r->origin);
        if (n + 1 + more >= NAME_ROOM)
            return false;
        name[n] = '.';
        memcpy(name + n + 1, r->origin, more + 1);
        n += 1 + more;
    }
    if (name[n - 1] == '.' && apex) {
        if (n <= apex + 1 || strcmp(name + n - apex, r->apex) != 0 ||
            name[n - apex - 1] != '.')
            return false;
        n -= apex;
    }
    n -= name[n - 1] == '.';
    *out = (struct words){ name, n };
    return n;
}

/* Triggers by address or by name server have a label of their own at the end.
 */
static bool rpz_is_name(struct words w)
{
    size_t last = w.n;
    while (last && w.at[last - 1] != '.')
        last--;
    return w.n - last < 4 || memcmp(w.at + last, "rpz-", 4) != 0;
}

/* A and AAAA have an address: "not a name" is not a record. */
static bool rpz_data_fits(struct words type, struct words target)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char a[16];
    if (!words_are(type, "a") && !words_are(type, "aaaa"))
        return true;
    if (target.n >= sizeof text)
        return false;
    memcpy(text, target.at, target.n);
    text[target.n] = '\0';
    return inet_pton(type.n == 1 ? AF_INET : AF_INET6, text, a) == 1;
}

static bool rpz_record(struct list_reader *r, struct words type,
                       struct words target, const char **why)
{
    static const char *const data[] = { "cname", "a", "aaaa" };
    char name[NAME_ROOM];
    struct words trigger;
    bool is_data = false;
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++)
        is_data |= words_are(type, data[i]);
    if (words_are(type, "soa")) {
        if (!r->apex[0] && r->owner[0] && r->owner[strlen(r->owner) - 1] == '.')
            memcpy(r->apex, r->owner, sizeof r->apex);
        return true;
    }
    if (words_are(type, "ns") || strcmp(r->owner, "@") == 0)
        return true;
    *why = "a name that is not of this zone";
    if (!rpz_trigger(r, name, &trigger))
        return false;
    if (!is_data || !rpz_is_name(trigger) ||
        words_are(target, "rpz-tcp-only.") || words_are(trigger, "*")) {
        r->n.skipped++;
        return true;
    }
    r->n.hosts += trigger.at[0] != '*';
    return entry_name(
        r, trigger,
        words_are(target, "rpz-passthru.") ? ENTRY_ALLOWED : ENTRY_LISTED, why);
}

/* A number with perhaps a unit: 300, 1h. */
static bool is_ttl(struct words w)
{
    for (size_t i = 0; i < w.n; i++)
        if ((w.at[i] < '0' || w.at[i] > '9') &&
            (i == 0 || !w.at[i] || !strchr("smhdwSMHDW", w.at[i])))
            return false;
    return w.n;
}

bool rpz_line(struct list_reader *r, struct words line, bool indented,
              const char **why)
{
    struct words rest = line, type, target;
    const char *const comment = memchr(line.at, ';', line.n);
    if (comment)
        rest.n = line.n = (size_t)(comment - line.at);
    *why = "neither a name, nor an address and names, nor a record of a zone";
    struct words owner = { r->owner, strlen(r->owner) };
    if (!indented && !words_next(&rest, &owner))
        return false;
    bool more = words_next(&rest, &type);
    while (more && (is_ttl(type) || words_are(type, "in")))
        more = words_next(&rest, &type);
    static const char *const types[] = { "cname", "a",     "aaaa",  "soa",
                                         "ns",    "txt",   "mx",    "srv",
                                         "ptr",   "dname", "https", "svcb" };
    bool known = false;
    for (size_t i = 0; more && i < sizeof types / sizeof types[0]; i++)
        known |= words_are(type, types[i]);
    if (!known || !words_next(&rest, &target) || !rpz_data_fits(type, target))
        return false;
    *why = "a name of more than 253 bytes";
    if (!indented && !zone_keep(r->owner, owner))
        return false;
    rpz_depth(r, line);
    return rpz_record(r, type, target, why);
}

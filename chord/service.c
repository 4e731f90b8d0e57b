/*
 * service.c - what is offered where: announced, asked for by tags, forgotten
 */
#include "chord/service.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* -------------------------------------------------------------- one service */

/* What can be printed anywhere: no control characters. */
static bool printable(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return n > 0;
}

bool service_text(char *to, const char *text, size_t n)
{
    if (n > SERVICE_TEXT || !printable(text, n))
        return false;
    memcpy(to, text, n);
    to[n] = '\0';
    return true;
}

bool service_tag(struct service *s, const char *tag, size_t n)
{
    char text[SERVICE_TAG + 1];
    if (n > SERVICE_TAG || !printable(tag, n))
        return false;
    memcpy(text, tag, n);
    text[n] = '\0';
    unsigned at = 0;
    while (at < s->ntags && strcmp(s->tags[at], text) < 0)
        at++;
    if (at < s->ntags && strcmp(s->tags[at], text) == 0)
        return true;
    if (s->ntags == SERVICE_TAGS)
        return false;
    memmove(s->tags[at + 1], s->tags[at], (s->ntags - at) * sizeof s->tags[0]);
    memcpy(s->tags[at], text, n + 1);
    s->ntags++;
    return true;
}

static void put_text(struct blob *b, const char *text)
{
    const size_t n = strlen(text);
    blob_number(b, n, 1);
    blob_bytes(b, text, n);
}

void service_put_tags(struct blob *b, const struct service *s)
{
    blob_number(b, s->ntags, 1);
    for (unsigned i = 0; i < s->ntags; i++)
        put_text(b, s->tags[i]);
}

void service_put(struct blob *b, const struct service *s)
{
    put_text(b, s->name);
    put_text(b, s->where);
    service_put_tags(b, s);
}

static bool take_text(struct body *b, char *to)
{
    const size_t n = (size_t)body_number(b, 1);
    const unsigned char *const text = body_bytes(b, n);
    return text && !b->bad && service_text(to, (const char *)text, n);
}

bool service_take_tags(struct body *b, struct service *s)
{
    const unsigned n = (unsigned)body_number(b, 1);
    s->ntags = 0;
    if (b->bad || !n || n > SERVICE_TAGS)
        return false;
    for (unsigned i = 0; i < n; i++) {
        const size_t len = (size_t)body_number(b, 1);
        const unsigned char *const text = body_bytes(b, len);
        if (!text || b->bad || !service_tag(s, (const char *)text, len))
            return false;
    }
    return true;
}

bool service_take(struct body *b, struct service *s)
{
    memset(s, 0, sizeof *s);
    return take_text(b, s->name) && take_text(b, s->where) &&
           service_take_tags(b, s);
}

bool service_has(const struct service *s, const struct service *wanted)
{
    for (unsigned i = 0; i < wanted->ntags; i++) {
        bool has = false;
        for (unsigned k = 0; k < s->ntags && !has; k++)
            has = strcmp(s->tags[k], wanted->tags[i]) == 0;
        if (!has)
            return false;
    }
    return true;
}

/* Up to three tags, a line each. */
static uint64_t tags_hash(const struct service *s, const unsigned *which,
                          unsigned n)
{
    const bly_hasher h = { .id = BLY_HASH_XXH3 };
    char text[3 * (SERVICE_TAG + 1)];
    size_t len = 0;
    for (unsigned i = 0; i < n; i++) {
        const size_t bytes = strlen(s->tags[which[i]]);
        memcpy(text + len, s->tags[which[i]], bytes);
        len += bytes;
        text[len++] = '\n';
    }
    return bly_hash(&h, text, len);
}

size_t service_keys(const struct service *s, uint64_t keys[SERVICE_KEYS])
{
    size_t n = 0;
    for (unsigned a = 0; a < s->ntags; a++) {
        keys[n++] = tags_hash(s, (unsigned[]){ a }, 1);
        for (unsigned b = a + 1; b < s->ntags; b++) {
            keys[n++] = tags_hash(s, (unsigned[]){ a, b }, 2);
            for (unsigned c = b + 1; c < s->ntags; c++)
                keys[n++] = tags_hash(s, (unsigned[]){ a, b, c }, 3);
        }
    }
    return n;
}

uint64_t service_key(const struct service *wanted)
{
    return tags_hash(wanted, (unsigned[]){ 0, 1, 2 },
                     wanted->ntags < 3 ? wanted->ntags : 3);
}

/* ------------------------------------------------------------------ a table */

void services_free(struct services *t)
{
    free(t->rows);
    t->rows = NULL;
    t->n = t->room = 0;
}

static size_t services_at(const struct services *t, const struct service *s)
{
    size_t i = 0;
    while (i < t->n && (strcmp(t->rows[i].service.name, s->name) != 0 ||
                        strcmp(t->rows[i].service.where, s->where) != 0))
        i++;
    return i;
}

static void services_drop(struct services *t, size_t i)
{
    if (t->changed)
        t->changed(t->ctx, &t->rows[i].service, false);
    t->rows[i] = t->rows[--t->n];
}

bool services_announce(struct services *t, const struct service *s,
                       uint64_t until)
{
    const size_t at = services_at(t, s);
    if (at < t->n && memcmp(&t->rows[at].service, s, sizeof *s) == 0) {
        t->rows[at].until = until;
        return true;
    }
    if (at == t->n && t->n == t->most)
        return false;
    if (!GROW(&t->rows, &t->room, t->n + 1))
        return false;
    if (t->changed && !t->changed(t->ctx, s, true))
        return false;
    if (at < t->n)
        services_drop(t, at); /* of the same name, with other tags */
    t->rows[t->n++] = (struct service_row){ *s, until };
    return true;
}

bool services_withdraw(struct services *t, const struct service *s)
{
    const size_t at = services_at(t, s);
    if (at == t->n)
        return false;
    services_drop(t, at);
    return true;
}

size_t services_expire(struct services *t, uint64_t now)
{
    size_t gone = 0;
    for (size_t i = 0; i < t->n;)
        if (t->rows[i].until <= now) {
            services_drop(t, i);
            gone++;
        } else {
            i++;
        }
    return gone;
}

/* The services that have all tags, as many as an answer has room for. */
static void look(const struct services *t, const struct service *wanted,
                 uint64_t now, struct blob *out)
{
    size_t found[SERVICE_ANSWERS], n = 0;
    for (size_t i = 0; i < t->n && n < SERVICE_ANSWERS; i++)
        if (t->rows[i].until > now && service_has(&t->rows[i].service, wanted))
            found[n++] = i;
    blob_number(out, n, 1);
    for (size_t i = 0; i < n; i++)
        service_put(out, &t->rows[found[i]].service);
}

enum frame_error services_answer(struct services *t, const struct frame *f,
                                 uint64_t now, struct blob *out,
                                 const char **why)
{
    struct body b = { f->body, f->nbody, false };
    struct service s = { .ntags = 0 };
    uint64_t seconds = 0;
    bool right;
    if (f->type == SERVICE_ANNOUNCE)
        seconds = body_number(&b, 2);
    right = f->type == SERVICE_LOOK ? service_take_tags(&b, &s)
                                    : service_take(&b, &s);
    *why = "a malformed service";
    if (!right || b.bad || b.n || seconds > SERVICE_TTL_MOST ||
        (f->type == SERVICE_ANNOUNCE && !seconds))
        return FRAME_WRONG;
    blob_start(out);
    if (f->type == SERVICE_LOOK) {
        look(t, &s, now, out);
    } else if (f->type == SERVICE_WITHDRAW) {
        *why = "no such service is announced here";
        if (!services_withdraw(t, &s))
            return FRAME_NOT_FOUND;
    } else if (!services_announce(t, &s, now + 1000 * seconds)) {
        t->refused++;
        *why = "as many services as there is room for are announced here";
        return FRAME_FULL;
    }
    return (enum frame_error)0;
}

/*
 * service.h - what is offered where: announced, asked for by tags, forgotten
 *
 * A service has a name, a place where it is reached, and tags such as
 * "type=printer". A question names some tags and gets the services that have
 * all of them. Filters know services by keys: every set of up to three tags is
 * one, so that a question is a single look.
 *
 * Announcements are forgotten unless they are repeated. A table of them is kept
 * by servers of a network (apps/net/find/finder.h), and by members of a ring,
 * at the owner of each tag. No sockets, no clocks.
 *
 *     announce    u16 seconds, service        withdraw    service
 *     look        tags                        answer      u8 number, services
 *     service     text name, text where, tags
 *     tags        u8 number, texts            text        u8 length, bytes
 */
#ifndef BLY_OVERLAY_SERVICE_H
#define BLY_OVERLAY_SERVICE_H

#include <bloomery.h>

#include "wire/frame.h"

#define SERVICE_TAGS 8  /* at most */
#define SERVICE_TAG 63  /* bytes, at most */
#define SERVICE_TEXT 63 /* of a name, and of a place */
#define SERVICE_KEYS 92 /* sets of one to three of eight tags */
#define SERVICE_TTL_MOST 3600
#define SERVICE_ANSWERS 32 /* in one answer */

/* Types of frames, beside those of a ring. */
enum { SERVICE_ANNOUNCE = 48, SERVICE_WITHDRAW, SERVICE_LOOK };

struct service {
    char name[SERVICE_TEXT + 1], where[SERVICE_TEXT + 1];
    unsigned ntags; /* ascending, none twice */
    char tags[SERVICE_TAGS][SERVICE_TAG + 1];
};

/* Add a tag; false: there are too many, or it is not printable or too long. */
bool service_tag(struct service *s, const char *tag, size_t n);
/* Likewise a text, into room for SERVICE_TEXT bytes. */
bool service_text(char *to, const char *text, size_t n);

void service_put(struct blob *b, const struct service *s);
void service_put_tags(struct blob *b, const struct service *s);
bool service_take(struct body *b, struct service *s); /* false: it is not one */
bool service_take_tags(struct body *b, struct service *s);

/* Does it have all tags of another? */
bool service_has(const struct service *s, const struct service *wanted);

/* The keys of a service: all sets of up to three tags. And that of a question,
 * its first three tags. */
size_t service_keys(const struct service *s, uint64_t keys[SERVICE_KEYS]);
uint64_t service_key(const struct service *wanted);

/* ------------------------------------------------------------------ a table */

struct service_row {
    struct service service;
    uint64_t until;
};

struct services {
    struct service_row *rows;
    size_t n, room, most;
    uint64_t refused;
    /* One has come, or is about to go; false: it cannot come. May be NULL. */
    bool (*changed)(void *ctx, const struct service *s, bool comes);
    void *ctx;
};

void services_free(struct services *t);

/* Announce until a time, withdraw, forget what was not repeated: how many. */
bool services_announce(struct services *t, const struct service *s,
                       uint64_t until);
bool services_withdraw(struct services *t, const struct service *s);
size_t services_expire(struct services *t, uint64_t now);

/* Answer a question of the types above: the body of the answer is begun in
 * `out`, and others may add to it. 0, or why not, with a text. */
enum frame_error services_answer(struct services *t, const struct frame *f,
                                 uint64_t now, struct blob *out,
                                 const char **why);

#endif

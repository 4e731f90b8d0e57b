/*
 * passwords.h - is this password in a list of leaked ones?
 *
 * Published lists hold a hash of each password, SHA-1 or NTLM, and how often it
 * was seen. A filter of them holds the hashes' bytes, 20 or 16, whatever the
 * list looked like, and says which of the two in a pair of its metadata; so any
 * filter that was built here answers for a password.
 *
 *     hash.c     passwords into hashes: all that adapters/pam needs
 *     list.c     lines into hashes
 *     lower.c    lower case as Java has it, for the filters of Keycloak
 *     vault.c    passwords in memory that is locked and wiped
 *     mirror.c   the list itself, where it is at hand: exact answers
 *     build.c check.c serve.c   the verbs; report.c what serve tells
 */
#ifndef BLY_PASSWORDS_H
#define BLY_PASSWORDS_H

#include "apps/passwords/password_hash.h"
#include "io/building.h"
#include "io/keys.h"
#include "io/sizing.h"

struct passwords_args {
    struct sizing sizing;
    struct keys keys; /* skip_bad, the secret, NUL as end */
    const char *output, *format, *mirror, *spill;
    unsigned list; /* number of the hash */
    const char *listen, *ntlm_mirror;
    uint64_t min_count, threads, max_memory;
    bool words, hashes, invert, count, json;
};

typedef int passwords_verb(const struct passwords_args *args,
                           const struct list *operands);
passwords_verb passwords_build, passwords_check, passwords_serve;
extern const struct field range_serving_fields[], range_served_fields[];
extern const struct field verdict_fields[], checked_fields[]; /* check.c */

void passwords_tell_serving(const struct passwords_args *args,
                            const char *mirror, const char *url, uint64_t port);
void passwords_tell_served(const struct passwords_args *args,
                           uint64_t nrequests, uint64_t nranges);

/* ------------------------------------------------------------------ hashes */

/* The prefix of a range: 5 of the digits. */
#define PREFIX_DIGITS 5

/* The number of a hash's name; NHASHES, with the reason printed: there is no
 * such hash. NULL is the first. */
unsigned hash_named(const char *name);

/* ------------------------------------------------------------------- lists */

/* What lines are, for list_key(). */
struct list_form {
    unsigned which; /* hash */
    bool words;     /* lines are passwords */
    uint64_t min_count;
    _Atomic uint64_t nrare; /* lines left out for that */
};

/* How the lines of lists are read: without the carriage return and the byte
 * order mark that Windows adds, with which no password would be found. Where
 * they end at NUL, as they are. */
struct keys passwords_keys(const struct passwords_args *args);

/* A pick_make (io/picker.h) whose ctx is a list_form. */
enum pick_made list_key(void *ctx, const struct input_file *of, bly_bytes line,
                        bly_bytes *key, char *room, char *why, size_t nwhy);

/* The five digits that a range file of this path holds the hashes of, in
 * upper case; false: it is not one. */
bool range_prefix(const char *path, char out[PREFIX_DIGITS]);

/* Lower case as Java's String.toLowerCase() has it outside of Turkey: a
 * pick_make without a ctx. */
enum pick_made lower_key(void *ctx, const struct input_file *of, bly_bytes line,
                         bly_bytes *key, char *room, char *why, size_t nwhy);

#endif

/*
 * passwords_list.c - the lines of published lists
 *
 *     5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:37359195    SHA-1 and its count
 *     8846F7EAEE8FB117AD06BDD830B7586C:37359195            NTLM
 *     1E4C9B93F3F0682250B6CF8331B7EE68FD8:37359195         in a file 5BAA6
 *     password                                             a word
 *
 * The third form is what a mirror of the range service holds, a file for each
 * of the 1,048,576 beginnings. A count of 0 is padding there, and no password.
 */
#include <stdatomic.h>
#include <string.h>

#include "apps/passwords/passwords.h"
#include "io/hex.h"
#include "report/say.h"

unsigned hash_named(const char *name)
{
    if (!name)
        return HASH_SHA1;
    for (unsigned i = 0; i < NHASHES; i++)
        if (strcmp(name, password_hashes[i].name) == 0)
            return i;
    fail("'%s' is not a hash of passwords; expected sha1 or ntlm", name);
    return NHASHES;
}

/* ----------------------------------------------------------------- digits */

static size_t count_digits(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && hex_value(text[i]) >= 0)
        i++;
    return i;
}

bool range_prefix(const char *path, char out[PREFIX_DIGITS])
{
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    if (count_digits(name, strlen(name)) != PREFIX_DIGITS ||
        (name[PREFIX_DIGITS] && name[PREFIX_DIGITS] != '.'))
        return false;
    for (size_t i = 0; i < PREFIX_DIGITS; i++)
        out[i] = name[i] >= 'a' ? (char)(name[i] - 'a' + 'A') : name[i];
    return true;
}

/* ------------------------------------------------------------------- lines */

static enum pick_made word_key(const struct list_form *form, bly_bytes line,
                               bly_bytes *key, char *room, char *why,
                               size_t nwhy)
{
    unsigned char *const out = (unsigned char *)room;
    /* Behind the hash there is room for the password in UTF-16, which takes two
     * bytes at most for each of UTF-8. */
    if (!hash_password(form->which, line.ptr, line.len, out + HASH_MOST,
                       2 * line.len + PICK_ROOM - HASH_MOST, out)) {
        snprintf(why, nwhy, "not UTF-8, which NTLM needs");
        return PICK_BAD;
    }
    *key = (bly_bytes){ room, password_hashes[form->which].nbytes };
    return PICK_KEY;
}

/* The count behind a hash, "" or ":123". False: something else. */
static bool count_read(const char *text, size_t n, bool *given, uint64_t *count)
{
    *given = n > 0;
    *count = 1;
    if (n == 0)
        return true;
    if (n == 1 || n > 20 || text[0] != ':')
        return false;
    *count = 0;
    for (size_t i = 1; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *count = *count * 10 + (uint64_t)(text[i] - '0');
    }
    return true;
}

static void say_digits(const struct list_form *form, size_t ndigits, char *why,
                       size_t nwhy)
{
    const size_t all = 2 * password_hashes[form->which].nbytes;
    const unsigned other = form->which == HASH_SHA1 ? HASH_NTLM : HASH_SHA1;
    if (ndigits == all - PREFIX_DIGITS)
        snprintf(why, nwhy,
                 "%zu digits, as in a range file, whose name must be the %d "
                 "before them",
                 ndigits, PREFIX_DIGITS);
    else if (ndigits == 2 * password_hashes[other].nbytes)
        snprintf(why, nwhy, "%zu digits; right for %s: --list %s", ndigits,
                 password_hashes[other].name, password_hashes[other].name);
    else
        snprintf(why, nwhy,
                 "not a hash of %zu hexadecimal digits; right for plain "
                 "passwords: --words",
                 all);
}

static enum pick_made hash_key(struct list_form *form,
                               const struct input_file *of, const char *text,
                               size_t n, bly_bytes *key, char *room, char *why,
                               size_t nwhy)
{
    const size_t nbytes = password_hashes[form->which].nbytes;
    char *digits = room + HASH_MOST;
    /* Nearly every line has as many as it should. */
    const bool usual = n >= 2 * nbytes &&
                       (n == 2 * nbytes || text[2 * nbytes] == ':') &&
                       hex_read(text, nbytes, (unsigned char *)room);
    const size_t ndigits = usual ? 2 * nbytes : count_digits(text, n);
    const bool is_range = ndigits == 2 * nbytes - PREFIX_DIGITS && of &&
                          range_prefix(of->name, digits);
    if (ndigits != 2 * nbytes && !is_range) {
        say_digits(form, ndigits, why, nwhy);
        return PICK_BAD;
    }
    if (is_range) /* both halves fit: 20 + 40 bytes */
        memcpy(digits + PREFIX_DIGITS, text, ndigits);
    bool counted;
    uint64_t count;
    if ((!usual &&
         !hex_read(is_range ? digits : text, nbytes, (unsigned char *)room)) ||
        !count_read(text + ndigits, n - ndigits, &counted, &count)) {
        snprintf(why, nwhy,
                 "something else than a colon and a count behind the hash");
        return PICK_BAD;
    }
    if (!counted && form->min_count > 1) {
        snprintf(why, nwhy,
                 "no count behind the hash, and --min-count asks "
                 "for one");
        return PICK_BAD;
    }
    if (count < form->min_count || count == 0) {
        form->nrare++;
        return PICK_NONE;
    }
    *key = (bly_bytes){ room, nbytes };
    return PICK_KEY;
}

enum pick_made list_key(void *ctx, const struct input_file *of, bly_bytes line,
                        bly_bytes *key, char *room, char *why, size_t nwhy)
{
    struct list_form *const form = ctx;
    const char *const text = line.ptr;
    if (form->words)
        return line.len ? word_key(form, line, key, room, why, nwhy)
                        : PICK_NONE;
    const size_t n = line.len - (line.len > 0 && text[line.len - 1] == '\r');
    return n ? hash_key(form, of, text, n, key, room, why, nwhy) : PICK_NONE;
}

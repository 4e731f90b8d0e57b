/*
 * fuzz_passwords.c - lines of lists of leaked passwords, and mirrors of them
 *
 * The first byte says what the lines are. Whatever they are, a key is inside of
 * its room and as long as a hash; and a list that passes for a sorted one is
 * looked up in without harm.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/passwords/mirror.h"
#include "report/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_line(struct list_form *form, const char *line, size_t n)
{
    static const char *const names[] = { "list.txt", "ranges/5BAA6" };
    char why[160];
    char *const own = malloc(n ? n : 1);
    const size_t room = PICK_ROOM + 2 * n;
    char *const out = malloc(room);
    if (own && out && n)
        memcpy(own, line, n);
    for (size_t i = 0; i < 2 && own && out; i++) {
        const struct input_file of = { .name = names[i] };
        bly_bytes key;
        if (list_key(form, &of, (bly_bytes){ own, n }, &key, out, why,
                     sizeof why) == PICK_KEY)
            assert(key.ptr == out &&
                   key.len == password_hashes[form->which].nbytes);
        if (lower_key(NULL, &of, (bly_bytes){ own, n }, &key, out, why,
                      sizeof why) == PICK_KEY)
            assert(key.len <= room);
    }
    free(out);
    free(own);
}

static void try_mirror(const char *text, size_t n, unsigned which)
{
    struct mirror m = { .path = "a list",
                        .fd = memfd_create("list", 0),
                        .nbytes = n,
                        .which = which };
    char why[160];
    const unsigned char hash[HASH_MOST] = { 0x5b, 0xaa, 0x61 };
    uint64_t count;
    struct mirror_range r;
    if (m.fd < 0)
        return;
    if (write(m.fd, text, n) == (ssize_t)n) {
        mirror_count(&m, hash, &count, why, sizeof why);
        if (mirror_range(&m, n > 5 ? text : "00000", &r, why, sizeof why))
            free(r.text);
    }
    mirror_close(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    quiet = true;
    const char *const text = (const char *)data + 1;
    struct list_form form = { .which = data[0] & 1,
                              .words = data[0] >> 1 & 1,
                              .min_count = data[0] >> 2 & 3 };
    for (size_t at = 0; at < size - 1;) {
        const char *const end = memchr(text + at, '\n', size - 1 - at);
        const size_t n = end ? (size_t)(end - text) - at : size - 1 - at;
        try_line(&form, text + at, n);
        at += n + 1;
    }
    try_mirror(text, size - 1, form.which);
    return 0;
}

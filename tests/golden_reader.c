/*
 * golden_reader.c - the golden files, read on another machine
 *
 *     golden_reader FOLDER
 *
 * Every *.bly in the folder is loaded and mapped, must hold the thousand keys
 * "key-0" .. "key-999" but not every other key, and must be written again byte
 * for byte. Built statically for aarch64, 32 bits and a big-endian
 * machine, and run by qemu-user; needs nothing but the library.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

static int failures;

static void complain(const char *path, const char *what)
{
    printf("%s: %s\n", path, what);
    failures++;
}

static unsigned char *slurp(const char *path, size_t *n)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        return NULL;
    fseek(in, 0, SEEK_END);
    *n = (size_t)ftell(in);
    rewind(in);
    unsigned char *bytes = malloc(*n + 1);
    if (bytes && fread(bytes, 1, *n, in) != *n) {
        free(bytes);
        bytes = NULL;
    }
    fclose(in);
    return bytes;
}

/* How many of the keys from first on are in it. */
static unsigned hits(const bly_filter *f, unsigned first, unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = first; i < first + n; i++) {
        char key[32];
        const int len = snprintf(key, sizeof key, "key-%u", i);
        sum += bly_has(f, key, (size_t)len);
    }
    return sum;
}

static void check_filter(const char *path, const bly_filter *f,
                         const unsigned char *bytes, size_t nbytes)
{
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    if ((kind.can & BLY_CAN(HAS)) && !(kind.traits & BLY_LIKELY_NO) &&
        hits(f, 0, 1000) != 1000)
        complain(path, "a key is missing");
    if ((kind.can & BLY_CAN(HAS)) && hits(f, 1000, 20000) == 20000)
        complain(path, "every key is in it");
    unsigned char *again = malloc(nbytes + 1);
    if (!again || bly_written_bytes(f) != nbytes ||
        bly_write_part(f, 0, again, nbytes + 1) != nbytes ||
        memcmp(again, bytes, nbytes) != 0)
        complain(path, "writing it again gives other bytes");
    free(again);
}

static void check_file(const char *path)
{
    static const unsigned char secret[BLY_SECRET_BYTES] = "golden secret 16";
    const bly_access keyed = { .secret = secret };
    const bly_access *how = strstr(path, "keyed") ? &keyed : NULL;
    size_t nbytes;
    unsigned char *bytes = slurp(path, &nbytes);
    bly_filter *loaded, *mapped;
    if (!bytes) {
        complain(path, "cannot be read");
        return;
    }
    if (bly_load(bytes, nbytes, how, &loaded) || bly_map(path, how, &mapped)) {
        complain(path, bly_error());
    } else {
        check_filter(path, loaded, bytes, nbytes);
        check_filter(path, mapped, bytes, nbytes);
        if (!bly_equal(loaded, mapped))
            complain(path, "loaded and mapped differ");
        bly_free(loaded);
        bly_free(mapped);
    }
    free(bytes);
}

int main(int argc, char **argv)
{
    struct dirent **names;
    const int n = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;
    int nfiles = 0;
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(names[i]->d_name, '.');
        if (dot && strcmp(dot, ".bly") == 0) {
            char *path;
            if (asprintf(&path, "%s/%s", argv[1], names[i]->d_name) < 0)
                return 2;
            check_file(path);
            nfiles++;
            free(path);
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    printf("%d golden files, %d failures\n", nfiles, failures);
    return nfiles && !failures ? 0 : 1;
}

/*
 * lang.c - the dictionaries of the system: --lang en_US
 *
 * The filter of a language is kept in the user's cache folder. It has a note of
 * the files that it was made from, their sizes and times; another note than
 * today's means that it is made anew. A folder that cannot be written costs
 * time, and nothing else.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/spell/spell.h"
#include "apps/spell/wordlist.h"
#include "io/files.h"
#include "report/say.h"
#include "report/show.h"

static const char *const folders[] = {
    "/usr/share/hunspell",
    "/usr/share/myspell",
    "/usr/share/myspell/dicts",
    "/usr/local/share/hunspell",
};

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* DICPATH is hunspell's: folders before the usual ones. */
char *lang_dictionary(const char *lang)
{
    const char *own = getenv("DICPATH");
    char *path;
    if (!lang[0] || strchr(lang, '/') || lang[0] == '.') {
        fail("--lang %s: expected a name such as en_US", show_name(lang));
        return NULL;
    }
    while (own && *own) {
        const size_t n = strcspn(own, ":");
        if (asprintf(&path, "%.*s/%s.dic", (int)n, own, lang) < 0)
            break;
        if (is_file(path))
            return path;
        free(path);
        own += n + (own[n] == ':');
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (asprintf(&path, "%s/%s.dic", folders[i], lang) < 0)
            break;
        if (is_file(path))
            return path;
        free(path);
    }
    fail("--lang %s: no %s.dic in %s, %s or a folder of DICPATH; Debian's "
         "packages are called hunspell-en-us and so on",
         show_name(lang), show_name(lang), folders[0], folders[1]);
    return NULL;
}

/* What the filter was made from, and by which rules: the first number changes
 * with what build follows of an .aff. */
static bool source_note(const char *dictionary, char out[BLY_NOTE_MOST + 1])
{
    struct stat dic, aff;
    char *const affix = affix_beside(dictionary);
    const bool ok = affix && stat(dictionary, &dic) == 0;
    if (ok && stat(affix, &aff) != 0)
        aff = (struct stat){ 0 };
    if (ok)
        snprintf(out, BLY_NOTE_MOST + 1, "2 %lld %lld %lld %lld %.900s",
                 (long long)dic.st_size, (long long)dic.st_mtime,
                 (long long)aff.st_size, (long long)aff.st_mtime, dictionary);
    free(affix);
    return ok;
}

/* Where the filter is kept; NULL: nowhere. */
static char *cache_path(const char *lang)
{
    const char *const cache = getenv("XDG_CACHE_HOME");
    const char *const home = getenv("HOME");
    char *folder = NULL, *path = NULL;
    const int n =
        cache && cache[0] == '/' ? asprintf(&folder, "%s/bloomery", cache)
        : home && home[0] == '/' ? asprintf(&folder, "%s/.cache/bloomery", home)
                                 : -1;
    if (n < 0)
        return NULL;
    if (mkdir(folder, 0700) && errno == ENOENT) { /* the folder above it */
        char *const slash = strrchr(folder, '/');
        *slash = '\0';
        mkdir(folder, 0700);
        *slash = '/';
        mkdir(folder, 0700);
    }
    if (asprintf(&path, "%s/spell-%s.bly", folder, lang) < 0)
        path = NULL;
    free(folder);
    return path;
}

/* What is kept, if it is of these files and whole. */
static bly_filter *kept(const char *path, const char *source)
{
    const bly_access how = { .checking = BLY_CHECK_ALL };
    bly_filter *f = NULL;
    bly_bytes note;
    if (!path || !is_file(path) || bly_map(path, &how, &f))
        return NULL;
    if (bly_pair_of(f, "spell-source", &note) && note.len == strlen(source) &&
        memcmp(note.ptr, source, note.len) == 0)
        return f;
    bly_free(f);
    return NULL;
}

bly_filter *lang_filter(const struct spell_args *args)
{
    char source[BLY_NOTE_MOST + 1];
    char *const dictionary = lang_dictionary(args->lang);
    if (!dictionary)
        return NULL;
    char *const path = cache_path(args->lang);
    struct spell_built built;
    bool bad = false;
    bly_filter *f = NULL;
    if (!source_note(dictionary, source))
        fail_path(dictionary, errno);
    else if (!(f = kept(path, source))) {
        const struct list from = { .at = (const char **)(uintptr_t)&dictionary,
                                   .n = 1 };
        struct spell_args make = { .threads = args->threads };
        make.keys.select.skip_bad = true;
        f = spell_make(&make, &from, NULL, source, &built, &bad);
        if (f && (!path || bly_save(f, path)))
            note("the filter of %s could not be kept%s%s; the next run makes "
                 "it again",
                 args->lang, path ? " in " : "", path ? path : "");
        else if (f)
            note("%s: made from %s, kept for the next run", path, dictionary);
    }
    free(path);
    free(dictionary);
    return f;
}

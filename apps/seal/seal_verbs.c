/*
 * seal_verbs.c - bloomery seal init, add, trapdoor, search
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/seal/seal.h"
#include "base/byte_order.h"
#include "io/files.h"
#include "io/folders.h"
#include "io/hex.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

#define SEAL_FPR 0.01

int seal_init(const struct seal_args *args, const struct list *operands)
{
    if (operands->n)
        return fail("init takes no operands; usage: bloomery seal init -o KEY");
    if (!args->output)
        return fail("-o KEY is missing: where to write the new key");
    if (!secure_begin() || !keys_make(args->output))
        return TROUBLE;
    note("%s: keep a copy of it in a safe place; without it, nothing that is "
         "sealed can be opened",
         args->output);
    return YES;
}

/* --------------------------------------------------------------------- add */

bool private_folder(const char *path)
{
    const mode_t mask = umask(077);
    const bly_status st = bly_folder_make(path);
    umask(mask);
    return !st || refuse_library();
}

int archive_lock(const char *folder)
{
    if (!private_folder(folder))
        return -1;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail_path(folder, errno), -1;
    for (uint64_t ms = 0; flock(fd, LOCK_EX | LOCK_NB) != 0;) {
        if (errno != EWOULDBLOCK || !wait_for_lock(NULL, folder, ms)) {
            char holder[64];
            bly_lock_holder(folder, holder, sizeof holder);
            fail("%s: another process is adding to it%s%s; --wait sets how "
                 "many seconds to wait",
                 folder, holder[0] ? ", or holds its lock: " : "", holder);
            close(fd);
            return -1;
        }
        usleep(10000);
        ms += 10;
    }
    return fd;
}

/* Remove the sealed documents, from n on, that the index does not have. */
static void undo(const char *folder, const struct sealed_index *x, size_t n)
{
    for (; n < x->n; n++) {
        char name[ID_TEXT], *path;
        id_text(x->entries[n].id, name);
        if (asprintf(&path, "%s/%s.sealed", folder, name) < 0)
            return;
        unlink(path);
        free(path);
    }
}

static uint64_t file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* The numbers from 0 to n - 1 in an order by chance; NULL without memory. */
static size_t *any_order(size_t n)
{
    size_t *const order = malloc(n * sizeof *order);
    for (size_t i = 0; order && i < n; i++) {
        uint64_t chance;
        randombytes_buf(&chance, sizeof chance);
        const size_t j = (size_t)(chance % (i + 1));
        order[i] = i;
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

/* Seal files in any order: in their own, which is that of their names, the
 * index would tell its holder something about these. Their numbers, which are
 * sealed with them, keep it. */
static bool add_files(const struct seal_keys *k, const char *folder,
                      const struct list *files, const struct html_wish *pages,
                      struct sealed_index *x, struct sealed_report *told)
{
    const uint64_t before = x->n + x->removed;
    size_t *const order = any_order(files->n);
    bool ok = order || refuse("out of memory");
    for (size_t i = 0; i < files->n && ok; i++) {
        const char *const path = files->at[order[i]];
        struct entry e = { .number = before + order[i] + 1 };
        told->bytes += file_bytes(path);
        ok = document_seal(k, folder, path, pages, x->r, &e);
        if (ok) {
            told->index_bytes += (e.m + 7) / 8;
            ok = index_put(x, &e) || refuse("out of memory");
        }
        if (!ok)
            free(e.bits);
        progress_at(i + 1, i + 1, files->n);
    }
    free(order);
    return ok;
}

static bool add_fits(const struct seal_args *args, const struct seal_keys *k,
                     const char *folder, struct sealed_index *x, bool found)
{
    const double fpr = args->fpr > 0 ? args->fpr : SEAL_FPR;
    if (!found) {
        memcpy(x->key_id, k->id, KEY_ID_BYTES);
        x->fpr = fpr;
        x->r = zindex_probes(fpr);
        index_prove(x, k, x->proof);
        return true;
    }
    if (memcmp(x->key_id, k->id, KEY_ID_BYTES) != 0)
        return refuse("%s: sealed with another key", folder);
    if (args->fpr > 0 && zindex_probes(fpr) != x->r)
        return refuse(
            "%s: its rate was set to %s when it was made; leave out --fpr",
            folder, show_rate(x->fpr));
    unsigned char proof[INDEX_PROOF_BYTES];
    index_prove(x, k, proof);
    if (x->version == 1) {
        if (!(args->fpr > 0))
            return refuse("%s: its index, by an older bloomery, does not prove "
                          "the rate that it was made with; give it with --fpr",
                          folder);
        memcpy(x->proof, proof, sizeof proof);
    } else if (sodium_memcmp(x->proof, proof, sizeof proof) != 0) {
        return refuse(
            "%s: somebody without the key has changed the rate in its "
            "index; bring the index back from a copy",
            folder);
    }
    return true;
}

/* Drop the versions before, of the first n, of what was added behind them. */
static int replace_older(const struct seal_keys *k, const char *folder,
                         const struct list *files, size_t n,
                         struct sealed_index *x, struct sealed_ids *gone)
{
    bool *const drops = calloc(n + 1, sizeof *drops);
    const bool ok = drops ? older_versions(k, folder, files, x, n, drops) &&
                                index_drop(x, drops, n, gone)
                          : refuse("out of memory");
    free(drops);
    return ok ? YES : TROUBLE;
}

static int add_locked(const struct seal_args *args, const struct seal_keys *k,
                      const char *folder, const struct list *files)
{
    struct sealed_index x;
    bool found;
    if (!index_open(folder, &x, &found))
        return TROUBLE;
    const size_t before = x.n;
    struct sealed_ids gone = { 0 };
    struct sealed_report told = { .archive = folder, .documents = files->n };
    progress_start(false);
    progress_unit("documents");
    int status = add_fits(args, k, folder, &x, found) &&
                         add_files(k, folder, files, &args->pages, &x, &told)
                     ? YES
                     : TROUBLE;
    progress_clear();
    if (status == YES && args->replace)
        status = replace_older(k, folder, files, before, &x, &gone);
    if (status == YES)
        status = index_save(folder, &x);
    if (status != YES)
        undo(folder, &x, before - gone.n);
    else
        documents_remove(folder, &gone);
    told.replaced = gone.n;
    free(gone.at);
    told.all = x.n;
    told.rate = x.fpr;
    if (status == YES && !quiet)
        report(stdout, args->json, sealed_fields, &told,
               "{archive}: {documents} documents sealed, {bytes}[{?replaced}, "
               "{replaced} replaced]; filters "
               "{index_bytes}; {all} in all\n");
    index_free(&x);
    return status;
}

int seal_add(const struct seal_args *args, const struct list *operands)
{
    const char *const folder = operands->at[0];
    const struct list names = { operands->at + 1, operands->n - 1, 0 };
    struct seal_keys k;
    struct list files = { 0 };
    if (!keys_open(args->key, &k))
        return TROUBLE;
    int status = TROUBLE;
    if (files_named(&names, true, NULL, &files)) {
        const int lock = files.n ? archive_lock(folder) : -1;
        if (!files.n)
            fail("there is no file in %s", show_name(names.at[0]));
        if (lock >= 0) {
            status = add_locked(args, &k, folder, &files);
            close(lock);
        }
        files_free(&files);
    }
    keys_close(&k);
    return status;
}

/* --------------------------------------------------------------- trapdoors */

#define TRAPDOOR_MARK "bly-seal-1:"
#define TRAPDOOR_ALL (KEY_ID_BYTES + TRAPDOOR_BYTES)

int seal_trapdoor(const struct seal_args *args, const struct list *operands)
{
    struct seal_keys k;
    if (!keys_open(args->key, &k))
        return TROUBLE;
    int status = YES;
    for (size_t i = 0; i < operands->n && status == YES; i++) {
        char room[BLY_KEY_ROOM(WORD_BYTES)];
        unsigned char out[TRAPDOOR_ALL];
        bly_bytes word;
        if (!word_only(operands->at[i], room, &word)) {
            status = fail("'%s' is not one word of letters and digits",
                          show_name(operands->at[i]));
            break;
        }
        memcpy(out, k.id, KEY_ID_BYTES);
        seal_trapdoor_of(k.words, word.ptr, word.len, out + KEY_ID_BYTES);
        char digits[2 * TRAPDOOR_ALL];
        hex_put(out, sizeof out, digits);
        printf("%s%.*s\n", TRAPDOOR_MARK, (int)sizeof digits, digits);
    }
    keys_close(&k);
    return status;
}

static bool trapdoor_read(const char *text, unsigned char out[TRAPDOOR_ALL])
{
    const size_t mark = sizeof TRAPDOOR_MARK - 1;
    const bool ok = strncmp(text, TRAPDOOR_MARK, mark) == 0 &&
                    strlen(text) == mark + 2 * TRAPDOOR_ALL &&
                    hex_read(text + mark, TRAPDOOR_ALL, out);
    return ok ||
           refuse("'%s' is not a trapdoor; bloomery seal trapdoor prints one",
                  show_name(text));
}

/* ------------------------------------------------------------------ search */

static int search_index(const struct seal_args *args,
                        const struct sealed_index *x, const char *archive,
                        unsigned char (*doors)[TRAPDOOR_ALL], size_t n)
{
    struct searched told = { x->n, 0, x->fpr };
    for (size_t i = 0; i < n; i++)
        if (memcmp(doors[i], x->key_id, KEY_ID_BYTES) != 0)
            return fail("%s: the trapdoor was made with another key", archive);
    for (size_t i = 0; i < x->n; i++) {
        const struct entry *const e = &x->entries[i];
        size_t has = 0;
        while (has < n && zindex_has(e->bits, e->m, x->r, seal_prf,
                                     doors[has] + KEY_ID_BYTES, e->id))
            has++;
        if (has < n)
            continue;
        char name[ID_TEXT];
        id_text(e->id, name);
        told.found++;
        if (!quiet && !args->json)
            printf("%s\n", name);
    }
    if (args->json && !quiet)
        report(stdout, true, searched_fields, &told, "");
    return told.found ? YES : NO;
}

int seal_search(const struct seal_args *args, const struct list *operands)
{
    const char *const archive = operands->at[0];
    const size_t n = operands->n - 1;
    struct sealed_index x;
    bool found, ok = true;
    if (!secure_begin())
        return TROUBLE;
    unsigned char(*const doors)[TRAPDOOR_ALL] = calloc(n, sizeof *doors);
    if (!doors)
        return fail("out of memory");
    for (size_t i = 0; i < n && ok; i++)
        ok = trapdoor_read(operands->at[i + 1], doors[i]);
    int status = TROUBLE;
    if (ok && index_open(archive, &x, &found)) {
        status = found ? search_index(args, &x, archive, doors, n)
                       : fail("%s: there is no index", archive);
        index_free(&x);
    }
    free(doors);
    return status;
}

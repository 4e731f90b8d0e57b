/*
 * open.c - bloomery seal open
 *
 * Documents that go to standard output are opened one after another. If they go
 * into a folder, or only their names are wanted, all of them are looked at
 * first, because several may have the same name: a file that was added again
 * gets a new id, and the old document stays. Then the newest of each name
 * counts, whatever the order of the ids. The newest is the one with the largest
 * number; a document that was sealed without one has the number of its place in
 * the index.
 *
 * Nothing that was in the folder before is replaced, and nothing is written
 * outside of it, whatever names documents have (io/new_file.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/seal/seal.h"
#include "base/grow.h"
#include "io/files.h"
#include "io/new_file.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

/* A document to be opened. */
struct wanted {
    unsigned char id[DOCUMENT_ID_BYTES];
    char *name; /* NULL: not looked at yet, or left out */
    size_t nname;
    uint64_t number, bytes;
    size_t given;      /* its place among the ids that were given */
    bool older, alike; /* there is a newer one; there may be */
};

/* What becomes of a document while it is read. */
struct reader {
    const struct seal_args *args;
    const struct seal_keys *k;
    const char *archive;
    bly_bytes word; /* it must have this one, if there are bytes in it */
    char *name;     /* of the document that is read */
    bool has;
    struct html_words text_words;
    struct wanted *at;
    bly_put *put; /* where its text goes; NULL: it is only looked at */
    void *to;
    bool stopped; /* stopped on purpose: the rest does not matter */
    struct sealed_index index;
    bool indexed;
};

/* ------------------------------------------------------------------ reading */

static bool reader_word(void *ctx, bly_bytes word)
{
    struct reader *const r = ctx;
    r->has |=
        word.len == r->word.len && memcmp(word.ptr, r->word.ptr, word.len) == 0;
    return true;
}

/* Whether it is a page may depend on its name. */
static bool note_name(struct reader *r, const struct document_head *head)
{
    free(r->name);
    r->name = strndup(head->name.ptr, head->name.len);
    r->text_words.name = r->name;
    return r->name || refuse("out of memory");
}

static bool skip_head(void *ctx, const struct document_head *head)
{
    return note_name(ctx, head);
}

static bool take_head(void *ctx, const struct document_head *head)
{
    struct reader *const r = ctx;
    struct wanted *const w = r->at;
    if (!note_name(r, head))
        return false;
    w->name = malloc(head->name.len + 1);
    if (!w->name)
        return refuse("out of memory");
    memcpy(w->name, head->name.ptr, head->name.len);
    w->name[head->name.len] = '\0';
    w->nname = head->name.len;
    w->number = head->number;
    w->bytes = head->bytes;
    r->stopped = !r->word.len && !r->args->names;
    return !r->stopped;
}

static bool take_text(void *ctx, const char *text, size_t n)
{
    struct reader *const r = ctx;
    return r->put ? r->put(r->to, text, n)
                  : html_words_cut(&r->text_words, text, n);
}

/* Does the document have the word? Read once for that, before it is read to be
 * written. *ok is false, with the reason printed, if it cannot be read; with
 * `at` given, its name and its number are taken as well, and nothing more is
 * read if nothing more is asked. */
static bool look_into(struct reader *r, const unsigned char *id,
                      struct wanted *at, bool *ok)
{
    r->text_words.cutter =
        (struct word_cutter){ .each = reader_word, .ctx = r };
    r->text_words.wish = &r->args->pages;
    r->text_words.begun = false;
    r->text_words.held.len = 0;
    r->has = r->stopped = false;
    r->at = at;
    r->put = NULL;
    *ok = (document_open(
               r->k, r->archive, id,
               &(struct opened){ at ? take_head : skip_head, take_text, r }) &&
           html_words_end(&r->text_words)) ||
          r->stopped;
    return *ok && (r->has || !r->word.len);
}

/* ------------------------------------------------------- to standard output */

static int open_to_stdout(struct reader *r, const unsigned char *id,
                          uint64_t *nopened)
{
    int error = 0;
    bool ok = true;
    if (r->word.len && !look_into(r, id, NULL, &ok))
        return ok ? YES : TROUBLE;
    r->put = put_stdout;
    r->to = &error;
    ok = document_open(r->k, r->archive, id,
                       &(struct opened){ skip_head, take_text, r });
    if (error)
        fail_path("standard output", error);
    *nopened += ok;
    return ok ? YES : TROUBLE;
}

/* ------------------------------------------------------------ which of them */

/* The number of a document that was sealed without one: its place in the index;
 * 0 if that is not there, or does not have it. False, with the reason printed,
 * if the index cannot be read. */
static bool number_of(struct reader *r, struct wanted *w)
{
    bool found;
    if (!r->indexed && !index_open(r->archive, &r->index, &found))
        return false;
    r->indexed = true;
    for (size_t i = 0; i < r->index.n; i++)
        if (memcmp(r->index.entries[i].id, w->id, DOCUMENT_ID_BYTES) == 0)
            w->number = r->index.entries[i].number;
    return true;
}

static int by_given(const void *a, const void *b)
{
    const struct wanted *const x = a, *const y = b;
    return x->given < y->given ? -1 : x->given > y->given;
}

static int by_name(const void *a, const void *b)
{
    const struct wanted *const x = a, *const y = b;
    const size_t n = x->nname < y->nname ? x->nname : y->nname;
    const int c = memcmp(x->name, y->name, n);
    return c                        ? c
           : x->nname != y->nname   ? (x->nname < y->nname ? -1 : 1)
           : x->number != y->number ? (x->number > y->number ? -1 : 1)
           : memcmp(x->id, y->id, DOCUMENT_ID_BYTES) != 0
               ? memcmp(x->id, y->id, DOCUMENT_ID_BYTES)
               : by_given(a, b);
}

static bool same_name(const struct wanted *a, const struct wanted *b)
{
    return a->nname == b->nname && memcmp(a->name, b->name, a->nname) == 0;
}

/* Mark all but the newest of each name, and those that may be the newest
 * without it being known. The same id twice is one document. How many are left.
 */
static size_t choose_newest(struct wanted *all, size_t n)
{
    size_t kept = 0, first = 0; /* first: the newest of this name */
    qsort(all, n, sizeof *all, by_name);
    for (size_t i = 0; i < n; i++) {
        if (kept &&
            memcmp(all[kept - 1].id, all[i].id, DOCUMENT_ID_BYTES) == 0) {
            free(all[i].name);
            continue;
        }
        all[kept] = all[i];
        if (!kept || !same_name(&all[first], &all[kept])) {
            first = kept;
        } else if (all[kept].number == all[first].number) {
            all[first].alike = all[kept].alike = true;
        } else {
            all[kept].older = true;
        }
        kept++;
    }
    qsort(all, kept, sizeof *all, by_given);
    return kept;
}

/* ------------------------------------------------------------ into a folder */

static bly_status write_opened(const void *what, bly_put *put, void *to)
{
    struct reader *const r = (struct reader *)(uintptr_t)what;
    r->put = put;
    r->to = to;
    return document_open(r->k, r->archive, r->at->id,
                         &(struct opened){ skip_head, take_text, r })
               ? BLY_OK
               : BLY_EREFUSED;
}

static int write_one(struct reader *r, int folder)
{
    struct wanted *const w = r->at;
    char *shown;
    /* The archive was made to look smaller than it was when one was added, or
     * old documents came without their index. */
    if (w->alike) {
        char id[ID_TEXT];
        id_text(w->id, id);
        return fail(
            "%s: not written: another document has the name '%s', and it is "
            "not known which is newer; open one of them by itself",
            id, show_name(w->name));
    }
    if (strlen(w->name) != w->nname)
        return fail("'%s' cannot name a file", show_name(w->name));
    if (asprintf(&shown, "%s/%s", r->args->output, show_name(w->name)) < 0)
        return fail("out of memory");
    const enum file_made made =
        file_make_below(folder, w->name, shown, 0666, write_opened, r);
    if (made == FILE_TAKEN)
        fail("%s: something of that name exists already, and is left as it is; "
             "use another folder",
             shown);
    free(shown);
    return made == FILE_MADE ? YES : TROUBLE;
}

static void tell_opened(const struct reader *r, const struct wanted *w)
{
    struct opened_report told = { .name = { w->name, w->nname },
                                  .bytes = w->bytes,
                                  .older = w->older };
    id_text(w->id, told.id);
    if (!quiet)
        report(stdout, r->args->json, opened_fields, &told,
               r->args->names
                   ? "{id}  {name}, {bytes}[{?older}, older|]\n"
                   : "{id}  {name}, {bytes}[{?older}, older: not written|]\n");
}

/* Open what was looked at; folder is where to, or -1 for names alone. */
static int open_all(struct reader *r, struct wanted *all, size_t n, int folder,
                    uint64_t *nopened)
{
    int status = YES;
    n = choose_newest(all, n);
    for (size_t i = 0; i < n; i++) {
        struct wanted *const w = r->at = &all[i];
        if (folder >= 0 && !w->older && write_one(r, folder) != YES) {
            status = TROUBLE;
            continue;
        }
        ++*nopened;
        tell_opened(r, w);
    }
    for (size_t i = 0; i < n; i++)
        free(all[i].name);
    return status;
}

/* ---------------------------------------------------------------- the verb */

struct wants {
    struct wanted *at;
    size_t n, room;
};

static bool wants_put(struct wants *all, const struct wanted *w)
{
    if (!GROW(&all->at, &all->room, all->n + 1))
        return refuse("out of memory");
    all->at[all->n++] = *w;
    return true;
}

/* An id that was given: to standard output at once, or looked at. */
static int take_id(struct reader *r, struct wants *all, const char *text,
                   size_t given, uint64_t *nopened)
{
    struct wanted w = { .given = given };
    bool ok;
    if (!id_read(text, w.id))
        return fail("'%s' is not the id of a document, of 32 digits",
                    show_name(text));
    if (!r->args->names && !r->args->output)
        return open_to_stdout(r, w.id, nopened);
    if (look_into(r, w.id, &w, &ok) && (w.number || number_of(r, &w)) &&
        wants_put(all, &w))
        return YES;
    free(w.name);
    return ok && r->word.len && !r->has ? YES : TROUBLE;
}

static int open_from(struct reader *r, const struct list *operands, int folder)
{
    uint64_t nopened = 0;
    int status = YES;
    struct wants all = { 0 };
    for (size_t i = 1; i < operands->n; i++)
        if (take_id(r, &all, operands->at[i], i, &nopened) != YES)
            status = TROUBLE;
    char line[256];
    for (size_t i = 0; operands->n == 1 && fgets(line, sizeof line, stdin);
         i++) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] && take_id(r, &all, line, i, &nopened) != YES)
            status = TROUBLE;
    }
    if (operands->n == 1 && ferror(stdin))
        status = fail_path("standard input", errno);
    if (all.n && open_all(r, all.at, all.n, folder, &nopened) != YES)
        status = TROUBLE;
    free(all.at);
    index_free(&r->index);
    return status != YES ? status : nopened ? YES : NO;
}

static int open_into(struct reader *r, const struct list *operands)
{
    const int folder =
        open(r->args->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return fail_path(r->args->output, errno);
    const int status = open_from(r, operands, folder);
    close(folder);
    return status;
}

int seal_open(const struct seal_args *args, const struct list *operands)
{
    char room[BLY_KEY_ROOM(WORD_BYTES)];
    struct seal_keys k;
    struct reader r = { .args = args, .k = &k, .archive = operands->at[0] };
    struct stat st;
    if (args->names && args->output)
        return fail("--names and -o exclude each other: names alone, or "
                    "documents");
    if (args->json && !args->names && !args->output)
        return fail("--json goes with --names or -o; the documents have "
                    "standard output for themselves");
    if (args->word && !word_only(args->word, room, &r.word))
        return fail("'%s' is not one word of letters and digits",
                    show_name(args->word));
    if (!keys_open(args->key, &k))
        return TROUBLE;
    int status = TROUBLE;
    /* Without an id nothing of it is opened, and a slip would go unseen. */
    if (stat(r.archive, &st) != 0)
        fail_path(r.archive, errno);
    else if (!S_ISDIR(st.st_mode))
        fail("%s: not an archive, which is a folder; use: bloomery seal open "
             "-K KEY ARCHIVE ID",
             show_name(r.archive));
    else if (!args->output)
        status = open_from(&r, operands, -1);
    else if (private_folder(args->output))
        status = open_into(&r, operands);
    html_words_free(&r.text_words);
    free(r.name);
    keys_close(&k);
    return status;
}

/*
 * index_catalog.c - the files that an index knows, and the blocks they are cut
 * into
 *
 * Blobs may have been written by anyone. A file whose blocks do not fit
 * together is one that nothing is known about, and is searched as a whole.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/index/index_catalog.h"
#include "base/lookup.h"
#include "base/random.h"
#include "report/say.h"

#define BLOB_VERSION 1

static uint64_t in_ns(struct timespec t)
{
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

struct file_mark mark_of(const struct stat *st)
{
    return (struct file_mark){ (uint64_t)st->st_size, in_ns(st->st_mtim),
                               in_ns(st->st_ctim), (uint64_t)st->st_ino };
}

bool marks_agree(const struct file_mark *a, const struct file_mark *b)
{
    return a->size == b->size && a->mtime == b->mtime && a->ctime == b->ctime &&
           a->inode == b->inode;
}

/* ------------------------------------------------------------------- blobs */

bool blob_write(struct bytes *to, const char *name,
                const struct file_mark *mark, const struct block_place *place,
                uint64_t back)
{
    const struct text_entry *const e = &place->entry;
    const size_t nname = strlen(name);
    bytes_varint(to, BLOB_VERSION);
    bytes_varint(to, place->flags);
    bytes_varint(to, nname);
    bytes_put(to, name, nname);
    const uint64_t numbers[] = { mark->size,  mark->mtime,   mark->ctime,
                                 mark->inode, place->number, place->at,
                                 place->len,  place->line,   place->nlines };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        bytes_varint(to, numbers[i]);
    bytes_number(to, place->hash, 8);
    bytes_varint(to, back);
    if (back == 1) {
        bytes_varint(to, e->kind);
        bytes_varint(to, e->bits);
        bytes_varint(to, e->packed);
        bytes_varint(to, e->more);
        bytes_varint(to, e->text);
        bytes_varint(to, e->nwindow);
        bytes_put(to, e->window, e->nwindow);
    }
    return !to->failed;
}

bool blob_read(bly_bytes blob, struct blob_says *out)
{
    struct reading r = { blob.ptr, (const unsigned char *)blob.ptr + blob.len,
                         false };
    struct block_place *const p = &out->place;
    *out = (struct blob_says){ 0 };
    if (read_number(&r) != BLOB_VERSION)
        return false;
    const uint64_t flags = read_number(&r);
    p->flags = (unsigned)(flags & BLOCK_FLAGS);
    const uint64_t nname = read_number(&r);
    out->name = (const char *)read_bytes(&r, nname);
    out->nname = (size_t)nname;
    out->mark.size = read_number(&r);
    out->mark.mtime = read_number(&r);
    out->mark.ctime = read_number(&r);
    out->mark.inode = read_number(&r);
    p->number = read_number(&r);
    p->at = read_number(&r);
    p->len = read_number(&r);
    p->line = read_number(&r);
    p->nlines = read_number(&r);
    p->hash = read_word(&r, 8);
    out->back = read_number(&r);
    if (out->back == 1) {
        const uint64_t kind = read_number(&r), bits = read_number(&r);
        p->entry.kind = (unsigned)kind;
        p->entry.bits = (unsigned)bits;
        p->entry.packed = read_number(&r);
        p->entry.more = read_number(&r);
        p->entry.text = read_number(&r);
        const uint64_t nwindow = read_number(&r);
        p->entry.window = read_bytes(&r, nwindow);
        p->entry.nwindow = (size_t)nwindow;
        p->has_entry = true;
        if ((kind != ENTRY_MEMBER && kind != ENTRY_POINT &&
             kind != ENTRY_BZIP2) ||
            bits > 9 || p->entry.text > p->at)
            return false;
    }
    return !r.bad && r.at == r.end && (flags & ~(uint64_t)BLOCK_FLAGS) == 0 &&
           out->nname > 0 && !memchr(out->name, 0, out->nname) &&
           p->len <= UINT64_MAX - p->at && p->len < SIZE_MAX / 2 &&
           p->nlines <= p->len && p->line <= UINT64_MAX / 2;
}

/* ----------------------------------------------------------------- catalog */

struct row {
    const char *name;
    size_t nname;
    uint64_t number, back, document;
    struct file_mark mark;
};

static int by_name_and_number(const void *a, const void *b)
{
    const struct row *const x = a, *const y = b;
    const size_t n = x->nname < y->nname ? x->nname : y->nname;
    const int c = memcmp(x->name, y->name, n);
    if (c)
        return c;
    if (x->nname != y->nname)
        return x->nname < y->nname ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool same_file(const struct row *a, const struct row *b)
{
    return a->nname == b->nname && memcmp(a->name, b->name, a->nname) == 0;
}

/* Do the blocks of a file follow one another? Entries of earlier ones are
 * looked up on the way. */
static bool file_fits(struct known_file *f, const struct row *rows)
{
    bool fits = true;
    uint64_t at = 0, line = 0;
    for (size_t i = 0; i < f->nblocks; i++) {
        struct block_place *const b = &f->blocks[i];
        const uint64_t back = rows[i].back;
        fits = fits && b->number == i && b->at == at && b->line == line &&
               marks_agree(&rows[i].mark, &f->mark) && back <= i + 1 &&
               !!(b->flags & BLOCK_LAST) == (i + 1 == f->nblocks);
        if (!fits)
            return false;
        if (back > 1) {
            const struct block_place *const from = &f->blocks[i - (back - 1)];
            if (!from->has_entry)
                return false;
            b->entry = from->entry;
            b->has_entry = true;
        }
        at += b->len;
        line += b->nlines;
        f->flags |= b->flags;
    }
    return true;
}

/* A blob that was read before. To read it twice costs less than memory for two
 * copies of all of them: one is in the order of the file. */
static struct block_place place_again(const bly_index *x, uint64_t document)
{
    struct blob_says says = { 0 };
    bly_bytes blob;
    if (!bly_index_document(x, document, &blob))
        blob_read(blob, &says);
    says.place.document = document;
    return says.place;
}

bool catalog_read(struct catalog *c, const bly_index *x)
{
    const size_t n = (size_t)bly_index_documents(x);
    *c = (struct catalog){ 0 };
    uint64_t *const live = malloc(sizeof *live * (bly_index_words(x) + 1));
    struct row *const rows = malloc(sizeof *rows * (n + 1));
    c->blocks = malloc(sizeof *c->blocks * (n + 1));
    c->files = calloc(n + 1, sizeof *c->files);
    c->lookup = calloc(1, sizeof *c->lookup);
    size_t nrows = 0, nnames = 0;
    bool ok = live && rows && c->blocks && c->files && c->lookup;
    if (ok)
        bly_index_live(x, live);
    for (size_t i = 0; ok && i < n; i++) {
        struct blob_says says;
        bly_bytes blob;
        if (!(live[i / 64] >> i % 64 & 1))
            continue;
        if (bly_index_document(x, i, &blob) || !blob_read(blob, &says)) {
            c->ndamaged++;
            continue;
        }
        rows[nrows] = (struct row){ says.name, says.nname, says.place.number,
                                    says.back, i,          says.mark };
        nrows++;
        nnames += says.nname + 1;
    }
    if (ok) {
        bool sorted = true;
        for (size_t i = 1; i < nrows && sorted; i++)
            sorted = by_name_and_number(&rows[i - 1], &rows[i]) <= 0;
        if (!sorted)
            qsort(rows, nrows, sizeof *rows, by_name_and_number);
        c->names = malloc(nnames + 1);
        ok = c->names && lookup_fit(c->lookup, nrows);
    }
    char *name = c->names;
    for (size_t i = 0; ok && i < nrows;) {
        struct known_file *const f = &c->files[c->nfiles];
        size_t end = i;
        f->name = name;
        f->mark = rows[i].mark;
        f->blocks = c->blocks + i;
        memcpy(name, rows[i].name, rows[i].nname);
        name[rows[i].nname] = 0;
        name += rows[i].nname + 1;
        for (; end < nrows && same_file(&rows[i], &rows[end]); end++)
            c->blocks[end] = place_again(x, rows[end].document);
        f->nblocks = end - i;
        f->whole = file_fits(f, rows + i);
        ok = lookup_add(c->lookup, table_hash(f->name, strlen(f->name)),
                        c->nfiles++);
        i = end;
    }
    free(live);
    free(rows);
    if (ok)
        return true;
    catalog_free(c);
    fail("out of memory");
    return false;
}

void catalog_free(struct catalog *c)
{
    free(c->files);
    free(c->blocks);
    free(c->names);
    if (c->lookup)
        lookup_free(c->lookup);
    free(c->lookup);
    *c = (struct catalog){ 0 };
}

struct known_file *catalog_find(const struct catalog *c, const char *name)
{
    if (!c->lookup)
        return NULL;
    LOOKUP_EACH (c->lookup, table_hash(name, strlen(name)), row) {
        if (strcmp(c->files[row].name, name) == 0)
            return &c->files[row];
    }
    return NULL;
}

/* ---------------------------------------------------------------- settings */

#define SETTINGS_NAME "bloomery.files"
#define SETTINGS_VERSION 1
#define SETTINGS_FIELDS 2 /* the same, and field_rules */

static void text_keep(struct bytes *to, const char *text)
{
    bytes_varint(to, text ? strlen(text) + 1 : 0);
    bytes_put(to, text, text ? strlen(text) : 0);
}

bool settings_keep(const struct index_settings *s, bly_index_builder *b)
{
    struct bytes to = { 0 };
    bytes_varint(&to,
                 fields_any(&s->fields) ? SETTINGS_FIELDS : SETTINGS_VERSION);
    for (unsigned i = 0; i < TERM_CLASSES; i++)
        bytes_varint(&to, s->terms.has[i]);
    bytes_varint(&to, s->terms.fold);
    bytes_varint(&to, s->terms.k);
    bytes_varint(&to, s->binary);
    bytes_varint(&to, s->block);
    bytes_varint(&to, s->points);
    bytes_varint(&to, s->part);
    bytes_varint(&to, s->nparts);
    bytes_varint(&to, strlen(s->folder));
    bytes_put(&to, s->folder, strlen(s->folder));
    bytes_varint(&to, s->nroots);
    for (size_t i = 0; i < s->nroots; i++) {
        bytes_varint(&to, strlen(s->roots[i]));
        bytes_put(&to, s->roots[i], strlen(s->roots[i]));
    }
    if (fields_any(&s->fields)) {
        text_keep(&to, s->fields.field);
        text_keep(&to, s->fields.csv);
        text_keep(&to, s->fields.jsonl);
        text_keep(&to, s->fields.delimiter);
        text_keep(&to, s->fields.id);
        bytes_varint(&to, s->fields.no_header);
    }
    const bool ok = !to.failed;
    const bly_status st =
        ok ? bly_index_builder_set(b, SETTINGS_NAME, to.at, to.n) : BLY_OK;
    free(to.at);
    if (!ok)
        fail("out of memory");
    else if (st)
        fail_library();
    return ok && !st;
}

bool part_has(unsigned i, unsigned n, const char *name)
{
    uint64_t h = 0;
    if (n == 0)
        return true;
    for (const char *p = name; *p; p++)
        h = bly_mix64(h + (unsigned char)*p + 1);
    return h % n == i;
}

static char *text_read_named(struct reading *r)
{
    const uint64_t n = read_number(r);
    const char *const at = (const char *)read_bytes(r, n);
    return at && !memchr(at, 0, (size_t)n) ? strndup(at, (size_t)n) : NULL;
}

/* What text_keep() wrote; false for what it did not. */
static bool text_get(struct reading *r, char **out)
{
    const uint64_t n = read_number(r);
    *out = NULL;
    if (n == 0)
        return true;
    const char *const at = (const char *)read_bytes(r, n - 1);
    if (n == 1)
        *out = strdup("");
    else if (at && !memchr(at, 0, (size_t)n - 1))
        *out = strndup(at, (size_t)n - 1);
    return *out != NULL;
}

static bool field_rules_read(struct reading *r, struct field_rules *out)
{
    const bool ok = text_get(r, &out->field) && text_get(r, &out->csv) &&
                    text_get(r, &out->jsonl) && text_get(r, &out->delimiter) &&
                    text_get(r, &out->id);
    out->no_header = read_number(r) == 1;
    return ok && fields_any(out);
}

bool settings_read(struct index_settings *s, const bly_index *x,
                   const char *path)
{
    const bly_bytes had = bly_index_get(x, SETTINGS_NAME);
    struct reading r = { had.ptr, (const unsigned char *)had.ptr + had.len,
                         false };
    *s = (struct index_settings){ 0 };
    const uint64_t version = had.ptr ? read_number(&r) : 0;
    if (version != SETTINGS_VERSION && version != SETTINGS_FIELDS) {
        fail("%s: an index, but not one of files that bloomery index build "
             "wrote%s",
             path, had.ptr ? " in this version" : "");
        return false;
    }
    for (unsigned i = 0; i < TERM_CLASSES; i++)
        s->terms.has[i] = read_number(&r) == 1;
    s->terms.fold = read_number(&r) == 1;
    s->terms.k = (unsigned)read_number(&r);
    s->binary = read_number(&r) == 1;
    s->block = read_number(&r);
    s->points = read_number(&r);
    s->part = (unsigned)read_number(&r);
    s->nparts = (unsigned)read_number(&r);
    s->folder = text_read_named(&r);
    const uint64_t nroots = read_number(&r);
    bool ok = s->folder && nroots <= read_left(&r);
    for (uint64_t i = 0; ok && i < nroots; i++) {
        char *const root = text_read_named(&r);
        ok = root && settings_add(s, root);
        free(root);
    }
    if (ok && version == SETTINGS_FIELDS)
        ok = field_rules_read(&r, &s->fields);
    unsigned nclasses = 0;
    for (unsigned i = 0; i < TERM_CLASSES; i++)
        if (s->terms.has[i])
            ok = ok && bly_index_class_named(x, term_class_names[i]) ==
                           (int)nclasses++;
    ok = ok && !r.bad && nclasses && s->terms.k <= KMER_MOST &&
         (!s->terms.has[TERM_KMERS] || s->terms.k >= KMER_LEAST);
    if (ok)
        return true;
    settings_free(s);
    fail("%s: damaged: what it says of its files makes no sense", path);
    return false;
}

bool settings_add(struct index_settings *s, const char *root)
{
    for (size_t i = 0; i < s->nroots; i++)
        if (strcmp(s->roots[i], root) == 0)
            return true;
    if (!GROW(&s->roots, &s->roots_room, s->nroots + 1))
        return false;
    s->roots[s->nroots] = strdup(root);
    return s->roots[s->nroots] && ++s->nroots;
}

void settings_free(struct index_settings *s)
{
    for (size_t i = 0; i < s->nroots; i++)
        free(s->roots[i]);
    free(s->roots);
    free(s->folder);
    fields_rules_free(&s->fields);
    *s = (struct index_settings){ 0 };
}

/* ----------------------------------------------------------------- folders */

struct walking {
    walk_file *each;
    void *ctx;
    char *path;
    size_t room;
};

static bool path_put(struct walking *w, size_t at, const char *name)
{
    const size_t n = strlen(name);
    if (!GROW(&w->path, &w->room, at + n + 2)) {
        fail("out of memory");
        return false;
    }
    memcpy(w->path + at, name, n + 1);
    return true;
}

/* The folder in w->path, of n bytes. */
static bool walk_below(struct walking *w, size_t n, int fd)
{
    DIR *const dir = fd < 0 ? NULL : fdopendir(fd);
    bool ok = true;
    if (!dir) {
        ok = w->each(w->ctx, w->path, NULL);
        if (fd >= 0)
            close(fd);
        return ok;
    }
    if (n && w->path[n - 1] != '/') {
        ok = path_put(w, n, "/");
        n++;
    }
    for (const struct dirent *e; ok && (errno = 0, e = readdir(dir));) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (!(ok = path_put(w, n, e->d_name)))
            break;
        if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            /* What has disappeared meanwhile is not there. */
            ok = errno == ENOENT || w->each(w->ctx, w->path, NULL);
        } else if (S_ISREG(st.st_mode)) {
            ok = w->each(w->ctx, w->path, &st);
        } else if (S_ISDIR(st.st_mode)) {
            ok = walk_below(
                w, n + strlen(e->d_name),
                openat(dirfd(dir), e->d_name,
                       O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
        }
    }
    if (ok && errno) {
        w->path[n] = 0;
        ok = w->each(w->ctx, w->path, NULL);
    }
    closedir(dir);
    return ok;
}

bool index_walk(const char *root, walk_file *each, void *ctx)
{
    struct walking w = { .each = each, .ctx = ctx };
    struct stat st;
    bool ok;
    if (stat(root, &st) != 0)
        return each(ctx, root, NULL);
    if (!S_ISDIR(st.st_mode))
        return each(ctx, root, &st);
    ok = path_put(&w, 0, root) &&
         walk_below(&w, strlen(root),
                    open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    free(w.path);
    return ok;
}

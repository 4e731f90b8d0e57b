/*
 * sealed.c - documents, sealed and opened
 *
 *     0   8  "BLYSEALD"
 *     8   4  version, 2; 4 bytes of zeros
 *    16   8  which key
 *    24  16  id of the document
 *    40  24  the beginning of the stream
 *    64      pieces of 16 KiB and 17 bytes, the last one shorter
 *
 * The stream is libsodium's secretstream (XChaCha20 and Poly1305), whose pieces
 * cannot be changed, left out, moved or cut off without being found out; the 40
 * bytes before it are authenticated with the first. Inside:
 *
 *     4 bytes  length of the name      8 bytes  length of the text
 *     8 bytes  number of the document
 *     the name, the text, and zeros up to a multiple of 1024
 *
 * Documents are numbered from 1 as they are added: of two of one name, the one
 * with the larger number is the newer. The number stands here so that whoever
 * holds the archive cannot pass an old one off as new. In version 1 it is
 * missing. The name has the folders that the file was found by, and never leads
 * up.
 *
 * The padding is there so that the length of a file tells that of the text only
 * roughly. From that length alone comes the number of words that the filter is
 * filled for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/seal/seal.h"
#include "base/byte_order.h"
#include "io/files.h"
#include "io/hex.h"
#include "report/say.h"
#include "report/show.h"

#define SEALED_MAGIC "BLYSEALD"
#define SEALED_VERSION 2
#define SEALED_HEADER 64
#define SEALED_NAMED 40 /* bytes before the stream's own beginning */
#define PIECE ((size_t)16 * 1024)
#define PIECE_MORE crypto_secretstream_xchacha20poly1305_ABYTES
#define TAG_LAST crypto_secretstream_xchacha20poly1305_TAG_FINAL
#define INSIDE_HEADER 20
#define INSIDE_HEADER_1 12 /* of version 1: without a number */
#define PADDED_TO 1024
#define NAME_MOST 4096

typedef crypto_secretstream_xchacha20poly1305_state stream_state;

void id_text(const unsigned char *id, char out[ID_TEXT])
{
    hex_put(id, DOCUMENT_ID_BYTES, out);
    out[ID_TEXT - 1] = '\0';
}

bool id_read(const char *text, unsigned char id[DOCUMENT_ID_BYTES])
{
    return strlen(text) == ID_TEXT - 1 && hex_read(text, DOCUMENT_ID_BYTES, id);
}

/* The path of a sealed document, which the caller frees. */
static char *sealed_path(const char *folder, const unsigned char *id)
{
    char name[ID_TEXT], *path;
    id_text(id, name);
    return asprintf(&path, "%s/%s.sealed", folder, name) < 0 ? NULL : path;
}

static uint64_t padded(uint64_t n)
{
    return (n + PADDED_TO - 1) / PADDED_TO * PADDED_TO;
}

/* ----------------------------------------------------------------- sealing */

struct sealing {
    const struct seal_keys *k;
    const char *path;
    char *name;
    int fd;
    uint64_t nbytes, ninside; /* of the text; of all that is inside */
    unsigned r;
    struct entry *entry;
    struct word_set words;
    struct html_words text_words;
    char why[200];
};

static bool seal_word(void *ctx, bly_bytes word)
{
    struct sealing *const s = ctx;
    unsigned char trapdoor[TRAPDOOR_BYTES];
    bool fresh;
    seal_trapdoor_of(s->k->words, word.ptr, word.len, trapdoor);
    if (!word_set_add(&s->words, get_le(trapdoor, 8), &fresh)) {
        snprintf(s->why, sizeof s->why, "out of memory");
        return false;
    }
    if (fresh)
        zindex_add(s->entry->bits, s->entry->m, s->r, seal_prf, trapdoor,
                   s->entry->id);
    return true;
}

/* What stands at `at` inside, n bytes of it: the header, the name, the text,
 * zeros. The text is read and cut into words on the way. */
static bool inside(struct sealing *s, uint64_t at, unsigned char *to, size_t n)
{
    unsigned char head[INSIDE_HEADER];
    const size_t nname = strlen(s->name);
    put_le(head, nname, 4);
    put_le(head + 4, s->nbytes, 8);
    put_le(head + 12, s->entry->number, 8);
    const uint64_t text = INSIDE_HEADER + nname, end = text + s->nbytes;
    for (size_t i = 0; i < n;) {
        const uint64_t here = at + i;
        if (here < INSIDE_HEADER) {
            to[i++] = head[here];
        } else if (here < text) {
            to[i++] = (unsigned char)s->name[here - INSIDE_HEADER];
        } else if (here < end) {
            const uint64_t left = end - here;
            const size_t some = left < n - i ? (size_t)left : n - i;
            if (read_all(s->fd, to + i, some) != (int64_t)some) {
                snprintf(s->why, sizeof s->why,
                         "it became shorter while it was read");
                return false;
            }
            if (!html_words_cut(&s->text_words, (char *)to + i, some))
                return false;
            i += some;
        } else {
            memset(to + i, 0, n - i);
            i = n;
        }
    }
    return true;
}

static bly_status write_sealed(const void *what, bly_put *put, void *ctx)
{
    struct sealing *const s = (struct sealing *)(uintptr_t)what;
    unsigned char header[SEALED_HEADER] = { 0 };
    unsigned char plain[PIECE], sealed[PIECE + PIECE_MORE];
    stream_state state;
    memcpy(header, SEALED_MAGIC, 8);
    put_le(header + 8, SEALED_VERSION, 4);
    memcpy(header + 16, s->k->id, KEY_ID_BYTES);
    memcpy(header + 24, s->entry->id, DOCUMENT_ID_BYTES);
    crypto_secretstream_xchacha20poly1305_init_push(
        &state, header + SEALED_NAMED, s->k->stream);
    bool ok = put(ctx, header, sizeof header);
    for (uint64_t at = 0; at < s->ninside && ok;) {
        const uint64_t left = s->ninside - at;
        const size_t n = left < PIECE ? (size_t)left : PIECE;
        if (!inside(s, at, plain, n)) {
            explicit_bzero(plain, sizeof plain);
            return BLY_EIO;
        }
        crypto_secretstream_xchacha20poly1305_push(
            &state, sealed, NULL, plain, n, at ? NULL : header,
            at ? 0 : SEALED_NAMED, at + n == s->ninside ? TAG_LAST : 0);
        ok = put(ctx, sealed, n + PIECE_MORE);
        at += n;
    }
    explicit_bzero(plain, sizeof plain);
    explicit_bzero(&state, sizeof state);
    return ok ? BLY_OK : BLY_EIO;
}

static bool seal_fd(struct sealing *s, const char *folder)
{
    struct stat st;
    if (fstat(s->fd, &st) != 0)
        return refuse_path(s->path, errno);
    if (!S_ISREG(st.st_mode))
        return refuse("%s: not a regular file", s->path);
    s->nbytes = (uint64_t)st.st_size;
    s->ninside = padded(INSIDE_HEADER + strlen(s->name) + s->nbytes);
    const uint64_t nwords = zindex_words(s->ninside);
    s->entry->m = zindex_bits(nwords, s->r);
    s->entry->bits = calloc(1, (size_t)(s->entry->m + 7) / 8);
    char *const to = sealed_path(folder, s->entry->id);
    if (!s->entry->bits || !to) {
        free(to);
        return refuse("out of memory");
    }
    s->text_words.name = s->name;
    s->text_words.cutter = (struct word_cutter){ .each = seal_word, .ctx = s };
    const bly_status wrote =
        bly_file_save(to, wait_for_lock, NULL, write_sealed, s);
    bool ok = !wrote && html_words_end(&s->text_words);
    if (s->why[0])
        fail("%s: %s", s->path, s->why);
    else if (wrote)
        fail_library();
    char more;
    if (ok && read(s->fd, &more, 1) != 0)
        ok = refuse("%s: it grew while it was read", s->path);
    if (ok && nwords > s->words.n)
        seal_blind(s->entry->bits, s->entry->m, s->r, nwords - s->words.n);
    if (!ok)
        unlink(to);
    free(to);
    return ok;
}

/* "/a/b" and "./a//b" are "a/b", and so is "../c/../a/b", of which only what
 * follows the last ".." counts. */
char *stored_name(const char *path)
{
    char *const name = malloc(strlen(path) + 1);
    size_t n = 0;
    while (name && *path) {
        const size_t len = strcspn(path, "/");
        if (len == 2 && path[0] == '.' && path[1] == '.') {
            n = 0;
        } else if (len && !(len == 1 && path[0] == '.')) {
            if (n)
                name[n++] = '/';
            memcpy(name + n, path, len);
            n += len;
        }
        path += len + (path[len] == '/');
    }
    if (name)
        name[n] = '\0';
    return name;
}

bool document_seal(const struct seal_keys *k, const char *folder,
                   const char *path, const struct html_wish *pages, unsigned r,
                   struct entry *entry)
{
    struct sealing s = { .k = k,
                         .path = path,
                         .r = r,
                         .entry = entry,
                         .text_words = { .wish = pages } };
    entry->bits = NULL;
    randombytes_buf(entry->id, DOCUMENT_ID_BYTES);
    s.name = stored_name(path);
    if (!s.name)
        return refuse("out of memory");
    bool ok = false;
    s.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s.fd < 0)
        fail_path(path, errno);
    else if (!s.name[0] || strlen(s.name) > NAME_MOST)
        fail("%s: a document needs a name of 1 to %d bytes", path, NAME_MOST);
    else
        ok = seal_fd(&s, folder);
    if (s.fd >= 0)
        close(s.fd);
    free(s.name);
    word_set_free(&s.words);
    if (s.text_words.held.at)
        explicit_bzero(s.text_words.held.at, s.text_words.held.room);
    html_words_free(&s.text_words);
    explicit_bzero(&s.text_words, sizeof s.text_words);
    return ok;
}

/* ----------------------------------------------------------------- opening */

struct opening {
    const struct opened *to;
    const char *path;
    size_t header; /* bytes before the name */
    unsigned char head[INSIDE_HEADER + NAME_MOST];
    size_t nhead;  /* of header and name, so far */
    uint64_t left; /* of the text */
    bool named;
};

/* How many bytes header and name have; only the header's, until that is there.
 */
static size_t head_bytes(const struct opening *o)
{
    return o->nhead < o->header ? o->header
                                : o->header + (size_t)get_le(o->head, 4);
}

/* Some bytes of what was inside, in their order. */
static bool take_inside(struct opening *o, const unsigned char *at, size_t n)
{
    while (!o->named && n) {
        const size_t want = head_bytes(o);
        if (want > o->header + NAME_MOST)
            return refuse("%s: not as it was sealed", o->path);
        const size_t some = want - o->nhead < n ? want - o->nhead : n;
        memcpy(o->head + o->nhead, at, some);
        o->nhead += some;
        at += some;
        n -= some;
        if (o->nhead < head_bytes(o))
            continue;
        o->named = true;
        const struct document_head head = {
            { o->head + o->header, o->nhead - o->header },
            o->header > INSIDE_HEADER_1 ? get_le(o->head + 12, 8) : 0,
            get_le(o->head + 4, 8),
        };
        o->left = head.bytes;
        if (!o->to->head(o->to->ctx, &head))
            return false;
    }
    const size_t some = o->left < n ? (size_t)o->left : n;
    o->left -= some;
    return some == 0 || o->to->text(o->to->ctx, (const char *)at, some);
}

static bool open_fd(const struct seal_keys *k, int fd, const char *path,
                    const unsigned char *id, const struct opened *to)
{
    unsigned char header[SEALED_HEADER];
    unsigned char plain[PIECE], sealed[PIECE + PIECE_MORE];
    stream_state state;
    struct opening o = { .to = to, .path = path, .header = INSIDE_HEADER };
    if (read_all(fd, header, sizeof header) != (int64_t)sizeof header ||
        memcmp(header, SEALED_MAGIC, 8) != 0)
        return refuse("%s: not a sealed document", path);
    if (get_le(header + 8, 4) == 1)
        o.header = INSIDE_HEADER_1;
    else if (get_le(header + 8, 4) != SEALED_VERSION)
        return refuse("%s: sealed by a newer bloomery", path);
    if (sodium_memcmp(header + 16, k->id, KEY_ID_BYTES) != 0)
        return refuse("%s: sealed with another key", path);
    if (memcmp(header + 24, id, DOCUMENT_ID_BYTES) != 0)
        return refuse("%s: not the document that its name says", path);
    bool ok = crypto_secretstream_xchacha20poly1305_init_pull(
                  &state, header + SEALED_NAMED, k->stream) == 0;
    unsigned char tag = 0;
    for (bool first = true; ok && tag != TAG_LAST; first = false) {
        const int64_t got = read_all(fd, sealed, sizeof sealed);
        unsigned long long n;
        ok = got > (int64_t)PIECE_MORE &&
             crypto_secretstream_xchacha20poly1305_pull(
                 &state, plain, &n, &tag, sealed, (unsigned long long)got,
                 first ? header : NULL, first ? SEALED_NAMED : 0) == 0;
        if (ok && !take_inside(&o, plain, (size_t)n)) {
            explicit_bzero(plain, sizeof plain);
            return false;
        }
    }
    explicit_bzero(plain, sizeof plain);
    explicit_bzero(&state, sizeof state);
    ok = ok && o.named && o.left == 0 && read(fd, sealed, 1) == 0;
    return ok || refuse("%s: not as it was sealed", path);
}

bool document_open(const struct seal_keys *k, const char *folder,
                   const unsigned char *id, const struct opened *to)
{
    char *const path = sealed_path(folder, id);
    if (!path)
        return refuse("out of memory");
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool ok =
        fd < 0 ? refuse_path(path, errno) : open_fd(k, fd, path, id, to);
    if (fd >= 0)
        close(fd);
    free(path);
    return ok;
}

/*
 * fuzz_sealed.c - sealed documents, by somebody without the key and with it
 *
 * If the first byte is even, the rest is the file: nobody without the key gets
 * past its first piece. If it is odd, the rest is what is inside, sealed with
 * the key in pieces as long as the second byte says, in 64 bytes; the last one
 * says that it is the last if bit 1 is clear. Bit 2 chooses version 1, whose
 * documents have no number. What was opened is what its header says: one head,
 * then the text, of that length.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/seal/seal.h"
#include "base/byte_order.h"
#include "report/say.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEADER 64
#define BEFORE_STREAM 40
#define INSIDE(version) ((version) == 1 ? 12u : 20u) /* before the name */
#define SEALED 1 /* bits of the first byte */
#define UNENDED 2
#define OLD 4
#define PIECE ((size_t)16 * 1024)
#define MORE crypto_secretstream_xchacha20poly1305_ABYTES
#define LAST crypto_secretstream_xchacha20poly1305_TAG_FINAL

struct seen {
    size_t heads, name_bytes;
    uint64_t number, text_bytes;
};

static bool take_head(void *ctx, const struct document_head *head)
{
    struct seen *const s = ctx;
    assert(!s->heads && !s->text_bytes);
    s->heads++;
    s->name_bytes = head->name.len;
    s->number = head->number;
    return true;
}

static bool take_text(void *ctx, const char *text, size_t n)
{
    struct seen *const s = ctx;
    assert(s->heads == 1 && text && n);
    s->text_bytes += n;
    return true;
}

/* The pieces of a document with that inside. */
static bool write_pieces(int fd, const struct seal_keys *k,
                         unsigned char header[HEADER], const uint8_t *data,
                         size_t size, bool ends)
{
    crypto_secretstream_xchacha20poly1305_state state;
    unsigned char sealed[PIECE + MORE];
    const size_t step = size && data[0] ? (size_t)data[0] * 64 : PIECE;
    crypto_secretstream_xchacha20poly1305_init_push(
        &state, header + BEFORE_STREAM, k->stream);
    bool ok = write(fd, header, HEADER) == HEADER;
    for (size_t at = 1; at < size && ok; at += step) {
        const size_t n = size - at < step ? size - at : step;
        const bool last = ends && at + n == size;
        crypto_secretstream_xchacha20poly1305_push(
            &state, sealed, NULL, data + at, n, at == 1 ? header : NULL,
            at == 1 ? BEFORE_STREAM : 0, last ? LAST : 0);
        ok = write(fd, sealed, n + MORE) == (ssize_t)(n + MORE);
    }
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char folder[] = "/tmp/fuzz-sealed-XXXXXX", path[128];
    static unsigned char header[HEADER] = "BLYSEALD";
    static const unsigned char id[DOCUMENT_ID_BYTES] = "one document ..";
    static const struct seal_keys k = { .stream = "any key", .id = "which" };
    static int fd = -1;
    if (fd < 0) {
        char name[ID_TEXT];
        if (!secure_begin() || !mkdtemp(folder))
            exit(0);
        id_text(id, name);
        snprintf(path, sizeof path, "%s/%s.sealed", folder, name);
        fd = open(path, O_RDWR | O_CREAT, 0600);
        memcpy(header + 16, k.id, sizeof k.id);
        memcpy(header + 24, id, sizeof id);
        quiet = true;
    }
    if (!size)
        return 0;
    const uint8_t how = *data++;
    size--;
    const unsigned char version = how & OLD ? 1 : 2;
    header[8] = version;
    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0 ||
        (how & SEALED
             ? !write_pieces(fd, &k, header, data, size, !(how & UNENDED))
             : write(fd, data, size) != (ssize_t)size))
        return 0;
    struct seen seen = { 0 };
    const struct opened to = { take_head, take_text, &seen };
    if (document_open(&k, folder, id, &to)) {
        assert(how & SEALED && !(how & UNENDED) && seen.heads == 1);
        assert(size > INSIDE(version)); /* the first byte is the length */
        assert(seen.name_bytes == get_le(data + 1, 4));
        assert(seen.text_bytes == get_le(data + 5, 8));
        assert(seen.number == (version == 1 ? 0 : get_le(data + 13, 8)));
    }
    return 0;
}

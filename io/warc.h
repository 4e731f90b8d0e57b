/*
 * warc.h - records of WARC files, which web crawlers write
 *
 *     WARC/1.0                                       a record
 *     WARC-Type: response
 *     WARC-Record-ID: <urn:uuid:...>
 *     Content-Type: application/http; msgtype=response
 *     Content-Length: 4711
 *
 *     HTTP/1.1 200 OK                                its content, 4711 bytes
 *     Content-Type: text/html; charset=utf-8
 *
 *     <!DOCTYPE html> ...
 *                                                    two ends of lines
 *
 * Most files are compressed, each record as a member of gzip by itself, so that
 * a record can be taken out, or left out, without touching its neighbours. Such
 * a file is read as it is, and the members are unpacked here. Any other way to
 * compress a file is undone by whoever reads it (source.h).
 *
 * A record is a document if it has the text of a page: a response to a request
 * that went well (status 2xx), or a conversion, as files of texts made from
 * pages have them, whose type is text/html, application/xhtml+xml or
 * text/plain.
 */
#ifndef BLY_IO_WARC_H
#define BLY_IO_WARC_H

#include <bloomery.h>

#include "io/input.h"

/* Records in a block, in their order. */
struct warc_block {
    struct warc_record {
        size_t from, to; /* in the block, as in the file */
        size_t at, len;  /* of a document: in the block, or in `plain` */
        bool document;
    } * records;
    size_t n, room;
    size_t ndocuments;
    uint64_t unpacked;   /* bytes of all records */
    size_t parsed;       /* of the block: behind the last record */
    struct block *plain; /* of documents that were packed */
    const char *why;     /* what is wrong behind that; NULL: nothing */
};

/* Parse the records of b that are whole, from `parsed` on; members: each is a
 * member of gzip. A document has up to `most` bytes; a longer record is none.
 * Behind the last whole record, or 0. False: no memory. */
bool warc_parse(struct block *b, bool members, uint64_t most, size_t *end);

/* Before the next bytes are read into it. False: no memory. */
bool warc_begin(struct block *b);
void warc_free(struct warc_block *w);

/* Is each record of a file a member of gzip? Looks at its first record. */
bool warc_in_members(const char *path);

/* Is it a WARC file, by how it begins when it is unpacked, or by its name? */
bool warc_file(const char *path);

/* The value of a field in the header of a record, or of HTTP. */
bly_bytes warc_field(const char *head, size_t n, const char *name);

/* The text of a document. Zero is empty. */
struct warc_text {
    struct block chunks, plain;
    const char *at;
    size_t len;
    bool html;
    char charset[40]; /* of its header; "": none */
};

/* What stands in a document, chunks put together and unpacked, up to `most`
 * bytes. NULL, or why there is none. */
const char *warc_text(struct warc_text *t, const char *record, size_t n,
                      uint64_t most);
void warc_text_free(struct warc_text *t);

/* Give the records of b from byte `from` to byte `to`, all of them or
 * none, packed as members or plain. False: no memory, or `put` said so. */
bool warc_put(const struct block *b, bool members, bool packed, size_t from,
              size_t to, bool (*put)(void *ctx, const void *bytes, size_t n),
              void *ctx);

#endif

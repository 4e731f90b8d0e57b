/*
 * streams.h - many streams of records in one file without a name
 *
 * What does not fit into memory goes to one scratch file, which has no name
 * and is gone with the process, however that ends. A stream gathers some
 * kilobytes and appends them to the file; where they lie is kept in memory.
 */
#ifndef BLY_JOIN_STREAMS_H
#define BLY_JOIN_STREAMS_H

#include <bloomery.h>

struct scratch {
    const char *folder;
    int fd;        /* -1: not made yet */
    uint64_t end;  /* of the file */
    size_t buffer; /* bytes that a stream gathers */
    int error;     /* errno of what went wrong; 0: nothing has */
};

/* Zero is empty. */
struct stream {
    struct extent {
        uint64_t at, n;
    } * extents;
    size_t n, room;
    char *buf;
    size_t len;
    uint64_t nrecords;
};

/* What stands before the bytes of a record: a key and what follows it. */
struct stream_record {
    uint64_t number; /* of the row, in the order of the result */
    uint64_t hash;
    uint32_t nkey, nrest;
};

/* Append a record. False: s->error says why. */
bool stream_add(struct scratch *s, struct stream *to,
                const struct stream_record *r, const void *key,
                const void *rest);

/* Send what was gathered, and give its memory back. */
bool stream_flush(struct scratch *s, struct stream *to);
void stream_free(struct stream *s);

struct stream_reader {
    struct scratch *scratch;
    const struct stream *of;
    size_t extent; /* that is read */
    uint64_t done; /* bytes of it */
    char *buf;
    size_t at, len, room;
};

/* Read a stream that was flushed from its beginning, room bytes at a time. */
bool reader_open(struct stream_reader *r, struct scratch *s,
                 const struct stream *of, size_t room);

/* n bytes, n > 0; false: the end, or s->error. */
bool reader_get(struct stream_reader *r, void *to, size_t n);
void reader_close(struct stream_reader *r);

#endif

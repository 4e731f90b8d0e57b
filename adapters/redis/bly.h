/*
 * bly.h - what the files of BLY.* share
 */
#ifndef BLY_REDIS_BLY_H
#define BLY_REDIS_BLY_H

#include "adapters/redis/redis_module.h"

/* A file, and how many of its bytes are here. */
typedef struct held_file {
    uint64_t nbytes, nhere;
    _Atomic unsigned others; /* who have it besides a key */
    unsigned char at[];
} held_file;

/* What a key holds: a filter, or a file that is coming. */
typedef struct held_filter {
    bly_filter *f; /* NULL while a file is coming */

    /* One that is coming, or that of f, which takes long to code and is kept
     * while it is exported. NULL: none. */
    held_file *file;

    bool exported; /* its first piece was sent, and it is the same since */
} held_filter;

extern server_type *bly_type;

/* Register the type; SERVER_OK or SERVER_ERR. */
int bly_type_start(server_ctx *ctx);

/* Where keys of BLY.* have their memory from; INFO tells how much. */
extern const bly_mem bly_memory;

/* A value around a filter, which it owns; NULL, and the filter is gone. One
 * with room for a file, NULL without memory; and the filter that it became. */
held_filter *held_new(bly_filter *f);
held_filter *held_expect(uint64_t nbytes);
void held_arrived(held_filter *h, bly_filter *f);
void held_free(void *value);

/* A file is not needed here any more. It goes with the last who has it. */
void file_drop(held_file *file);

/* Keep the file of its filter, all of which is here; the filter changes: it is
 * not kept any longer. */
void held_keep(held_filter *h, held_file *file);
void held_stale(held_filter *h);

/* A file of which another thread makes a copy is not that of h any longer. */
void export_forget(const held_filter *h);

/* Bytes of a file that go out, or into a dump, at once. */
#define EXPORT_PIECE ((size_t)1 << 20)

/* The filter in a key, which is told the time; NULL, and an error was sent, if
 * there is none. */
bly_filter *bly_to_use(server_ctx *ctx, server_string *name, int mode,
                       server_key **key);

/* The same, of a key that was opened to be written to, when all is done: the
 * limit of its memory was for that command alone. */
void bly_close(server_key *key);

/* Is it keyed with a secret that is not here? Then an error was sent. */
bool bly_is_locked(server_ctx *ctx, bly_filter *f);

/* BLY_CAN() of a filter's kind. */
bool filter_can(const bly_filter *f, uint32_t ability);

/* Bytes that a key may take, 0 for any number: what a primary has allowed is
 * not asked again. */
uint64_t limit_of_keys(server_ctx *ctx);

/* Tell a filter the time, if it cares; replicate what it was told; replicate a
 * command that changed it, after the time. */
void tick_now(server_ctx *ctx, bly_filter *f);
void tell_time(server_ctx *ctx, const bly_filter *f, server_string *name);
void bly_changed(server_ctx *ctx, const bly_filter *f, server_string *name,
                 const char *event);

/* The library's last error. A count or a value, as an integer where that holds
 * it. */
int reply_library(server_ctx *ctx);
void reply_unsigned(server_ctx *ctx, uint64_t value);

/* Items: bly_items.c. Whole filters: bly_whole.c. Files: bly_file.c,
 * bly_export.c, bly_import.c. */
int bly_add_command(server_ctx *ctx, server_string **argv, int argc);
int bly_hashed_command(server_ctx *ctx, server_string **argv, int argc);
int bly_has_command(server_ctx *ctx, server_string **argv, int argc);
int bly_hasrange_command(server_ctx *ctx, server_string **argv, int argc);
int bly_remove_command(server_ctx *ctx, server_string **argv, int argc);
int bly_count_command(server_ctx *ctx, server_string **argv, int argc);
int bly_get_command(server_ctx *ctx, server_string **argv, int argc);
int bly_tick_command(server_ctx *ctx, server_string **argv, int argc);
int bly_merge_command(server_ctx *ctx, server_string **argv, int argc);
int bly_resize_command(server_ctx *ctx, server_string **argv, int argc);
int bly_compare_command(server_ctx *ctx, server_string **argv, int argc);
int bly_info_command(server_ctx *ctx, server_string **argv, int argc);
int bly_export(server_ctx *ctx, server_string **argv, int argc);
int bly_import(server_ctx *ctx, server_string **argv, int argc);

#endif

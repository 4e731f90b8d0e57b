/*
 * test_ring_state.c - what a ring keeps, without sockets: the store of a node,
 * and the names that several processes agree on
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/node/names.h"
#include "wire/runtime.h"
#include "chord/chord_record.h"
#include "io/hex.h"
#include "io/digests.h"
#include "support.h"

/* ---------------------------------------------------------------- the store */

static char *fresh_folder(void)
{
    char *const path = strdup("/tmp/bly-ring-state-XXXXXX");
    assert_non_null(path);
    assert_non_null(mkdtemp(path));
    return path;
}

static void remove_folder(char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", path);
    assert_int_equal(system(command), 0);
    free(path);
}

static void record_file(const char *folder, const struct stored *r, char *out,
                        size_t n)
{
    char hex[2 * STORE_DIGEST + 1];
    hex_put(r->digest, STORE_DIGEST, hex);
    hex[2 * STORE_DIGEST] = '\0';
    snprintf(out, n, "%s/%.2s/%s", folder, hex, hex);
}

static struct stored a_block(const char *text)
{
    struct stored r = { .counter = 1, .nbytes = (uint32_t)strlen(text) };
    sum_sha256(text, strlen(text), r.digest);
    return r;
}

static void damage(const char *folder, const struct stored *r)
{
    char path[256];
    unsigned char byte;
    record_file(folder, r, path, sizeof path);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, 48), 1);
    byte ^= 0x40;
    assert_int_equal(pwrite(fd, &byte, 1, 48), 1);
    close(fd);
}

/* Too many open files say nothing about a record: it is there again when the
 * trouble is over. */
static void trouble_forgets_nothing(void **state)
{
    char *const folder = fresh_folder();
    struct store *const s = store_open(folder);
    const struct stored r = a_block("a block"), new = a_block("another");
    struct stored got;
    struct rlimit limit;
    unsigned char *data = NULL;
    (void)state;
    assert_non_null(s);
    assert_int_equal(store_put(s, &r, "a block"), STORE_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = { 0, limit.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const enum store_result read = store_get(s, r.digest, &got, &data);
    const enum store_result again = store_put(s, &r, "a block");
    const enum store_result kept = store_put(s, &new, "another");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(read, STORE_NOT_NOW);
    assert_int_equal(again, STORE_NOT_NOW);
    assert_true(kept == STORE_NOT_NOW || kept == STORE_BROKEN);
    assert_int_equal(store_counts(s).records, 1);
    assert_int_equal(store_get(s, r.digest, &got, &data), STORE_OK);
    assert_memory_equal(data, "a block", 7);
    free(data);
    assert_int_equal(store_get(s, new.digest, &got, NULL), STORE_NONE);
    store_close(s);
    remove_folder(folder);
}

/* What a put claims is read: over a damaged or missing file it is written. */
static void puts_over_damage(void **state)
{
    char *const folder = fresh_folder();
    struct store *s = store_open(folder);
    const struct stored r = a_block("some bytes");
    struct stored got, list[4];
    unsigned char *data = NULL;
    char path[256];
    (void)state;
    assert_int_equal(store_put(s, &r, "some bytes"), STORE_OK);
    for (unsigned how = 0; how < 3; how++) {
        record_file(folder, &r, path, sizeof path);
        if (how == 0)
            damage(folder, &r);
        else if (how == 1)
            assert_int_equal(unlink(path), 0);
        else
            assert_int_equal(truncate(path, 20), 0);
        if (how == 2) { /* from the start, too */
            store_close(s);
            s = store_open(folder);
            assert_non_null(s);
        }
        data = NULL;
        assert_int_equal(store_get(s, r.digest, &got, &data), STORE_DAMAGED);
        assert_null(data);
        /* Others are asked for it. */
        assert_int_equal(
            store_list(s, STORE_BLOCKS, UINT64_MAX, UINT64_MAX, NULL, list, 4),
            0);
        assert_int_equal(store_put(s, &r, "some bytes"), STORE_OK);
        assert_int_equal(store_get(s, r.digest, &got, &data), STORE_OK);
        assert_memory_equal(data, "some bytes", 10);
        free(data);
    }
    store_close(s);
    remove_folder(folder);
}

static void scrubs_slowly(void **state)
{
    char *const folder = fresh_folder();
    struct store *const s = store_open(folder);
    unsigned char at[STORE_DIGEST] = { 0 };
    struct stored r[20];
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        char text[32];
        snprintf(text, sizeof text, "block number %u", i);
        r[i] = a_block(text);
        assert_int_equal(store_put(s, &r[i], text), STORE_OK);
    }
    damage(folder, &r[7]);
    damage(folder, &r[13]);
    size_t read = 0;
    for (unsigned turns = 0; turns < 40; turns++)
        read += store_scrub(s, at, 60); /* one record, or the end */
    assert_true(read >= 20);
    assert_int_equal(store_counts(s).damaged, 2);
    assert_int_equal(store_counts(s).records, 20);
    store_close(s);
    remove_folder(folder);
}

static void folders_come_and_go(void **state)
{
    char *const folder = fresh_folder();
    struct store *const s = store_open(folder);
    const struct stored r = a_block("x");
    char path[256];
    (void)state;
    record_file(folder, &r, path, sizeof path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(store_put(s, &r, "x"), STORE_OK);
    assert_int_equal(access(path, F_OK), 0);
    /* Whoever has put it meanwhile keeps it. */
    const uint64_t put = store_touched(s, r.digest);
    assert_false(store_drop_idle(s, r.digest, put));
    assert_true(store_drop_idle(s, r.digest, put + 1));
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(store_put(s, &r, "x"), STORE_OK);
    store_close(s);
    remove_folder(folder);
}

/* A record as the first version of this store wrote it. */
static void reads_old_folders(void **state)
{
    char *const folder = fresh_folder();
    char path[256];
    (void)state;
    static const unsigned char old[48 + 3] =
        "blykeep1\0\0\0\0\3\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0\x00\x00\x00\x00"
        "abc";
    unsigned char bytes[sizeof old];
    struct stored r = a_block("abc"), got;
    unsigned char *data = NULL;
    memcpy(bytes, old, sizeof old);
    memmove(bytes + 48, "abc", 3);
    const uint32_t sum = frame_crc(frame_crc(0, bytes, 44), "abc", 3);
    for (unsigned i = 0; i < 4; i++)
        bytes[44 + i] = (unsigned char)(sum >> 8 * i);
    record_file(folder, &r, path, sizeof path);
    char *const slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(mkdir(path, 0777), 0);
    *slash = '/';
    FILE *const f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, f), sizeof bytes);
    fclose(f);
    struct store *const s = store_open(folder);
    assert_non_null(s);
    assert_int_equal(store_get(s, r.digest, &got, &data), STORE_OK);
    assert_memory_equal(data, "abc", 3);
    free(data);
    store_close(s);
    remove_folder(folder);
}

/* ---------------------------------------------------------------- the names */

#define MOST 12
#define KEPT 16

struct kept {
    bool used;
    struct stored r;
    unsigned char data[64];
};

static struct process {
    struct names m;
    bool up;
    bool alone; /* it hears nobody, and nobody hears it */
    unsigned side;
    struct kept kept[KEPT];
    unsigned char *saved;
    size_t nsaved;
    unsigned char answer[1 << 16];
    bool no_disk;
} processes[MOST];
static unsigned nprocesses;
static uint64_t now_ms;

static struct process *process_at(const struct address *a)
{
    return a->port > 7000 && a->port <= 7000 + nprocesses
               ? &processes[a->port - 7001]
               : NULL;
}

/* A client is on side 0, and asks as process NULL. */
static enum frame_error direct_ask(void *by, const struct address *to,
                                   uint8_t type, struct blob *q,
                                   struct frame *f)
{
    struct process *const from = by, *const at = process_at(to);
    struct blob out = { 0 };
    const char *text = NULL;
    if (!at || !at->up || (from && !from->up) ||
        at->side != (from ? from->side : 0))
        return FRAME_REFUSED;
    enum frame_error e = names_serve(&at->m, at, type, q->at + FRAME_HEAD,
                                     q->n - FRAME_HEAD, &out, &text);
    /* One answer per process at a time is enough here: the asker's. */
    struct process *const room = from ? from : &processes[0];
    assert_true(out.failed || out.n - FRAME_HEAD <= sizeof room->answer);
    if (!e) {
        memcpy(room->answer, out.at + FRAME_HEAD, out.n - FRAME_HEAD);
        *f = (struct frame){ .type = type,
                             .body = room->answer,
                             .nbody = out.n - FRAME_HEAD };
    }
    blob_free(&out);
    return e;
}

static bool memory_save(void *ctx, const void *bytes, size_t n)
{
    struct process *const p = ctx;
    if (p->no_disk)
        return false;
    free(p->saved);
    p->saved = malloc(n);
    assert_non_null(p->saved);
    memcpy(p->saved, bytes, n);
    p->nsaved = n;
    return true;
}

static struct kept *memory_find(struct process *p, const unsigned char *digest)
{
    for (unsigned i = 0; i < KEPT; i++)
        if (p->kept[i].used &&
            memcmp(p->kept[i].r.digest, digest, STORE_DIGEST) == 0)
            return &p->kept[i];
    return NULL;
}

static enum store_result memory_get(void *ctx, const unsigned char *digest,
                                    struct stored *r, unsigned char **data)
{
    const struct kept *const k = memory_find(ctx, digest);
    if (!k)
        return STORE_NONE;
    *r = k->r;
    if (data) {
        *data = malloc(sizeof k->data);
        assert_non_null(*data);
        memcpy(*data, k->data, sizeof k->data);
    }
    return STORE_OK;
}

static enum store_result memory_put(void *ctx, const struct stored *r,
                                    const void *data)
{
    struct process *const p = ctx;
    struct kept *k = memory_find(p, r->digest);
    if (p->no_disk)
        return STORE_BROKEN;
    if (k && store_newer(&k->r, r))
        return STORE_STALE;
    for (unsigned i = 0; i < KEPT && !k; i++)
        if (!p->kept[i].used)
            k = &p->kept[i];
    assert_non_null(k);
    k->used = true;
    k->r = *r;
    memcpy(k->data, data, r->nbytes);
    return STORE_OK;
}

static void memory_drop(void *ctx, const unsigned char *digest)
{
    struct kept *const k = memory_find(ctx, digest);
    if (k)
        k->used = false;
}

static int by_digest_of(const void *x, const void *y)
{
    return memcmp(x, y, STORE_DIGEST);
}

static size_t memory_list(void *ctx, uint64_t a, uint64_t b,
                          const unsigned char *after, struct stored *out,
                          size_t most)
{
    struct process *const p = ctx;
    size_t n = 0;
    (void)after; /* all fit */
    for (unsigned i = 0; i < KEPT && n < most && !after; i++) {
        const uint64_t id = store_id(p->kept[i].r.digest);
        if (p->kept[i].used && (a == b || id == b || id - a - 1 < b - a - 1))
            out[n++] = p->kept[i].r;
    }
    qsort(out, n, sizeof *out, by_digest_of);
    return n;
}

static const struct names_host in_memory = { direct_ask,  memory_save,
                                             memory_get,  memory_put,
                                             memory_drop, memory_list,
                                             NULL,        NULL };

static struct roster_entry entry_of(unsigned i)
{
    struct roster_entry e = { 0, { 4, { 127, 0, 0, 1 }, 0 }, 1 };
    e.address.port = (uint16_t)(7001 + i);
    return e;
}

static void start_process(unsigned i, uint64_t seed)
{
    struct process *const p = &processes[i];
    const struct roster_entry self = entry_of(i);
    assert_true(names_init(&p->m, &in_memory, p, &self, 3, 0, seed));
    p->up = true;
    if (i >= nprocesses)
        nprocesses = i + 1;
}

static void ticks(unsigned n)
{
    struct address entries[MOST];
    for (unsigned i = 0; i < nprocesses; i++)
        entries[i] = entry_of(i).address;
    while (n-- > 0) {
        now_ms += 1000;
        for (unsigned i = 0; i < nprocesses; i++)
            if (processes[i].up)
                names_tick(&processes[i].m, &processes[i], entries, nprocesses,
                           now_ms, 3000);
        for (unsigned i = 0; i < nprocesses; i++)
            if (processes[i].up)
                names_settle(&processes[i].m, &processes[i]);
    }
}

static void start_ring(unsigned n)
{
    memset(processes, 0, sizeof processes);
    nprocesses = 0;
    now_ms = 1000000;
    start_process(0, 1000);
    assert_true(names_found(&processes[0].m));
    for (unsigned i = 1; i < n; i++)
        start_process(i, 1001 + 2 * i);
    ticks(8);
    for (unsigned i = 0; i < n; i++) {
        const struct names_state s = names_state(&processes[i].m);
        assert_true(s.in && s.ready);
        assert_int_equal(s.n, n);
    }
}

static void end_ring(void)
{
    for (unsigned i = 0; i < nprocesses; i++) {
        names_free(&processes[i].m);
        free(processes[i].saved);
    }
}

/* The record of a name whose value is a text. */
static void named_value(const char *name, const char *value, struct stored *r,
                        unsigned char data[64])
{
    const size_t n = strlen(name), v = value ? strlen(value) : 0;
    *r = (struct stored){ .writer = 77,
                          .flags = value ? STORE_IS_MANIFEST : STORE_IS_TOMB,
                          .nbytes = (uint32_t)(2 + n + v) };
    data[0] = (unsigned char)n;
    data[1] = 0;
    memcpy(data + 2, name, n);
    memcpy(data + 2 + n, value ? value : "", v);
    name_digest(name, n, r->digest);
}

static enum frame_error ask_one(unsigned at, uint8_t type, struct blob *q,
                                struct frame *f)
{
    const struct address to = entry_of(at).address;
    const enum frame_error e = direct_ask(NULL, &to, type, q, f);
    blob_free(q);
    return e;
}

/* The primary of a name as somebody who lives sees it. */
static unsigned primary_of(unsigned via, const char *name, unsigned holders[3])
{
    struct blob q = { 0 };
    struct frame f;
    unsigned char digest[STORE_DIGEST];
    struct roster_entry e;
    name_digest(name, strlen(name), digest);
    blob_start(&q);
    blob_number(&q, 0, 8);
    blob_bytes(&q, digest, sizeof digest);
    assert_int_equal(ask_one(via, NAMES_WHO, &q, &f), 0);
    struct body b = { f.body, f.nbody, false };
    body_number(&b, 8);
    body_number(&b, 8);
    const unsigned n = (unsigned)body_number(&b, 1);
    for (unsigned i = 0; i < n && i < 3; i++) {
        assert_true(roster_take_entry(&b, &e));
        holders[i] = (unsigned)e.address.port - 7001u;
    }
    return holders[0];
}

static unsigned somebody(void)
{
    unsigned i = 0;
    while (!processes[i].up || processes[i].side)
        i++;
    return i;
}

/* 0, the text in `value` ("" if it is removed), and its number. */
static enum frame_error read_name(const char *name, char value[64],
                                  uint64_t *counter)
{
    unsigned holders[3];
    struct blob q = { 0 };
    struct frame f;
    unsigned char digest[STORE_DIGEST];
    struct stored r;
    name_digest(name, strlen(name), digest);
    blob_start(&q);
    blob_number(&q, 0, 8);
    blob_bytes(&q, digest, sizeof digest);
    blob_number(&q, 1, 1);
    *counter = 0;
    value[0] = '\0';
    const enum frame_error e =
        ask_one(primary_of(somebody(), name, holders), NAMES_READ, &q, &f);
    if (e)
        return e;
    struct body b = { f.body, f.nbody, false };
    stored_take(&b, &r);
    *counter = r.counter;
    const size_t skip = 2 + strlen(name);
    if (!(r.flags & STORE_IS_TOMB)) {
        memcpy(value, b.at + skip, b.n - skip);
        value[b.n - skip] = '\0';
    }
    return (enum frame_error)0;
}

static enum frame_error write_name(const char *name, const char *value,
                                   uint64_t before)
{
    unsigned holders[3];
    unsigned char data[64];
    struct stored r;
    struct blob q = { 0 };
    struct frame f;
    named_value(name, value, &r, data);
    blob_start(&q);
    blob_number(&q, 0, 8);
    blob_number(&q, before, 8);
    stored_put(&q, &r);
    blob_bytes(&q, data, r.nbytes);
    return ask_one(primary_of(somebody(), name, holders), NAMES_WRITE, &q, &f);
}

/* As a client does: read, then write. */
static enum frame_error put_name(const char *name, const char *value)
{
    char old[64];
    uint64_t counter;
    const enum frame_error e = read_name(name, old, &counter);
    return e && e != FRAME_NOT_FOUND ? e : write_name(name, value, counter);
}

static void assert_value(const char *name, const char *value)
{
    char got[64];
    uint64_t counter;
    assert_int_equal(read_name(name, got, &counter), 0);
    assert_string_equal(got, value);
}

/* The first row of what was found: stop the owner and its successor, write, let
 * them go on, and write at once. */
static void stopped_owners_lose_nothing(void **state)
{
    (void)state;
    for (unsigned stops = 1; stops <= 3; stops++) {
        unsigned holders[3];
        start_ring(10);
        assert_int_equal(put_name("name", "v0"), 0);
        primary_of(0, "name", holders);
        for (unsigned i = 0; i < stops; i++)
            processes[holders[i]].up = false;
        /* Nobody acknowledges what not all who keep it have. */
        char value[64];
        uint64_t counter;
        unsigned three[3];
        const unsigned via = primary_of(somebody(), "name", three);
        if (processes[via].up)
            assert_int_equal(write_name("name", "v1", 1), FRAME_BUSY);
        ticks(8);
        const bool some = stops < 3;
        /* With all three away nobody knows what was there last. */
        const char *last = "v0";
        for (unsigned v = 2; v <= 5; v++) {
            char text[8];
            snprintf(text, sizeof text, "v%u", v);
            const enum frame_error e = put_name("name", text);
            assert_int_equal(!e, some);
            if (!e)
                last = v == 5 ? "v5" : last;
        }
        if (some) {
            assert_value("name", "v5");
            assert_string_equal(last, "v5");
        } else {
            assert_int_equal(read_name("name", value, &counter), FRAME_BUSY);
        }
        /* They go on where they stopped, and are asked at once. */
        for (unsigned i = 0; i < stops; i++)
            processes[holders[i]].up = true;
        struct blob q = { 0 };
        struct frame f;
        unsigned char digest[STORE_DIGEST];
        name_digest("name", 4, digest);
        blob_start(&q);
        blob_number(&q, 0, 8);
        blob_bytes(&q, digest, sizeof digest);
        blob_number(&q, 1, 1);
        const enum frame_error old = ask_one(holders[0], NAMES_READ, &q, &f);
        assert_int_equal(old == 0, !some); /* three of three are a whole */
        for (unsigned t = 0; t < 12 && put_name("name", "v10"); t++)
            ticks(1);
        assert_value("name", "v10");
        ticks(10);
        assert_value("name", "v10");
        for (unsigned i = 0; i < nprocesses; i++)
            names_strays(&processes[i].m, &processes[i]);
        unsigned copies = 0;
        for (unsigned i = 0; i < nprocesses; i++)
            copies += memory_find(&processes[i], digest) != NULL;
        assert_int_equal(copies, 3);
        end_ring();
    }
}

/* A side with fewer than half of the processes acknowledges nothing that the
 * other does not see, and tells nothing old. */
static void minority_refuses(void **state)
{
    unsigned holders[3];
    char value[64];
    uint64_t counter;
    (void)state;
    start_ring(9);
    assert_int_equal(put_name("name", "before"), 0);
    primary_of(0, "name", holders);
    /* The client is on side 0, with all holders and one more. */
    for (unsigned i = 0; i < 9; i++)
        processes[i].side = 1;
    for (unsigned i = 0; i < 3; i++)
        processes[holders[i]].side = 0;
    assert_value("name", "before"); /* nobody else can know anything newer */
    assert_int_equal(put_name("name", "after"), 0);
    assert_value("name", "after");
    ticks(10);
    /* The others have left them out, and one was told so before it was cut
     * off: it answers no more. */
    processes[holders[2]].side = 1;
    ticks(10);
    assert_true(names_alone(&processes[holders[0]].m));
    processes[holders[2]].side = 0;
    assert_int_not_equal(put_name("name", "lost"), 0);
    assert_int_not_equal(read_name("name", value, &counter), 0);
    for (unsigned i = 0; i < 9; i++)
        processes[i].side = 0;
    ticks(12);
    assert_false(names_alone(&processes[holders[0]].m));
    assert_value("name", "after");
    end_ring();
}

/* A name that was removed does not come back with a node that was away, however
 * long, and though nobody remembers the removal. */
static void removed_names_stay_removed(void **state)
{
    unsigned holders[3];
    unsigned char digest[STORE_DIGEST];
    char value[64];
    uint64_t counter;
    (void)state;
    start_ring(6);
    name_digest("name", 4, digest);
    assert_int_equal(put_name("name", "here"), 0);
    primary_of(0, "name", holders);
    processes[holders[1]].up = false;
    ticks(8);
    assert_int_equal(put_name("name", NULL), 0);
    assert_value("name", "");
    /* The tombstones' time has come. */
    for (unsigned i = 0; i < 6; i++)
        if (i != holders[1])
            memory_drop(&processes[i], digest);
    assert_non_null(memory_find(&processes[holders[1]], digest));
    processes[holders[1]].up = true;
    ticks(12);
    assert_int_equal(read_name("name", value, &counter), FRAME_NOT_FOUND);
    assert_null(memory_find(&processes[holders[1]], digest));
    /* Nor does it win against a new one, whose numbers begin again. */
    end_ring();
}

static void counters_end(void **state)
{
    (void)state;
    start_ring(3);
    assert_int_equal(write_name("name", "x", UINT64_MAX), FRAME_STALE);
    assert_int_equal(write_name("name", "x", UINT64_MAX - 1), FRAME_WRONG);
    assert_int_equal(write_name("name", "x", 5), FRAME_STALE);
    assert_int_equal(write_name("name", "x", 0), 0);
    end_ring();
}

static void enough_copies_or_none(void **state)
{
    (void)state;
    start_ring(1);
    assert_int_equal(put_name("name", "one"), 0); /* of one process */
    processes[0].m.least = 2;
    assert_int_equal(put_name("name", "two"), FRAME_NOT_SOON);
    assert_value("name", "one");
    end_ring();
    start_ring(5);
    for (unsigned i = 1; i < 5; i++)
        processes[i].up = false;
    ticks(2); /* perhaps they are only slow */
    assert_false(names_alone(&processes[0].m));
    ticks(18);
    assert_int_equal(names_state(&processes[0].m).n, 5); /* no majority */
    assert_true(names_alone(&processes[0].m));
    for (unsigned i = 0; i < 8; i++) {
        char name[8];
        unsigned holders[3];
        snprintf(name, sizeof name, "n%u", i);
        if (primary_of(0, name, holders) == 0)
            assert_int_equal(put_name(name, "x"), FRAME_NOT_SOON);
    }
    for (unsigned i = 1; i < 5; i++)
        processes[i].up = true;
    ticks(8);
    assert_false(names_alone(&processes[0].m));
    assert_int_equal(put_name("name", "x"), 0);
    end_ring();
}

/* The same write again, since its answer was lost: once is enough. */
static void writes_take_effect_once(void **state)
{
    char value[64];
    uint64_t counter;
    (void)state;
    start_ring(4);
    assert_int_equal(write_name("name", "a", 0), 0);
    assert_int_equal(write_name("name", "a", 0), 0);
    assert_int_equal(read_name("name", value, &counter), 0);
    assert_int_equal(counter, 1);
    assert_int_equal(write_name("name", "b", 1), 0);
    assert_int_equal(write_name("name", "a", 0), FRAME_STALE);
    assert_value("name", "b");
    end_ring();
}

/* Two neighbours go with all that they had; what one holder has is kept. */
static void one_holder_is_enough(void **state)
{
    unsigned holders[3];
    (void)state;
    start_ring(7);
    assert_int_equal(put_name("name", "kept"), 0);
    primary_of(0, "name", holders);
    for (unsigned i = 0; i < 2; i++) {
        struct process *const p = &processes[holders[i]];
        p->up = false;
        names_free(&p->m);
        free(p->saved);
        memset(p, 0, sizeof *p);
        /* Freed once more at the end. */
        start_process(holders[i], 5000 + 2 * i);
        p->up = false;
    }
    ticks(10);
    assert_value("name", "kept");
    /* Others at their addresses, with nothing. */
    processes[holders[0]].up = processes[holders[1]].up = true;
    ticks(10);
    assert_value("name", "kept");
    assert_int_equal(names_state(&processes[holders[0]].m).n, 7);
    end_ring();
}

/* A part that was cut off, and is not any more, proposes what it saw: those who
 * vote for it live, and stay. */
static void the_living_stay(void **state)
{
    (void)state;
    start_ring(6);
    struct roster *const wanted = calloc(1, sizeof *wanted);
    assert_non_null(wanted);
    assert_true(names_roster(&processes[0].m, wanted));
    wanted->epoch++;
    for (unsigned i = 1; i < 5; i++)
        roster_drop(wanted, processes[i].m.self.who);
    names_propose(&processes[0].m, &processes[0], wanted, NULL, 0);
    ticks(3);
    assert_true(names_state(&processes[0].m).n >= 4);
    free(wanted);
    end_ring();
}

/* A process that starts again with its folder goes on where it was. */
static void restarts_from_what_it_saved(void **state)
{
    (void)state;
    start_ring(5);
    assert_int_equal(put_name("name", "v"), 0);
    for (unsigned i = 0; i < 5; i++) {
        struct process *const p = &processes[i];
        const struct roster_entry self = entry_of(i);
        const uint64_t who = p->m.self.who;
        names_free(&p->m);
        assert_true(names_init(&p->m, &in_memory, p, &self, 3, 0, 9));
        assert_null(names_load(&p->m, p->saved, p->nsaved));
        assert_int_equal(p->m.self.who, who);
        assert_true(names_state(&p->m).ready);
        /* Shorter or changed, it is refused. */
        struct names other;
        for (size_t n = 0; n < p->nsaved; n += 7) {
            assert_true(names_init(&other, &in_memory, p, &self, 3, 0, 9));
            assert_non_null(names_load(&other, p->saved, n));
            names_free(&other);
        }
    }
    assert_value("name", "v");
    end_ring();
}

/* A vote that is not on disk is none, and a full disk changes nothing. */
static void full_disks_change_nothing(void **state)
{
    (void)state;
    start_ring(4);
    assert_int_equal(put_name("name", "v"), 0);
    for (unsigned i = 0; i < 4; i++)
        processes[i].no_disk = true;
    const uint64_t epoch = names_state(&processes[0].m).epoch;
    assert_int_equal(put_name("name", "w"), FRAME_FULL);
    start_process(4, 1100);
    processes[4].no_disk = true;
    ticks(5);
    assert_int_equal(names_state(&processes[0].m).epoch, epoch);
    assert_value("name", "v");
    for (unsigned i = 0; i < 5; i++)
        processes[i].no_disk = false;
    ticks(8);
    assert_int_equal(names_state(&processes[4].m).n, 5);
    assert_value("name", "v");
    end_ring();
}

static void leaves_when_others_have_it(void **state)
{
    unsigned holders[3];
    (void)state;
    start_ring(5);
    assert_int_equal(put_name("name", "v"), 0);
    primary_of(0, "name", holders);
    struct process *const p = &processes[holders[0]];
    unsigned turns = 0;
    while (!names_leave(&p->m, p) && turns++ < 20)
        ticks(1);
    assert_true(turns < 20);
    p->up = false;
    assert_value("name", "v");
    assert_int_equal(names_state(&processes[somebody()].m).n, 4);
    end_ring();
}

/* Whatever comes: no crash, and nothing is taken that no honest process says.
 */
static void takes_nothing_from_strangers(void **state)
{
    uint64_t random = 1;
    (void)state;
    start_ring(3);
    assert_int_equal(put_name("name", "v"), 0);
    const uint64_t epoch = names_state(&processes[1].m).epoch;
    for (unsigned i = 0; i < 20000; i++) {
        unsigned char body[200];
        struct blob out = { 0 };
        const char *text = "";
        const uint8_t type = (uint8_t)(NAMES_WHO + test_random(&random) %
                                                       (NAMES_END - NAMES_WHO));
        const size_t n = (size_t)(test_random(&random) % sizeof body);
        for (size_t k = 0; k < n; k++)
            body[k] = (unsigned char)test_random(&random);
        if (n >= 8 && i % 2) /* past the lineage */
            memcpy(body, &processes[1].m.lineage, 8);
        if (type != NAMES_LEARN && type != NAMES_ADMIT && type != NAMES_VOTE)
            names_serve(&processes[1].m, &processes[1], type, body, n, &out,
                        &text);
        blob_free(&out);
    }
    assert_int_equal(names_state(&processes[1].m).epoch, epoch);
    assert_value("name", "v");
    end_ring();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trouble_forgets_nothing),
        cmocka_unit_test(puts_over_damage),
        cmocka_unit_test(scrubs_slowly),
        cmocka_unit_test(folders_come_and_go),
        cmocka_unit_test(reads_old_folders),
        cmocka_unit_test(stopped_owners_lose_nothing),
        cmocka_unit_test(minority_refuses),
        cmocka_unit_test(removed_names_stay_removed),
        cmocka_unit_test(counters_end),
        cmocka_unit_test(enough_copies_or_none),
        cmocka_unit_test(writes_take_effect_once),
        cmocka_unit_test(one_holder_is_enough),
        cmocka_unit_test(the_living_stay),
        cmocka_unit_test(restarts_from_what_it_saved),
        cmocka_unit_test(full_disks_change_nothing),
        cmocka_unit_test(leaves_when_others_have_it),
        cmocka_unit_test(takes_nothing_from_strangers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * format.h - what a foreign format is: a table row
 *
 * A format describes itself as a kind does: its name, its options, and a
 * function for each thing it can do; a NULL is a thing it cannot do. What they
 * have in common is done once, in foreign.c: recognising, turning the text of
 * a key into bytes, asking part by part, counting bits, keeping hashes until
 * the number of keys is known.
 *
 * Nearly every format is arrays of bits in which a key names k positions:
 *
 *     text --keys--> bytes --hash()--> h[0..3] --positions()--> k bits of a
 *                                                               part
 *
 * so a row says how to find its parts, how to hash and how to place.
 *
 * Adding a format: src/foreign/NAME.c, one row X(NAME) in BLY_FORMATS below, a
 * section in docs/formats.md, a test. The fuzzer walks the table.
 *
 * Bytes come from anywhere. open() checks all that the others rely on: after it
 * no function may read outside, run for ever, or ask for memory that the file
 * does not justify.
 */
#ifndef BLY_FOREIGN_FORMAT_H
#define BLY_FOREIGN_FORMAT_H

#include <string.h>

#include <bloomery/foreign.h>

#include "core/bytes.h"
#include "core/memory.h"
#include "core/status.h"
#include "host/foreign_host.h"
#include "kinds/kind.h" /* bly_facts */

#define BLY_FOREIGN_MAX_K 255
#define BLY_FOREIGN_MAX_BITS 0x1p50 /* of one that is made */
#define BLY_FOREIGN_WORDS 4         /* of a key's hash */
#define BLY_CROWD 128               /* keys that are worked on together */

/* How the bits of an array lie in bytes: bit i is bit i % 8 of the byte i / 8,
 * exclusive-or this. */
typedef enum bly_bit_order {
    BLY_LSB_FIRST = 0,  /* little-endian words of any size */
    BLY_BE_WORDS32 = 3, /* big-endian words of 32 bits */
    BLY_BE_WORDS = 7    /* big-endian words of 64 bits */
} bly_bit_order;

/* One filter of a file. open() has checked that bytes holds nbits, in whole
 * words where they are BLY_BE_WORDS. */
typedef struct bly_foreign_part {
    const unsigned char *bytes; /* NULL: no array of bits, whatever nbits is */
    uint64_t nbits;
    uint32_t k; /* 1 to BLY_FOREIGN_MAX_K; 0: it says maybe to all */
    bly_bit_order order;
    bool excludes_all;  /* empty by decree: it has no key, whatever its bits */
    uint64_t items;     /* as it says; UINT64_MAX: it does not */
    uint64_t capacity;  /* 0: it does not say */
    double fpr_planned; /* NAN: it does not say */
} bly_foreign_part;

/* A key on its way: its bytes, in the form that is hashed, and its hash. */
typedef struct bly_foreign_key {
    const unsigned char *bytes;
    size_t len;
    union {
        uint64_t h[BLY_FOREIGN_WORDS];
        uint32_t rows[2 * BLY_FOREIGN_WORDS]; /* of sketches */
    };
} bly_foreign_key;

/* Bytes for an encoded key that text does not hold as it is; grows. */
typedef struct bly_scratch {
    unsigned char *at;
    size_t room;
    const bly_mem *mem;
} bly_scratch;

/* At least n bytes, or NULL. */
unsigned char *bly_scratch_need(bly_scratch *s, size_t n);

/* What the text of a key means. Bytes of the numbers are little-endian. The
 * words are the choices of an option `keys`. */
typedef enum bly_key_form {
    BLY_KEY_BYTES,    /* "bytes": as they are */
    BLY_KEY_HEX,      /* "hex": two digits a byte */
    BLY_KEY_UTF16,    /* "utf16": UTF-8 to UTF-16, little-endian, no mark */
    BLY_KEY_INT32,    /* "int32", from -2^31 to 2^32 - 1 */
    BLY_KEY_INT64,    /* "int64", from -2^63 to 2^64 - 1 */
    BLY_KEY_INT32_BE, /* "int32be": the same, big-endian */
    BLY_KEY_INT64_BE, /* "int64be" */
    BLY_KEY_DOUBLE    /* "double" */
} bly_key_form;

/* The bytes of text in a form; BLY_EINVAL, naming what would be right. */
bly_status bly_key_encode(bly_key_form form, bly_bytes text, bly_scratch *s,
                          bly_foreign_key *out);

/* The form of a word, false where it is none. */
bool bly_key_form_named(const char *word, bly_key_form *out);

/* What a filter is made or opened with. One that changes does without it when
 * it is whole. */
typedef struct bly_foreign_more {
    const char *option[BLY_FORMAT_MAX_OPTIONS]; /* by row; copied, or default */

    const unsigned char *bytes; /* an opened one's; NULL: it was made */
    size_t nbytes;
    bly_foreign_part one; /* where it has one part: open() or plan() fills it */
    size_t own_bytes;     /* released by foreign.c where close is NULL */

    uint64_t max_bytes;

    /* Made ones: */
    uint64_t items; /* as asked */
    double fpr;
    bly_block block; /* that holds the array; one.bytes is it */
    uint64_t nseen;  /* keys that came */
    uint64_t *kept;  /* nkept hashes of format->nhash words each */
    size_t nkept, kept_room;
} bly_foreign_more;

/* 48 bytes, which is what an allocator gives: a server has millions of small
 * ones. */
struct bly_foreign {
    const bly_mem *mem; /* bly_mem_lasting() */
    void *own;          /* the format's, by open() or plan(); see close() */
    union {
        bly_foreign_more *more; /* until it is whole */
        uint64_t max_bytes;     /* from then on: bly_foreign_most() */
    };
    uint64_t nadded; /* keys that set a bit that was clear; of those that
                        change, opened ones too: items that are there */
    uint32_t nparts;
    uint32_t nchanges;      /* of those that change: how often they did */
    unsigned char row;      /* its format: bly_row_of() */
    unsigned char form : 6; /* bly_key_form, by the option `keys` */
    bool planned : 1;       /* the array is there */
    bool whole : 1;         /* it changes, and what it was made with is gone */
    unsigned char flags;    /* these two of chains: bloom_chain.h */
    uint32_t growth;
};

/* Was it opened? Its arrays are borrowed, and nothing in it changes. */
static inline bool bly_foreign_opened(const bly_foreign *f)
{
    return !f->whole && f->more->bytes;
}

/* Bytes that it may take; 0: as many as it likes. */
static inline uint64_t bly_foreign_most(const bly_foreign *f)
{
    return f->whole ? f->max_bytes : f->more->max_bytes;
}

/* The bytes of a part that changes. */
typedef struct bly_array {
    unsigned char *at;
    uint64_t nbytes;
} bly_array;

/* Fill an empty one from another. */
typedef bly_status bly_foreign_copier(const bly_foreign *f, bly_foreign *to);

typedef struct bly_format {
    const char *name, *systems, *summary;
    const bly_param *options; /* the one called `keys` is foreign.c's */
    uint32_t noptions;

    /* Could these be the bytes of such a file, as surely as they can tell
     * without being read whole? NULL: nothing in them tells; the format has to
     * be named. */
    bool (*recognise)(const unsigned char *bytes, size_t n);

    /* Check f->more->bytes and find the parts: f->nparts, and more->one where
     * that is 1. Fails with BLY_EFORMAT and says what is wrong.
     *
     * The bytes may be a mapped file that somebody is writing to. So a number
     * that is checked is read once, into a variable, and the variable is used
     * from then on; what is too much to keep is checked at each use. Then any
     * change gives another answer, and never a step out of the file. */
    bly_status (*open)(bly_foreign *f);

    /* Release what own points to. NULL: it is one piece from f->mem. */
    void (*close)(bly_foreign *f);

    /* Part i of several. NULL: there is more->one alone. */
    void (*part)(const bly_foreign *f, size_t i, bly_foreign_part *out);

    /* Its name, printable. NULL: "", as of one alone. */
    void (*part_name)(const bly_foreign *f, size_t i, char name[BLY_PART_NAME]);

    /* What else there is to tell. NULL: nothing. */
    void (*describe)(const bly_foreign *f, bly_facts *out);

    /* -- asking: hash and positions, or hash and test ------------------- */

    /* The bytes that are hashed for the text of a key. NULL: by f->form. */
    bly_status (*encode)(const bly_foreign *f, bly_bytes text, bly_scratch *s,
                         bly_foreign_key *out);

    /* key->h of its bytes. NULL: nothing can be asked. */
    void (*hash)(const bly_foreign *f, bly_foreign_key *key);

    /* The p->k positions of a key in a part, each below p->nbits. */
    void (*positions)(const bly_foreign *f, const bly_foreign_part *p,
                      const bly_foreign_key *key, uint64_t *out);

    /* May the key be in a part? For parts that are no array of bits, and where
     * it is known without making a bly_foreign_part: files of a million. NULL:
     * by positions(). */
    bool (*test)(const bly_foreign *f, size_t part, const bly_foreign_key *key);

    /* The rate of false positives of a part, by its bits. NULL: its fill to
     * the power of k. */
    double (*rate)(const bly_foreign *f, const bly_foreign_part *p);

    /* -- making: plan, then bits by positions(), then write -------------- */

    /* For items keys at a rate fpr: fill more->one, all but bytes, as the
     * format's own programs would. Its array is more->one.nbits rounded up to 8
     * bytes. NULL: cannot be made. */
    bly_status (*plan)(bly_foreign *f, uint64_t items, double fpr);
    uint32_t nhash; /* words of h that positions() reads */
    bool counts;    /* f->nseen is to be the number of different keys: hashes
                       are kept, though items is known */

    /* The header, the array (more->one) and whatever follows. NULL: head(), and
     * the array() of each part. */
    bly_status (*write)(const bly_foreign *f, bly_put *put, void *ctx);

    /* Take the bits of `from`, of any format: plan more->one to match and
     * return true where positions agree; foreign.c copies the bits. NULL:
     * never. */
    bool (*adopt)(bly_foreign *f, const bly_foreign *from);

    /* -- changing: what lives on in its system, known by copy() -------------
     *
     * All that such a filter is hangs on own, which close() releases; where it
     * was opened, arrays are borrowed and nothing changes. plan()
     * makes it, f->nparts follows what it has, and f->nadded is how many items
     * are in it. */

    /* Add n keys, BLY_CROWD at most, up to the first that fails; *ndone of them
     * were taken, and those that were not there before have their bit set in
     * fresh, which is zero, unless that is NULL. again: where a key can be in
     * it more than once, it may be there. NULL: takes keys only while it is
     * made, by positions(), and none of what follows. */
    bly_status (*add)(bly_foreign *f, const bly_foreign_key *keys, size_t n,
                      bool again, uint64_t *fresh, size_t *ndone);

    /* Set the bits of those of n keys, BLY_CROWD at most, that may be in it. */
    void (*ask)(const bly_foreign *f, const bly_foreign_key *keys, size_t n,
                uint64_t *bitmap);

    /* The rate of false positives of part i, where it is no array of bits. */
    double (*rate_of)(const bly_foreign *f, size_t i);

    /* Take a key out, BLY_EABSENT; how often it may be in; fewer, fuller
     * parts. NULL: it cannot. */
    bly_status (*remove)(bly_foreign *f, const bly_foreign_key *key);
    uint64_t (*count)(const bly_foreign *f, const bly_foreign_key *key);
    void (*compact)(bly_foreign *f);

    /* bly_foreign_note_take(), of which out->row is filled in already, and
     * bly_foreign_expect(). */
    void (*note)(const bly_foreign *f, bly_foreign_note *out);
    void (*expect)(const bly_foreign_note *note, bly_bytes key);

    /* Instead of hash() before increase() and count() of n keys, which may look
     * at more of them than ask() does: the same, and what they look at is
     * fetched. NULL: hash() is all. */
    void (*fetch)(const bly_foreign *f, bly_foreign_key *keys, size_t n);

    /* Add a key so many times; *now becomes what it counts. f as the weighted
     * sum of n others, of which it may be one; BLY_EUNFIT, BLY_ERANGE. */
    bly_status (*increase)(bly_foreign *f, const bly_foreign_key *key,
                           uint64_t by, uint64_t *now);
    bly_status (*sum)(bly_foreign *f, const bly_foreign *const *from,
                      const int64_t *weights, size_t n);

    /* The same in parts, for sums.c: whether f is of the shape of the others;
     * `count` cells from `first` on, in a sketch of that shape or, where it is
     * NULL, whether they fit; the sum of what was added to them. Which cell of
     * a row a key has, UINT64_MAX if there is no such row. A number that no
     * other sketch of this process has or had. */
    bly_foreign_copier *sum_blank; /* an empty one of the shape of f */
    bly_status (*sum_fit)(const bly_foreign *f, const bly_foreign *const *from,
                          size_t n);
    bly_status (*sum_some)(bly_foreign *to, const bly_foreign *const *from,
                           const int64_t *weights, size_t n, uint64_t first,
                           uint64_t count);
    bly_status (*sum_total)(const bly_foreign *const *from,
                            const int64_t *weights, size_t n, uint64_t *total);
    uint64_t (*cell)(const bly_foreign *f, bly_bytes key, uint64_t row);
    uint64_t (*id)(const bly_foreign *f);

    /* The key that the last increase() pushed off its list; those that are on
     * it, heaviest first, unless out is NULL, and their number. */
    bool (*left)(const bly_foreign *f, bly_bytes *out);
    size_t (*list)(const bly_foreign *f, bly_foreign_item *out);

    /* How many items it holds, up to `to`, when it grows from the f->items and
     * f->fpr asked for within bly_foreign_most(); fails as add() does. NULL: it
     * is not known. */
    bly_status (*scales)(bly_foreign *f, uint64_t to, uint64_t *holds);

    /* The same with arrays of its own, in an empty one. */
    bly_foreign_copier *copy;

    /* The bytes of its first nparts parts as the other system counts them,
     * structures included: of all of them, what bly_foreign_most() is compared
     * with. NULL: those of its arrays. */
    uint64_t (*counted)(const bly_foreign *f, size_t nparts);

    /* Where part i is kept. */
    bly_array (*array)(const bly_foreign *f, size_t i);

    /* Offer move() what belongs to part i, and to all if i is 0. */
    void (*move)(bly_foreign *f, size_t i, bly_mover *move, void *ctx);

    /* What stands before the arrays: its length, written unless to is NULL;
     * and the same with empty arrays, from that alone. NULL: it has none. */
    size_t (*head)(const bly_foreign *f, unsigned char *to);
    bly_status (*start)(bly_foreign *f, const unsigned char *head, size_t n);

    /* The values of a record (bloomery.h), and from them. */
    bly_status (*store)(const bly_foreign *f, const bly_foreign_record *to);
    bly_status (*restore)(bly_foreign *f, unsigned version,
                          const bly_foreign_record *from);
} bly_format;

/* An option with words to choose from, of which number def is the default; and
 * one that is any text, with a default or NULL. */
#define BLY_OPTION_CHOICE(name_, def_, choices_, help_)                   \
    {                                                                     \
        .name = name_, .type = BLY_CHOICE, .settable = true, .def = def_, \
        .choices = choices_, .help = help_                                \
    }
#define BLY_OPTION_TEXT(name_, def_, help_)                                  \
    {                                                                        \
        .name = name_, .type = BLY_TEXT, .settable = true, .def_text = def_, \
        .help = help_                                                        \
    }

/* Every format there is, in the order of `bloomery formats`. */
#define BLY_FORMATS(X) \
    X(guava)           \
    X(squid)           \
    X(dcso)            \
    X(bits_and_blooms) \
    X(redisbloom)      \
    X(git)             \
    X(elf)             \
    X(leveldb)         \
    X(leveldb_filter)  \
    X(rocksdb)         \
    X(rocksdb_filter)  \
    X(cassandra)       \
    X(datasketches)    \
    X(bip37)           \
    X(bip158)          \
    X(sbbf)            \
    X(parquet)         \
    X(valkeybloom)     \
    X(rediscuckoo)

/* What has no file, and is kept in records alone. */
#define BLY_RECORDED(X) X(rediscms) X(redistopk)

#define BLY_FORMAT_DECLARE_(name) extern const bly_format bly_format_##name;
BLY_FORMATS(BLY_FORMAT_DECLARE_)
BLY_RECORDED(BLY_FORMAT_DECLARE_)
#undef BLY_FORMAT_DECLARE_

/* All of them, those of files first. */
extern const bly_format *const bly_format_rows[];

static inline const bly_format *bly_row_of(const bly_foreign *f)
{
    return bly_format_rows[f->row];
}

/* A new one of the format of f, which copy() fills. */
bly_status bly_foreign_copy_by(const bly_foreign *f, bly_foreign_copier *copy,
                               bly_foreign **out);

/* -- for formats -------------------------------------------------------- */

/* "NAME: what is wrong", BLY_EFORMAT. */
#define bly_damaged(...) bly_fail(BLY_EFORMAT, __VA_ARGS__)

/* An empty one of spec->format, with its options. */
bly_status bly_foreign_blank(const bly_foreign_spec *spec, size_t size,
                             bly_foreign **out);

/* The whole number that option i says; BLY_EINVAL, naming what would be
 * right. */
bly_status bly_foreign_number(const bly_foreign *f, unsigned i, uint64_t min,
                              uint64_t max, uint64_t *out);

/* May f take so many bytes? BLY_ERANGE. */
bly_status bly_foreign_allowed(const bly_foreign *f, uint64_t nbytes);

/* One that changes is whole: what its options said is in it. */
void bly_foreign_made(bly_foreign *f);

/* The text of a key as a format hashes it; and hashed. */
bly_status bly_foreign_encode_key(const bly_foreign *f, bly_bytes text,
                                  bly_scratch *s, bly_foreign_key *key);
bly_status bly_foreign_read_key(const bly_foreign *f, bly_bytes text,
                                bly_scratch *s, bly_foreign_key *key);

/* The same for up to BLY_CROWD keys at once; how many could be read. */
size_t bly_foreign_read_keys(const bly_foreign *f, const bly_bytes *keys,
                             size_t n, bly_scratch *s, bly_foreign_key *out,
                             bly_status *st);

/* May the key be in part i, by positions(); for a test() that has nothing to
 * say about the part. */
bool bly_foreign_bits_set(const bly_foreign *f, size_t i,
                          const bly_foreign_key *key);

/* f->own, zeroed; BLY_ENOMEM. Once a filter. */
bly_status bly_foreign_own(bly_foreign *f, size_t nbytes);

/* Bytes of the array of a part that is made: whole words. */
static inline uint64_t bly_part_bytes(const bly_foreign_part *p)
{
    return (p->nbits / 64 + (p->nbits % 64 != 0)) * 8;
}

/* Bit i of a part. */
static inline bool bly_part_bit(const bly_foreign_part *p, uint64_t i)
{
    return p->bytes[i / 8 ^ p->order] >> i % 8 & 1;
}

/* Offer what a pointer, given by its address, points to. */
void bly_moved(void *pointer, bly_mover *move, void *ctx);

/* What most formats are: a header, and nbytes of the array of f. */
bly_status bly_foreign_put(const bly_foreign *f, const void *head, size_t nhead,
                           uint64_t nbytes, bly_put *put, void *ctx);

/* m = -n ln p / (ln 2)^2, which most of them round in one way or another. */
double bly_bloom_bits(double n, double fpr);

#endif

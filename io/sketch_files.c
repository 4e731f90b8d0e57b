/*
 * sketch_files.c - sketches in files: .bly files that are not filters
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files.h"
#include "io/paths.h"
#include "io/sketch_files.h"
#include "report/say.h"

bly_stored_type sketch_type(const char *path)
{
    unsigned char head[BLY_STORED_PEEK];
    struct stat st;
    if (is_dash(path) || stat(path, &st) || !S_ISREG(st.st_mode))
        return BLY_STORED_NONE;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return BLY_STORED_NONE;
    const int64_t n = read_all(fd, head, sizeof head);
    close(fd);
    return n > 0 ? bly_stored_peek(head, (size_t)n) : BLY_STORED_NONE;
}

bool sketch_open(const char *path, bly_stored_type type,
                 const unsigned char *secret, bly_stored *out)
{
    const bly_access how = { .secret = secret, .blind = !secret };
    if (bly_stored_open(path, &how, out)) {
        fail_library();
        return false;
    }
    if (!type || out->type == type)
        return true;
    fail("%s: a sketch of %s (%s), where one of %s (%s) is needed", path,
         bly_stored_help(out->type), bly_stored_name(out->type),
         bly_stored_help(type), bly_stored_name(type));
    bly_stored_free(out);
    return false;
}

bool sketch_merge(bly_stored *dst, const char *dst_path, const bly_stored *src,
                  const char *src_path)
{
    if (!bly_stored_merge(dst, src))
        return true;
    fail("%s and %s: %s", dst_path, src_path, bly_error());
    return false;
}

static bly_status write_sketch(const void *what, bly_put *put, void *ctx)
{
    return bly_stored_write(what, put, ctx);
}

int sketch_save(const bly_stored *s, const char *path)
{
    return file_save(path, write_sketch, s);
}

/* ------------------------------------------------------------------ options */

bool sketch_args_check(struct sketch_args *a, const struct keys *k,
                       const struct list *operands, bool json)
{
    bool ok;
    if (a->output && a->into) {
        fail("-o writes a new file, and --into changes one: give one of them");
        return false;
    }
    if (a->seed && k->key_file) {
        fail("--seed and --key-file exclude each other: the key takes the "
             "place of the seed");
        return false;
    }
    if (a->output && (!output_works(a->output, json) ||
                      !output_spares(a->output, &k->key_file, 1)))
        return false;
    if (a->into && !output_works(a->into, json))
        return false;
    if (a->into && is_dash(a->into)) {
        fail("--into -: name a file, or write to standard output with -o -");
        return false;
    }
    /* What is there and is no sketch is known before all keys are read. */
    if (a->into && access(a->into, F_OK) == 0 && !sketch_type(a->into)) {
        bly_stored none;
        if (sketch_open(a->into, BLY_STORED_NONE, NULL, &none)) {
            bly_stored_free(&none);
            fail("%s: not a regular file, and cannot be changed", a->into);
        }
        return false;
    }
    /* A saved sketch may be named as an input and be replaced at the end; a
     * list of keys may not. */
    for (size_t i = 0; i < operands->n; i++) {
        const char *const name = operands->at[i];
        const char *const to = a->output ? a->output : a->into;
        if (a->into && sketch_type(name) && is_same_file(a->into, name)) {
            fail("%s: named as an input and with --into, it would count twice; "
                 "name it with --into alone",
                 name);
            return false;
        }
        if (to && !sketch_type(name) && !output_spares(to, &name, 1))
            return false;
    }
    a->secret = secret_read(k->key_file, &ok);
    return ok;
}

bool sketch_can_hash(const bly_hasher *hasher, const char *path)
{
    if (hasher)
        return true;
    fail("%s: a keyed sketch, to which keys are added only with its key; use "
         "--key-file FILE",
         path);
    return false;
}

/* --------------------------------------------------------------- describing */

static void tell_keying(bly_keying keying, struct sketch_told *to)
{
    to->key_type = bly_key_type_name(keying.type);
    to->folded = (keying.forms & BLY_KEYS_FOLDED) != 0;
    to->trimmed = (keying.forms & BLY_KEYS_TRIMMED) != 0;
    to->no_cr = (keying.forms & BLY_KEYS_NO_CR) != 0;
}

/* hasher NULL: it was opened without its secret. */
static void tell_hasher(const bly_hasher *hasher, struct sketch_told *to)
{
    to->keyed = !hasher || hasher->id == BLY_HASH_SIPHASH13;
    to->hash = to->keyed ? "SipHash-1-3" : "XXH3";
    to->seed_value = hasher ? hasher->seed : 0;
    to->seed = to->keyed ? NULL : &to->seed_value;
}

static void tell_likeness(const bly_sketch *s, struct sketch_told *to)
{
    const bly_sketch_spec *const spec = bly_sketch_spec_of(s);
    to->is_keyless = true;
    to->components = spec->k;
    to->shingle = spec->shingling.size;
    to->unit = spec->shingling.unit == BLY_WORDS ? "words" : "bytes";
    to->family = bly_family_name(spec->family);
    to->bits = bly_sketch_bits(s);
    to->hash = "XXH3";
    to->seed_value = spec->shingling.seed;
    to->seed = &to->seed_value;
    to->bytes = bly_sketch_written_bytes(s, 0);
}

static void tell_tdigest(bly_tdigest *t, struct sketch_told *to)
{
    bly_tdigest_stats stats;
    bly_tdigest_settle(t);
    bly_tdigest_stat(t, &stats);
    to->is_keyless = true;
    to->values = (uint64_t)(stats.merged_weight + stats.waiting_weight);
    to->compression = stats.compression;
    to->scale = stats.scale == BLY_TDIGEST_REDISBLOOM ? "RedisBloom's" : "fine";
    to->means = stats.nmerged + stats.nwaiting;
    to->least = stats.min;
    to->median = bly_tdigest_quantile(t, 0.5);
    to->greatest = stats.max;
    to->bytes = stats.nbytes;
}

void sketch_tell(const char *path, const bly_stored *s, struct sketch_told *to)
{
    struct stat st;
    *to = (struct sketch_told){ .file = path,
                                .type = bly_stored_name(s->type),
                                .help = bly_stored_help(s->type),
                                .file_bytes = bly_stored_bytes(s),
                                .distinct = NAN,
                                .distinct_sd = NAN,
                                .deviation = NAN,
                                .compression = NAN,
                                .least = NAN,
                                .median = NAN,
                                .greatest = NAN };
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        to->file_bytes = (uint64_t)st.st_size;
    if (s->type == BLY_STORED_HLL) {
        to->distinct = bly_hll_estimate(s->hll, &to->distinct_sd);
        if (to->distinct > 0)
            to->deviation = to->distinct_sd / to->distinct;
        to->keys = bly_hll_total(s->hll);
        to->precision = bly_hll_precision(s->hll);
        to->form = bly_hll_sparse(s->hll) ? "sparse" : "dense";
        to->bytes = bly_hll_bytes(s->hll);
        tell_keying(bly_hll_keying(s->hll), to);
        tell_hasher(bly_hll_hasher(s->hll), to);
    } else if (s->type == BLY_STORED_TOPK) {
        bly_topk_spec spec;
        bly_topk_spec_of(s->topk, &spec);
        to->keys = bly_topk_total(s->topk);
        to->k = spec.k;
        to->listed = bly_topk_listed(s->topk);
        to->bytes = spec.bytes;
        tell_keying(spec.keying, to);
        tell_hasher(bly_topk_hasher(s->topk), to);
    } else if (s->type == BLY_STORED_TDIGEST) {
        tell_tdigest(s->tdigest, to);
    } else {
        tell_likeness(s->likeness, to);
    }
}

const struct field sketch_fields[] = {
    FIELD(struct sketch_told, file, NONE, "the sketch"),
    NAMED(struct sketch_told, "sketch", type, NONE,
          "its type: hyperloglog, topk, minhash or tdigest"),
    FIELD(struct sketch_told, keys, KEYS, "keys that it has seen"),
    FIELD(struct sketch_told, distinct, ESTIMATE | MAYBE,
          "hyperloglog: how many of them are different, an estimate"),
    FIELD(struct sketch_told, distinct_sd, ROUNDED | MAYBE,
          "standard deviation of that"),
    FIELD(struct sketch_told, deviation, SHARE | MAYBE,
          "the same as a share of it: 0.01 is 1 %"),
    FIELD(struct sketch_told, precision, MAYBE | ZERO,
          "hyperloglog: bits that choose a register"),
    FIELD(struct sketch_told, form, NONE | MAYBE,
          "hyperloglog: \"sparse\" or \"dense\""),
    FIELD(struct sketch_told, k, MAYBE | ZERO,
          "topk: how many keys may be on the list"),
    FIELD(struct sketch_told, listed, MAYBE | ZERO,
          "topk: how many are on the list"),
    FIELD(struct sketch_told, components, MAYBE | ZERO,
          "minhash: components that are compared"),
    FIELD(struct sketch_told, family, NONE | MAYBE,
          "minhash: how they are made"),
    FIELD(struct sketch_told, shingle, MAYBE | ZERO,
          "minhash: units in a shingle"),
    FIELD(struct sketch_told, unit, NONE | MAYBE,
          "minhash: \"words\" or \"bytes\""),
    FIELD(struct sketch_told, bits, MAYBE | ZERO,
          "minhash: bits of each component that were kept; null if all"),
    FIELD(struct sketch_told, values, MAYBE | ZERO,
          "tdigest: numbers that it has seen"),
    FIELD(struct sketch_told, compression, NONE | MAYBE,
          "tdigest: how fine it is"),
    FIELD(struct sketch_told, scale, NONE | MAYBE,
          "tdigest: \"fine\", or \"RedisBloom's\""),
    FIELD(struct sketch_told, means, MAYBE | ZERO,
          "tdigest: means that it keeps"),
    FIELD(struct sketch_told, least, NONE | MAYBE, "tdigest: the least value"),
    FIELD(struct sketch_told, median, NONE | MAYBE,
          "tdigest: the median, an estimate"),
    FIELD(struct sketch_told, greatest, NONE | MAYBE,
          "tdigest: the greatest value"),
    FIELD(struct sketch_told, bytes, BYTES,
          "memory it takes; of topk, for candidates"),
    FIELD(struct sketch_told, file_bytes, BYTES, "size of the file"),
    FIELD(struct sketch_told, hash, NONE | MAYBE,
          "hash function; null where nothing is hashed"),
    FIELD(struct sketch_told, seed, NONE | MAYBE, "its seed; null if keyed"),
    FIELD(struct sketch_told, keyed, NONE, "whether its hash has a secret key"),
    NAMED(struct sketch_told, "type", key_type, NONE | MAYBE,
          "type of its keys; null if not known"),
    FIELD(struct sketch_told, folded, NONE, "whether their case was folded"),
    FIELD(struct sketch_told, trimmed, NONE,
          "whether blanks at both ends were cut off"),
    NAMED(struct sketch_told, "no_cr", no_cr, NONE,
          "whether a carriage return at the end was cut off"),
    FIELD(struct sketch_told, help, NONE, NULL),
    FIELD(struct sketch_told, ninputs, NONE, NULL),
    FIELD(struct sketch_told, is_keyless, NONE, NULL),
    { 0 },
};

const char sketch_text[] =
    "{file}\n"
    "  sketch~{sketch}: {help}\n"
    "[  type of keys~{?type}{type}[{?folded}, case folded][{?trimmed}, "
    "trimmed][{?no_cr}, without CR]\n]"
    "[  keys~{!is_keyless}{keys}\n]"
    "[  different~{distinct}[ +- {distinct_sd}]\n]"
    "[  precision~{precision}, {form}\n]"
    "[  list~{k} at most, {listed} now\n]"
    "[  components~{components}, {family}[, {bits} bits of each]\n]"
    "[  shingles~{shingle} {unit}\n]"
    "[  values~{values}\n]"
    "[  compression~{compression}, scale {scale}, {means} means\n]"
    "[  from~{least} to {greatest}, median about {median}\n]"
    "  memory~{bytes}\n"
    "  file~{file_bytes}, checksum right\n"
    "[  hash~{hash}, [seed {seed}|keyed]\n]";

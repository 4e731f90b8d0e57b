/*
 * forms.c - forms of files and of keys that are left out
 *
 * A coded payload is refused as one that cannot be decoded, and a compact file
 * as one that does not begin like a file of ours. Neither is ever written,
 * since nobody can ask for it (wasm_filters.c).
 */
#include "codec/codec.h"
#include "core/case.h"
#include "core/hash.h"
#include "format/compact.h"

uint64_t bly_coded_least(uint64_t n)
{
    return n;
}

uint64_t bly_coded_most(uint64_t n)
{
    return n;
}

uint64_t bly_encode(bly_code code, const unsigned char *data, size_t n,
                    bly_put *put, void *ctx)
{
    (void)code, (void)data, (void)n, (void)put, (void)ctx;
    return 0;
}

bool bly_decode(bly_code code, const unsigned char *coded, size_t ncoded,
                unsigned char *data, size_t n)
{
    (void)code, (void)coded, (void)ncoded, (void)data, (void)n;
    return false;
}

bool bly_compact_begins(const unsigned char *bytes, size_t n)
{
    (void)bytes, (void)n;
    return false;
}

size_t bly_compact_span(const unsigned char *prefix, bool root)
{
    (void)prefix, (void)root;
    return 0;
}

size_t bly_compact_encode(const bly_record *r, bool root,
                          const bly_record *before, unsigned char buf[BLY_PAGE])
{
    (void)r, (void)root, (void)before, (void)buf;
    return 0;
}

bly_status bly_compact_decode(const unsigned char *head, size_t n,
                              const bly_record *root, const bly_record *before,
                              bly_record *out)
{
    (void)head, (void)n, (void)root, (void)before, (void)out;
    return BLY_EFORMAT;
}

/* Keyed filters and folded keys, which open() and make() refuse. */
uint64_t bly_siphash13(const uint64_t key[2], const void *bytes, size_t len)
{
    (void)key, (void)bytes, (void)len;
    return 0;
}

uint64_t bly_secret_check(const uint64_t key[2])
{
    (void)key;
    return 0;
}

void bly_secret_words(const unsigned char *secret, uint64_t key[2])
{
    (void)secret, (void)key;
}

size_t bly_fold_text(const char *text, size_t n, char *to)
{
    (void)text, (void)n, (void)to;
    return 0;
}

/* What is not mapped was checked when it was read. */
bly_status bly_verify(const bly_filter *f)
{
    (void)f;
    return BLY_OK;
}

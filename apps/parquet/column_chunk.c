/*
 * column_chunk.c - the filter of a chunk, from its own values
 *
 * The headers of all pages are read first: they tell what can be read, how many
 * values there may be at most, and whether there are as many as the footer
 * says. Then come the values: those of the dictionary, each once, in place of
 * the pages that refer to it; of all other pages, every value.
 *
 * A page that was damaged, and knows its checksum, is refused: a filter with
 * wrong values makes others skip rows that are there.
 */
#include <stdio.h>
#include <stdlib.h>

#include <zlib.h>

#include "apps/parquet/column_chunk.h"
#include "base/byte_order.h"

unsigned char *buffer_need(struct buffer *b, size_t n)
{
    if (n < b->room)
        return b->at;
    free(b->at);
    b->room = n + n / 4 + 64;
    b->at = malloc(b->room);
    if (!b->at)
        b->room = 0;
    return b->at;
}

static void buffer_free(struct buffer *b)
{
    free(b->at);
    *b = (struct buffer){ 0 };
}

static bool by_dictionary(uint32_t encoding)
{
    return encoding == BLY_PARQUET_PLAIN_DICTIONARY ||
           encoding == BLY_PARQUET_RLE_DICTIONARY;
}

static bool has_values(const bly_parquet_page *page)
{
    return page->kind == BLY_PARQUET_DATA_PAGE ||
           page->kind == BLY_PARQUET_DATA_PAGE_V2;
}

/* "row group 0, column url: ..." */
__attribute__((format(printf, 2, 3))) static bool
chunk_fail(struct column_chunk *c, const char *format, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return parquet_fail(c->error, "row group %zu, column %s: %s", c->group,
                        c->column.name, text);
}

/* ---------------------------------------------------------------- headers */

/* Can the values of a page be read? */
static bool page_known(struct column_chunk *c, const bly_parquet_page *page)
{
    const char *why;
    /* A dictionary is plain by either name. */
    if (page->kind == BLY_PARQUET_DICTIONARY_PAGE
            ? page->encoding != BLY_PARQUET_PLAIN_VALUES &&
                  page->encoding != BLY_PARQUET_PLAIN_DICTIONARY
            : !values_known(&c->column, page->encoding))
        return chunk_fail(c, "values in the encoding %s (%u) cannot be read",
                          bly_parquet_encoding_name(page->encoding),
                          page->encoding);
    if ((c->column.max_def && page->def_encoding != BLY_PARQUET_RLE &&
         has_values(page)) ||
        (c->column.max_rep && page->rep_encoding != BLY_PARQUET_RLE &&
         has_values(page)))
        return chunk_fail(c, "levels in an encoding other than RLE cannot be "
                             "read");
    if (page->compressed && !unpack_knows(c->is.codec, &why))
        return chunk_fail(c, "pages compressed with %s (%u) cannot be read; %s",
                          bly_parquet_codec_name(c->is.codec), c->is.codec,
                          why);
    if (page->nplain > (page->compressed
                            ? unpack_most(c->is.codec, page->nbytes)
                            : page->nbytes))
        return chunk_fail(c, "a page of %zu bytes that should become %u",
                          page->nbytes, page->nplain);
    return true;
}

/* All pages: what they are, and how many values they may hold. */
static bool chunk_survey(struct column_chunk *c)
{
    uint64_t at = 0, nvalues = 0, dictionary = 0;
    bool has_dictionary = false;
    c->most = 0;
    c->uses_dictionary = false;
    while (at < c->is.nbytes && nvalues < c->is.nvalues) {
        bly_parquet_page page;
        if (bly_parquet_page_next(c->file, c->group, c->number, &at, &page))
            return parquet_fail_library(c->error);
        if (page.kind == BLY_PARQUET_DICTIONARY_PAGE) {
            if (has_dictionary)
                return chunk_fail(c, "two dictionaries");
            has_dictionary = true;
            if (!page_known(c, &page))
                return false;
            dictionary = values_most(&c->column, BLY_PARQUET_PLAIN_VALUES,
                                     page.nplain, page.nvalues);
        } else if (has_values(&page)) {
            nvalues += page.nvalues;
            if (by_dictionary(page.encoding)) {
                c->uses_dictionary = true;
            } else {
                if (!page_known(c, &page))
                    return false;
                c->most += values_most(&c->column, page.encoding, page.nplain,
                                       page.nvalues);
            }
        }
    }
    if (c->uses_dictionary && !has_dictionary)
        return chunk_fail(c, "pages refer to a dictionary that is not there");
    if (nvalues != c->is.nvalues)
        return chunk_fail(
            c, "%llu values in its pages, but %llu according to the footer",
            (unsigned long long)nvalues, (unsigned long long)c->is.nvalues);
    if (c->uses_dictionary)
        c->most += dictionary;
    return true;
}

/* ----------------------------------------------------------------- values */

/* What follows the levels of a page, decompressed, and of a DATA_PAGE with the
 * levels: *n bytes. */
static const unsigned char *page_plain(struct column_chunk *c,
                                       const bly_parquet_page *page, size_t *n)
{
    const size_t nlevels = (size_t)page->def_bytes + page->rep_bytes;
    const unsigned char *const bytes = page->bytes + nlevels;
    const size_t nbytes = page->nbytes - nlevels;
    *n = page->nplain - nlevels;
    if (!page->compressed || c->is.codec == BLY_PARQUET_UNCOMPRESSED) {
        if (*n == nbytes)
            return bytes;
        chunk_fail(c, "a page of %zu bytes that should be %zu", nbytes, *n);
        return NULL;
    }
    unsigned char *const to = buffer_need(&c->plain, *n);
    if (!to) {
        chunk_fail(c, "out of memory");
        return NULL;
    }
    /* Some codecs compress zero bytes to zero bytes. */
    if (nbytes == 0 && *n == 0)
        return to;
    if (unpack(c->is.codec, bytes, nbytes, to, *n))
        return to;
    chunk_fail(c, "a page that cannot be decompressed (%s)",
               bly_parquet_codec_name(c->is.codec));
    return NULL;
}

/* Levels of a DATA_PAGE, which tell their length themselves: taken from the
 * front of *at. */
static bool levels_take(const unsigned char **at, size_t *n,
                        const unsigned char **levels, size_t *nlevels)
{
    const unsigned char *const p = *at;
    if (*n < 4)
        return false;
    *nlevels = (size_t)get_le(p, 4);
    if (*nlevels > *n - 4)
        return false;
    *levels = p + 4;
    *at += 4 + *nlevels;
    *n -= 4 + *nlevels;
    return true;
}

/* The values of a data page. */
static bool data_add(struct column_chunk *c, const bly_parquet_page *page)
{
    size_t n, nlevels = page->def_bytes;
    const unsigned char *levels = page->bytes + page->rep_bytes;
    const unsigned char *at = page_plain(c, page, &n);
    uint64_t present = page->nvalues;
    if (!at)
        return false;
    bool ok = true;
    if (page->kind == BLY_PARQUET_DATA_PAGE) {
        ok = !c->column.max_rep || levels_take(&at, &n, &levels, &nlevels);
        ok = ok &&
             (!c->column.max_def || levels_take(&at, &n, &levels, &nlevels));
    }
    if (ok && c->column.max_def)
        ok = levels_count(levels, nlevels, page->nvalues, c->column.max_def,
                          &present);
    if (!ok)
        return chunk_fail(c, "a page with damaged levels");
    if (!values_add(&c->values, page->encoding, at, n, present))
        return chunk_fail(c,
                          "a page in %s with fewer values than the %llu it "
                          "should have, or no memory",
                          bly_parquet_encoding_name(page->encoding),
                          (unsigned long long)present);
    return true;
}

static bool dictionary_add(struct column_chunk *c, const bly_parquet_page *page)
{
    size_t n;
    const unsigned char *const at = page_plain(c, page, &n);
    if (!at)
        return false;
    return values_add(&c->values, BLY_PARQUET_PLAIN_VALUES, at, n,
                      page->nvalues) ||
           chunk_fail(c, "a dictionary with fewer than its %u values",
                      page->nvalues);
}

static bool page_add(struct column_chunk *c, const bly_parquet_page *page)
{
    const bool is_dictionary = page->kind == BLY_PARQUET_DICTIONARY_PAGE;
    if (is_dictionary ? !c->uses_dictionary
                      : !has_values(page) || by_dictionary(page->encoding))
        return true;
    /* The file may have changed by now, so nothing is taken from the survey. */
    if (!page_known(c, page))
        return false;
    if (page->has_crc && crc32(0, page->bytes, (uInt)page->nbytes) != page->crc)
        return chunk_fail(c, "a damaged page: its checksum is wrong");
    return is_dictionary ? dictionary_add(c, page) : data_add(c, page);
}

bool chunk_filter(struct column_chunk *c, double fpr, bly_parquet_filter *out)
{
    uint64_t at = 0, nvalues = 0;
    bool ok = true;
    if (!chunk_survey(c))
        return false;
    if (bly_parquet_filter_begin(c->file, c->group, c->number, c->most, fpr))
        return parquet_fail_library(c->error);
    c->values.file = c->file;
    c->values.column = &c->column;
    while (ok && at < c->is.nbytes && nvalues < c->is.nvalues) {
        bly_parquet_page page;
        if (bly_parquet_page_next(c->file, c->group, c->number, &at, &page)) {
            ok = parquet_fail_library(c->error);
        } else {
            nvalues += has_values(&page) ? page.nvalues : 0;
            ok = page_add(c, &page);
        }
    }
    if (bly_parquet_filter_end(c->file, out) && ok)
        ok = parquet_fail_library(c->error);
    return ok;
}

void chunk_free(struct column_chunk *c)
{
    buffer_free(&c->plain);
    buffer_free(&c->values.text);
}

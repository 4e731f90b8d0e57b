/*
 * parquet_pages.c - the headers of a chunk's pages
 *
 * A chunk is pages, one behind another, each a header in Thrift and its bytes.
 * The first may be a dictionary. What is in them is the caller's business:
 * decompressing takes other libraries.
 */
#include "core/sized.h"
#include "foreign/parquet_file.h"

/* DataPageHeader and DictionaryPageHeader have these in common. */
static void plain_header(bly_thrift *t, const bly_thrift_field *f,
                         bly_parquet_page *out)
{
    bly_thrift_field g = { 0 };
    if (!bly_thrift_struct(t, f))
        return;
    while (bly_thrift_next(t, &g))
        if (g.id == 1)
            out->nvalues = (uint32_t)bly_thrift_uint(t, &g, INT32_MAX);
        else if (g.id == 2)
            out->encoding = (uint32_t)bly_thrift_uint(t, &g, INT32_MAX);
        else if (g.id == 3 && f->id == 5)
            out->def_encoding = (uint32_t)bly_thrift_uint(t, &g, INT32_MAX);
        else if (g.id == 4 && f->id == 5)
            out->rep_encoding = (uint32_t)bly_thrift_uint(t, &g, INT32_MAX);
        else
            bly_thrift_skip(t, &g);
    out->compressed = true;
}

static void v2_header(bly_thrift *t, const bly_thrift_field *f,
                      bly_parquet_page *out)
{
    bly_thrift_field g = { 0 };
    if (!bly_thrift_struct(t, f))
        return;
    out->compressed = true;
    while (bly_thrift_next(t, &g))
        if (g.id == 1)
            out->nvalues = (uint32_t)bly_thrift_uint(t, &g, INT32_MAX);
        else if (g.id == 4)
            out->encoding = (uint32_t)bly_thrift_uint(t, &g, INT32_MAX);
        else if (g.id == 5)
            out->def_bytes = (uint32_t)bly_thrift_uint(t, &g, INT32_MAX);
        else if (g.id == 6)
            out->rep_bytes = (uint32_t)bly_thrift_uint(t, &g, INT32_MAX);
        else if (g.id == 7)
            out->compressed = bly_thrift_bool(t, &g);
        else
            bly_thrift_skip(t, &g);
    out->def_encoding = out->rep_encoding = BLY_PARQUET_RLE;
}

/* CRCs are written as signed numbers. */
static uint32_t crc_read(bly_thrift *t, const bly_thrift_field *f)
{
    if (f->type != BLY_THRIFT_I32)
        t->bad = true;
    return t->bad ? 0 : (uint32_t)bly_thrift_element_int(t);
}

/* The header that t begins with: false if it is damaged. */
static bool page_header(bly_thrift *t, bly_parquet_page *out, uint64_t *nbytes)
{
    /* The struct that each kind of page must bring: by its field. */
    static const int32_t own[] = { 5, 6, 7, 8 };
    bly_thrift_field f = { 0 };
    uint32_t has = 0;
    while (bly_thrift_next(t, &f)) {
        has |= f.id > 0 && f.id < 32 ? (uint32_t)1 << f.id : 0;
        switch (f.id) {
        case 1:
            out->kind = (uint32_t)bly_thrift_uint(t, &f, INT32_MAX);
            break;
        case 2:
            out->nplain = (uint32_t)bly_thrift_uint(t, &f, INT32_MAX);
            break;
        case 3:
            *nbytes = bly_thrift_uint(t, &f, INT32_MAX);
            break;
        case 4:
            out->crc = crc_read(t, &f);
            out->has_crc = true;
            break;
        case 5:
        case 7:
            plain_header(t, &f, out);
            break;
        case 8:
            v2_header(t, &f, out);
            break;
        default:
            bly_thrift_skip(t, &f);
        }
    }
    return !t->bad && (has & 14) == 14 &&
           out->kind <= BLY_PARQUET_DATA_PAGE_V2 &&
           (out->kind == BLY_PARQUET_INDEX_PAGE || has >> own[out->kind] & 1) &&
           (uint64_t)out->def_bytes + out->rep_bytes <= *nbytes &&
           (uint64_t)out->def_bytes + out->rep_bytes <= out->nplain;
}

bly_status bly_parquet_page_next_sized(const bly_parquet *p, size_t group,
                                       size_t column, uint64_t *at,
                                       bly_parquet_page *out, size_t size)
{
    if (!p || !at || !out)
        return bly_fail_null("p or at or out");
    const char *const name = bly_parquet_name(p, column);
    bly_parquet_entry e;
    bly_parquet_entry_at(p, group, column, &e);
    const bly_parquet_chunk *const c = &e.is;
    if (c->encrypted || c->elsewhere)
        return bly_fail(BLY_ENOTSUP, "row group %zu, column %s: %s", group,
                        name, c->encrypted ? "encrypted" : "in another file");
    if (c->at < BLY_PARQUET_MAGIC || c->at > p->footer_at ||
        c->nbytes > p->footer_at - c->at || *at > c->nbytes)
        return bly_damaged("row group %zu, column %s: its pages would be "
                           "outside the file's data",
                           group, name);
    const unsigned char *const start = p->bytes + c->at + *at;
    bly_thrift t = { start, p->bytes + c->at + c->nbytes, false };
    uint64_t nbytes = 0;
    bly_parquet_page page = { 0 };
    if (!page_header(&t, &page, &nbytes) || nbytes > (uint64_t)(t.end - t.at))
        return bly_damaged("row group %zu, column %s: a damaged page at byte "
                           "%llu",
                           group, name, (unsigned long long)(c->at + *at));
    page.bytes = t.at;
    page.nbytes = (size_t)nbytes;
    BLY_GIVE(&page, out, size);
    *at += (uint64_t)(t.at - start) + nbytes;
    return BLY_OK;
}

const char *bly_parquet_codec_name(uint32_t codec)
{
    static const char *const names[] = { "UNCOMPRESSED", "SNAPPY", "GZIP",
                                         "LZO",          "BROTLI", "LZ4",
                                         "ZSTD",         "LZ4_RAW" };
    return codec < sizeof names / sizeof *names ? names[codec] : "unknown";
}

const char *bly_parquet_encoding_name(uint32_t encoding)
{
    static const char *const names[] = { "PLAIN",
                                         "GROUP_VAR_INT",
                                         "PLAIN_DICTIONARY",
                                         "RLE",
                                         "BIT_PACKED",
                                         "DELTA_BINARY_PACKED",
                                         "DELTA_LENGTH_BYTE_ARRAY",
                                         "DELTA_BYTE_ARRAY",
                                         "RLE_DICTIONARY",
                                         "BYTE_STREAM_SPLIT" };
    return encoding < sizeof names / sizeof *names ? names[encoding]
                                                   : "unknown";
}

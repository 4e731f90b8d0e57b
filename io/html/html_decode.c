/*
 * html_decode.c - a page in UTF-8
 *
 * What encoding a page has is said by its first bytes (a mark), by the header
 * that it came with, or by a meta element among its first 1024 bytes, in this
 * order. Where nothing says it, it is UTF-8 if it can be, and windows-1252
 * otherwise. As browsers do, ISO-8859-1 and ASCII are read as windows-1252, and
 * a few others as the larger sets that pages use under their names.
 *
 * What an encoding does not have becomes U+FFFD. In a page that says UTF-8,
 * bytes that are none stay as they are, as in texts of any other kind.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <iconv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/html/html.h"
#include "io/utf8.h"

#define PRESCAN 1024

/* Names that pages use, and what iconv calls what they mean. */
static const struct {
    const char *name, *iconv;
} encodings[] = {
    { "utf-8", "" },
    { "utf8", "" },
    { "ascii", "CP1252" },
    { "us-ascii", "CP1252" },
    { "iso-8859-1", "CP1252" },
    { "iso8859-1", "CP1252" },
    { "latin1", "CP1252" },
    { "l1", "CP1252" },
    { "cp1252", "CP1252" },
    { "x-cp1252", "CP1252" },
    { "windows-1252", "CP1252" },
    { "iso-8859-9", "CP1254" },
    { "latin5", "CP1254" },
    { "iso-8859-11", "CP874" },
    { "tis-620", "CP874" },
    { "windows-874", "CP874" },
    { "gb2312", "GB18030" },
    { "gb_2312-80", "GB18030" },
    { "gbk", "GB18030" },
    { "x-gbk", "GB18030" },
    { "gb18030", "GB18030" },
    { "big5", "BIG5-HKSCS" },
    { "big5-hkscs", "BIG5-HKSCS" },
    { "shift_jis", "CP932" },
    { "shift-jis", "CP932" },
    { "sjis", "CP932" },
    { "x-sjis", "CP932" },
    { "ms_kanji", "CP932" },
    { "windows-31j", "CP932" },
    { "euc-jp", "EUC-JP" },
    { "x-euc-jp", "EUC-JP" },
    { "iso-2022-jp", "ISO-2022-JP" },
    { "euc-kr", "CP949" },
    { "ks_c_5601-1987", "CP949" },
    { "windows-949", "CP949" },
    { "koi8-r", "KOI8-R" },
    { "koi8", "KOI8-R" },
    { "koi8-u", "KOI8-U" },
    { "ibm866", "IBM866" },
    { "cp866", "IBM866" },
    { "macintosh", "MACINTOSH" },
    { "utf-16", "UTF-16LE" },
    { "utf-16le", "UTF-16LE" },
    { "utf-16be", "UTF-16BE" },
};

/* iconv's name of an encoding: "" for UTF-8, NULL if it is not known. buf: for
 * names that are built. */
static const char *encoding_named(const char *name, size_t n, char buf[32])
{
    while (n &&
           (*name == ' ' || *name == '\t' || *name == '"' || *name == '\'')) {
        name++;
        n--;
    }
    size_t len = 0;
    while (len < n && len < 24 && name[len] > ' ' &&
           !strchr("\"';>,", name[len]))
        len++;
    for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++)
        if (strlen(encodings[i].name) == len &&
            strncasecmp(name, encodings[i].name, len) == 0)
            return encodings[i].iconv;
    /* windows-125x, cp125x and iso-8859-x are what they are called. */
    if ((len == 12 && strncasecmp(name, "windows-125", 11) == 0) ||
        (len == 6 && strncasecmp(name, "cp125", 5) == 0)) {
        snprintf(buf, 32, "CP125%c", name[len - 1]);
        return buf;
    }
    if (len > 9 && len < 12 && strncasecmp(name, "iso-8859-", 9) == 0 &&
        strspn(name + 9, "0123456789") >= len - 9) {
        snprintf(buf, 32, "ISO-8859-%.*s", (int)(len - 9), name + 9);
        return buf;
    }
    return NULL;
}

/* What the first bytes say between <meta and >, or in <?xml. */
static const char *encoding_within(const char *page, size_t n, char buf[32])
{
    const char *const end = page + (n < PRESCAN ? n : PRESCAN);
    for (const char *p = page; (p = memchr(p, '<', (size_t)(end - p))); p++) {
        const size_t left = (size_t)(end - p);
        if (left > 4 && memcmp(p, "<!--", 4) == 0) {
            const char *const e = memmem(p, left, "-->", 3);
            if (!e)
                return NULL;
            p = e;
            continue;
        }
        const bool xml = left > 6 && memcmp(p, "<?xml", 5) == 0;
        if (!xml && !(left > 6 && strncasecmp(p, "<meta", 5) == 0))
            continue;
        const char *const close = memchr(p, '>', left);
        const char *const stop = close ? close : end;
        const char *const what = xml ? "encoding" : "charset";
        const size_t nwhat = strlen(what);
        for (const char *q = p; q + nwhat < stop; q++) {
            if (strncasecmp(q, what, nwhat) != 0)
                continue;
            q += nwhat;
            while (q < stop && (*q == ' ' || *q == '\n' || *q == '\t'))
                q++;
            if (q == stop || *q != '=')
                continue;
            const char *const found =
                encoding_named(q + 1, (size_t)(stop - q - 1), buf);
            /* A page that can be read this far is not UTF-16. */
            if (found)
                return strncmp(found, "UTF-16", 6) == 0 ? "" : found;
        }
    }
    return NULL;
}

static const char *encoding_of(const char *page, size_t n, const char *charset,
                               char buf[32], size_t *mark)
{
    const char *found;
    *mark = 0;
    if (n >= 3 && memcmp(page, "\xef\xbb\xbf", 3) == 0) {
        *mark = 3;
        return "";
    }
    if (n >= 2 && (memcmp(page, "\xff\xfe", 2) == 0 ||
                   memcmp(page, "\xfe\xff", 2) == 0)) {
        *mark = 2;
        return *page == '\xff' ? "UTF-16LE" : "UTF-16BE";
    }
    found = charset ? encoding_named(charset, strlen(charset), buf) : NULL;
    if (!found)
        found = encoding_within(page, n, buf);
    return found ? found : utf8_valid(page, n) ? "" : "CP1252";
}

/* h->decoder for that encoding. False: there is none here, or no memory. */
static bool decoder_for(struct html *h, const char *encoding)
{
    if (h->decoder && strcmp(h->decodes, encoding) == 0) {
        iconv(h->decoder, NULL, NULL, NULL, NULL);
        return true;
    }
    if (h->decoder)
        iconv_close(h->decoder);
    h->decoder = iconv_open("UTF-8", encoding);
    if (h->decoder == (iconv_t)-1) {
        h->decoder = NULL;
        return false;
    }
    snprintf(h->decodes, sizeof h->decodes, "%s", encoding);
    return true;
}

bool html_decode(struct html *h, const char *page, size_t n,
                 const char *charset, bly_bytes *out)
{
    char buf[32];
    size_t mark;
    const char *const encoding = encoding_of(page, n, charset, buf, &mark);
    *out = (bly_bytes){ page + mark, n - mark };
    if (!*encoding || !decoder_for(h, encoding))
        return true;
    char *in = (char *)(uintptr_t)(page + mark);
    size_t left = n - mark;
    h->page.len = 0;
    while (left) {
        if (!block_fit(&h->page, h->page.len + left + left / 2 + 64))
            return false;
        char *to = h->page.at + h->page.len;
        size_t room = h->page.room - h->page.len;
        const size_t before = left;
        const bool bad =
            iconv(h->decoder, &in, &left, &to, &room) == (size_t)-1 &&
            (errno != E2BIG || left == before);
        h->page.len = h->page.room - room;
        if (bad) {
            if (!block_put(&h->page, "\xef\xbf\xbd", 3))
                return false;
            in++;
            left--;
        }
    }
    *out = (bly_bytes){ h->page.at, h->page.len };
    return true;
}

/*
 * fuzz_html.c - the text of pages
 *
 * The first byte chooses what the header says about the encoding. Whatever the
 * page is, its text is not longer than the page in UTF-8, besides ends of lines
 * for its tags, and is the same when it is read again.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "io/html/html.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const charsets[] = { NULL,        "utf-8",   "latin1",
                                            "shift_jis", "gb18030", "utf-16le",
                                            "none" };
    static struct html h;
    bly_bytes text, utf8;
#ifdef BLY_GUMBO
    static bool (*const tree)(struct html * h, bool *made)
        __attribute__((used)) = html_tree;
    if (!size || !tree)
        return 0;
#else
    return 0;
#endif
    const char *const page = (const char *)data + 1;
    const size_t n = size - 1;
    const char *const charset =
        charsets[*data % (sizeof charsets / sizeof charsets[0])];
    if (!html_decode(&h, page, n, charset, &utf8))
        abort();
    const size_t len = utf8.len;
    if (!html_text(&h, page, n, charset, &text))
        abort();
    /* A reference of five bytes may be a character of six. */
    assert(text.len <= 2 * len + 16);
    char *const before = malloc(text.len + 1);
    if (!before)
        return 0;
    if (text.len)
        memcpy(before, text.ptr, text.len);
    const size_t was = text.len;
    if (!html_text(&h, page, n, charset, &text))
        abort();
    assert(text.len == was && (!was || memcmp(text.ptr, before, was) == 0));
    free(before);
    return 0;
}

/*
 * fuzz_jsonl.c - lines of JSON that anyone may have written, and JSON pointers
 *
 * The input up to its first newline is a pointer, the rest a line. What is
 * found lies within the line, and unescapes into no more than it has.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *const nl = memchr(data, '\n', size);
    const size_t npointer = nl ? (size_t)(nl - data) : 0;
    const size_t n = nl ? size - npointer - 1 : size;
    char *const pointer = calloc(npointer + 1, 1);
    char *const line = malloc(n); /* ends where the allocation does */
    char *const text = malloc(n);
    struct json_path paths[2] = { 0 };
    struct json_slice found[2];
    if (pointer && (line || !n) && (text || !n)) {
        memcpy(pointer, data, npointer);
        if (n)
            memcpy(line, data + size - n, n);
        const size_t npaths = json_path_read(&paths[0], "text") +
                              (size_t)json_path_read(&paths[1], pointer);
        if (npaths && n && json_find(line, n, paths, npaths, found))
            for (size_t i = 0; i < npaths; i++) {
                if (found[i].type == JSON_NONE)
                    continue;
                assert(found[i].at >= line);
                assert(found[i].at + found[i].len <= line + n);
                if (found[i].type == JSON_STRING)
                    assert(json_unescape(found[i].at, found[i].len, text) <=
                           found[i].len);
            }
    }
    json_path_free(&paths[0]);
    json_path_free(&paths[1]);
    free(pointer);
    free(line);
    free(text);
    return 0;
}

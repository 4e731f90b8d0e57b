/*
 * fuzz_expression.c - expressions that anyone may have typed
 *
 * The first byte chooses m, the second x, the rest is the text.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "workbench/expression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2)
        return 0;
    const uint64_t m = data[0] == 255 ? UINT64_C(1) << 32 : data[0] + 1u;
    char *text = malloc(n - 1);
    if (!text)
        return 0;
    memcpy(text, data + 2, n - 2);
    text[n - 2] = '\0';
    uint64_t value = 0;
    const char *wrong = NULL;
    if (expression_value(text, data[1], m, &value, &wrong))
        assert(value < m);
    else
        assert(wrong >= text && wrong <= text + strlen(text));
    free(text);
    return 0;
}

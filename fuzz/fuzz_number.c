/*
 * fuzz_number.c - numbers as people write them
 *
 * Whatever text comes, the answer is a number or no; a count is the same
 * number when it is written out and read again, and a count is a real too.
 */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bloomery.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';

    uint64_t count = 7, again;
    double real = 7;
    if (bly_parse_count(text, &count)) {
        char digits[32];
        snprintf(digits, sizeof digits, "%" PRIu64, count);
        assert(bly_parse_count(digits, &again) && again == count);
        assert(bly_parse_real(text, &real));
        assert(fabs(real - (double)count) <= 1e-9 * (double)count);
    } else {
        assert(count == 7);
    }
    real = 7;
    if (bly_parse_real(text, &real))
        assert(isfinite(real) && real >= 0);
    else
        assert(real == 7);
    free(text);
    return 0;
}

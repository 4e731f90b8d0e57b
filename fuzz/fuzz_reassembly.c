/*
 * fuzz_reassembly.c - any bytes as segments of TCP, forged ones among them
 *
 * Nothing that was captured is lost, and memory is bounded; see the check,
 * which the tests run too.
 */
#include <assert.h>

#include "tests/reassembly_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    assert(!reassembly_check(data, size));
    return 0;
}

/*
 * fuzz_npy.c - the header of .npy, from anybody
 *
 * What is read fits into the file, and the header that is written for it is
 * read as the same.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/vectors/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy npy, again;
    char why[NPY_WHY] = "";
    if (!npy_read(data, size, &npy, why)) {
        assert(*why && strlen(why) < NPY_WHY);
        return 0;
    }
    assert(npy.dims && npy.data <= size);
    assert(npy.n <= (size - npy.data) / npy.width / npy.dims);
    assert(npy.n * npy.dims * npy.width == size - npy.data);
    for (size_t i = 0; npy.type == NPY_HALF && i < npy.n * npy.dims; i++)
        (void)npy_half((uint16_t)(data[npy.data + 2 * i] |
                                  data[npy.data + 2 * i + 1] << 8));
    char *const bytes = malloc(NPY_HEADER + size - npy.data);
    if (!bytes)
        return 0;
    char head[NPY_HEADER];
    assert(npy_header(&npy, npy.n, head) == NPY_HEADER);
    memcpy(bytes, head, NPY_HEADER);
    memcpy(bytes + NPY_HEADER, data + npy.data, size - npy.data);
    assert(npy_read(bytes, NPY_HEADER + size - npy.data, &again, why));
    assert(again.n == npy.n && again.dims == npy.dims &&
           again.type == npy.type && again.data == NPY_HEADER);
    free(bytes);
    return 0;
}

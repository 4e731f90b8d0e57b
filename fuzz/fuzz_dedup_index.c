/*
 * fuzz_dedup_index.c - indexes of dedup that anyone may have written
 *
 * What loads has rows for all of its documents, and sets where it says so; what
 * does not says why.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apps/dedup/dedup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[64];
    struct dedup_options o = { .want_ids = true,
                               .memory = 1 << 20,
                               .folder = "/tmp" };
    if (bly_sketch_spec_check(&o.sketch))
        return 0;
    o.sketch.k = 4; /* small rows, so that inputs are small */
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        close(fd);
        return 0;
    }
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    o.against = name;
    struct dedup_job job;
    dedup_job_init(&job, &o);
    struct dedup_docs d = { .k = o.sketch.k };
    struct dedup_sets sets = { .store = job.store };
    if (dedup_load_index(&job, &d, &sets)) {
        assert(d.base == d.n && d.n * 32 <= size);
        for (uint32_t i = 0; i < d.n; i++)
            assert(d.id_start[i] <= d.id_start[i + 1] &&
                   d.id_start[i + 1] <= d.ids_len);
        uint64_t at = 0; /* sets follow one another, to the end */
        for (uint32_t i = 0; i < d.n && sets.indexed; i++)
            at += sets.words[at] + 1;
        assert(at == sets.len);
    } else {
        assert(job.error[0]);
    }
    store_free(&sets.store);
    dedup_job_free(&job);
    close(fd);
    return 0;
}

/*
 * bench_machine.c - what the bench runs on, and how much memory is left
 *
 * Everything is read from where Linux reports it; what cannot be read is left
 * out, and nothing depends on it.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "io/ordered.h"
#include "workbench/bench.h"

double bench_start(void)
{
    return clock_thread_ns();
}

double bench_spent(double start)
{
    static double cost = -1;
    const double spent = clock_thread_ns() - start;
    if (cost < 0)
        for (int i = 0; i < 200; i++) {
            const double from = clock_thread_ns(),
                         ns = clock_thread_ns() - from;
            if (cost < 0 || ns < cost)
                cost = ns;
        }
    return spent > cost ? spent - cost : 0;
}

/* The rest of the first line of path that begins with word, without what
 * stands before it and without a newline; false if there is none. */
static bool line_of(const char *path, const char *word, char *text, size_t n)
{
    FILE *const f = fopen(path, "r");
    char line[512];
    bool found = false;
    if (!f)
        return false;
    while (!found && fgets(line, sizeof line, f)) {
        if (strncmp(line, word, strlen(word)) != 0)
            continue;
        const char *s = line + strlen(word);
        while (isspace((unsigned char)*s) || (*word && *s == ':'))
            s++;
        snprintf(text, n, "%.*s", (int)strcspn(s, "\n"), s);
        found = true;
    }
    fclose(f);
    return found;
}

/* Such a line as a number, a K behind it meaning 1024; 0 if there is none. */
static uint64_t number_of(const char *path, const char *word)
{
    char text[64];
    if (!line_of(path, word, text, sizeof text))
        return 0;
    char *end;
    const uint64_t n = strtoull(text, &end, 10);
    while (*end == ' ')
        end++;
    return *end == 'K' || *end == 'k' ? n * 1024 : *end == 'M' ? n << 20 : n;
}

/* The size of the data cache of a level. */
static uint64_t cache_bytes(unsigned level)
{
    char path[96], type[32];
    for (unsigned i = 0; i < 8; i++) {
        const char *const at = "/sys/devices/system/cpu/cpu0/cache/index";
        snprintf(path, sizeof path, "%s%u/type", at, i);
        if (!line_of(path, "", type, sizeof type))
            break;
        snprintf(path, sizeof path, "%s%u/level", at, i);
        if (number_of(path, "") != level || strcmp(type, "Instruction") == 0)
            continue;
        snprintf(path, sizeof path, "%s%u/size", at, i);
        return number_of(path, "");
    }
    return 0;
}

uint64_t bench_memory_left(void)
{
    uint64_t left = number_of("/proc/meminfo", "MemAvailable");
    if (!left)
        left = (uint64_t)1 << 30; /* nobody says: be modest */
    /* A container may be allowed less than the machine has. */
    const uint64_t most = bly_memory_limit();
    const uint64_t used = number_of("/sys/fs/cgroup/memory.current", "");
    const uint64_t free = most > used ? most - used : 0;
    left = left < free ? left : free;
    const uint64_t room = left / 8; /* for others, and for what is not known */
    left -= room;
    return left < SIZE_MAX / 2 ? left : SIZE_MAX / 2;
}

void bench_use_small_pages(void)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

uint64_t bench_huge_bytes(void)
{
    return number_of("/proc/self/smaps_rollup", "AnonHugePages");
}

/* "[madvise]" of "always [madvise] never". */
static void page_setting(char *text, size_t n)
{
    char all[64];
    snprintf(text, n, "unknown");
    if (!line_of("/sys/kernel/mm/transparent_hugepage/enabled", "", all,
                 sizeof all))
        return;
    const char *const s = strchr(all, '[');
    if (s)
        snprintf(text, n, "%.*s", (int)strcspn(s + 1, "]"), s + 1);
}

void bench_machine(struct bench_machine *out)
{
    *out = (struct bench_machine){ .nprocessors = thread_count(0) };
    struct utsname name;
    if (!line_of("/proc/cpuinfo", "model name", out->cpu, sizeof out->cpu) &&
        !line_of("/proc/device-tree/model", "", out->cpu, sizeof out->cpu))
        snprintf(out->cpu, sizeof out->cpu, "%s",
                 uname(&name) == 0 ? name.machine : "unknown");
    out->l1 = cache_bytes(1);
    out->l2 = cache_bytes(2);
    out->l3 = cache_bytes(3);
    out->memory = number_of("/proc/meminfo", "MemTotal");
    page_setting(out->pages, sizeof out->pages);
    const char *job, *row;
    size_t n = 0;
    for (unsigned i = 0; (row = bly_cpu_row(i, &job)); i++)
        n += (size_t)snprintf(out->rows + n, sizeof out->rows - n, "%s%s %s",
                              n ? ", " : "", job, row);
}

/*
 * jumping_clock.c - the time of day jumps while a command runs
 *
 * Preloaded, with BLY_CLOCK=FILE: the file's first 8 bytes are seconds that are
 * added to the time of day, and may be changed at any moment. Clocks that
 * nobody sets are left alone.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *jump;

__attribute__((constructor)) static void begin(void)
{
    const char *const path = getenv("BLY_CLOCK");
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *const at =
        fd >= 0 ? mmap(NULL, sizeof *jump, PROT_READ, MAP_SHARED, fd, 0)
                : MAP_FAILED;
    if (at == MAP_FAILED)
        abort();
    jump = at;
    close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    const int result = (int)syscall(SYS_clock_gettime, clock, t);
    if (!result && jump && clock == CLOCK_REALTIME)
        t->tv_sec += (time_t)*jump;
    return result;
}

time_t time(time_t *to)
{
    struct timespec t = { 0, 0 };
    clock_gettime(CLOCK_REALTIME, &t);
    if (to)
        *to = t.tv_sec;
    return t.tv_sec;
}

/*
 * limits.c - what a module has: 4 GiB of memory, one thread
 */
#include <bloomery.h>
#include <unistd.h>

uint64_t bly_memory_limit(void)
{
    return UINT64_C(1) << 32;
}

long sysconf(int what)
{
    (void)what;
    return 1;
}

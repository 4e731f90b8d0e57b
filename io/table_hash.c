/*
 * table_hash.c - the hash of tables whose keys come from outside
 */
#include "io/table_hash.h"

#include <bloomery.h>
#include <pthread.h>
#include <sys/random.h>

static bly_hasher table_hasher = { .id = BLY_HASH_SIPHASH13 };

static void secret_choose(void)
{
    /* Without randomness it is a table all the same. */
    if (getrandom(table_hasher.secret, sizeof table_hasher.secret,
                  GRND_NONBLOCK) < 0)
        table_hasher.secret[0] = 1;
}

uint64_t table_hash(const void *key, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, secret_choose);
    return bly_hash(&table_hasher, key, n);
}

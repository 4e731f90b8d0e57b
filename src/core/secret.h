/*
 * secret.h - what nobody outside of this process knows
 */
#ifndef BLY_CORE_SECRET_H
#define BLY_CORE_SECRET_H

#include <stdint.h>

/* For tables in memory whose keys come from outside: whoever knows where a key
 * belongs can choose keys that all meet there. It is another one in every
 * process, so nothing that is written or printed may depend on it. */
void bly_process_secret(uint64_t secret[2]);

#endif

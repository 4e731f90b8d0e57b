/*
 * x86_digests.h - SHA-256 by the instructions that some x86 processors have
 *
 * Both functions stir the eight words of state with the 16 words of a block,
 * as numbers. The portable one says what comes out.
 */
#ifndef BLY_IO_X86_DIGESTS_H
#define BLY_IO_X86_DIGESTS_H

#include <stdbool.h>
#include <stdint.h>

extern const uint32_t sha256_constants[64];
void stir_sha256_portable(uint32_t *state, const uint32_t words[16]);

/* Whether this processor has the instructions; if not, stir_sha256_x86() must
 * not be called. */
bool x86_has_sha(void);
void stir_sha256_x86(uint32_t *state, const uint32_t words[16]);

#endif

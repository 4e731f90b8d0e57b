/*
 * unroll.h - loops that are wanted without a loop
 *
 *     BLY_UNROLL(8)
 *     for (uint64_t i = 0; i < k; i++)
 *
 * with k a literal after inlining, 8 at most: all rounds, one after another.
 *
 * For gcc the number is a limit. clang obeys it at once, in the function that
 * has the loop, where k is not known yet: eight rounds and a loop for the rest,
 * and by the time it knows that k is 3, only the loop for the rest is left.
 * Positions then go through memory, and asking a fuse filter takes 1.55 times
 * as long. Told to unroll the whole loop, clang waits until it knows k. Where
 * it never does, the loop remains a loop, and a warning would say so.
 */
#ifndef BLY_UNROLL_H
#define BLY_UNROLL_H

#define BLY_PRAGMA_(text) _Pragma(#text)
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#define BLY_UNROLL(most) BLY_PRAGMA_(clang loop unroll(full))
#else
#define BLY_UNROLL(most) BLY_PRAGMA_(GCC unroll most)
#endif

#endif

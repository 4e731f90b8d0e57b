/*
 * hex.h - bytes as hexadecimal digits, and back
 */
#ifndef BLY_IO_HEX_H
#define BLY_IO_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* The value of a digit; negative: it is not one. */
int hex_value(char c);

/* n bytes from 2 n digits, of either case. False: others are there, and out
 * means nothing. */
bool hex_read(const char *digits, size_t n, unsigned char *out);

/* 2 n digits of n bytes, in lower or in upper case; no NUL behind them. */
void hex_put(const unsigned char *bytes, size_t n, char *out);
void hex_put_upper(const unsigned char *bytes, size_t n, char *out);

#endif

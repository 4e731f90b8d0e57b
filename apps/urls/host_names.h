/*
 * host_names.h - names of hosts: one form, and the names above one
 *
 * A name is lower-case ASCII without a final dot; other letters are A-labels,
 * as DNS has them: bücher.example is xn--bcher-kva.example. An entry of a list
 * covers the names below it, so asking for a name asks for all above it:
 *
 *     a.b.example.org
 *       b.example.org
 *         example.org     down to two labels
 */
#ifndef BLY_URLS_NAMES_H
#define BLY_URLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define NAME_MOST 253 /* bytes of a name in DNS, without the final dot */
#define NAME_LABELS 127
#define NAME_ROOM 256

/* An IPv4 address in any spelling that the C library knows (decimal, octal,
 * hexadecimal, fewer numbers), or IPv6 in brackets, in its usual form. `to` may
 * be the same and has room for NAME_ROOM bytes. False if it is not one. */
bool address_canonical(const char *host, size_t n, char *to, size_t *len);

/* Some keyboards have other full stops, U+3002, U+FF0E and U+FF61: they become
 * dots, in place. Returns the new length. */
size_t name_dots(char *name, size_t n);

/* Labels with other letters than ASCII become A-labels, in place: there must be
 * room for four times as many bytes. What is not UTF-8, or does not fit in a
 * label, stays as it is. Returns the new length. */
size_t name_to_ascii(char *name, size_t n);

/* Bring a name into its form, in room of NAME_ROOM bytes: its length, or 0 if
 * it is not one, and *why says what is wrong. */
size_t name_canonical(const char *name, size_t n, char room[NAME_ROOM],
                      bool *address, const char **why);

/* How many labels has a name? */
size_t name_labels(const char *name, size_t n);

#endif

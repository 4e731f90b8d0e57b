/*
 * show.h - numbers and text for people
 */
#ifndef BLY_REPORT_SHOW_H
#define BLY_REPORT_SHOW_H

#include <stdio.h>

#include <bloomery.h>

/* Numbers for people, into one of a few buffers that are used in turn: a size
 * as "58.5 KiB", a real number as "10.1". A rate is "2.16 %", and below 0.01 %
 * "1 in 1.11 billion"; no command has another form. */
const char *show_bytes(uint64_t nbytes);
static inline uint64_t bits_to_bytes(uint64_t nbits)
{
    return nbits / 8 + (nbits % 8 != 0);
}
const char *show_keys(uint64_t nkeys); /* "1 key", "5 keys" */
const char *show_rate(double rate);
/* Two rates that are compared, in one unit: if one is below 0.01 %, the other
 * is "1 in 3800" too. */
void show_rates(double a, double b, const char *out[2]);

/* Three digits: "1230", "19.9 million". An estimate is "about 19.9 million".
 * The number of different keys that a filter is for, or was given, is all
 * digits up to a million; past that it was estimated where nobody said it, and
 * is "about" unless it is round. */
const char *show_rounded(double value);
const char *show_estimate(double value);
const char *show_count(uint64_t n);
const char *show_real(double value);

/* How wide a column of rates is: *wide becomes as much as this one takes. */
void rate_column(double rate, int *wide);
const char *show_fact(const bly_fact *fact);

/* Bytes from outside, for people: what would steer a terminal becomes question
 * marks, one per byte, as ls has it. That is control characters, those of UTF-8
 * past ASCII too, what turns the direction of writing around, and what is no
 * UTF-8; keep_lines leaves newlines and tabs, and makes newlines of NULs. All
 * that people read goes through this: messages of fail() and warn() as a whole,
 * names by the two below, keys on a terminal by print_key(). */
void text_clean(void *text, size_t n, bool keep_lines);

/* The length of the UTF-8 character that n bytes begin with; 0 if it is not
 * one. And how many bytes of one of that length are not for a terminal: 0 or
 * all. */
size_t utf8_length(const unsigned char *s, size_t n);
size_t steers(const unsigned char *s, size_t len);

/* Names of files and keys, clean, into one of two buffers of the thread. */
const char *show_name(const char *name);
const char *show_text(const void *text, size_t nbytes);

/* Words of text, wrapped: every line after the first begins with indent
 * blanks, and no line passes column 79 unless a word does. `at` is the column
 * where the first one starts. A newline in text breaks the line. */
#define HARD_BLANK '\x1f' /* printed as a blank; no line breaks there */
void print_wrapped(FILE *to, const char *text, int at, int indent);

/* A row of a table: a name, and from a column on what text says of it, wrapped.
 * The text is freed; NULL: there was no memory for it. */
void print_row(const char *name, int column, char *text);

/* Text that is made by printing: text_end() gives it to the caller, who frees
 * it. Where memory is short both end the command: half a text must not look
 * like a whole one. */
struct text {
    FILE *to;
    char *at;
    size_t n;
};
FILE *text_begin(struct text *t);
char *text_end(struct text *t);

#endif

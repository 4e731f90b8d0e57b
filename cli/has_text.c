/*
 * has_text.c - how has prints the keys it found
 *
 *     access.log:17:192.0.2.7
 *     {"key":"192.0.2.7","maybe":true,"file":"access.log","line":17}
 *
 * As grep does it: names and numbers stand before the line, and on a terminal
 * they have grep's colours, with the key in red where the filter may have it.
 * Colours are escapes among bytes from outside, so each piece is made clean
 * before it is put between them.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/has_text.h"
#include "io/paths.h"
#include "report/out.h"
#include "report/say.h"
#include "report/show.h"

#define COLOUR_NAME "\033[35m"
#define COLOUR_NUMBER "\033[32m"
#define COLOUR_COLON "\033[36m"
#define COLOUR_KEY "\033[01;31m"
#define COLOUR_END "\033[m"

bool has_colour(unsigned when)
{
    const char *const no = getenv("NO_COLOR"), *const term = getenv("TERM");
    if (when != COLOUR_AUTO)
        return when == COLOUR_ALWAYS;
    return out_is_terminal() && !(no && *no) &&
           !(term && strcmp(term, "dumb") == 0);
}

/* Bytes, in a colour if there is one. */
static bool put_piece(const struct has_form *form, struct block *to,
                      const char *colour, const void *bytes, size_t n)
{
    if (!form->colour)
        return block_put(to, bytes, n);
    if (!n)
        return true;
    if (colour && !block_put(to, colour, strlen(colour)))
        return false;
    const size_t from = to->len;
    if (!block_put(to, bytes, n))
        return false;
    text_clean(to->at + from, n, true);
    return !colour || block_put(to, COLOUR_END, strlen(COLOUR_END));
}

static bool put_colon(const struct has_form *form, struct block *to)
{
    return put_piece(form, to, COLOUR_COLON, ":", 1);
}

/* As grep calls standard input. */
static const char *file_name(const struct input_file *f)
{
    return is_dash(f->name) ? "(standard input)" : f->name;
}

bool has_put_name(const struct has_form *form, const struct input_file *f,
                  struct block *to)
{
    const char *const name = file_name(f);
    return put_piece(form, to, COLOUR_NAME, name, strlen(name));
}

static uint64_t line_number(const struct batch *b, size_t i)
{
    return b->block->first + (b->numbers ? b->numbers[i] : b->first + i) + 1;
}

/* ------------------------------------------------------------------- lines */

/* With a colon behind it. By hand: printf() would take most of the time. */
static bool put_number(const struct has_form *form, struct block *to,
                       uint64_t number)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = ':';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    const size_t n = sizeof digits - 1 - at;
    return form->colour ? put_piece(form, to, COLOUR_NUMBER, digits + at, n) &&
                              put_colon(form, to)
                        : block_put(to, digits + at, n + 1);
}

/* The line of key i, with the key in it coloured; all of it where the key has
 * another form. */
static bool put_text(const struct has_form *form, const struct batch *b,
                     size_t i)
{
    const bly_bytes line = b->lines[i];
    bly_bytes key = b->keys[i];
    const char *const start = line.ptr, *const end = start + line.len;
    const char *at = key.ptr;
    if (!form->colour || !form->maybe)
        return put_piece(form, b->text, NULL, start, line.len);
    if ((uintptr_t)at < (uintptr_t)start ||
        (uintptr_t)at + key.len > (uintptr_t)end) {
        at = start;
        key.len = line.len;
    }
    const char *const behind = at + key.len;
    return put_piece(form, b->text, NULL, start, (size_t)(at - start)) &&
           put_piece(form, b->text, COLOUR_KEY, at, key.len) &&
           put_piece(form, b->text, NULL, behind, (size_t)(end - behind));
}

static bool put_line(const struct has_form *form, const struct batch *b,
                     size_t i, const char *part)
{
    struct block *const to = b->text;
    if (form->names && b->block->file &&
        !(has_put_name(form, b->block->file, to) && put_colon(form, to)))
        return false;
    if (form->numbers && !put_number(form, to, line_number(b, i)))
        return false;
    return put_text(form, b, i) &&
           (!part || (block_put(to, "\t", 1) &&
                      put_piece(form, to, NULL, part, strlen(part)))) &&
           block_put(to, &form->terminator, 1);
}

/* ----------------------------------------------------------------- objects */

struct has_key {
    bly_bytes key, text;
    bool maybe;
    const char *part, *file;
    const uint64_t *line;
};

const struct field has_key_fields[] = {
    FIELD(struct has_key, key, NONE, "the key"),
    FIELD(struct has_key, maybe, NONE,
          "whether it may be in the filter; if not, it is not in it (only "
          "likely so if the kind's no is: see bloomery kinds)"),
    FIELD(struct has_key, part, OPTIONAL,
          "with --parts: the filter that may have it"),
    FIELD(struct has_key, file, MAYBE,
          "the file that it comes from, - being standard input; null: it was "
          "an argument"),
    FIELD(struct has_key, line, MAYBE, "its line there, from 1"),
    FIELD(struct has_key, text, OPTIONAL | ZERO,
          "the whole line, if the key is a part of it"),
    { 0 },
};

static bool put_object(const struct batch *b, size_t i, bool maybe,
                       const char *part)
{
    struct text text;
    struct json j = { .to = text_begin(&text) };
    const struct input_file *const f = b->block->file;
    const uint64_t number = line_number(b, i);
    struct has_key k = { .key = b->keys[i],
                         .maybe = maybe,
                         .part = part,
                         .file = f ? f->name : NULL,
                         .line = f ? &number : NULL };
    if (b->lines[i].len != k.key.len ||
        memcmp(b->lines[i].ptr, k.key.ptr, k.key.len) != 0)
        k.text = b->lines[i];
    report_object(&j, has_key_fields, &k);
    json_end(&j);
    char *const made = text_end(&text);
    const bool ok = made && block_put(b->text, made, strlen(made));
    free(made);
    return ok;
}

bool has_put(const struct has_form *form, const struct batch *b, size_t i,
             const char *part)
{
    return form->json ? put_object(b, i, form->maybe, part)
                      : put_line(form, b, i, part);
}

bly_status has_put_picked(const struct has_form *form, struct batch *b)
{
    /* What a program reads has an answer for each key. */
    const bool all = form->json && form->maybe;
    for (size_t i = 0; i < b->n && all; i++)
        if (!put_object(b, i, b->picked[i / 64] >> i % 64 & 1, NULL)) {
            b->why = "out of memory";
            return BLY_ENOMEM;
        }
    if (all)
        return BLY_OK;
    for (size_t w = 0; w < BLY_BITMAP_WORDS(b->n); w++)
        for (uint64_t bits = b->picked[w]; bits; bits &= bits - 1)
            if (!has_put(form, b, w * 64 + (size_t)__builtin_ctzll(bits),
                         NULL)) {
                b->why = "out of memory";
                return BLY_ENOMEM;
            }
    return BLY_OK;
}

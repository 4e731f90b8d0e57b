/*
 * wasm.h - what the files of the WebAssembly module share
 *
 * The module translates, as other bindings do: numbers and addresses of
 * JavaScript to the library's calls, and its structs to records that
 * JavaScript reads. bloomery.js is the other side.
 *
 *     tell.c      records: what a call has to say
 *     wanted.c    "name=value" texts to a bly_spec
 *     filters.c   filters: keys, files, sets
 *     facts.c     kinds, plans, what a filter knows of itself
 *     machine/    what a C library and a system would be, of few bytes
 *     lean/       in the small module: what takes the place of larger parts
 *
 * A call that fails returns the status, or 0 where it gives an address; then
 * failure() is the status and message() the line that says what is wrong.
 */
#ifndef BLY_BINDINGS_WASM_H
#define BLY_BINDINGS_WASM_H

#include <bloomery.h>

/* A function that JavaScript calls, by its own name, and one that it has.
 * Elsewhere, for the fuzzer, they are plain functions. */
#ifdef __wasm__
#define EXPORT(type, name, params)                                   \
    __attribute__((export_name(#name), used)) type js_##name params; \
    type js_##name params
#define IMPORT(type, name, params)                           \
    __attribute__((import_module("js"), import_name(#name))) \
    type js_##name params;
#else
#define EXPORT(type, name, params) \
    type js_##name params;         \
    type js_##name params
#define IMPORT(type, name, params) type js_##name params;
#endif

/* The small module has the most used kinds, without secrets, folded keys,
 * coded files, sets and lines of messages; and an export that only the module
 * with all kinds has. */
#ifdef BLY_LEAN
#define LEAN 1
#define EXPORT_WHOLE(type, name, params) \
    static type js_##name params;        \
    static type js_##name params
#else
#define LEAN 0
#define EXPORT_WHOLE EXPORT
#endif

/* Keep a status for failure(), and hand it on. */
bly_status js_keep(bly_status st);
/* A failure of our own: BLY_EINVAL, and the line `what: 'wrong' right`. */
bly_status js_refuse(const char *what, const char *wrong, const char *right);

void js_refuse_line(const char *line); /* the line as a whole */
bly_status js_no_memory(void);         /* BLY_ENOMEM, of our own */

/* A record: a list of named values. It stays until the next one begins. What
 * does not fit into memory is left out, and the record is then refused whole
 * by js_tell_end(). */
void js_tell_begin(void);
void js_tell_text(const char *name, const void *text, size_t len);
void js_tell_word(const char *name, const char *word); /* NULL: not told */
void js_tell_real(const char *name, double value);
void js_tell_uint(const char *name, uint64_t value);
void js_tell_flag(const char *name, bool value);
void js_tell_facts(const char *name, const bly_fact *facts, size_t n);
void js_tell_open(const char *name, char shape); /* '{' or '[' */
void js_tell_close(void);
bly_status js_tell_end(void);

/* A spec from a text: "name=value", each ended by NUL, and an empty one at the
 * end. Names that are not the spec's own are options of the kind. The spec
 * points into the text, which is changed, and into `options`. */
#define JS_OPTIONS 16
struct js_wanted {
    bly_spec spec;
    bly_option options[JS_OPTIONS];
    unsigned char secret[BLY_SECRET_BYTES];
};
bly_status js_wanted_read(struct js_wanted *w, char *text);

#endif

/*
 * fields.h - what a command reports, described once
 *
 * A result is a struct, and a table says what is in it: the name of each member
 * in JSON, its unit, and one line of help. From the table come the JSON, the
 * text for people, the section JSON of the man page and the schema in docs/.
 *
 *     struct added {
 *         const char *file;
 *         uint64_t keys, fresh;
 *         double rate;
 *     };
 *
 *     static const struct field added_fields[] = {
 *         FIELD(struct added, file, NONE, "the filter"),
 *         FIELD(struct added, keys, KEYS, "keys that were read"),
 *         NAMED(struct added, "new", fresh, NONE, "keys that changed it"),
 *         FIELD(struct added, rate, RATE | MAYBE, "of false positives"),
 *         { 0 },
 *     };
 *
 *     report(stdout, args.json, added_fields, &(struct added){ path, 5, 3, NAN
 * },
 *            "{file}: {keys} read, {new} of them new[; {rate} wrong]\n");
 *
 * prints {"file":"a.bly","keys":5,"new":3,"rate":null} for programs, and for
 * people "a.bly: 5 keys read, 3 of them new". The command's row gets
 *
 *     .reports = REPORTS({ "", added_fields, ONE }),
 *
 * and `make schema` writes docs/schema.json anew; every test that runs a
 * command with --json holds what it prints against it.
 *
 * The type of a member is taken from its declaration: bool, unsigned integers,
 * double, const char *, arrays of char, bly_bytes, bly_fact (a number or a
 * word), and pointers to const bool or unsigned integers. A NULL pointer and a
 * double that is not finite count as "no value". Such a member is null if it is
 * MAYBE, and left out if it is OPTIONAL.
 *
 * In a text for people {name} is a value as its unit has it, {name:-12.3} one
 * padded as by printf and with three decimals, {name:#} a bare number, {name
 * match/es} one with what it counts: 1 match, 2 matches. A part
 * in brackets is printed if all values in it are there; of [this|that|] the
 * first part that fits. {?name} fits if the value is there and not 0, false,
 * empty or without elements, {!name} if not, {>name} if it is infinite;
 * these print nothing, nor does a bool. A tilde moves to a column that is right
 * of all that stands before one in this text, and {params:2} is a row for each
 * fact, indented by 2.
 */
#ifndef BLY_REPORT_FIELDS_H
#define BLY_REPORT_FIELDS_H

#include <bloomery.h>

#include "report/json.h"

enum {
    /* Units, and what people see of 1234567: */
    NONE,     /* 1234567; a real number 1.235e+06 */
    BITS,     /* the same */
    BYTES,    /* 1.2 MiB */
    KEYS,     /* 1234567 keys */
    ITEMS,    /* about 1.23 million: different keys, see show_count() */
    ESTIMATE, /* about 1.23 million: keys, see show_estimate() */
    ROUNDED,  /* 1.23 million: keys, see show_rounded() */
    RATE,     /* of 0.01: 1 %; see show_rate() */
    SHARE,    /* of 0.01: 1.0 % */
    SECONDS,  /* as NONE */
    NANOSECONDS,
    UNIT_MASK = 0xf,
    MAYBE = 0x10,    /* may be null */
    OPTIONAL = 0x20, /* left out if there is no value */
    ZERO = 0x40,     /* 0 is no value; nor is an empty text */
    AT = 0x80,       /* of an object or a list: behind a pointer */
    TUPLE = 0x100    /* of a list of objects: arrays, without names */
};

enum field_type {
    FIELD_NONE,
    FIELD_CHARS,
    FIELD_TEXT,
    FIELD_BYTES,
    FIELD_BOOL,
    FIELD_UINT32,
    FIELD_UINT64,
    FIELD_REAL,
    FIELD_FACT,
    FIELD_OBJECT,
    FIELD_AT = 0x10 /* behind a pointer */
};

/* Make element i, of ELEMENT_ROOM bytes at most, from what a pointer in the
 * result points to. */
typedef void element_fn(const void *from, size_t i, void *element);

/* A row of a table; the last one is { 0 }. */
struct field {
    const char *name; /* NULL: the members of `fields` stand here themselves */
    const char *help; /* one line; NULL: for people only */
    const struct field *fields; /* of an object, or of each in a list of them */
    size_t at;
    size_t each, count; /* of a list: size of an element, and offset of a
                           size_t; NO_COUNT: words, the last one NULL */
    unsigned type, how; /* enum field_type; unit and flags */
    element_fn *make;   /* of a list whose elements are made one by one */
};
#define NO_COUNT SIZE_MAX
#define ELEMENT_ROOM 4096

#define FIELD(T, member, how, help) NAMED(T, #member, member, how, help)
#define NAMED(T, name, member, how, help)                  \
    FIELD_ROW(name, help, NULL, offsetof(T, member), 0, 0, \
              FIELD_TYPE(((T *)0)->member), how, NULL)

/* An object of its own; the members of an object, in this one; those that
 * another table has for the same struct, and these as an object. */
#define OBJECT(T, name, member, how, fields, help)           \
    FIELD_ROW(name, help, fields, offsetof(T, member), 0, 0, \
              FIELD_OBJECT | FIELD_BEHIND(how), how, NULL)
#define MEMBERS(T, member, how, fields) \
    OBJECT(T, NULL, member, how, fields, NULL)
#define ALSO(fields) WHOLE(NULL, fields, NULL)
#define WHOLE(name, fields, help) \
    FIELD_ROW(name, help, fields, 0, 0, 0, FIELD_OBJECT, NONE, NULL)

/* Lists: of objects; of single values; of words with NULL behind the last; of
 * objects of type E that `make` makes. */
#define LIST(T, name, member, count, how, fields, help)        \
    FIELD_ROW(name, help, fields, offsetof(T, member),         \
              sizeof(((T *)0)->member[0]), offsetof(T, count), \
              FIELD_OBJECT | FIELD_BEHIND(how), how, NULL)
#define VALUES(T, name, member, count, how, help)              \
    FIELD_ROW(name, help, NULL, offsetof(T, member),           \
              sizeof(((T *)0)->member[0]), offsetof(T, count), \
              FIELD_TYPE(((T *)0)->member[0]) | FIELD_BEHIND(how), how, NULL)
#define WORDS(T, name, member, how, help)                                      \
    FIELD_ROW(name, help, NULL, offsetof(T, member), sizeof(char *), NO_COUNT, \
              FIELD_TEXT | FIELD_BEHIND(how), how, NULL)
#define EACH(T, name, member, count, how, make, E, fields, help)  \
    FIELD_ROW(name, help, fields, offsetof(T, member), sizeof(E), \
              offsetof(T, count), FIELD_OBJECT | FIELD_AT, how, make)

/* Facts of a kind or format: an object whose names the library gives. */
#define FACTS(T, member, count) \
    VALUES(T, "params", member, count, NONE, "its parameters, by their names")

#define FIELD_ROW(name, help, fields, at, each, count, type, how, make) \
    {                                                                   \
        name, help, fields, at, each, count, type, how, make            \
    }
#define FIELD_BEHIND(how) ((how)&AT ? FIELD_AT : 0)
#define FIELD_LONG (sizeof(long) == 8 ? FIELD_UINT64 : FIELD_UINT32)
#define FIELD_TYPE(m) \
    _Generic((m),                                                           \
        bool: FIELD_BOOL,                                                   \
        unsigned: FIELD_UINT32,                                             \
        unsigned long: FIELD_LONG,                                          \
        unsigned long long: FIELD_UINT64,                                   \
        double: FIELD_REAL,                                                 \
        const char *: FIELD_TEXT,                                           \
        char *: _Generic(&(m), char **: FIELD_TEXT, default: FIELD_CHARS),  \
        bly_bytes: FIELD_BYTES,                                             \
        bly_fact: FIELD_FACT,                                               \
        const bool *: FIELD_BOOL | FIELD_AT,                                \
        const unsigned *: FIELD_UINT32 | FIELD_AT,                          \
        const unsigned long *: FIELD_LONG | FIELD_AT,                       \
        const unsigned long long *: FIELD_UINT64 | FIELD_AT)

/* Print a result: as JSON to standard output, one object in one line, or as
 * text for people. */
void report(FILE *to, bool json, const struct field *fields, const void *value,
            const char *text);

/* One of both. */
void report_text(FILE *to, const struct field *fields, const void *value,
                 const char *text);
void report_object(struct json *j, const struct field *fields,
                   const void *value);

/* --------------------------------------------------------- documentation */

/* What a command prints with --json; a list of them ends with fields of NULL.
 */
struct report {
    const char *what; /* when it is printed: "with --near"; "": always */
    const struct field *fields;
    enum { ONE, ARRAY, LINES } form; /* one, all in an array, one per line */
};

#define REPORTS(...)        \
    (const struct report[]) \
    {                       \
        __VA_ARGS__,        \
        {                   \
            0               \
        }                   \
    }

/* The JSON schemas of these reports, as values of j; of a verb, or NULL. */
void report_schema(struct json *j, const char *verb,
                   const struct report *reports);

/* What people read of a field's value: "whole number of bytes, or null". */
const char *field_kind(const struct field *f);

#endif

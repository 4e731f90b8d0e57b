/*
 * index_fields.h - the text of a file is one field of each of its records
 *
 * An index of records (JSON lines, CSV, fields between delimiters) knows one
 * field of them. Its text takes the place of the record, wherever text is: in
 * terms, in what is searched, in what is printed.
 *
 *     {"id": 7, "text": "ready"}            ready
 *     {"id": 8, "text": "so it\ngoes"}      so it goes
 *     {"id": 9}
 *
 * Lines stay where they are: what has no such field is an empty line, and so
 * are the lines of a header, and those behind the first of a record of CSV. A
 * newline inside of a field becomes a blank.
 */
#ifndef BLY_INDEX_FIELDS_H
#define BLY_INDEX_FIELDS_H

#include "base/bytes.h"
#include "io/picker.h"

/* What the options say; NULL where nothing is said. Strings belong to it. */
struct field_rules {
    char *field, *csv, *jsonl, *delimiter;
    char *id; /* a second field, which names the record */
    bool no_header;
};

static inline bool fields_any(const struct field_rules *r)
{
    return r->field || r->csv || r->jsonl;
}

bool fields_same(const struct field_rules *a, const struct field_rules *b);
void fields_rules_free(struct field_rules *r);

/* The rules, checked, for any number of threads; they must outlive it. False,
 * with the reason printed. */
struct fields {
    struct input in, named; /* named: the same with the id in front */
    bool has_id, has_header;
    char csv; /* the delimiter; 0: lines are records */
};
bool fields_new(struct fields *f, const struct field_rules *rules);
void fields_free(struct fields *f);

/* Where the columns of a file are, as the first n bytes of its text say, which
 * have all of the header. False, and why. */
bool fields_columns(const struct fields *f, const char *text, size_t n,
                    struct input_file *out, char *why, size_t nwhy);

/* How far a text was looked through for the end of a record, in vain; zero at
 * its beginning. */
struct record_seeker {
    size_t seen;
    enum csv_state state;
};

/* How many bytes of the text, which begins with a record, are whole records: up
 * to the last end at or before `most`, or else an end behind it; 0: the end of
 * a record is not there, and the seeker goes on from here when there is more.
 * Behind n bytes BLOCK_SLACK more can be read. */
size_t fields_whole(const struct fields *f, struct record_seeker *seeker,
                    const char *text, size_t n, size_t most);

/* For one thread. Zero, with the fields, is a new one. */
struct record_cutter {
    const struct fields *fields;
    bool wants_ids;
    struct picking picking, naming;
    struct block raw;
    struct bytes text; /* the fields, a line each */
    struct bytes ids;
    size_t *id_ends; /* of each line's id, in ids */
    size_t nlines, id_room;
    uint64_t nbad; /* records without the field, or not to be read */
    uint64_t bad_line;
    char why[160]; /* the first of them */
};

/* The fields in n bytes of whole records. begins: they are the first of their
 * file. False without memory. */
bool fields_cut(struct record_cutter *c, const struct input_file *file,
                const char *text, size_t n, bool begins);

/* The name of the record in that line of what was cut; empty: it has none. */
bly_bytes fields_id(const struct record_cutter *c, uint64_t line);

void fields_cutter_free(struct record_cutter *c);

#endif

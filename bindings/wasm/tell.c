/*
 * tell.c - records: what a call has to say
 *
 * A value is a letter for its type, its name with NUL behind it, and
 *
 *     t  text: length (4 bytes) and bytes      n  a double
 *     u  a whole number of 64 bits             b  0 or 1, one byte
 *     {  members follow   [  elements follow   }  they end, without a name
 *
 * in the byte order of WebAssembly, which is little-endian. So no number is
 * printed on one side and parsed on the other.
 */
#include <stdlib.h>
#include <string.h>

#include "bindings/wasm/wasm.h"

static struct {
    char *at;
    size_t len, room;
    bool lost;
} told;

static bly_status js_failed;

/* Of a failure that is not the library's; empty otherwise. */
static char own_line[256];

bly_status js_keep(bly_status st)
{
    js_failed = st;
    own_line[0] = 0;
    return st;
}

/* At most `most` bytes more of it. */
static void line_add(const char *text, size_t most)
{
    size_t n = strlen(own_line);
    while (*text && most-- && n < sizeof own_line - 1)
        own_line[n++] = *text++;
    own_line[n] = 0;
}

void js_refuse_line(const char *line)
{
    own_line[0] = 0;
    line_add(line, sizeof own_line);
    js_failed = BLY_EINVAL;
}

bly_status js_refuse(const char *what, const char *wrong, const char *right)
{
    js_refuse_line(what);
    line_add(": '", 3);
    line_add(wrong, 80);
    line_add("' ", 2);
    line_add(right, sizeof own_line);
    return js_failed;
}

bly_status js_no_memory(void)
{
    js_refuse_line(bly_status_text(BLY_ENOMEM));
    return js_failed = BLY_ENOMEM;
}

EXPORT(uint32_t, failure, (void))
{
    return js_failed;
}

/* Our own line, the library's, or what the status says where it has none. */
EXPORT(const char *, message, (void))
{
    if (own_line[0])
        return own_line;
    return LEAN ? bly_status_text(js_failed) : bly_error();
}

EXPORT(void *, take, (size_t nbytes))
{
    return malloc(nbytes ? nbytes : 1);
}

EXPORT(void, give, (void *at))
{
    free(at);
}

EXPORT(const char *, told, (void))
{
    return told.at;
}

EXPORT(size_t, told_bytes, (void))
{
    return told.len;
}

static void put(const void *bytes, size_t n)
{
    if (n > told.room - told.len) {
        const size_t room = 2 * (told.len + n) + 4096;
        char *const more = told.lost ? NULL : realloc(told.at, room);
        if (!more) {
            told.lost = true;
            return;
        }
        told.at = more;
        told.room = room;
    }
    memcpy(told.at + told.len, bytes, n);
    told.len += n;
}

static void put_head(char type, const char *name)
{
    put(&type, 1);
    put(name, strlen(name) + 1);
}

void js_tell_begin(void)
{
    told.len = 0;
    told.lost = false;
    put("{", 2);
}

bly_status js_tell_end(void)
{
    js_tell_close();
    if (!told.lost)
        return js_keep(BLY_OK);
    told.len = 0;
    return js_no_memory();
}

void js_tell_text(const char *name, const void *text, size_t len)
{
    const uint32_t n = (uint32_t)len;
    put_head('t', name);
    put(&n, sizeof n);
    put(text, len);
}

void js_tell_word(const char *name, const char *word)
{
    if (word)
        js_tell_text(name, word, strlen(word));
}

void js_tell_real(const char *name, double value)
{
    put_head('n', name);
    put(&value, sizeof value);
}

void js_tell_uint(const char *name, uint64_t value)
{
    put_head('u', name);
    put(&value, sizeof value);
}

void js_tell_flag(const char *name, bool value)
{
    put_head('b', name);
    put(&value, 1);
}

void js_tell_open(const char *name, char shape)
{
    put_head(shape, name);
}

void js_tell_close(void)
{
    put("}", 1);
}

void js_tell_facts(const char *name, const bly_fact *facts, size_t n)
{
    js_tell_open(name, '{');
    for (size_t i = 0; i < n; i++)
        if (facts[i].type == BLY_CHOICE)
            js_tell_word(facts[i].name, facts[i].word);
        else if (facts[i].type == BLY_UINT)
            js_tell_uint(facts[i].name, facts[i].uint);
        else
            js_tell_real(facts[i].name, facts[i].real);
    js_tell_close();
}

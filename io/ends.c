/*
 * ends.c - lines and files as Windows writes them
 *
 * There, lines end in CR LF and texts may begin with a byte order mark. Taken
 * as they are, the CR becomes the last byte of every key and the mark the first
 * three of one, and no question finds them. Bytes are not changed unless the
 * user asks for it, since a key may be any bytes; but there is a warning about
 * such keys, which says what to do.
 *
 * The first keys of each file decide: if all of them end in CR, so do the
 * others. Workers see the keys, the reader tells: warn() is for one thread at a
 * time.
 */
#include <stdio.h>
#include <string.h>

#include "io/normal.h"
#include "io/picker.h"
#include "report/say.h"

/* Enough to be sure of a file that is made so, and a pipe that trickles shows
 * no more than one anyway. */
#define ENDS_KEYS 64

#define TOLD_BYTES 512 /* of a name */

bool crlf_option;

bool input_drops_ends(const struct input *in)
{
    return in->normal.no_cr || (in->picker && picker_drops_cr(in->picker));
}

void input_look(struct input *in, const struct block *b, const bly_bytes *keys,
                size_t n)
{
    /* Trimming takes a CR off, and a number may have one behind it. */
    if (!b->begins || !b->file || !in->separator || input_drops_ends(in) ||
        in->normal.trim || in->normal.real || normal_integer(&in->normal) ||
        (in->picker && !picker_keeps_cr(in->picker)))
        return;
    /* The last line of a file may lack its end, be it CR LF or LF. */
    if (b->unended && n > 1)
        n--;
    n = n < ENDS_KEYS ? n : ENDS_KEYS;
    for (size_t i = 0; i < n; i++)
        if (!keys[i].len ||
            ((const char *)keys[i].ptr)[keys[i].len - 1] != '\r')
            return;
    const struct input_file *none = NULL;
    if (n && !atomic_compare_exchange_strong(&in->cr_file, &none, b->file))
        atomic_fetch_add(&in->ncr_more, 1);
}

/* A list may be read twice, and is told of once: has this one been? */
static bool was_told(const char *name, char last[TOLD_BYTES])
{
    if (strncmp(last, name, TOLD_BYTES - 1) == 0)
        return true;
    snprintf(last, TOLD_BYTES, "%s", name);
    return false;
}

void input_tell_mark(struct input *in, const struct input_file *f)
{
    static char last[TOLD_BYTES];
    if (in->mark_told || was_told(f->name, last))
        return;
    in->mark_told = true;
    warn("%s: begins with a byte order mark (EF BB BF), which becomes part of "
         "its first key; use %s to leave it out",
         input_name(in, f),
         crlf_option ? "--crlf" : "sed '1s/^\\xef\\xbb\\xbf//'");
}

void input_tell_ends(struct input *in)
{
    const struct input_file *const f = atomic_load(&in->cr_file);
    static char last[TOLD_BYTES];
    if (!f || in->cr_told)
        return;
    in->cr_told = true;
    if (was_told(f->name, last))
        return;
    warn(
        "%s: its lines end in CR LF, as on Windows, and the CR becomes part of "
        "every key; use %s to leave it out",
        input_name(in, f), crlf_option ? "--crlf" : "tr -d '\\r'");
}

void input_tell_more(struct input *in)
{
    const unsigned long long n = atomic_exchange(&in->ncr_more, 0);
    if (n)
        warn("%llu more file%s with lines that end in CR LF", n,
             n == 1 ? "" : "s");
}

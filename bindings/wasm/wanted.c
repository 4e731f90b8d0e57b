/*
 * wanted.c - what a filter is to be, from "name=value" texts
 *
 * Numbers are written as the command takes them: "10M", "1e6", "1%".
 */
#include <string.h>

#include "bindings/wasm/wasm.h"

/* Digits of a secret: 32 of them, as JavaScript writes bytes. */
static bool secret_of(const char *text, unsigned char *secret)
{
    for (unsigned i = 0; i < 2 * BLY_SECRET_BYTES; i++) {
        const char c = text[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                                 : -1;
        if (digit < 0)
            return false;
        secret[i / 2] = (unsigned char)(secret[i / 2] << 4 | digit);
    }
    return !text[2 * BLY_SECRET_BYTES];
}

static bool keys_of(const char *word, bly_key_type *out)
{
    for (unsigned i = BLY_KEYS_TEXT; bly_key_type_name((bly_key_type)i); i++)
        if (strcmp(word, bly_key_type_name((bly_key_type)i)) == 0) {
            *out = (bly_key_type)i;
            return true;
        }
    return false;
}

static bool form_of(uint32_t form, const char *word, uint32_t *forms)
{
    if (strcmp(word, "true") == 0)
        *forms |= form;
    return strcmp(word, "true") == 0 || strcmp(word, "false") == 0;
}

/* 1: taken, 0: no name of a spec's, -1: its value is none. */
static int take_own(struct js_wanted *w, const char *name, const char *value)
{
    bly_spec *const s = &w->spec;
    bool ok;
    if (strcmp(name, "kind") == 0)
        ok = (s->kind = value);
    else if (strcmp(name, "items") == 0)
        ok = bly_parse_count(value, &s->items);
    else if (strcmp(name, "fpr") == 0)
        ok = bly_parse_real(value, &s->fpr);
    else if (strcmp(name, "bits") == 0)
        ok = bly_parse_count(value, &s->bits);
    else if (strcmp(name, "seed") == 0)
        ok = bly_parse_count(value, &s->seed);
    else if (strcmp(name, "maxBytes") == 0)
        ok = bly_parse_count(value, &s->max_bytes);
    else if (strcmp(name, "secret") == 0)
        ok = !LEAN && (s->secret = w->secret) && secret_of(value, w->secret);
    else if (strcmp(name, "keys") == 0)
        ok = keys_of(value, &s->keying.type);
    else if (strcmp(name, "folded") == 0)
        ok = form_of(BLY_KEYS_FOLDED, value, &s->keying.forms) &&
             !(LEAN && s->keying.forms & BLY_KEYS_FOLDED);
    else if (strcmp(name, "trimmed") == 0)
        ok = form_of(BLY_KEYS_TRIMMED, value, &s->keying.forms);
    else if (strcmp(name, "noCR") == 0)
        ok = form_of(BLY_KEYS_NO_CR, value, &s->keying.forms);
    else
        return 0;
    return ok ? 1 : -1;
}

bly_status js_wanted_read(struct js_wanted *w, char *text)
{
    *w = (struct js_wanted){ .spec.options = w->options };
    while (*text) {
        char *const name = text, *const sign = strchr(text, '=');
        text += strlen(text) + 1;
        if (!sign)
            return js_refuse("options", name, "has no value");
        *sign = 0;
        /* "options.bits": of the kind, where the spec has one of that name. */
        const bool option = strncmp(name, "options.", 8) == 0;
        const int taken = option ? 0 : take_own(w, name, sign + 1);
        if (taken < 0)
            return js_refuse(name, sign + 1, "is not a value for it");
        if (!taken && w->spec.noptions == JS_OPTIONS)
            return js_refuse("options", name, "is one too many");
        if (!taken)
            w->options[w->spec.noptions++] =
                (bly_option){ option ? name + 8 : name, sign + 1 };
    }
    return js_keep(BLY_OK);
}

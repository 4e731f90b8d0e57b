/*
 * wasm_facts.c - kinds, plans, what a filter knows of itself
 *
 * Names of members are those of the command's --json. Kinds come from the
 * library's table; none is named here.
 */
#include "bindings/wasm/wasm.h"

EXPORT(const char *, version, (void))
{
    return bly_version();
}

static void tell_param(const bly_param *p)
{
    js_tell_open("", '{');
    js_tell_word("name", p->name);
    js_tell_word("help", p->help);
    if (!p->automatic && p->type != BLY_TEXT)
        js_tell_real("default", p->def);
    js_tell_real("min", p->min);
    js_tell_real("max", p->max);
    if (p->type == BLY_CHOICE && p->choices) {
        js_tell_open("choices", '[');
        for (size_t i = 0; p->choices[i]; i++)
            js_tell_word("", p->choices[i]);
        js_tell_close();
    }
    js_tell_close();
}

static void tell_kind(const bly_kind_info *k)
{
    js_tell_open("", '{');
    js_tell_word("kind", k->name);
    js_tell_word("summary", k->summary);
    js_tell_flag("likely_no", k->traits & BLY_LIKELY_NO);
    js_tell_open("can", '[');
    for (unsigned bit = 0; bly_can_name(bit); bit++)
        if (k->can >> bit & 1)
            js_tell_word("", bly_can_name(bit));
    js_tell_close();
    js_tell_open("options", '[');
    for (size_t i = 0; i < k->nparams; i++) {
        const bly_param *const p = bly_param_at(k->params, i);
        if (p->settable)
            tell_param(p);
    }
    js_tell_close();
    js_tell_close();
}

EXPORT_WHOLE(bly_status, kinds, (void))
{
    bly_kind_info k;
    js_tell_begin();
    js_tell_open("kinds", '[');
    for (size_t i = 0; bly_kind_at(i, &k); i++)
        tell_kind(&k);
    js_tell_close();
    return js_tell_end();
}

EXPORT_WHOLE(bly_status, plan, (char *wanted))
{
    struct js_wanted w;
    bly_prediction p;
    bly_status st = js_wanted_read(&w, wanted);
    if (!st)
        st = js_keep(bly_plan(&w.spec, &p));
    if (st)
        return st;
    js_tell_begin();
    js_tell_word("kind", p.kind);
    js_tell_uint("items", p.items);
    js_tell_real("fpr", p.fpr);
    js_tell_uint("bits", p.bits);
    js_tell_uint("bytes", p.bytes);
    js_tell_real("bits_per_key", p.bits_per_key);
    js_tell_facts("params", p.facts, p.nfacts);
    return js_tell_end();
}

/* Everything with `all`, which reads the whole filter; otherwise what is known
 * without that. */
EXPORT(bly_status, info, (const bly_filter *f, uint32_t all))
{
    bly_stats s;
    bly_bytes name, value = bly_note_of(f);
    const bly_keying keying = bly_keying_of(f);
    if (all)
        bly_stat(f, &s);
    else
        bly_peek(f, &s);
    js_tell_begin();
    js_tell_word("kind", s.kind);
    js_tell_word("keys", bly_key_type_name(keying.type));
    js_tell_flag("folded", keying.forms & BLY_KEYS_FOLDED);
    js_tell_flag("trimmed", keying.forms & BLY_KEYS_TRIMMED);
    js_tell_flag("no_cr", keying.forms & BLY_KEYS_NO_CR);
    js_tell_uint("capacity", s.capacity);
    js_tell_uint("items_added", s.items_added);
    js_tell_real("items_estimate", s.items_estimate);
    js_tell_real("items_sd", s.items_sd);
    js_tell_real("fill", s.fill);
    js_tell_real("fpr_now", s.fpr_now);
    js_tell_real("fpr_at_capacity", s.fpr_at_capacity);
    js_tell_uint("bits", s.bits);
    js_tell_uint("bytes", s.bytes);
    js_tell_uint("file_bytes", bly_written_bytes(f));
    js_tell_uint("seed", s.seed);
    js_tell_uint("layers", s.layers);
    js_tell_flag("keyed", s.keyed);
    js_tell_flag("coded", s.coded);
    js_tell_flag("compact", s.compact);
    js_tell_facts("params", s.facts, s.nfacts);
    if (value.len)
        js_tell_text("note", value.ptr, value.len);
    js_tell_open("meta", '[');
    for (size_t i = 0; bly_pair_at(f, i, &name, &value); i++) {
        js_tell_open("", '[');
        js_tell_text("", name.ptr, name.len);
        js_tell_text("", value.ptr, value.len);
        js_tell_close();
    }
    js_tell_close();
    return js_tell_end();
}

EXPORT_WHOLE(bly_status, compare, (const bly_filter *a, const bly_filter *b))
{
    bly_likeness c;
    const bly_status st = js_keep(bly_compare(a, b, &c));
    if (st)
        return st;
    js_tell_begin();
    js_tell_real("a", c.a);
    js_tell_real("b", c.b);
    js_tell_real("in_either", c.in_either);
    js_tell_real("in_either_sd", c.in_either_sd);
    js_tell_real("in_both", c.in_both);
    js_tell_real("in_both_sd", c.in_both_sd);
    js_tell_real("jaccard", c.jaccard);
    js_tell_real("containment", c.containment);
    return js_tell_end();
}

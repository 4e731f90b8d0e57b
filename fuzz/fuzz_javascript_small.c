/*
 * fuzz_javascript_small.c - the same calls of the small module's C
 *
 * It has parts of its own in place of the library's (bindings/wasm/lean),
 * which no other program runs on this machine.
 */
#define BLY_LEAN 1

#include "fuzz/fuzz_javascript.c"

/* JavaScript's Number(), nearly. */
double js_number(const char *text);

double js_number(const char *text)
{
    char *end;
    const double value = strtod(text, &end);
    return *text && !*end ? value : NAN;
}

/* What the module leaves out, and its linker allows to be absent, because
 * nothing comes to it (bindings/wasm/machine/absent.txt). */
#define ABSENT(name) \
    void name(void); \
    void name(void)  \
    {                \
        abort();     \
    }
ABSENT(bly_code_entropy)
ABSENT(bly_decoding_start)
ABSENT(bly_decoding_some)
ABSENT(bly_decoding_end)

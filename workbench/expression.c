/*
 * expression.c - reads and evaluates in one go
 *
 *     sum     = product { (+ | -) product }
 *     product = power { [*] power }
 *     power   = [-] atom [^ number]
 *     atom    = number | x | ( sum )
 *
 * A minus before an atom binds less than a power: -x^2 is -(x^2).
 */
#include "workbench/expression.h"

#define MAX_DEPTH 50 /* brackets in brackets */

struct reading {
    const char *at;
    uint64_t x, m;
    unsigned depth;
    bool wrong;
};

static uint64_t read_sum(struct reading *r);

static char next_char(struct reading *r)
{
    while (*r->at == ' ' || *r->at == '\t')
        r->at++;
    return *r->at;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static uint64_t times(const struct reading *r, uint64_t a, uint64_t b)
{
    return a * b % r->m; /* both below 2^32 */
}

/* A number modulo m: as many digits as there are. */
static uint64_t read_number(struct reading *r)
{
    uint64_t value = 0;
    for (; is_digit(*r->at); r->at++)
        value = (times(r, value, 10 % r->m) + (uint64_t)(*r->at - '0')) % r->m;
    return value;
}

static uint64_t read_atom(struct reading *r)
{
    const char c = next_char(r);
    if (is_digit(c))
        return read_number(r);
    if (c == 'x' || c == 'X') {
        r->at++;
        return r->x;
    }
    if (c == '(' && r->depth < MAX_DEPTH) {
        r->at++;
        r->depth++;
        const uint64_t value = read_sum(r);
        r->depth--;
        if (!r->wrong && next_char(r) == ')')
            r->at++;
        else
            r->wrong = true;
        return value;
    }
    r->wrong = true;
    return 0;
}

/* An exponent is a number of its own, not one modulo m: it is applied digit by
 * digit, a^(10 e + d) = (a^e)^10 a^d. */
static uint64_t read_exponent(struct reading *r, uint64_t base)
{
    uint64_t value = 1 % r->m;
    if (!is_digit(next_char(r))) {
        r->wrong = true;
        return 0;
    }
    for (; is_digit(*r->at); r->at++) {
        const uint64_t before = value;
        for (int i = 1; i < 10; i++)
            value = times(r, value, before);
        for (int i = 0; i < *r->at - '0'; i++)
            value = times(r, value, base);
    }
    return value;
}

static uint64_t read_power(struct reading *r)
{
    bool minus = false;
    while (next_char(r) == '-') {
        minus = !minus;
        r->at++;
    }
    uint64_t value = read_atom(r);
    if (!r->wrong && next_char(r) == '^') {
        r->at++;
        value = read_exponent(r, value);
    }
    return minus ? (r->m - value) % r->m : value;
}

static uint64_t read_product(struct reading *r)
{
    uint64_t value = read_power(r);
    while (!r->wrong) {
        const char c = next_char(r);
        if (c == '*')
            r->at++;
        else if (!is_digit(c) && c != 'x' && c != 'X' && c != '(')
            break;
        value = times(r, value, read_power(r));
    }
    return value;
}

static uint64_t read_sum(struct reading *r)
{
    uint64_t value = read_product(r);
    while (!r->wrong) {
        const char c = next_char(r);
        if (c != '+' && c != '-')
            break;
        r->at++;
        const uint64_t other = read_product(r);
        value = (value + (c == '+' ? other : r->m - other)) % r->m;
    }
    return value;
}

bool expression_value(const char *text, uint64_t x, uint64_t m, uint64_t *value,
                      const char **wrong)
{
    struct reading r = { .at = text, .x = x % m, .m = m };
    const uint64_t result = read_sum(&r);
    if (r.wrong || next_char(&r) != '\0') {
        *wrong = r.at;
        return false;
    }
    *value = result;
    return true;
}

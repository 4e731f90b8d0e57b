/*
 * choices.c - options that several verbs have
 */
#include "apps/traffic/choices.h"

#include <string.h>

#include "report/say.h"

bool key_option(const struct traffic_args *args, struct key_choice *out)
{
    return key_choose(args->key ? args->key : "5tuple", out) ||
           !fail("--key '%s': not a key of packets (try 5tuple, src, dst, "
                 "srcdst, prefix/24)",
                 args->key);
}

bool form_option(const struct traffic_args *args, bool *csv)
{
    *csv = args->form && strcmp(args->form, "csv") == 0;
    if (args->form && !*csv && strcmp(args->form, "table") != 0)
        return !fail("--form '%s': not table or csv", args->form);
    if (args->form && args->json)
        return !fail("--form and --json exclude each other");
    return true;
}

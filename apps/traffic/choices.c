/*
 * choices.c - options that several verbs have
 */
#include "apps/traffic/choices.h"

#include "report/say.h"
#include "report/words.h"

bool key_option(const struct traffic_args *args, struct key_choice *out)
{
    return key_choose(args->key ? args->key : "5tuple", out) ||
           refuse("--key '%s': not a key of packets (try 5tuple, src, dst, "
                  "srcdst, prefix/24)",
                  args->key);
}

bool form_option(const struct traffic_args *args, bool *csv)
{
    *csv = args->form == 1;
    if (was_given(&args->form) && args->json)
        return refuse("--form and --json exclude each other");
    return true;
}

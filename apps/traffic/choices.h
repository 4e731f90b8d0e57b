/*
 * choices.h - options that several verbs have
 */
#ifndef BLY_TRAFFIC_CHOICES_H
#define BLY_TRAFFIC_CHOICES_H

#include "apps/traffic/traffic_args.h"
#include "apps/traffic/packet.h"

/* --key and --form, as given or what holds if they are not. False, with the
 * reason printed. */
bool key_option(const struct traffic_args *args, struct key_choice *out);
bool form_option(const struct traffic_args *args, bool *csv);

#endif

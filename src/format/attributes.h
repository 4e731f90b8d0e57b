/*
 * attributes.h - whom a file belongs to, who may use it, and what is noted on
 * it
 */
#ifndef BLY_ATTRIBUTES_H
#define BLY_ATTRIBUTES_H

#include <sys/stat.h>

#include <bloomery.h>

/* Give the file `to`, which nobody else can open yet, what `from` has: extended
 * attributes, owner and group where the caller may set them, the access control
 * list, permission bits. Where an attribute or the list cannot be kept, fails
 * and says which; `to` is then good for nothing. name is for messages. */
bly_status bly_attributes_keep(const char *name, int from, int to);

#endif

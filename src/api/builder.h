/*
 * builder.h - what hashes keys for a builder knows of it
 */
#ifndef BLY_BUILDER_H
#define BLY_BUILDER_H

#include "kinds/kind.h"

const bly_kind *bly_builder_kind(const bly_builder *b);

/* What its filter will hold. */
bly_keying bly_builder_keying(const bly_builder *b);

/* A key was not taken: from now on the builder can only be freed. Returns
 * st. */
bly_status bly_builder_fails(bly_builder *b, bly_status st);

#endif

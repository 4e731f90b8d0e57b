/*
 * web.h - the playground, served on this machine
 */
#ifndef BLY_APPS_WEB_H
#define BLY_APPS_WEB_H

#include "report/fields.h"
#include "report/words.h"

struct web_args {
    const char *listen, *folder;
    bool json;
};

/* Serve the playground, and the handbook where it was built or installed beside
 * it, until SIGINT or SIGTERM: YES, or TROUBLE with the reason printed. */
int web_serve(const struct web_args *args, const struct list *operands);

/* What it tells when it begins. */
struct web_serving {
    const char *url, *folder, *handbook; /* NULL: not here */
    uint64_t port, files, bytes, sent;
};
void web_tell_serving(const struct web_args *args, const struct web_serving *s);
extern const struct field web_serving_fields[];

#endif

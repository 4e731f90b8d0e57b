/*
 * web_report.c - what bloomery web tells
 */
#include "apps/web/web.h"

const struct field web_serving_fields[] = {
    FIELD(struct web_serving, url, NONE, "where the playground is"),
    FIELD(struct web_serving, folder, NONE, "where its files come from"),
    FIELD(struct web_serving, port, NONE, "the port"),
    FIELD(struct web_serving, files, NONE, "how many files there are"),
    FIELD(struct web_serving, bytes, NONE, "their bytes"),
    FIELD(struct web_serving, sent, NONE, "the same as they are sent"),
    FIELD(struct web_serving, handbook, MAYBE,
          "where the handbook is, if it was built or installed"),
    { 0 },
};

void web_tell_serving(const struct web_args *args, const struct web_serving *s)
{
    report(stdout, args->json, web_serving_fields, s,
           "the playground: {url}\n[the handbook: {handbook}\n]"
           "Ctrl-C ends it.\n");
}

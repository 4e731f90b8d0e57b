/*
 * late.c - libraries that are loaded when they are needed
 */
#include <dlfcn.h>
#include <string.h>

#include "io/late.h"
#include "report/say.h"

bool late_load(const char *library, const char *package,
               const char *const *names, size_t n, void *calls)
{
    void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fail("%s cannot be loaded (%s); right: apt install %s", library,
             dlerror(), package);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        /* A pointer to an object and one to a function are alike here. */
        void *const found = dlsym(handle, names[i]);
        if (!found) {
            fail("%s has no %s: it is not the version that this was built with",
                 library, names[i]);
            return false;
        }
        memcpy((char *)calls + i * sizeof found, &found, sizeof found);
    }
    return true;
}

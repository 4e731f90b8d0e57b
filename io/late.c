/*
 * late.c - libraries that are loaded when they are needed
 */
#include <dlfcn.h>
#include <string.h>

#include "io/late.h"
#include "report/say.h"

/* The name that the library lacks in *lacks; NULL if it is the library. */
static bool find_calls(const char *library, const char *const *names, size_t n,
                       void *calls, const char **lacks)
{
    void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    *lacks = NULL;
    for (size_t i = 0; i < n && handle; i++) {
        /* A pointer to an object and one to a function are alike here. */
        void *const found = dlsym(handle, names[i]);
        if (!found) {
            *lacks = names[i];
            return false;
        }
        memcpy((char *)calls + i * sizeof found, &found, sizeof found);
    }
    return handle != NULL;
}

bool late_find(const char *library, const char *const *names, size_t n,
               void *calls)
{
    const char *lacks;
    return find_calls(library, names, n, calls, &lacks);
}

bool late_load(const char *library, const char *package,
               const char *const *names, size_t n, void *calls)
{
    const char *lacks;
    if (find_calls(library, names, n, calls, &lacks))
        return true;
    if (lacks)
        fail("%s has no %s: it is not the version that this was built with",
             library, lacks);
    else
        fail("%s cannot be loaded (%s); on Debian: apt install %s", library,
             dlerror(), package);
    return false;
}

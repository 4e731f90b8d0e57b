/*
 * pthread.h - threads on a machine that has none
 *
 * A WebAssembly instance runs one thread, and wasi-libc comes without this
 * header. Locks are always free, and no thread can be made: the library then
 * does the work itself, as it does wherever a thread is refused.
 */
#ifndef BLY_WASM_PTHREAD_H
#define BLY_WASM_PTHREAD_H

#include <errno.h>

typedef int pthread_t;
typedef int pthread_once_t;
typedef struct pthread_mutex {
    char unused;
} pthread_mutex_t;
typedef struct pthread_cond {
    char unused;
} pthread_cond_t;

#define PTHREAD_MUTEX_INITIALIZER \
    {                             \
        0                         \
    }
#define PTHREAD_ONCE_INIT 0

#define pthread_mutex_init(m, how) ((void)(m), 0)
#define pthread_mutex_destroy(m) ((void)(m), 0)
#define pthread_mutex_lock(m) ((void)(m), 0)
#define pthread_mutex_unlock(m) ((void)(m), 0)
#define pthread_cond_init(c, how) ((void)(c), 0)
#define pthread_cond_destroy(c) ((void)(c), 0)
#define pthread_cond_signal(c) ((void)(c), 0)
#define pthread_cond_wait(c, m) ((void)(c), (void)(m), 0)

static inline int pthread_create(pthread_t *thread, const void *how,
                                 void *(*run)(void *), void *arg)
{
    (void)thread;
    (void)how;
    (void)run;
    (void)arg;
    return EAGAIN;
}

static inline int pthread_join(pthread_t thread, void **result)
{
    (void)thread;
    (void)result;
    return EINVAL;
}

static inline int pthread_once(pthread_once_t *once, void (*run)(void))
{
    if (!*once) {
        *once = 1;
        run();
    }
    return 0;
}

#endif

/*
 * py_gate.h - who may use an object while the interpreter's lock is free
 *
 * Batches, files and sets release the interpreter's lock, so other threads may
 * come to the same object meanwhile: readers go together, a writer goes alone.
 * A pass through the gate is long or short.
 *
 * - A long pass takes the gate's lock, and gives the interpreter's back before
 * it waits. While it lasts it is counted, and the count changes only when the
 * interpreter's lock is held. - A short pass (one key) keeps the interpreter's
 * lock. So it can look at the counts: if nobody is in its way, nobody can come
 * before it is over, and it takes no lock at all. So `key in filter` is as
 * cheap as without a gate.
 *
 * Nobody waits for the gate with the interpreter's lock in hand, so the two
 * locks cannot wait for each other. In a free-threaded interpreter counts mean
 * nothing and every pass takes the lock; GATE_ALWAYS does the same for tests.
 *
 * No Python code runs inside a pass.
 */
#ifndef BLY_BINDINGS_PYTHON_GATE_H
#define BLY_BINDINGS_PYTHON_GATE_H

#include <pthread.h>

#if defined(Py_GIL_DISABLED) && !defined(GATE_ALWAYS)
#define GATE_ALWAYS 1
#endif

struct gate {
    pthread_rwlock_t lock;
    int readers, writers; /* long passes, waiting ones included */
};

/* False: out of memory. */
static inline bool gate_make(struct gate *g)
{
    g->readers = g->writers = 0;
    return pthread_rwlock_init(&g->lock, NULL) == 0;
}

static inline void gate_free(struct gate *g)
{
    pthread_rwlock_destroy(&g->lock);
}

static inline void gate_lock(struct gate *g, bool write)
{
    if (write)
        pthread_rwlock_wrlock(&g->lock);
    else
        pthread_rwlock_rdlock(&g->lock);
}

static inline void gate_count(struct gate *g, bool write, int by)
{
#ifndef GATE_ALWAYS
    *(write ? &g->writers : &g->readers) += by;
#else
    (void)g;
    (void)write;
    (void)by;
#endif
}

/* ----------------------------------------------------------- a long pass */

struct gate_pass {
    struct gate *first, *second; /* by address, so that two threads that want
                                    the same two cannot wait for each other */
    bool write_first, write_second;
    PyThreadState *thread;
};

static inline struct gate_pass gate_enter_both(struct gate *a, bool write_a,
                                               struct gate *b, bool write_b)
{
    struct gate_pass p = { a, b, write_a, write_b, NULL };
    if (b == a)
        p = (struct gate_pass){ a, NULL, write_a || write_b, false, NULL };
    else if (b && (uintptr_t)b < (uintptr_t)a)
        p = (struct gate_pass){ b, a, write_b, write_a, NULL };
    gate_count(p.first, p.write_first, 1);
    if (p.second)
        gate_count(p.second, p.write_second, 1);
    p.thread = PyEval_SaveThread();
    gate_lock(p.first, p.write_first);
    if (p.second)
        gate_lock(p.second, p.write_second);
    return p;
}

static inline struct gate_pass gate_enter(struct gate *g, bool write)
{
    return gate_enter_both(g, write, NULL, false);
}

static inline void gate_leave(struct gate_pass *p)
{
    if (p->second)
        pthread_rwlock_unlock(&p->second->lock);
    pthread_rwlock_unlock(&p->first->lock);
    PyEval_RestoreThread(p->thread);
    if (p->second)
        gate_count(p->second, p->write_second, -1);
    gate_count(p->first, p->write_first, -1);
}

/* ---------------------------------------------------------- a short pass */

/* Someone is in the way: wait, and come back with both locks. */
static __attribute__((noinline, unused)) void gate_wait(struct gate *g,
                                                        bool write)
{
    PyThreadState *thread;
    gate_count(g, write, 1);
    thread = PyEval_SaveThread();
    gate_lock(g, write);
    PyEval_RestoreThread(thread);
}

/* The result goes to gate_pass_end(). */
static inline bool gate_pass_begin(struct gate *g, bool write)
{
#ifndef GATE_ALWAYS
    if (!g->writers && !(write && g->readers))
        return false;
#endif
    gate_wait(g, write);
    return true;
}

static inline void gate_pass_end(struct gate *g, bool write, bool locked)
{
    if (!locked)
        return;
    pthread_rwlock_unlock(&g->lock);
    gate_count(g, write, -1);
}

#endif

/*
 * simulator.c - events per second of the simulated ring
 *
 *     build/bench/simulator [MEMBERS]...         default: 1000 4096 16384
 *
 * A ring in the ideal state, with maintenance every second and a hundred
 * lookups per second, runs for ten simulated seconds. The sum is one of all
 * that was counted: it is the same in every run, on every machine. Processor
 * time, so that a busy machine only spoils caches.
 *
 * Found on a Zen 4 at 3.7 GHz that others used too: 4 to 5 million events per
 * second with 1000 members, 2.6 million with 16,384, whose state of 100 MB is
 * larger than all caches; with a heap, and without fetching ahead, 2.9 and
 * 0.73.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "workbench/sim/chord_sim.h"
#include "bench/measure.h"

static void measure(uint32_t n)
{
    const struct chord_sim_spec spec = chord_sim_usual(n, 1);
    const double begin = now_ns();
    struct chord_sim *const s = chord_sim_new(&spec);
    if (!s)
        exit(2);
    chord_sim_ideal(s, n);
    const double start = now_ns();
    for (unsigned i = 0; i < 100; i++) {
        for (unsigned k = 0; k < 10; k++)
            chord_sim_lookup(s);
        chord_sim_run(s, 100000);
    }
    const double end = now_ns();
    const struct sim_counts c = sim_counts(s->sim);
    const uint64_t sum = mix(c.events ^ mix(c.bytes ^ mix(s->tally.hops)));
    printf("%8u members: %9llu events, %5.2f million per second, %5.2f s in "
           "all, sum %016llx\n",
           (unsigned)n, (unsigned long long)c.events,
           (double)c.events / (end - start) * 1e3, (end - begin) * 1e-9,
           (unsigned long long)sum);
    chord_sim_free(s);
}

int main(int argc, char **argv)
{
    static const uint32_t usual[] = { 1000, 4096, 16384 };
    if (argc == 1)
        for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
            measure(usual[i]);
    for (int i = 1; i < argc; i++)
        measure((uint32_t)strtoul(argv[i], NULL, 10));
    return 0;
}

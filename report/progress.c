/*
 * progress.c - one line that says how far it came
 *
 *     12345678 keys, 21.3 M/s, 40 %, 12 s left
 *
 * Shown on standard error, if that is a terminal, when the work has lasted a
 * second, and again five times a second; wiped before anything else is said.
 * The share is that of the bytes of the input files, where all have a size.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "report/say.h"

#define FIRST_SECONDS 1.0
#define EVERY_SECONDS 0.2

static struct {
    bool on, shown;
    double start, last;
    const char *unit;
} bar;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_start(bool prints_to_stdout)
{
    /* Lines of keys and the progress line on one terminal would mix. */
    bar.on =
        isatty(STDERR_FILENO) && !(prints_to_stdout && isatty(STDOUT_FILENO));
    bar.unit = "keys";
    if (bar.on)
        bar.start = bar.last = now_seconds();
}

void progress_unit(const char *unit)
{
    bar.unit = unit;
}

void progress_at(uint64_t n, uint64_t done, uint64_t total)
{
    if (!bar.on)
        return;
    const double now = now_seconds();
    if (now - bar.start < FIRST_SECONDS || now - bar.last < EVERY_SECONDS)
        return;
    bar.last = now;
    bar.shown = true;
    const double spent = now - bar.start;
    const double rate = (double)n / spent;
    fprintf(stderr, "\r\033[K%llu %s, %.1f %s/s", (unsigned long long)n,
            bar.unit, rate >= 1e5 ? rate / 1e6 : rate / 1e3,
            rate >= 1e5 ? "M" : "k");
    if (total && done <= total && done) {
        const double share = (double)done / (double)total;
        fprintf(stderr, ", %.0f %%, %.0f s left", share * 100,
                ceil(spent * (1 - share) / share));
    }
    fflush(stderr);
}

void progress_clear(void)
{
    if (bar.shown)
        fputs("\r\033[K", stderr);
    bar.shown = false;
}

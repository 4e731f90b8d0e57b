/*
 * progress.c - one line that says how far the work has come
 *
 *     12345678 keys, 21.3 M/s, 40 %, 12 s left
 *
 * Shown on standard error, if that is a terminal, when the work has lasted a
 * second, and again five times a second; wiped before anything else is said.
 * The share is that of the bytes of the input files, where all have a size.
 *
 * The terminal is asked for its width each time, since windows are resized. A
 * line that is too long loses parts, the least useful first, instead of
 * wrapping: a wrapped line cannot be wiped by a carriage return.
 *
 *     12345678 keys, 40 %, 12 s left        then    40 %, 12 s left, and 40 %
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/say.h"

#define FIRST_SECONDS 1.0
#define EVERY_SECONDS 0.2
#define COLUMNS_UNKNOWN 80 /* what a terminal has that does not tell */

static struct {
    bool on;
    double start, last;
    const char *unit;
    int shown; /* columns that the line on the terminal takes; 0: there is none
                */
} bar;

/* A terminal that does not know how to wipe a line gets none. */
static bool is_terminal(void)
{
    const char *const term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && term[0] &&
           strcmp(term, "dumb") != 0;
}

void progress_start(bool prints_to_stdout)
{
    /* Lines of keys and the progress line on one terminal would mix. */
    bar.on = is_terminal() && !(prints_to_stdout && isatty(STDOUT_FILENO));
    bar.unit = "keys";
    if (bar.on)
        bar.start = bar.last = clock_seconds();
}

void progress_unit(const char *unit)
{
    bar.unit = unit;
}

int progress_text(char out[PROGRESS_ROOM], int columns,
                  const struct progress *p)
{
    char count[48], rate[32] = "", share[16] = "", left[32] = "";
    const double speed = (double)p->n / p->spent;
    snprintf(count, sizeof count, "%llu %s", (unsigned long long)p->n, p->unit);
    snprintf(rate, sizeof rate, "%.1f %s/s",
             speed >= 1e5 ? speed / 1e6 : speed / 1e3,
             speed >= 1e5 ? "M" : "k");
    const bool known = p->total && p->done && p->done <= p->total;
    if (known) {
        const double of = (double)p->done / (double)p->total;
        snprintf(share, sizeof share, "%.0f %%", of * 100);
        snprintf(left, sizeof left, "%.0f s left",
                 ceil(p->spent * (1 - of) / of));
    }
    /* Four parts at most: 48 + 32 + 16 + 32 bytes and what is between them. */
    const char *const forms[][5] = {
        { count, rate, share, left },
        { count, share, left },
        { share, left },
        { share },
        { known ? "" : count },
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        int n = 0;
        out[0] = '\0';
        for (const char *const *part = forms[i]; *part; part++)
            if ((*part)[0])
                n += snprintf(out + n, (size_t)(PROGRESS_ROOM - n), "%s%s",
                              n ? ", " : "", *part);
        /* The last column stays free: some terminals wrap when it is filled. */
        if (n && n < columns)
            return n;
    }
    out[0] = '\0';
    return 0;
}

static int terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col
               ? size.ws_col
               : COLUMNS_UNKNOWN;
}

/* Take the line away. In a window that became narrower since, it has wrapped,
 * and its beginning stands further up. */
static void wipe(int columns)
{
    for (int rows = bar.shown / columns; rows > 0 && bar.shown; rows--)
        fputs("\r\033[K\033[A", stderr);
    fputs("\r\033[K", stderr);
    bar.shown = 0;
}

void progress_at(uint64_t n, uint64_t done, uint64_t total)
{
    if (!bar.on)
        return;
    const double now = clock_seconds();
    if (now - bar.start < FIRST_SECONDS || now - bar.last < EVERY_SECONDS)
        return;
    bar.last = now;
    char line[PROGRESS_ROOM];
    const int columns = terminal_columns();
    const struct progress p = { n, done, total, now - bar.start, bar.unit };
    wipe(columns);
    bar.shown = progress_text(line, columns, &p);
    fputs(line, stderr);
    fflush(stderr);
}

void progress_clear(void)
{
    if (bar.shown)
        wipe(terminal_columns());
}

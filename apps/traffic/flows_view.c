/*
 * flows_view.c - the large flows of an interface on a terminal, as top shows
 * processes
 *
 *     eth0: 1204 packets, 9.41 Mb/s in 1 s                              paused
 *     bytes         at most    packets  flow
 *     804120         804120        536  tcp 10.0.0.7:443 > 10.0.0.2:40122
 *     ...
 *     p pause   b bytes   n packets   f flow   r reverse   q quit
 *
 * Flows are copied when an interval ends, so that sorting and pausing change
 * what is shown and never what is counted. The second screen of the terminal is
 * used: what stood there before comes back at the end. A picture is one write,
 * each line of it cut at the width that the window has now, so that nothing
 * wraps and nothing flickers.
 */
#define _GNU_SOURCE
#include "apps/traffic/flows_view.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/grow.h"
#include "report/out.h"
#include "report/say.h"

#define ENTER "\033[?1049h\033[?25l" /* the second screen, without a cursor */
#define LEAVE "\033[?25h\033[?1049l"
#define HOME "\033[H"
#define REST_OF_LINE "\033[K"
#define REST_OF_SCREEN "\033[J"
#define FRAME_LINES 3 /* around the flows: two above, one below */
#define MOST_COLUMNS 1000
#define MOST_LINES 1000

enum view_order { BY_BYTES, BY_PACKETS, BY_FLOW };

struct flows_view {
    const char *interface;
    struct key_choice key;
    uint64_t top; /* flows to show at most; 0: as many as fit */
    struct termios before;
    struct flow *flows;
    size_t n, room;
    uint64_t packets, bytes; /* of the interval */
    uint64_t packets_then, bytes_then;
    double seconds;
    enum view_order order;
    bool reversed, paused;
};

bool view_possible(void)
{
    const char *const term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
           strcmp(term, "dumb") != 0;
}

static bool screen_put(const char *text)
{
    return out_write(text, strlen(text)) == 0;
}

/* ----------------------------------------------------------------- drawing */

static int compared(const void *a, const void *b, void *view)
{
    const struct flows_view *const v = view;
    const struct flow *const x = a, *const y = b;
    char left[FLOW_TEXT], right[FLOW_TEXT];
    int by = 0;
    if (v->order == BY_BYTES)
        by = (x->bytes < y->bytes) - (x->bytes > y->bytes);
    else if (v->order == BY_PACKETS)
        by = (x->packets < y->packets) - (x->packets > y->packets);
    if (!by)
        by = strcmp(key_text(v->key, &x->key, left),
                    key_text(v->key, &y->key, right));
    return v->reversed ? -by : by;
}

struct page {
    FILE *to;
    int columns;
    bool begun; /* a line */
};

/* A line of the page, without what the window has no room for. The last column
 * stays free: some terminals wrap when it is filled. */
__attribute__((format(printf, 2, 3))) static void
line_print(struct page *p, const char *format, ...)
{
    char text[MOST_COLUMNS];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(p->to, "%s%.*s" REST_OF_LINE, p->begun ? "\r\n" : "",
            p->columns - 1, text);
    p->begun = true;
}

static int within(int value, int least, int most, int unknown)
{
    if (value <= 0)
        return unknown;
    return value < least ? least : value > most ? most : value;
}

static void page_print(struct flows_view *v, struct page *p, size_t rows)
{
    const char *const marks[] = {
        [BY_BYTES] = "bytes", [BY_PACKETS] = "packets", [BY_FLOW] = "flow"
    };
    if (v->seconds > 0)
        line_print(
            p, "%s: %llu packets, %.3g Mb/s in %g s, %zu flow%s, by %s%s",
            v->interface, (unsigned long long)v->packets,
            (double)v->bytes * 8 / v->seconds / 1e6, v->seconds, v->n,
            v->n == 1 ? "" : "s", marks[v->order], v->paused ? ", paused" : "");
    else
        line_print(p, "%s: waiting for packets%s", v->interface,
                   v->paused ? ", paused" : "");
    line_print(p, "%14s %14s %10s  %s", "bytes", "at most", "packets", "flow");
    for (size_t i = 0; i < rows; i++) {
        char text[FLOW_TEXT];
        const struct flow *const f = &v->flows[i];
        line_print(p, "%14llu %14llu %10llu  %s", (unsigned long long)f->bytes,
                   (unsigned long long)(f->bytes + f->before),
                   (unsigned long long)f->packets,
                   key_text(v->key, &f->key, text));
    }
    line_print(p, "p pause   b bytes   n packets   f flow   r reverse   "
                  "q quit");
}

/* False: no memory, or nobody to show it to. */
static bool view_draw(struct flows_view *v)
{
    struct winsize size = { 0 };
    char *text = NULL;
    size_t n = 0;
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    const int lines = within(size.ws_row, FRAME_LINES, MOST_LINES, 24);
    struct page p = { .to = open_memstream(&text, &n),
                      .columns = within(size.ws_col, 2, MOST_COLUMNS, 80) };
    if (!p.to)
        return false;
    qsort_r(v->flows, v->n, sizeof *v->flows, compared, v);
    size_t rows = (size_t)(lines - FRAME_LINES);
    rows = v->top && v->top < rows ? (size_t)v->top : rows;
    fputs(HOME, p.to);
    page_print(v, &p, v->n < rows ? v->n : rows);
    fputs(REST_OF_SCREEN, p.to);
    const bool whole = !ferror(p.to);
    const bool made = fclose(p.to) == 0 && whole;
    const bool ok = made && out_write(text, n) == 0;
    free(text);
    return ok;
}

void view_end(struct flows_view *v)
{
    if (!v)
        return;
    screen_put(LEAVE);
    tcsetattr(STDIN_FILENO, TCSANOW, &v->before);
    free(v->flows);
    free(v);
}

struct flows_view *view_begin(const char *interface, struct key_choice key,
                              uint64_t top)
{
    struct flows_view *const v = calloc(1, sizeof *v);
    if (!v || tcgetattr(STDIN_FILENO, &v->before) < 0) {
        fail(v ? "this terminal cannot be controlled" : "out of memory");
        free(v);
        return NULL;
    }
    *v = (struct flows_view){
        .interface = interface, .key = key, .top = top, .before = v->before
    };
    /* Keys come one by one and unseen. Ctrl-C still ends the command, which
     * gives the terminal back; Ctrl-Z would not, and is an ordinary key. */
    struct termios now = v->before;
    now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    now.c_cc[VSUSP] = _POSIX_VDISABLE;
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
    screen_put(ENTER);
    if (view_draw(v))
        return v;
    view_end(v);
    fail("no memory for a picture of the terminal");
    return NULL;
}

bool view_take(struct flows_view *v, const struct flow *flows, size_t n,
               const struct traffic_totals *totals, double seconds)
{
    const uint64_t packets = totals->packets - v->packets_then;
    const uint64_t bytes = totals->bytes - v->bytes_then;
    v->packets_then = totals->packets;
    v->bytes_then = totals->bytes;
    if (v->paused)
        return true;
    if (!GROW(&v->flows, &v->room, n))
        return false;
    if (n)
        memcpy(v->flows, flows, n * sizeof *flows);
    v->n = n;
    v->packets = packets;
    v->bytes = bytes;
    v->seconds = seconds;
    return view_draw(v);
}

/* -------------------------------------------------------------------- keys */

static bool key_do(struct flows_view *v, char key)
{
    switch (key) {
    case 'q':
    case 'Q':
        return false;
    case 'p':
    case ' ':
        v->paused = !v->paused;
        break;
    case 'b':
        v->order = BY_BYTES;
        break;
    case 'n':
        v->order = BY_PACKETS;
        break;
    case 'f':
        v->order = BY_FLOW;
        break;
    case 'r':
        v->reversed = !v->reversed;
        break;
    default:
        break;
    }
    return true;
}

bool view_keys(struct flows_view *v)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    char keys[64];
    if (poll(&input, 1, 0) <= 0)
        return true;
    const ssize_t n = read(STDIN_FILENO, keys, sizeof keys);
    if (n <= 0) /* ready, and nothing there: it was hung up */
        return n < 0 && errno == EINTR;
    for (ssize_t i = 0; i < n; i++)
        if (!key_do(v, keys[i]))
            return false;
    return view_draw(v);
}

/*
 * vault.c - passwords in memory that is locked and wiped
 *
 * Lines are read by read() alone, without a buffer of the C library, into pages
 * that are locked, so that no password reaches the swap space; a core dump
 * leaves them out, a child sees zeros, and they are wiped at the end, and
 * behind each line when the next one is read.
 */
#define _GNU_SOURCE /* madvise(), explicit_bzero() */
#include "apps/passwords/vault.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "base/signals.h"
#include "io/unpack.h"
#include "report/say.h"

#define READ_AT_ONCE ((size_t)64 * 1024)

bool vault_open(struct vault *v, int fd, char separator)
{
    const size_t room = PASSWORD_MOST + READ_AT_ONCE;
    const size_t nspare = 2 * PASSWORD_MOST + 4;
    void *const at = mmap(NULL, room + nspare, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        fail("out of memory");
        return false;
    }
    madvise(at, room + nspare, MADV_DONTDUMP);
    madvise(at, room + nspare, MADV_WIPEONFORK);
    /* Pages are locked as they are touched, since few passwords are long. */
    if (mlock2(at, room + nspare, MLOCK_ONFAULT) != 0)
        warn("memory cannot be locked (%s): a password may reach the swap "
             "space; a higher ulimit -l prevents that",
             strerror(errno));
    *v = (struct vault){ .at = at,
                         .room = room,
                         .spare = (unsigned char *)at + room,
                         .nspare = nspare,
                         .fd = fd,
                         .separator = separator };
    return true;
}

void vault_close(struct vault *v)
{
    /* No more than was ever written: touching the other megabytes would take
     * most of the time of a check. */
    const size_t nspare = 2 * v->reach + 4;
    explicit_bzero(v->at, v->reach);
    explicit_bzero(v->spare, nspare < v->nspare ? nspare : v->nspare);
    munmap(v->at, v->room + v->nspare);
    v->at = NULL;
}

bool vault_ready(const struct vault *v)
{
    return memchr(v->at + v->from, v->separator, v->to - v->from) != NULL;
}

/* More bytes behind those that are there. */
static int read_more(struct vault *v)
{
    memmove(v->at, v->at + v->from, v->to - v->from);
    explicit_bzero(v->at + v->to - v->from, v->from);
    v->to -= v->from;
    v->from = 0;
    const size_t most = v->room - v->to;
    ssize_t got;
    do
        got = read(v->fd, v->at + v->to,
                   most < READ_AT_ONCE ? most : READ_AT_ONCE);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        fail("cannot read passwords: %s", strerror(errno));
        return -1;
    }
    v->ended = got == 0;
    v->to += (size_t)got;
    if (v->reach < v->to)
        v->reach = v->to;
    return got > 0;
}

/* Can these first bytes be lines of passwords? If not, no password would be
 * found in the list, and the user would take that for good news. */
static bool are_lines(const struct vault *v, const char *start)
{
    const size_t n = (size_t)(v->at + v->to - start);
    bool more;
    const struct unpacker *const packed =
        unpacker_of((const unsigned char *)start, n, &more);
    if (packed)
        fail("the passwords are compressed with %s; use %s FILE | bloomery "
             "passwords check FILTER",
             packed->name, packed->program);
    else if (n >= 2 && (memcmp(start, "\xff\xfe", 2) == 0 ||
                        memcmp(start, "\xfe\xff", 2) == 0))
        fail("the passwords are in UTF-16; use iconv -f UTF-16 -t UTF-8 FILE | "
             "bloomery passwords check FILTER");
    else
        return true;
    return false;
}

/* A line without what Windows adds to it. */
static void cut_ends(const struct vault *v, const char **line, size_t *len)
{
    if (!v->begun && *len >= 3 && memcmp(*line, "\xef\xbb\xbf", 3) == 0) {
        *line += 3;
        *len -= 3;
    }
    if (*len && (*line)[*len - 1] == '\r')
        --*len;
}

int vault_line(struct vault *v, const char **line, size_t *len)
{
    for (size_t seen = 0;;) {
        char *const start = v->at + v->from;
        const size_t n = v->to - v->from;
        char *const end = memchr(start + seen, v->separator, n - seen);
        if (end || (v->ended && n)) {
            *line = start;
            *len = end ? (size_t)(end - start) : n;
            v->from += *len + (end != NULL);
            if (v->separator && !v->begun && !are_lines(v, start))
                return -1;
            if (v->separator)
                cut_ends(v, line, len);
            v->begun = true;
            return *len <= PASSWORD_MOST
                       ? 1
                       : (fail("a password is longer than 1 MiB"), -1);
        }
        if (v->ended)
            return 0;
        if (n > PASSWORD_MOST) {
            fail("a password is longer than 1 MiB");
            return -1;
        }
        seen = n;
        if (read_more(v) < 0)
            return -1;
    }
}

/* ---------------------------------------------------------------- terminal */

static int shown_fd = -1;
static struct termios shown;
static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void end_with_echo(int number)
{
    tcsetattr(shown_fd, TCSANOW, &shown);
    signals_die(number);
}

void echo_off(int fd)
{
    if (tcgetattr(fd, &shown) != 0)
        return;
    shown_fd = fd;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (signals_heeded(ends[i]))
            signals_on(ends[i], end_with_echo);
    struct termios hidden = shown;
    hidden.c_lflag &= ~(tcflag_t)ECHO;
    hidden.c_lflag |= ECHONL;
    tcsetattr(fd, TCSAFLUSH, &hidden);
}

void echo_on(void)
{
    if (shown_fd >= 0)
        tcsetattr(shown_fd, TCSAFLUSH, &shown);
    shown_fd = -1;
}

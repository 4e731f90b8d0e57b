/*
 * vault.h - passwords in memory that is locked and wiped
 */
#ifndef BLY_PASSWORDS_VAULT_H
#define BLY_PASSWORDS_VAULT_H

#include <stdbool.h>
#include <stddef.h>

/* The longest password: 1 MiB. */
#define PASSWORD_MOST ((size_t)1 << 20)

struct vault {
    char *at; /* what was read from fd */
    size_t room, from, to;
    size_t reach;         /* the most bytes that were ever there */
    unsigned char *spare; /* nspare bytes for whoever hashes, of which a line
                             takes no more than twice its own and 4 */
    size_t nspare;
    int fd;
    char separator;
    bool ended;
    bool begun; /* a line was given */
};

/* Read from fd into memory that is not swapped, dumped or inherited. False,
 * with the reason printed: there is none. If the memory cannot be locked, a
 * warning says so and the work goes on. */
bool vault_open(struct vault *v, int fd, char separator);
void vault_close(struct vault *v);

/* The next line, which stays where it is until the next call: 1, 0 at the end,
 * -1 with the reason printed. Where lines end at newlines, a carriage return
 * before one is not part of a password, nor is a byte order mark before the
 * first; text in UTF-16 and compressed bytes are refused. vault_ready(): there
 * is one that nobody has to be waited for. */
int vault_line(struct vault *v, const char **line, size_t *len);
bool vault_ready(const struct vault *v);

/* From here on, what is typed on the terminal fd is not shown; until
 * echo_on(), and until the command is ended by a signal. */
void echo_off(int fd);
void echo_on(void);

#endif

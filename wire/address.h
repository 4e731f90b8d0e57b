/*
 * address.h - where a process listens
 */
#ifndef BLY_WIRE_ADDRESS_H
#define BLY_WIRE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT 64

struct address {
    uint8_t family; /* 4 or 6; 0: none */
    uint8_t at[16];
    uint16_t port;
};

/* HOST:PORT, [HOST]:PORT, or PORT on the loopback interface. False, with the
 * reason printed. */
bool address_parse(const char *text, struct address *out);
void address_text(const struct address *a, char out[ADDRESS_TEXT]);
socklen_t address_socket(const struct address *a, struct sockaddr_storage *to);
bool address_of_socket(int fd, struct address *out); /* its own end */

/* A socket that listens at an address, NULL: at a free port of the loopback
 * interface; *at is where. -1, with the reason printed. */
int address_listen(const char *text, struct address *at);

static inline bool address_equal(const struct address *a,
                                 const struct address *b)
{
    bool equal = a->family == b->family && a->port == b->port;
    for (unsigned i = 0; i < 16; i++)
        equal &= a->at[i] == b->at[i];
    return equal;
}

#endif

/*
 * bpf.h - the kernel's bpf(2): maps, programs, links
 *
 * Descriptors are the caller's to close. What fails returns -1 with errno.
 */
#ifndef BLY_TRAFFIC_BPF_H
#define BLY_TRAFFIC_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_map_spec {
    uint32_t type, key, value, entries, flags;
};
int bpf_map_new(const struct bpf_map_spec *spec);
int bpf_map_set(int map, const void *key, const void *value);
int bpf_map_get(int map, const void *key, void *value);
int bpf_map_look(int map, uint32_t *value); /* bytes of a value */
int bpf_map_freeze(int map); /* no program of the system changes it again */

/* Load a program for XDP. `why`, of nwhy bytes, gets what the kernel says of
 * one that it refuses. */
int bpf_xdp_load(const uint64_t *code, size_t n, char *why, size_t nwhy);

/* Run a program on a packet `repeat` times; its verdict, and the nanoseconds
 * that a run took. */
int bpf_xdp_try(int program, const void *packet, size_t n, uint32_t repeat,
                uint32_t *verdict, uint32_t *ns);

/* A link holds a program at an interface, until it is detached or nobody has
 * it any more, be it open or pinned. Updating puts another program in its place
 * between two packets. */
int bpf_xdp_link(int program, unsigned interface);
int bpf_link_update(int link, int program);
int bpf_link_detach(int link);
/* The interface of a link, 0 if it is gone, and the number of its program. */
int bpf_link_look(int link, unsigned *interface, uint32_t *program);

int bpf_pin(int fd, const char *path);
int bpf_pinned(const char *path);

#endif

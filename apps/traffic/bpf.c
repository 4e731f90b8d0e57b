/*
 * bpf.c - the kernel's bpf(2)
 *
 * A dozen calls, so that the command needs no library for them.
 */
#define _GNU_SOURCE
#include "apps/traffic/bpf.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A signal, even one that only lets a stopped process go on, ends runs of a
 * program with EINTR, and the look at one that is loaded with EAGAIN. */
static int bpf(int command, union bpf_attr *attr)
{
    int got;
    do
        got = (int)syscall(SYS_bpf, command, attr, sizeof *attr);
    while (got < 0 &&
           (errno == EINTR || (errno == EAGAIN && command == BPF_PROG_LOAD)));
    return got;
}

static uint64_t place(const void *at)
{
    return (uint64_t)(uintptr_t)at;
}

/* What the kernel does not read must be zero, padding too. */
#define ATTR(name)       \
    union bpf_attr name; \
    memset(&(name), 0, sizeof(name))

int bpf_map_new(const struct bpf_map_spec *spec)
{
    ATTR(a);
    a.map_type = spec->type;
    a.key_size = spec->key;
    a.value_size = spec->value;
    a.max_entries = spec->entries;
    a.map_flags = spec->flags;
    memcpy(a.map_name, "bloomery", 8);
    return bpf(BPF_MAP_CREATE, &a);
}

int bpf_map_set(int map, const void *key, const void *value)
{
    ATTR(a);
    a.map_fd = (uint32_t)map;
    a.key = place(key);
    a.value = place(value);
    return bpf(BPF_MAP_UPDATE_ELEM, &a);
}

int bpf_map_get(int map, const void *key, void *value)
{
    ATTR(a);
    a.map_fd = (uint32_t)map;
    a.key = place(key);
    a.value = place(value);
    return bpf(BPF_MAP_LOOKUP_ELEM, &a);
}

int bpf_map_look(int map, uint32_t *value)
{
    struct bpf_map_info info;
    memset(&info, 0, sizeof info);
    ATTR(a);
    a.info.bpf_fd = (uint32_t)map;
    a.info.info_len = sizeof info;
    a.info.info = place(&info);
    if (bpf(BPF_OBJ_GET_INFO_BY_FD, &a) < 0)
        return -1;
    *value = info.value_size;
    return 0;
}

int bpf_map_freeze(int map)
{
    ATTR(a);
    a.map_fd = (uint32_t)map;
    return bpf(BPF_MAP_FREEZE, &a);
}

int bpf_xdp_load(const uint64_t *code, size_t n, char *why, size_t nwhy)
{
    ATTR(a);
    a.prog_type = BPF_PROG_TYPE_XDP;
    a.insns = place(code);
    a.insn_cnt = (uint32_t)n;
    a.license = place("GPL");
    memcpy(a.prog_name, "bloomery", 8);
    const int fd = bpf(BPF_PROG_LOAD, &a);
    if (fd >= 0 || !nwhy)
        return fd;
    /* Once more for the reason, which costs time to write. */
    why[0] = '\0';
    a.log_level = 1;
    a.log_buf = place(why);
    a.log_size = (uint32_t)nwhy;
    return bpf(BPF_PROG_LOAD, &a);
}

int bpf_xdp_try(int program, const void *packet, size_t n, uint32_t repeat,
                uint32_t *verdict, uint32_t *ns)
{
    ATTR(a);
    a.test.prog_fd = (uint32_t)program;
    a.test.data_in = place(packet);
    a.test.data_size_in = (uint32_t)n;
    a.test.repeat = repeat;
    if (bpf(BPF_PROG_TEST_RUN, &a) < 0)
        return -1;
    *verdict = a.test.retval;
    *ns = a.test.duration;
    return 0;
}

int bpf_xdp_link(int program, unsigned interface)
{
    ATTR(a);
    a.link_create.prog_fd = (uint32_t)program;
    a.link_create.target_ifindex = interface;
    a.link_create.attach_type = BPF_XDP;
    return bpf(BPF_LINK_CREATE, &a);
}

int bpf_link_update(int link, int program)
{
    ATTR(a);
    a.link_update.link_fd = (uint32_t)link;
    a.link_update.new_prog_fd = (uint32_t)program;
    return bpf(BPF_LINK_UPDATE, &a);
}

int bpf_link_detach(int link)
{
    ATTR(a);
    a.link_detach.link_fd = (uint32_t)link;
    return bpf(BPF_LINK_DETACH, &a);
}

int bpf_link_look(int link, unsigned *interface, uint32_t *program)
{
    struct bpf_link_info info;
    memset(&info, 0, sizeof info);
    ATTR(a);
    a.info.bpf_fd = (uint32_t)link;
    a.info.info_len = sizeof info;
    a.info.info = place(&info);
    if (bpf(BPF_OBJ_GET_INFO_BY_FD, &a) < 0)
        return -1;
    *interface = info.xdp.ifindex;
    *program = info.prog_id;
    return 0;
}

int bpf_pin(int fd, const char *path)
{
    ATTR(a);
    a.pathname = place(path);
    a.bpf_fd = (uint32_t)fd;
    return bpf(BPF_OBJ_PIN, &a);
}

int bpf_pinned(const char *path)
{
    ATTR(a);
    a.pathname = place(path);
    return bpf(BPF_OBJ_GET, &a);
}

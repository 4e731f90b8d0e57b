/*
 * block_pins.c - where the kernel's program of an interface is kept
 */
#define _GNU_SOURCE
#include "apps/traffic/block_pins.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "apps/traffic/bpf.h"
#include "report/say.h"

#define DEFAULT_PINS "/sys/fs/bpf/bloomery"
#define BPF_FILES 0xcafe4a11 /* the file system's number */

static bool base_name(const char *given, struct pins *p)
{
    const char *const base = given ? given : DEFAULT_PINS;
    if (strlen(base) >= PINS_BASE)
        return refuse("%s: too long", base);
    snprintf(p->base, sizeof p->base, "%s", base);
    snprintf(p->above, sizeof p->above, "%s/..", base);
    char *const last = strrchr(p->base, '/');
    if (last && last != p->base)
        snprintf(p->above, sizeof p->above, "%.*s", (int)(last - p->base),
                 p->base);
    return true;
}

static void folder_name(struct pins *p, const char *folder)
{
    snprintf(p->folder, sizeof p->folder, "%s/%.255s", p->base, folder);
    snprintf(p->link, sizeof p->link, "%s/link", p->folder);
    static const char *const names[] = { "list", "blocks", "allow4",  "allow6",
                                         "live", "hits",   "counters" };
    _Static_assert(sizeof names / sizeof names[0] == XDP_NMAPS, "all of them");
    for (unsigned i = 0; i < XDP_NMAPS; i++)
        snprintf(p->map[i], sizeof p->map[i], "%s/%s", p->folder, names[i]);
}

/* What the folder of a new list is called. The file system has no names with
 * dots. */
static bool folder_new_name(struct pins *p, const char *interface, char *out,
                            size_t room)
{
    struct stat s;
    if (stat("/proc/self/ns/net", &s) < 0)
        return refuse_path("/proc/self/ns/net", errno);
    snprintf(out, room, "%llu-%u-%s", (unsigned long long)s.st_ino,
             p->interface, interface);
    for (char *dot = out; (dot = strchr(dot, '.'));)
        *dot = '%';
    return true;
}

/* Is it one of this namespace, and of an interface that had this name? */
static bool folder_was_of(const char *folder, const char *fresh)
{
    const char *const one = strchr(folder, '-'), *const two =
                                                     strchr(fresh, '-');
    if (!one || one - folder != two - fresh ||
        strncmp(folder, fresh, (size_t)(one - folder)) != 0)
        return false;
    const char *const name = strchr(one + 1, '-'), *const wanted =
                                                       strchr(two + 1, '-');
    return name && strcmp(name, wanted) == 0;
}

/* What a folder is to the interface. */
static int folder_state(struct pins *p, const char *folder, const char *fresh)
{
    unsigned of = 0;
    uint32_t program = 0;
    folder_name(p, folder);
    const int link = bpf_pinned(p->link);
    if (link < 0)
        return PINS_NONE;
    const bool told = bpf_link_look(link, &of, &program) == 0;
    close(link);
    if (told && program && program == p->has.program && of == p->interface)
        return PINS_HERE;
    return told && !of && folder_was_of(folder, fresh) ? PINS_GONE : PINS_NONE;
}

bool pins_find(const char *base, const char *interface, struct pins *p)
{
    char fresh[64], gone[256] = "";
    *p = (struct pins){ 0 };
    if (strlen(interface) >= IF_NAMESIZE || !*interface ||
        strchr(interface, '/'))
        return refuse("%s: not the name of an interface", interface);
    p->interface = if_nametoindex(interface);
    if (!base_name(base, p) ||
        !folder_new_name(p, interface, fresh, sizeof fresh))
        return false;
    if (p->interface && !xdp_attached(p->interface, &p->has))
        return refuse("%s: the kernel does not say what is attached: %s",
                      interface, strerror(errno));
    DIR *const d = opendir(p->base);
    if (!d && errno != ENOENT && errno != ENOTDIR)
        return refuse_path(p->base, errno);
    for (struct dirent *e; d && p->state != PINS_HERE && (e = readdir(d));) {
        const int state =
            e->d_name[0] == '.' ? PINS_NONE : folder_state(p, e->d_name, fresh);
        if (state == PINS_HERE)
            p->state = PINS_HERE;
        else if (state == PINS_GONE)
            snprintf(gone, sizeof gone, "%s", e->d_name);
    }
    if (d)
        closedir(d);
    if (p->state != PINS_HERE) {
        p->state = gone[0] ? PINS_GONE : PINS_NONE;
        folder_name(p, gone[0] ? gone : fresh);
    }
    return true;
}

static bool in_bpf(const char *path)
{
    struct statfs s;
    return statfs(path, &s) == 0 && (uint32_t)s.f_type == BPF_FILES;
}

bool pins_make(const struct pins *p)
{
    const bool made = (mkdir(p->base, 0700) == 0 || errno == EEXIST) &&
                      (mkdir(p->folder, 0700) == 0 || errno == EEXIST);
    if (made && in_bpf(p->folder))
        return true;
    const int error = errno;
    rmdir(p->folder);
    rmdir(p->base);
    if (!made && (in_bpf(p->above) || in_bpf(p->base)))
        return refuse_path(p->folder, error);
    return refuse("%s: not in a bpf file system; use mount -t bpf bpf "
                  "/sys/fs/bpf",
                  p->base);
}

void pins_remove(const struct pins *p)
{
    unlink(p->link);
    for (unsigned i = 0; i < XDP_NMAPS; i++)
        unlink(p->map[i]);
    rmdir(p->folder);
    rmdir(p->base);
}

void pins_maps(const struct pins *p, int at[XDP_NMAPS])
{
    for (unsigned i = 0; i < XDP_NMAPS; i++)
        at[i] = bpf_pinned(p->map[i]);
}

bool pins_maps_set(const struct pins *p, const int at[XDP_NMAPS])
{
    for (unsigned i = 0; i < XDP_NMAPS; i++)
        if (bpf_pin(at[i], p->map[i]) < 0 && errno != EEXIST)
            return false;
    return true;
}

void pins_maps_hide(const struct pins *p)
{
    for (unsigned i = 0; i <= XDP_ALLOW6; i++)
        unlink(p->map[i]);
}

int pins_lock(const char *base)
{
    struct pins p;
    if (!base_name(base, &p))
        return -1;
    const int fd = open(p.above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX) < 0 && errno == EINTR)
        ;
    return fd;
}

/* The process above another; 0: nobody says. */
static long parent_of(long process)
{
    char path[40];
    long parent = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *const f = fopen(path, "r");
    /* The name in brackets may have anything in it but is short. */
    char line[256] = "";
    const size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f)
        fclose(f);
    const char *const behind = n ? strrchr(line, ')') : NULL;
    return behind && sscanf(behind + 1, " %*c %ld", &parent) == 1 ? parent : 0;
}

bool pins_fleeting(const struct pins *p)
{
    /* Whoever began all this lasts: what that process sees there too, stays.
     * Each mount of such a file system has a device number of its own. */
    char seen[PINS_PATH + 40];
    struct stat here, there;
    bool fleeting = false;
    if (p->folder[0] != '/' || stat(p->folder, &here) < 0)
        return false;
    for (long process = parent_of(getpid()); process > 0;
         process = parent_of(process)) {
        snprintf(seen, sizeof seen, "/proc/%ld/root/.", process);
        if (stat(seen, &there) < 0)
            break; /* not ours to look at */
        snprintf(seen, sizeof seen, "/proc/%ld/root%s", process, p->folder);
        fleeting = stat(seen, &there) < 0 || there.st_dev != here.st_dev;
    }
    return fleeting;
}

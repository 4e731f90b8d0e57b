/*
 * disk_tracer.c - a command under observation, and under bad luck
 *
 *     disk_tracer [-l LOG] [-u FOLDER] [-f N:FAULT] [-s] COMMAND [ARGUMENT]...
 *
 * runs a command by ptrace and sees all of its system calls that concern
 * files and memory, those inside libc too, which a preloaded library would
 * miss. They are counted from 1, from a program's entry on: what the loader
 * does before is not the command's business, nor are shared libraries later.
 * So with every program that the command runs, or becomes.
 *
 *     -l LOG     a line for every such call: what the model of a disk
 *                (disk_model.py) replays, and where faults can be put
 *     -u FOLDER  for what is written below it, the bytes too
 *     -f N:WHAT  the N-th call fails with errno WHAT, or with "short" moves a
 *                byte, or half of what it was asked to
 *     -s         a disk that lies: syncing is said to have happened and is
 *                neither done nor logged
 *
 * Syncing is only ever logged, never done: the disk that counts here is the
 * model. The exit status is the command's, 128 and the signal if it was killed;
 * 77 where this program cannot work (another processor, ptrace forbidden).
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CANNOT 77

#if defined(__x86_64__) && defined(__linux__)

#include <elf.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

/* ------------------------------------------------------------------- calls */

/* Which argument is what; -1: there is none. A path without a descriptor of a
 * folder before it is one of the working folder. */
struct call {
    long number;
    const char *name;
    int fd, folder, path, folder2, path2;
    int count; /* of bytes; that of reads and writes can be shortened */
};

#define FD(name, fd, count)                          \
    {                                                \
        SYS_##name, #name, fd, -1, -1, -1, -1, count \
    }
#define PATH(name, folder, path)                        \
    {                                                   \
        SYS_##name, #name, -1, folder, path, -1, -1, -1 \
    }
#define PATHS(name, folder, path, folder2, path2)               \
    {                                                           \
        SYS_##name, #name, -1, folder, path, folder2, path2, -1 \
    }

static const struct call calls[] = {
    PATH(open, -1, 0),
    PATH(openat, 0, 1),
    PATH(creat, -1, 0),
    FD(read, 0, 2),
    FD(pread64, 0, 2),
    FD(write, 0, 2),
    FD(pwrite64, 0, 2),
    FD(readv, 0, -1),
    FD(writev, 0, -1),
    FD(pwritev, 0, -1),
    FD(pwritev2, 0, -1),
    FD(fsync, 0, -1),
    FD(fdatasync, 0, -1),
    FD(syncfs, 0, -1),
    FD(close, 0, -1),
    FD(ftruncate, 0, -1),
    FD(fallocate, 0, -1),
    FD(fstat, 0, -1),
    FD(lseek, 0, -1),
    FD(flock, 0, -1),
    FD(fchmod, 0, -1),
    FD(fchown, 0, -1),
    FD(fsetxattr, 0, -1),
    FD(fgetxattr, 0, -1),
    FD(flistxattr, 0, -1),
    FD(fremovexattr, 0, -1),
    FD(getdents64, 0, -1),
    FD(mmap, 4, -1),
    FD(mremap, -1, -1),
    FD(clone3, -1, -1),
    FD(pipe2, -1, -1),
    FD(copy_file_range, 2, -1),
    FD(sendfile, 0, -1),
    FD(splice, 2, -1),
    FD(io_uring_setup, -1, -1),
    PATH(stat, -1, 0),
    PATH(lstat, -1, 0),
    PATH(newfstatat, 0, 1),
    PATH(statx, 0, 1),
    PATH(access, -1, 0),
    PATH(faccessat, 0, 1),
    PATH(faccessat2, 0, 1),
    PATH(readlink, -1, 0),
    PATH(readlinkat, 0, 1),
    PATH(truncate, -1, 0),
    PATH(chmod, -1, 0),
    PATH(fchmodat, 0, 1),
    PATH(chown, -1, 0),
    PATH(fchownat, 0, 1),
    PATH(setxattr, -1, 0),
    PATH(unlink, -1, 0),
    PATH(unlinkat, 0, 1),
    PATH(mkdir, -1, 0),
    PATH(mkdirat, 0, 1),
    PATH(rmdir, -1, 0),
    PATHS(symlink, -1, 0, -1, 1),
    PATHS(symlinkat, -1, 0, 1, 2),
    PATHS(link, -1, 0, -1, 1),
    PATHS(linkat, 0, 1, 2, 3),
    PATHS(rename, -1, 0, -1, 1),
    PATHS(renameat, 0, 1, 2, 3),
    PATHS(renameat2, 0, 1, 2, 3),
};

static const struct call *call_of(uint64_t number)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (calls[i].number == (long)number)
            return &calls[i];
    return NULL;
}

static bool is(const struct call *c, const char *name)
{
    return strcmp(c->name, name) == 0;
}

static bool syncs(const struct call *c)
{
    return strstr(c->name, "sync") && !strstr(c->name, "range");
}

/* ----------------------------------------------------------------- options */

static FILE *log_file;
static char under[PATH_MAX];
static long fault_at;  /* 0: none */
static int fault_with; /* errno; 0: short */
static bool lying;

/* ----------------------------------------------------------------- threads */

/* A thread between the beginning of a call and its end. */
struct thread {
    pid_t id;
    const struct call *call; /* NULL: none that counts */
    uint64_t args[6];
    long n;         /* number of the call; 0: not counted */
    bool answered;  /* not done: the result is `answer` */
    bool overruled; /* done, but the result is `answer` */
    long answer;
    char path[PATH_MAX], path2[PATH_MAX];
    uint64_t had; /* the inode that the (last) path named before */
};

#define MOST_THREADS 256
static struct thread threads[MOST_THREADS];

static struct thread *thread_of(pid_t id)
{
    for (size_t i = 0; i < MOST_THREADS; i++)
        if (threads[i].id == id)
            return &threads[i];
    for (size_t i = 0; i < MOST_THREADS; i++)
        if (threads[i].id == 0) {
            threads[i].id = id;
            return &threads[i];
        }
    fputs("disk_tracer: too many threads\n", stderr);
    exit(CANNOT);
}

/* ----------------------------------------------------------- looking inside */

static bool memory_of(pid_t id, uint64_t at, void *to, size_t n)
{
    struct iovec here = { to, n };
    struct iovec there = { (void *)(uintptr_t)at, n };
    return process_vm_readv(id, &here, 1, &there, 1, 0) == (ssize_t)n;
}

/* A path may end just before memory that is not there. */
static void string_of(pid_t id, uint64_t at, char *to, size_t room)
{
    size_t n = 0;
    while (n + 1 < room && memory_of(id, at + n, to + n, 1) && to[n])
        n++;
    to[n] = '\0';
}

static void link_of(pid_t id, const char *what, char *to, size_t room)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/%s", (int)id, what);
    const ssize_t n = readlink(name, to, room - 1);
    to[n > 0 ? n : 0] = '\0';
}

static void path_of_fd(pid_t id, int fd, char *to, size_t room)
{
    char what[32];
    snprintf(what, sizeof what, "fd/%d", fd);
    link_of(id, what, to, room);
}

static void path_of(pid_t id, int folder, uint64_t at, char *to)
{
    char last[PATH_MAX];
    string_of(id, at, last, sizeof last);
    int fd;
    if (sscanf(last, "/proc/self/fd/%d", &fd) == 1) {
        path_of_fd(id, fd, to, PATH_MAX);
        return;
    }
    to[0] = '\0';
    if (last[0] != '/' && folder == AT_FDCWD)
        link_of(id, "cwd", to, PATH_MAX);
    else if (last[0] != '/')
        path_of_fd(id, folder, to, PATH_MAX);
    const size_t n = strlen(to);
    snprintf(to + n, PATH_MAX - n, "%s%s", n && last[0] ? "/" : "", last);
}

static uint64_t inode_at(const char *path)
{
    struct stat st;
    return lstat(path, &st) ? 0 : st.st_ino;
}

static uint64_t inode_of_fd(pid_t id, int fd)
{
    char name[64];
    struct stat st;
    snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)id, fd);
    return stat(name, &st) ? 0 : st.st_ino;
}

static long long position_of(pid_t id, int fd)
{
    char name[64];
    long long at = -1;
    snprintf(name, sizeof name, "/proc/%d/fdinfo/%d", (int)id, fd);
    FILE *const f = fopen(name, "re");
    if (f && fscanf(f, "pos: %lld", &at) != 1)
        at = -1;
    if (f)
        fclose(f);
    return at;
}

static bool below(const char *path)
{
    const size_t n = strlen(under);
    return n && strncmp(path, under, n) == 0 &&
           (path[n] == '/' || path[n] == '\0');
}

/* ----------------------------------------------------------------- counting */

/* Whether a call is one that may fail. Shared libraries and locales are the
 * loader's and libc's; of standard error nobody would hear. */
static bool counts(const struct thread *t)
{
    const struct call *const c = t->call;
    if (strstr(t->path, ".so") || strncmp(t->path, "/usr/lib/", 9) == 0 ||
        strncmp(t->path, "/usr/share/", 11) == 0 ||
        strncmp(t->path, "/etc/", 5) == 0)
        return false;
    if (c->fd == 0 && (int)t->args[0] == STDERR_FILENO)
        return false;
    return true;
}

static struct user_regs_struct registers(pid_t id)
{
    struct user_regs_struct r = { 0 };
    ptrace(PTRACE_GETREGS, id, NULL, &r);
    return r;
}

/* Halves what is read or written, or leaves one byte of it: both have found
 * mistakes. */
static void shorten(struct thread *t)
{
    struct user_regs_struct r = registers(t->id);
    if (t->call->count != 2 || r.rdx < 2)
        return;
    r.rdx = r.rdx > 64 ? r.rdx / 2 + 1 : 1;
    t->args[2] = r.rdx;
    ptrace(PTRACE_SETREGS, t->id, NULL, &r);
}

/* Instead of the call, nothing is done, and the answer is given. */
static void answer(struct thread *t, long with)
{
    struct user_regs_struct r = registers(t->id);
    r.orig_rax = (unsigned long long)-1;
    ptrace(PTRACE_SETREGS, t->id, NULL, &r);
    t->answered = true;
    t->answer = with;
}

static void call_begins(struct thread *t,
                        const struct __ptrace_syscall_info *info)
{
    static long count;
    const struct call *const c = call_of(info->entry.nr);
    t->call = c;
    t->answered = t->overruled = false;
    t->n = 0;
    t->path[0] = t->path2[0] = '\0';
    if (!c)
        return;
    for (int i = 0; i < 6; i++)
        t->args[i] = info->entry.args[i];
    if (c->path >= 0)
        path_of(t->id, c->folder < 0 ? AT_FDCWD : (int)t->args[c->folder],
                t->args[c->path], t->path);
    if (c->path2 >= 0)
        path_of(t->id, c->folder2 < 0 ? AT_FDCWD : (int)t->args[c->folder2],
                t->args[c->path2], t->path2);
    if (c->fd >= 0 && (int)t->args[c->fd] >= 0)
        path_of_fd(t->id, (int)t->args[c->fd], t->path, sizeof t->path);
    t->had = inode_at(c->path2 >= 0 ? t->path2 : t->path);
    if (counts(t))
        t->n = ++count;
    if (t->n && t->n == fault_at) {
        if (fault_with == 0) {
            shorten(t);
        } else if (is(c, "close")) { /* Linux closes it whatever it says */
            t->overruled = true;
            t->answer = -fault_with;
        } else {
            answer(t, -fault_with);
        }
    } else if (syncs(c)) {
        answer(t, 0);
    }
}

/* ---------------------------------------------------------------------- log */

static void log_bytes(pid_t id, uint64_t at, size_t n)
{
    unsigned char some[4096];
    while (n) {
        const size_t part = n < sizeof some ? n : sizeof some;
        if (!memory_of(id, at, some, part))
            return;
        for (size_t i = 0; i < part; i++)
            fprintf(log_file, "%02x", some[i]);
        at += part;
        n -= part;
    }
}

static void log_written(const struct thread *t, long result)
{
    const struct call *const c = t->call;
    const int fd = (int)t->args[0];
    if (result <= 0 || !below(t->path))
        return;
    const long long at = is(c, "pwrite64") ? (long long)t->args[3]
                                           : position_of(t->id, fd) - result;
    fprintf(log_file, "\tat=%lld\tdata=", at);
    if (!is(c, "writev")) {
        log_bytes(t->id, t->args[1], (size_t)result);
        return;
    }
    size_t left = (size_t)result;
    for (uint64_t i = 0; i < t->args[2] && left; i++) {
        struct iovec v;
        if (!memory_of(t->id, t->args[1] + i * sizeof v, &v, sizeof v))
            return;
        const size_t n = v.iov_len < left ? v.iov_len : left;
        log_bytes(t->id, (uint64_t)(uintptr_t)v.iov_base, n);
        left -= n;
    }
}

static void log_call(const struct thread *t, long result)
{
    const struct call *const c = t->call;
    const uint64_t *const a = t->args;
    if (!log_file || (lying && syncs(c)))
        return;
    fprintf(log_file, "call=%s\tn=%ld\tresult=%ld\tpath=%s\tto=%s\thad=%llu",
            c->name, t->n, result, t->path, t->path2,
            (unsigned long long)t->had);
    if (t->n && t->n == fault_at)
        fputs("\tfault=1", log_file);
    /* The file that it is about: for close, what it was about is gone. */
    const char *const last = c->path2 >= 0 ? t->path2 : t->path;
    const bool opens = strncmp(c->name, "open", 4) == 0 || is(c, "creat");
    const uint64_t inode = opens && result >= 0
                               ? inode_of_fd(t->id, (int)result)
                           : c->path >= 0 ? inode_at(last)
                           : c->fd >= 0   ? inode_of_fd(t->id, (int)a[c->fd])
                                          : 0;
    fprintf(log_file, "\tinode=%llu", (unsigned long long)inode);
    if (opens)
        fprintf(log_file, "\tflags=%llu\tmode=%llu",
                (unsigned long long)a[c->path + 1],
                (unsigned long long)a[c->path + 2]);
    else if (is(c, "ftruncate"))
        fprintf(log_file, "\tsize=%llu", (unsigned long long)a[1]);
    else if (is(c, "fallocate"))
        fprintf(log_file, "\thow=%llu\tsize=%llu", (unsigned long long)a[1],
                (unsigned long long)(a[2] + a[3]));
    else if (is(c, "fchmod"))
        fprintf(log_file, "\tmode=%llu", (unsigned long long)a[1]);
    else if (is(c, "mmap"))
        fprintf(log_file, "\tshared=%d\tanonymous=%d",
                (a[2] & PROT_WRITE) && (a[3] & MAP_TYPE) != MAP_PRIVATE &&
                    !(a[3] & MAP_ANONYMOUS),
                (a[3] & MAP_ANONYMOUS) != 0);
    else if (is(c, "write") || is(c, "pwrite64") || is(c, "writev"))
        log_written(t, result);
    fputc('\n', log_file);
}

static void call_ends(struct thread *t,
                      const struct __ptrace_syscall_info *info)
{
    long result = (long)info->exit.rval;
    if (!t->call)
        return;
    if (t->answered || t->overruled) {
        struct user_regs_struct r = registers(t->id);
        result = t->answer;
        r.rax = (unsigned long long)result;
        ptrace(PTRACE_SETREGS, t->id, NULL, &r);
    }
    log_call(t, result);
    t->call = NULL;
}

/* --------------------------------------------------------------------- runs */

/* Let the loader do its work: on to the program's first instruction. */
static bool run_to_entry(pid_t id)
{
    char name[64];
    Elf64_auxv_t aux = { 0 };
    int status;
    snprintf(name, sizeof name, "/proc/%d/auxv", (int)id);
    FILE *const f = fopen(name, "re");
    while (f && fread(&aux, sizeof aux, 1, f) == 1 && aux.a_type != AT_ENTRY)
        ;
    if (f)
        fclose(f);
    if (aux.a_type != AT_ENTRY)
        return false;
    void *const entry = (void *)(uintptr_t)aux.a_un.a_val;
    const long was = ptrace(PTRACE_PEEKTEXT, id, entry, NULL);
    ptrace(PTRACE_POKETEXT, id, entry, (was & ~0xffL) | 0xcc);
    for (int sig = 0; sig != SIGTRAP; sig = WSTOPSIG(status))
        if (ptrace(PTRACE_CONT, id, NULL, (void *)(uintptr_t)sig) ||
            waitpid(id, &status, __WALL) != id || !WIFSTOPPED(status))
            return false;
    ptrace(PTRACE_POKETEXT, id, entry, was);
    struct user_regs_struct r = registers(id);
    r.rip--;
    return ptrace(PTRACE_SETREGS, id, NULL, &r) == 0;
}

/* A stop of a thread; the signal that it is to be given, or 0. */
static int look(struct thread *t, int status)
{
    struct __ptrace_syscall_info info;
    const int sig = WSTOPSIG(status);
    if (sig == (SIGTRAP | 0x80)) {
        if (ptrace(PTRACE_GET_SYSCALL_INFO, t->id, sizeof info, &info) > 0) {
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
                call_begins(t, &info);
            else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
                call_ends(t, &info);
        }
        return 0;
    }
    if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8) &&
        !run_to_entry(t->id))
        exit(CANNOT);
    /* Events, and the first stop of a new thread. */
    return status >> 16 || sig == SIGSTOP ? 0 : sig;
}

static int watch(pid_t first)
{
    int result = CANNOT;
    ptrace(PTRACE_SYSCALL, first, NULL, NULL);
    for (;;) {
        int status;
        const pid_t id = waitpid(-1, &status, __WALL);
        if (id < 0)
            return result;
        struct thread *const t = thread_of(id);
        if (WIFSTOPPED(status)) {
            const int sig = look(t, status);
            ptrace(PTRACE_SYSCALL, id, NULL, (void *)(uintptr_t)sig);
            continue;
        }
        t->id = 0;
        if (id == first)
            result = WIFEXITED(status) ? WEXITSTATUS(status)
                                       : 128 + WTERMSIG(status);
    }
}

static void read_options(int argc, char **argv)
{
    for (int c; (c = getopt(argc, argv, "+l:u:f:s")) != -1;) {
        if (c == 'l') {
            log_file = fopen(optarg, "we");
        } else if (c == 'u') {
            snprintf(under, sizeof under, "%s", optarg);
        } else if (c == 's') {
            lying = true;
        } else if (c == 'f') {
            char *end;
            fault_at = strtol(optarg, &end, 10);
            fault_with = *end == ':' ? atoi(end + 1) : 0; /* "short" is 0 */
        } else {
            exit(CANNOT);
        }
    }
}

int main(int argc, char **argv)
{
    int status;
    read_options(argc, argv);
    if (optind >= argc)
        return CANNOT;
    const pid_t id = fork();
    if (id == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(CANNOT);
        raise(SIGSTOP);
        execvp(argv[optind], argv + optind);
        _exit(CANNOT);
    }
    if (id < 0 || waitpid(id, &status, 0) != id || !WIFSTOPPED(status))
        return CANNOT;
    if (ptrace(PTRACE_SETOPTIONS, id, NULL,
               PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE |
                   PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACEEXEC))
        return CANNOT;
    ptrace(PTRACE_CONT, id, NULL, NULL);
    if (waitpid(id, &status, 0) != id || !WIFSTOPPED(status) ||
        status >> 8 != (SIGTRAP | PTRACE_EVENT_EXEC << 8) || !run_to_entry(id))
        return CANNOT;
    const int result = watch(id);
    if (log_file) {
        fprintf(log_file, "call=exit\tn=0\tresult=%d\tpath=\tto=\n", result);
        fclose(log_file);
    }
    return result;
}

#else

int main(void)
{
    return CANNOT;
}

#endif

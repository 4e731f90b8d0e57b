/*
 * posix.c - what the library asks of POSIX, for Windows
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <sys/mman.h>
#include <windows.h>

#define ALIGNED ((size_t)2 << 20)

long sysconf(int name)
{
    SYSTEM_INFO info;
    MEMORYSTATUSEX memory = { .dwLength = sizeof memory };
    GetSystemInfo(&info);
    GlobalMemoryStatusEx(&memory);
    return name == _SC_PAGESIZE ? (long)info.dwPageSize
           : name == _SC_NPROCESSORS_ONLN
               ? (long)info.dwNumberOfProcessors
               : (long)(memory.ullTotalPhys / info.dwPageSize);
}

int fsync(int fd)
{
    return _commit(fd);
}

/* The place in the file is moved: the library reads and writes a scratch file
 * at places alone, from one thread. */
ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    return _lseeki64(fd, at, SEEK_SET) < 0
               ? -1
               : _read(fd, buf, n > INT32_MAX ? INT32_MAX : (unsigned)n);
}

/* inet_addr() takes the same texts, but says 255.255.255.255 for bad ones. */
int inet_aton(const char *text, struct in_addr *out)
{
    out->s_addr = inet_addr(text);
    return out->s_addr != INADDR_NONE;
}

/* ------------------------------------------------------------------- memory */

static DWORD access_of(int access)
{
    return access & PROT_WRITE  ? PAGE_READWRITE
           : access & PROT_READ ? PAGE_READONLY
                                : PAGE_NOACCESS;
}

/* Addresses are found by reserving too many, and taken again at the aligned
 * place; another thread may be quicker, so a few times. */
static void *anonymous(size_t n, int access)
{
    const DWORD how = access ? MEM_RESERVE | MEM_COMMIT : MEM_RESERVE;
    for (int i = 0; i < 8; i++) {
        char *const at =
            VirtualAlloc(NULL, n + ALIGNED, MEM_RESERVE, PAGE_NOACCESS);
        if (!at)
            break;
        VirtualFree(at, 0, MEM_RELEASE);
        void *const p = VirtualAlloc(at + (-(uintptr_t)at & (ALIGNED - 1)), n,
                                     how, access_of(access));
        if (p)
            return p;
    }
    errno = ENOMEM;
    return MAP_FAILED;
}

static void *file_view(size_t n, int fd)
{
    const HANDLE file = (HANDLE)_get_osfhandle(fd);
    const HANDLE mapping =
        CreateFileMappingA(file, NULL, PAGE_READONLY, 0, 0, NULL);
    void *const at =
        mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, n) : NULL;
    if (mapping)
        CloseHandle(mapping); /* the view keeps it */
    if (!at)
        errno = ENOMEM;
    return at ? at : MAP_FAILED;
}

void *mmap(void *at, size_t n, int access, int flags, int fd, off_t from)
{
    if (at || from || !n || (!(flags & MAP_ANONYMOUS) && access != PROT_READ)) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    return flags & MAP_ANONYMOUS ? anonymous(n, access) : file_view(n, fd);
}

/* All of it, if it begins where it was made; else only that part. */
int munmap(void *at, size_t n)
{
    MEMORY_BASIC_INFORMATION is;
    BOOL ok = VirtualQuery(at, &is, sizeof is) != 0;
    if (ok && is.Type == MEM_MAPPED)
        ok = UnmapViewOfFile(at);
    else if (ok && is.AllocationBase == at)
        ok = VirtualFree(at, 0, MEM_RELEASE);
    else if (ok && is.State == MEM_COMMIT)
        ok = VirtualFree(at, n, MEM_DECOMMIT);
    return ok ? 0 : -1;
}

int mprotect(void *at, size_t n, int access)
{
    return VirtualAlloc(at, n, MEM_COMMIT, access_of(access)) ? 0 : -1;
}

/* Only one advice changes what is there: zeros come back. */
int madvise(void *at, size_t n, int advice)
{
    if (advice != MADV_DONTNEED)
        return 0;
    return VirtualFree(at, n, MEM_DECOMMIT) &&
                   VirtualAlloc(at, n, MEM_COMMIT, PAGE_READWRITE)
               ? 0
               : -1;
}

/*
 * key_secret.c - the secret of keyed filters, or of two that talk, from a file
 *
 * The file holds the 16 bytes themselves, or hexadecimal digits and perhaps the
 * end of a line, which is two bytes where the file was written on
 * Windows. Memory that held them is wiped.
 */
#define _GNU_SOURCE /* explicit_bzero */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/files.h"
#include "io/hex.h"
#include "report/say.h"

#define SECRET_MOST 32

static unsigned char secret[BLY_SECRET_BYTES];

void secret_wipe(void)
{
    explicit_bzero(secret, sizeof secret);
}

/* The secret in n bytes of text: how many bytes it has, 0 if it has none of the
 * forms. */
static size_t secret_parse(const unsigned char *text, size_t n,
                           unsigned char *out, size_t most)
{
    if (n == BLY_SECRET_BYTES) {
        memcpy(out, text, n);
        return n;
    }
    if (n && text[n - 1] == '\n') {
        n--;
        if (n && text[n - 1] == '\r')
            n--;
    }
    if (n != 2 * BLY_SECRET_BYTES && n != 2 * most)
        return 0;
    return hex_read((const char *)text, n / 2, out) ? n / 2 : 0;
}

int secret_open(const char *path, bool *open_to_all)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail_path(path, errno);
    *open_to_all = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                   (st.st_mode & 0044);
    return fd;
}

size_t secret_bytes(const char *path, unsigned char *out, size_t most)
{
    unsigned char text[2 * SECRET_MOST + 3]; /* CR, LF, and one too many */
    bool open_to_all;
    const int fd = secret_open(path, &open_to_all);
    if (fd < 0)
        return 0;
    const int64_t got = read_all(fd, text, sizeof text);
    const int error = errno;
    close(fd);
    if (got < 0) {
        fail_path(path, error);
        return 0;
    }
    const size_t n = secret_parse(text, (size_t)got, out, most);
    explicit_bzero(text, sizeof text);
    if (!n)
        fail("%s: not a key: it must hold 16 raw bytes, or 32 %shexadecimal "
             "digits (%s makes one)",
             path, most > BLY_SECRET_BYTES ? "or 64 " : "",
             most > BLY_SECRET_BYTES ? "bloomery node key"
                                     : "head -c 16 /dev/urandom");
    else if (open_to_all)
        warn("%s: other users can read this key; chmod 600 makes it yours",
             path);
    return n;
}

const unsigned char *secret_read(const char *path, bool *ok)
{
    *ok = !path || secret_bytes(path, secret, sizeof secret);
    return path && *ok ? secret : NULL;
}

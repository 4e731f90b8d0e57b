/*
 * key_secret.c - the secret of keyed filters, from a file
 *
 * The file holds the 16 bytes themselves, or their 32 hexadecimal digits and
 * perhaps the end of a line, which is two bytes where the file was written on
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

#define HEX_DIGITS (2 * BLY_SECRET_BYTES)

static struct {
    unsigned char bytes[BLY_SECRET_BYTES];
    unsigned char text[HEX_DIGITS + 3]; /* CR, LF, and one byte too many */
} secret;

void secret_wipe(void)
{
    explicit_bzero(&secret, sizeof secret);
}

/* The secret in n bytes of text; false if they have neither form. */
static bool secret_parse(size_t n)
{
    if (n == BLY_SECRET_BYTES) {
        memcpy(secret.bytes, secret.text, BLY_SECRET_BYTES);
        return true;
    }
    if (n > HEX_DIGITS && secret.text[n - 1] == '\n') {
        n--;
        if (n > HEX_DIGITS && secret.text[n - 1] == '\r')
            n--;
    }
    return n == HEX_DIGITS &&
           hex_read((const char *)secret.text, BLY_SECRET_BYTES, secret.bytes);
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

const unsigned char *secret_read(const char *path, bool *ok)
{
    *ok = !path;
    if (!path)
        return NULL;
    bool open_to_all;
    const int fd = secret_open(path, &open_to_all);
    if (fd < 0)
        return NULL;
    size_t n = 0;
    ssize_t got;
    do {
        got = read(fd, secret.text + n, sizeof secret.text - n);
        if (got > 0)
            n += (size_t)got;
    } while (got > 0 || (got < 0 && errno == EINTR));
    const int error = errno;
    close(fd);
    if (got < 0) {
        fail_path(path, error);
        return NULL;
    }
    *ok = secret_parse(n);
    explicit_bzero(secret.text, sizeof secret.text);
    if (!*ok) {
        fail("%s: not a key: it must hold 16 raw bytes, or 32 hexadecimal "
             "digits (head -c 16 /dev/urandom makes one)",
             path);
        return NULL;
    }
    if (open_to_all)
        warn("%s: other users can read this key; chmod 600 makes it yours",
             path);
    return secret.bytes;
}

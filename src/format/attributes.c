/*
 * attributes.c - owner, access rights and extended attributes of a file
 *
 * A replaced file is a new file: what the old one had besides its bytes is
 * carried over here, or the replacement is refused.
 *
 *     user.*            kept, or refused
 *     system.*          kept, or refused: lists of access rights, above all
 *                       system.posix_acl_access
 *     trusted.*, others kept where the caller may set them
 *     security.*        never: a label is the system's to choose for a new
 *                       file, and capabilities (security.capability) given to
 *                       other bytes would be a hole
 *     *.overlay.*       never: notes of overlayfs about the old file's bytes
 *     permission bits   kept: the nine of them. Setuid, setgid and sticky bits
 *                       never, for the reason that capabilities are not
 *     owner, group      kept where the caller may set them. Where the group
 *                       cannot be kept, nobody gains a right by it; with an
 *                       access control list, which would then speak of another
 *                       group, the call is refused
 *
 * The order matters, since the new file must never be more open than the old
 * one. First it is closed to everybody but its owner (0600). In a folder with a
 * default list, this also disables the entries that the file inherited, because
 * the group bits are the mask of such a list. Attributes come next, while the
 * file is still the caller's; then owner and group; then the old list takes the
 * place of the inherited one, or that is removed; and only then, with no
 * foreign entry left for a mask to open, come the permission bits.
 *
 * Anyone who may write to the old file may have given it any attributes. The
 * kernel bounds a list of names and a value at 64 KiB each; all values together
 * are bounded here.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core/status.h"
#include "format/replace.h"

#define LIST_MOST ((size_t)64 << 10)  /* XATTR_LIST_MAX of Linux */
#define VALUE_MOST ((size_t)64 << 10) /* XATTR_SIZE_MAX */
#define VALUES_MOST ((size_t)16 << 20)

#define ACCESS_LIST "system.posix_acl_access"

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Does errno say that an attribute is not there, or cannot be? */
static bool absent(int err)
{
    return err == ENODATA || err == EOPNOTSUPP || err == ENOSYS;
}

static bly_status not_kept(const char *file, const char *attribute, int err)
{
    if (strcmp(attribute, ACCESS_LIST) == 0)
        return bly_fail(BLY_EIO,
                        "%s: cannot be replaced: its access control list "
                        "cannot be kept: %s (remove it with setfacl -b, or "
                        "choose another file)",
                        file, strerror(err));
    return bly_fail(BLY_EIO,
                    "%s: cannot be replaced: its attribute %.255s cannot be "
                    "kept: %s (remove it with setfattr -x, or choose another "
                    "file)",
                    file, attribute, strerror(err));
}

static bly_status too_many(const char *file)
{
    return bly_fail(BLY_EIO,
                    "%s: cannot be replaced: it has more extended attributes "
                    "than can be kept (remove some with setfattr -x, or choose "
                    "another file)",
                    file);
}

typedef struct carrying {
    const char *name;
    int from, to;
    char *list; /* of names, each with its NUL; LIST_MOST bytes */
    size_t nlist;
    unsigned char *value; /* VALUE_MOST bytes, twice */
    size_t total;         /* of the values so far */
} carrying;

/* Does `to` have this value already? */
static bool has_value(const carrying *c, const char *attribute, size_t n)
{
    unsigned char *const there = c->value + VALUE_MOST;
    return fgetxattr(c->to, attribute, there, VALUE_MOST) == (ssize_t)n &&
           memcmp(there, c->value, n) == 0;
}

/* Carry one attribute; `must`: or fail. *had, unless NULL: whether `from` has
 * it. */
static bly_status carry_one(carrying *c, const char *attribute, bool must,
                            bool *had)
{
    const ssize_t n = fgetxattr(c->from, attribute, c->value, VALUE_MOST);
    if (had)
        *had = n >= 0;
    if (n < 0)
        return absent(errno) || !must ? BLY_OK
                                      : not_kept(c->name, attribute, errno);
    c->total += (size_t)n;
    if (c->total > VALUES_MOST)
        return too_many(c->name);
    if (has_value(c, attribute, (size_t)n) ||
        fsetxattr(c->to, attribute, c->value, (size_t)n, 0) == 0 || !must)
        return BLY_OK;
    return not_kept(c->name, attribute, errno);
}

/* Carry the attributes of the list: those of the system, which are rights of
 * some kind, or the others. */
static bly_status carry_list(carrying *c, bool systems)
{
    bly_status st = BLY_OK;
    size_t n;
    for (const char *at = c->list; !st && at < c->list + c->nlist; at += n) {
        const bool system = begins(at, "system.");
        n = strlen(at) + 1;
        if (system != systems || strcmp(at, ACCESS_LIST) == 0 ||
            begins(at, "security.") || begins(at, "trusted.overlay.") ||
            begins(at, "user.overlay."))
            continue;
        st = carry_one(c, at, system || begins(at, "user."), NULL);
    }
    return st;
}

static bly_status read_list(carrying *c)
{
    const ssize_t n = flistxattr(c->from, c->list, LIST_MOST - 1);
    if (n < 0 && (errno == ERANGE || errno == E2BIG))
        return too_many(c->name);
    if (n < 0 && !absent(errno))
        return bly_fail(BLY_EIO,
                        "%s: cannot be replaced: its attributes cannot be "
                        "read: %s",
                        c->name, strerror(errno));
    c->nlist = n < 0 ? 0 : (size_t)n;
    c->list[c->nlist] = '\0';
    return BLY_OK;
}

static bly_status cannot(const char *name, int err)
{
    return bly_fail(BLY_EIO, "%s: cannot be replaced: %s", name, strerror(err));
}

/* Owner and group, the access control list, and the permission bits. */
static bly_status carry_rights(carrying *c, const struct stat *old)
{
    struct stat new;
    mode_t mode = old->st_mode & 0777;
    bool listed, group_kept = true;
    if (fstat(c->to, &new))
        return cannot(c->name, errno);
    if ((new.st_uid != old->st_uid || new.st_gid != old->st_gid) &&
        fchown(c->to, old->st_uid, old->st_gid) && new.st_gid != old->st_gid &&
        fchown(c->to, (uid_t)-1, old->st_gid))
        group_kept = false;

    if (!group_kept && fgetxattr(c->from, ACCESS_LIST, NULL, 0) >= 0)
        return not_kept(c->name, ACCESS_LIST, EPERM);
    const bly_status st = carry_one(c, ACCESS_LIST, true, &listed);
    if (st)
        return st;
    if (!listed && fremovexattr(c->to, ACCESS_LIST) && !absent(errno))
        return cannot(c->name, errno);
    /* Members of the old group may now count as others, and the other way
     * round. So rights that only one of the two had are dropped. */
    if (!group_kept)
        mode = (mode & 0700) | ((mode & mode >> 3 & 07) * 011);
    return fchmod(c->to, mode) ? cannot(c->name, errno) : BLY_OK;
}

bly_status bly_attributes_keep(const char *name, int from, int to)
{
    carrying c = { .name = name, .from = from, .to = to };
    struct stat old;
    if (fstat(from, &old) || fchmod(to, 0600))
        return cannot(name, errno);
    c.list = malloc(LIST_MOST + 2 * VALUE_MOST);
    if (!c.list)
        return bly_fail(BLY_ENOMEM, "out of memory");
    c.value = (unsigned char *)c.list + LIST_MOST;
    bly_status st = read_list(&c);
    if (!st)
        st = carry_list(&c, false);
    if (!st)
        st = carry_rights(&c, &old);
    if (!st)
        st = carry_list(&c, true);
    free(c.list);
    return st;
}

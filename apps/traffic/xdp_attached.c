/*
 * xdp_attached.c - which program an interface has, by rtnetlink
 *
 * A link of bpf(2) has the number of its interface, but not the namespace that
 * this number is of. The interface itself knows the number of its program, and
 * these are unique in the kernel.
 */
#define _GNU_SOURCE
#include "apps/traffic/xdp_attached.h"

#include <errno.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER 32768 /* bytes; the kernel's answers have some thousands */

/* The attribute of this type among n bytes; NULL: there is none. */
static const struct rtattr *attribute(const void *at, size_t n, unsigned type)
{
    const unsigned char *p = at;
    while (n >= sizeof(struct rtattr)) {
        const struct rtattr *const a = (const void *)p;
        const size_t step = RTA_ALIGN((size_t)a->rta_len);
        if (a->rta_len < sizeof *a || a->rta_len > n)
            return NULL;
        if ((a->rta_type & NLA_TYPE_MASK) == type)
            return a;
        if (step >= n)
            return NULL;
        p += step;
        n -= step;
    }
    return NULL;
}

static void attached_parse(const unsigned char *at, size_t n,
                           struct xdp_attached *out)
{
    static const char *const modes[] = { NULL, "native", "generic", "offloaded",
                                         "several" };
    const struct rtattr *const xdp = attribute(at, n, IFLA_XDP);
    if (!xdp)
        return;
    const size_t inside = xdp->rta_len - sizeof *xdp;
    const struct rtattr *const mode =
        attribute(xdp + 1, inside, IFLA_XDP_ATTACHED);
    const struct rtattr *const program =
        attribute(xdp + 1, inside, IFLA_XDP_PROG_ID);
    const unsigned char which = mode && mode->rta_len > sizeof *mode
                                    ? *(const unsigned char *)(mode + 1)
                                    : 0;
    if (which < sizeof modes / sizeof modes[0])
        out->mode = modes[which];
    if (program && program->rta_len >= sizeof *program + 4)
        memcpy(&out->program, program + 1, 4);
}

/* The answer to a question of one message: its bytes, or -1. */
static ssize_t kernel_ask(const void *question, size_t n, void *answer)
{
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return -1;
    ssize_t got = send(fd, question, n, 0);
    while (got >= 0) {
        got = recv(fd, answer, ANSWER, 0);
        if (got >= 0 || errno != EINTR)
            break;
        got = 0;
    }
    const int error = errno;
    close(fd);
    errno = error;
    return got;
}

bool xdp_attached(unsigned interface, struct xdp_attached *out)
{
    struct {
        struct nlmsghdr head;
        struct ifinfomsg which;
    } question = { { .nlmsg_len = sizeof question,
                     .nlmsg_type = RTM_GETLINK,
                     .nlmsg_flags = NLM_F_REQUEST },
                   { .ifi_family = AF_UNSPEC, .ifi_index = (int)interface } };
    static union {
        struct nlmsghdr head;
        unsigned char bytes[ANSWER];
    } answer;
    const size_t front = NLMSG_LENGTH(sizeof(struct ifinfomsg));
    *out = (struct xdp_attached){ 0 };
    const ssize_t got = kernel_ask(&question, sizeof question, &answer);
    if (got < 0)
        return false;
    if ((size_t)got >= NLMSG_LENGTH(sizeof(struct nlmsgerr)) &&
        answer.head.nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *const e = (void *)(&answer.head + 1);
        errno = -e->error;
        return false;
    }
    if ((size_t)got < front || answer.head.nlmsg_type != RTM_NEWLINK ||
        answer.head.nlmsg_len > (size_t)got) {
        errno = EPROTO;
        return false;
    }
    attached_parse(answer.bytes + front, answer.head.nlmsg_len - front, out);
    return true;
}

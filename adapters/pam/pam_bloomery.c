/*
 * pam_bloomery.c - a leaked password is refused when it is set
 *
 *     password requisite pam_bloomery.so filter=/etc/security/pwned.bly
 *     password required  pam_unix.so use_authtok yescrypt
 *
 * PAM calls pam_sm_chauthtok() twice: first to see whether a change can go
 * ahead, then to make it. The second call gets the new password, by asking for
 * it or from a module before this one, hashes it as the filter says
 * (`bloomery passwords build` notes it there), and asks the filter, which is
 * mapped: of one of a gigabyte a few pages are read.
 *
 * The filter decides which passwords a machine accepts, so it must be a file
 * that only root, or the user who runs this, can change. A filter that cannot
 * be used, because it is missing, damaged or writable by others, is reported in
 * the log; whether passwords can be changed meanwhile is the administrator's
 * choice (fail=).
 *
 * No part of a password goes to the log or into a message, not even with debug.
 */
#define _GNU_SOURCE /* explicit_bzero() */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#define PAM_SM_PASSWORD
#include <security/pam_ext.h>
#include <security/pam_modules.h>

#include <bloomery.h>

#include "apps/passwords/password_hash.h"
#include "io/hex.h"

#define RETRY_MOST 100

struct pam_args {
    const char *filter, *key_file;
    unsigned retry;
    bool closed, debug, use_authtok, for_root;
};

/* ----------------------------------------------------------------- options */

static bool option_is(const char *word, const char *name, const char **value)
{
    const size_t n = strlen(name);
    if (strncmp(word, name, n) != 0)
        return false;
    *value = word + n;
    return true;
}

/* False, with the reason logged: a line that makes no sense refuses every
 * change, as fail=closed does, rather than none. */
static bool options_read(pam_handle_t *pamh, int argc, const char **argv,
                         struct pam_args *out)
{
    *out = (struct pam_args){ .retry = 1, .closed = true };
    for (int i = 0; i < argc; i++) {
        const char *value;
        if (strcmp(argv[i], "debug") == 0) {
            out->debug = true;
        } else if (strcmp(argv[i], "use_authtok") == 0) {
            out->use_authtok = true;
        } else if (strcmp(argv[i], "enforce_for_root") == 0) {
            out->for_root = true;
        } else if (option_is(argv[i], "filter=", &value)) {
            out->filter = value;
        } else if (option_is(argv[i], "key_file=", &value)) {
            out->key_file = value;
        } else if (strcmp(argv[i], "fail=open") == 0) {
            out->closed = false;
        } else if (strcmp(argv[i], "fail=closed") == 0) {
            out->closed = true;
        } else if (option_is(argv[i], "retry=", &value)) {
            char *end;
            const unsigned long n = strtoul(value, &end, 10);
            if (*end || n < 1 || n > RETRY_MOST) {
                pam_syslog(pamh, LOG_ERR, "%s: expected retry=1 to retry=%d",
                           argv[i], RETRY_MOST);
                return false;
            }
            out->retry = (unsigned)n;
        } else {
            pam_syslog(pamh, LOG_ERR,
                       "unknown option %s; there are: filter= key_file= "
                       "retry= fail=open fail=closed use_authtok "
                       "enforce_for_root debug",
                       argv[i]);
            return false;
        }
    }
    if (!out->filter || out->filter[0] != '/') {
        pam_syslog(pamh, LOG_ERR,
                   "filter=PATH is missing: the filter that bloomery passwords "
                   "build made, with its whole path");
        return false;
    }
    return true;
}

/* -------------------------------------------------------------- the filter */

/* Open a file that nobody but root and this user can change; with `secret`,
 * that nobody else can read either. Negative, with the reason logged. */
static int open_trusted(pam_handle_t *pamh, const char *path, bool secret)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    const char *wrong = NULL;
    if (fd < 0 || fstat(fd, &st) != 0)
        wrong = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        wrong = "not a regular file";
    else if (st.st_mode & S_IWOTH)
        wrong = "everybody can write to it; use chmod o-w";
    else if (st.st_mode & S_IWGRP)
        wrong = "its group can write to it; use chmod g-w";
    else if (st.st_uid != 0 && st.st_uid != geteuid())
        wrong = "it belongs to another user; chown it to root";
    else if (secret && (st.st_mode & (S_IRGRP | S_IROTH)))
        wrong = "others can read it; chmod it to 600";
    if (!wrong)
        return fd;
    pam_syslog(pamh, LOG_ERR, "%s: %s", path, wrong);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The secret of a keyed filter: its bytes, or their hexadecimal digits and the
 * end of a line, as the command takes them. */
static bool secret_from(pam_handle_t *pamh, const char *path,
                        unsigned char secret[BLY_SECRET_BYTES])
{
    enum { DIGITS = 2 * BLY_SECRET_BYTES };
    char text[DIGITS + 3];
    const int fd = open_trusted(pamh, path, true);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    while (n > DIGITS && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    bool ok = n == BLY_SECRET_BYTES;
    if (ok)
        memcpy(secret, text, BLY_SECRET_BYTES);
    else
        ok = n == DIGITS && hex_read(text, BLY_SECRET_BYTES, secret);
    explicit_bzero(text, sizeof text);
    if (!ok)
        pam_syslog(pamh, LOG_ERR, "%s: neither %d bytes nor %d digits", path,
                   BLY_SECRET_BYTES, DIGITS);
    return ok;
}

/* Map the filter by what was opened and looked at, not by its name again. NULL,
 * with the reason logged. */
static bly_filter *filter_from(pam_handle_t *pamh, const struct pam_args *args,
                               unsigned *which)
{
    unsigned char secret[BLY_SECRET_BYTES];
    if (args->key_file && !secret_from(pamh, args->key_file, secret))
        return NULL;
    const int fd = open_trusted(pamh, args->filter, false);
    if (fd < 0)
        return NULL;
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const bly_access how = { .secret = args->key_file ? secret : NULL };
    bly_filter *f = NULL;
    bly_status st = bly_map(path, &how, &f);
    close(fd);
    explicit_bzero(secret, sizeof secret);
    if (st) {
        pam_syslog(pamh, LOG_ERR, "%s: %s", args->filter, bly_error());
        bly_free(f);
        return NULL;
    }
    /* A kind whose "no" is only likely, or that forgets keys, lets leaked
     * passwords through. */
    bly_kind_info kind;
    bly_kind_of(f, &kind);
    if (!(kind.can & BLY_CAN(HAS)) || kind.can & BLY_CAN(TICK) ||
        kind.traits & BLY_LIKELY_NO) {
        pam_syslog(pamh, LOG_ERR,
                   "%s: a %s filter may miss passwords of its list; use "
                   "another --kind",
                   args->filter, kind.name);
        bly_free(f);
        return NULL;
    }
    bly_bytes name;
    if (bly_pair_of(f, HASHES_PAIR, &name))
        for (*which = 0; *which < NHASHES; ++*which)
            if (strlen(password_hashes[*which].name) == name.len &&
                memcmp(password_hashes[*which].name, name.ptr, name.len) == 0)
                return f;
    pam_syslog(
        pamh, LOG_ERR,
        "%s: not a filter of passwords; bloomery passwords build makes one",
        args->filter);
    bly_free(f);
    return NULL;
}

enum answer { ANSWER_NO, ANSWER_LEAKED, ANSWER_UNKNOWN };

static enum answer ask(pam_handle_t *pamh, const struct pam_args *args,
                       const char *password)
{
    unsigned which;
    bly_filter *const f = filter_from(pamh, args, &which);
    if (!f)
        return ANSWER_UNKNOWN;
    unsigned char hash[HASH_MOST];
    const size_t len = strlen(password), nroom = 2 * len + 4;
    unsigned char *const room = malloc(nroom);
    enum answer answer = ANSWER_UNKNOWN;
    if (!room)
        pam_syslog(pamh, LOG_CRIT, "out of memory");
    else if (!hash_password(which, password, len, room, nroom, hash))
        answer = ANSWER_NO; /* not UTF-8: no list of NTLM hashes has it */
    else
        answer = bly_has(f, hash, password_hashes[which].nbytes) ? ANSWER_LEAKED
                                                                 : ANSWER_NO;
    if (bly_damage(f)) {
        pam_syslog(pamh, LOG_ERR, "%s: %s", args->filter, bly_error());
        answer = ANSWER_UNKNOWN;
    }
    if (room)
        explicit_bzero(room, nroom);
    explicit_bzero(hash, sizeof hash);
    free(room);
    bly_free(f);
    if (args->debug)
        pam_syslog(pamh, LOG_DEBUG, "%s: %s", args->filter,
                   answer == ANSWER_NO       ? "not in it"
                   : answer == ANSWER_LEAKED ? "in it"
                                             : "no answer");
    return answer;
}

/* ------------------------------------------------------------- the password */

static int new_password(pam_handle_t *pamh, const struct pam_args *args,
                        const char **out)
{
    const void *item = NULL;
    *out = NULL;
    if (!args->use_authtok)
        return pam_get_authtok_noverify(pamh, out, NULL);
    const int rc = pam_get_item(pamh, PAM_AUTHTOK, &item);
    *out = item;
    return rc != PAM_SUCCESS ? rc
           : item            ? PAM_SUCCESS
                             : PAM_AUTHTOK_RECOVERY_ERR;
}

#define UNCHECKED "Passwords cannot be checked now; try again later."

/* What becomes of a password that the filter said this of. */
static int judge(pam_handle_t *pamh, const struct pam_args *args,
                 enum answer answer)
{
    const bool spared = getuid() == 0 && !args->for_root;
    if (answer == ANSWER_NO)
        return PAM_SUCCESS;
    if (answer == ANSWER_UNKNOWN) {
        if (!args->closed)
            return PAM_SUCCESS;
        pam_error(pamh, UNCHECKED);
        return PAM_AUTHTOK_ERR;
    }
    pam_error(pamh, spared ? "Warning: this password is in a list of leaked "
                             "ones."
                           : "This password is in a list of leaked ones; "
                             "choose another.");
    pam_syslog(pamh, LOG_NOTICE, "leaked password %s",
               spared ? "set by root" : "refused");
    return spared ? PAM_SUCCESS : PAM_AUTHTOK_ERR;
}

__attribute__((visibility("default"))) int
pam_sm_chauthtok(pam_handle_t *pamh, int flags, int argc, const char **argv)
{
    struct pam_args args;
    if (!options_read(pamh, argc, argv, &args))
        return PAM_SERVICE_ERR;
    if (flags & PAM_PRELIM_CHECK) {
        unsigned which;
        bly_filter *const f = filter_from(pamh, &args, &which);
        bly_free(f);
        if (f || !args.closed)
            return PAM_SUCCESS;
        pam_error(pamh, UNCHECKED);
        return PAM_TRY_AGAIN;
    }
    int rc = PAM_AUTHTOK_ERR;
    for (unsigned i = 0; i < args.retry; i++) {
        const char *password;
        rc = new_password(pamh, &args, &password);
        if (rc != PAM_SUCCESS)
            return rc;
        rc = judge(pamh, &args, ask(pamh, &args, password));
        if (rc == PAM_SUCCESS && !args.use_authtok) {
            rc = pam_get_authtok_verify(pamh, &password, NULL);
            if (rc == PAM_SUCCESS)
                return rc;
        }
        if (rc == PAM_SUCCESS || args.use_authtok)
            break;
        pam_set_item(pamh, PAM_AUTHTOK, NULL);
    }
    return rc == PAM_SUCCESS || args.retry == 1 ? rc : PAM_MAXTRIES;
}

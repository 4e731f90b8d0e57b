/*
 * prompt_edit.c - lines that are edited, by libedit
 *
 * Tab completes the word before the cursor: as far as all that fits agrees, and
 * what there is to choose from is listed. The candidates are those of
 * complete.c; names of files are looked up here.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include <histedit.h>

#include "apps/shell/prompt_edit.h"
#include "base/grow.h"
#include "report/say.h"
#include "report/show.h"

static struct {
    EditLine *el;
    History *history;
    const char *prompt;
    prompt_completes *completes;
    char *line;       /* what was given out last */
    sigset_t outside; /* the signals that are held back outside of a line */
} edit;

/* ------------------------------------------------------------- candidates */

/* Sorted or not, they are few. */
struct found {
    char **at;
    size_t n, room;
};

static void found_add(struct found *f, const char *word, size_t n,
                      const char *end)
{
    if (!GROW(&f->at, &f->room, f->n + 1))
        return;
    if (asprintf(&f->at[f->n], "%.*s%s", (int)n, word, end) >= 0)
        f->n++;
}

static void found_free(struct found *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->at[i]);
    free(f->at);
    *f = (struct found){ 0 };
}

static bool ends_in(const char *name, const char *endings)
{
    while (*endings == ' ')
        endings++;
    const bool any = !*endings;
    while (*endings) {
        const size_t n = strcspn(endings, " ");
        const size_t len = strlen(name);
        if (len >= n && strncmp(name + len - n, endings, n) == 0)
            return true;
        endings += n + (endings[n] == ' ');
    }
    return any;
}

/* Names that begin with `begin`: folders, and files with one of the endings. */
static void find_files(struct found *f, const char *begin, const char *endings,
                       bool folders_only)
{
    const char *const slash = strrchr(begin, '/');
    const size_t folder_n = slash ? (size_t)(slash - begin) + 1 : 0;
    const char *const name = begin + folder_n;
    char *folder = NULL;
    if (asprintf(&folder, "%.*s", folder_n ? (int)folder_n : 1,
                 folder_n ? begin : ".") < 0)
        return;
    DIR *const d = opendir(folder);
    const struct dirent *e;
    while (d && (e = readdir(d))) {
        struct stat st;
        char *path = NULL;
        if (strncmp(e->d_name, name, strlen(name)) != 0 ||
            (e->d_name[0] == '.' && name[0] != '.') ||
            asprintf(&path, "%.*s%s", (int)folder_n, begin, e->d_name) < 0)
            continue;
        const bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
        if (is_folder || (!folders_only && ends_in(e->d_name, endings)))
            found_add(f, path, strlen(path), is_folder ? "/" : "");
        free(path);
    }
    if (d)
        closedir(d);
    free(folder);
}

/* What the last word may become. */
static void find(struct found *f, const struct list *words)
{
    struct text text;
    edit.completes(text_begin(&text), words);
    char *const told = text_end(&text);
    const char *const begin = words->at[words->n - 1];
    for (const char *at = told; *at;) {
        const size_t n = strcspn(at, "\n");
        const size_t word = strcspn(at, "\t\n");
        if (strncmp(at, ":files", 6) == 0) {
            char *endings = strndup(at + 6, n - 6);
            find_files(f, begin, endings ? endings : "", false);
            if (f->n == 0)
                find_files(f, begin, "", false);
            free(endings);
        } else if (strncmp(at, ":folders", 8) == 0) {
            find_files(f, begin, "", true);
        } else {
            found_add(f, at, word, "");
        }
        at += n + (at[n] == '\n');
    }
    free(told);
}

/* -------------------------------------------------------------------- Tab */

/* Into the line as it has to be written there. */
static void insert(EditLine *el, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char one[] = { '\\', text[i], '\0' };
        if (strchr(" \t'\"\\", text[i]))
            el_insertstr(el, one);
        else
            el_insertstr(el, one + 1);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_found(const struct found *f)
{
    qsort(f->at, f->n, sizeof *f->at, by_name);
    size_t wide = 1;
    for (size_t i = 0; i < f->n; i++)
        wide = strlen(f->at[i]) > wide ? strlen(f->at[i]) : wide;
    const size_t columns = wide + 2 > 78 ? 1 : 78 / (wide + 2);
    putchar('\n');
    for (size_t i = 0; i < f->n; i++) {
        const bool last = (i + 1) % columns == 0 || i + 1 == f->n;
        printf("%-*s%s", last ? 0 : (int)wide + 2, show_name(f->at[i]),
               last ? "\n" : "");
    }
}

static unsigned char tab_pressed(EditLine *el, int key)
{
    (void)key;
    const LineInfo *const line = el_line(el);
    char *const before =
        strndup(line->buffer, (size_t)(line->cursor - line->buffer));
    struct list words = { 0 };
    if (!before)
        return CC_ERROR;
    words_split(before, &words); /* an open quote does no harm */
    const size_t len = strlen(before);
    const bool blank = len == 0 || strchr(" \t", before[len - 1]);
    free(before);
    if (!words.at)
        return CC_ERROR;
    if (blank) { /* there is room for one: see words_split() */
        words.at[words.n] = strdup("");
        words.n += words.at[words.n] != NULL;
    }
    struct found f = { 0 };
    unsigned char result = CC_ERROR;
    const char *const typed = words.n ? words.at[words.n - 1] : "";
    const size_t typed_n = strlen(typed);
    if (words.n)
        find(&f, &words);
    size_t common = f.n ? strlen(f.at[0]) : 0;
    for (size_t i = 1; i < f.n; i++)
        for (size_t k = 0; k < common; k++)
            if (f.at[i][k] != f.at[0][k])
                common = k;
    if (f.n && common > typed_n) {
        insert(el, f.at[0] + typed_n, common - typed_n);
        result = CC_REFRESH;
    }
    if (f.n == 1 && !strchr("=/", f.at[0][strlen(f.at[0]) - 1])) {
        el_insertstr(el, " ");
        result = CC_REFRESH;
    } else if (f.n > 1 && common <= typed_n) {
        list_found(&f);
        result = CC_REDISPLAY;
    }
    found_free(&f);
    words_free(&words);
    return result;
}

/* ------------------------------------------------------------------ lines */

static const char *edit_prompt(EditLine *el)
{
    (void)el;
    return edit.prompt;
}

/* Wait for a byte: 1, 0 at the end, or -1. libedit itself would wait in read(),
 * and a Ctrl-C that came just before it went unseen. Here signals are held back
 * but for the wait. libedit's handler, which puts the terminal right, sends
 * Ctrl-C once more, so that one is pending; other signals are done with. */
static int next_byte(EditLine *el, char *byte)
{
    for (;;) {
        struct pollfd from = { .fd = STDIN_FILENO, .events = POLLIN };
        if (ppoll(&from, 1, NULL, &edit.outside) >= 0)
            return (int)read(STDIN_FILENO, byte, 1);
        sigset_t pending;
        if (errno != EINTR || sigpending(&pending) ||
            sigismember(&pending, SIGINT)) {
            errno = EINTR;
            return -1;
        }
        el_set(el, EL_REFRESH);
    }
}

static int next_char(EditLine *el, wchar_t *c)
{
    mbstate_t state = { 0 };
    for (;;) {
        char byte;
        const int n = next_byte(el, &byte);
        if (n != 1)
            return n;
        const size_t used = mbrtowc(c, &byte, 1, &state);
        if (used == (size_t)-1)
            state = (mbstate_t){ 0 }; /* no character: left out */
        else if (used != (size_t)-2)
            return 1;
    }
}

bool edit_open(const char *prompt, prompt_completes *completes)
{
    edit.el = el_init("bloomery", stdin, stdout, stderr);
    edit.history = history_init();
    if (!edit.el || !edit.history) {
        edit_close();
        return false;
    }
    HistEvent event;
    edit.prompt = prompt;
    edit.completes = completes;
    history(edit.history, &event, H_SETSIZE, 1000);
    el_set(edit.el, EL_PROMPT, edit_prompt);
    el_set(edit.el, EL_SIGNAL, 1);
    el_set(edit.el, EL_GETCFN, next_char);
    el_set(edit.el, EL_EDITOR, "emacs");
    el_set(edit.el, EL_HIST, history, edit.history);
    el_set(edit.el, EL_ADDFN, "complete", "complete the word", tab_pressed);
    el_set(edit.el, EL_BIND, "^I", "complete", NULL);
    el_set(edit.el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(edit.el, NULL); /* ~/.editrc has the last word */
    return true;
}

/* libedit takes over the terminal when it has drawn the prompt, and what is
 * typed between is shown twice, or lost if it is Ctrl-D. So it finds the
 * terminal as it wants it; it puts it back by itself. */
static void take_terminal(void)
{
    struct termios mode;
    if (tcgetattr(STDIN_FILENO, &mode))
        return;
    mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
}

char *edit_line(size_t *n, int *failed)
{
    int len = 0;
    sigset_t interrupts;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupts, &edit.outside);
    take_terminal();
    errno = 0;
    const char *const line = el_gets(edit.el, &len);
    const int why = errno;
    sigprocmask(SIG_SETMASK, &edit.outside, NULL);
    errno = why;
    free(edit.line);
    edit.line = NULL;
    if (!line && len < 0 && errno == EINTR) {
        putchar('\n');
        *n = 0;
        return edit.line = strdup("");
    }
    if (!line) {
        *failed = len < 0 ? errno : 0;
        return NULL;
    }
    *n = (size_t)len - (len > 0 && line[len - 1] == '\n');
    edit.line = strndup(line, *n);
    if (!edit.line)
        *failed = ENOMEM;
    return edit.line;
}

void edit_remember(const char *line)
{
    HistEvent event;
    if (edit.history)
        history(edit.history, &event, H_ENTER, line);
}

void edit_close(void)
{
    if (edit.history)
        history_end(edit.history);
    if (edit.el)
        el_end(edit.el);
    free(edit.line);
    edit.line = NULL;
    edit.el = NULL;
    edit.history = NULL;
}

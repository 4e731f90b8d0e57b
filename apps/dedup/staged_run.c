/*
 * staged_run.c - tasks, and who runs them
 *
 * We write no scheduler. On one machine the engine is a loop over processes; on
 * many it is Slurm, which gets a job array for each stage, or whatever runs one
 * command after another. A task that is done is not done again, so that all of
 * them may be started again after any failure.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/dedup/dedup_run.h"
#include "apps/dedup/staged.h"
#include "io/folders.h"
#include "io/paths.h"
#include "report/say.h"

#define MOST_TRIES 4 /* of a task that a signal ended */

static bool takes(const struct staged *st, enum stage stage, uint64_t task)
{
    return stage > STAGE_PLAN && stage < NSTAGES &&
           task < stage_tasks(st, stage);
}

/* -------------------------------------------------------------------- a task
 */

static char *failure_path(const struct staged *st, enum stage stage,
                          uint64_t task)
{
    char *path = NULL;
    const int n = asprintf(&path, "%s/failed/%s.%llu", st->folder,
                           stage_names[stage], (unsigned long long)task);
    return n < 0 ? NULL : path;
}

/* What went wrong is kept for status; if it cannot be, it was still said. */
static void keep_failure(const struct staged *st, enum stage stage,
                         uint64_t task, const char *why)
{
    char *const path = failure_path(st, stage, task);
    bly_draft *d;
    if (!path)
        return;
    char *const slash = strrchr(path, '/');
    *slash = '\0';
    const bool made = bly_folder_make(path) == BLY_OK;
    *slash = '/';
    if (made && !bly_draft_new(path, NULL, NULL, &d)) {
        bly_draft_put(d, why, strlen(why));
        bly_draft_put(d, "\n", 1);
        if (bly_draft_commit(d))
            note("%s", bly_error());
    }
    free(path);
}

static void forget_failure(const struct staged *st, enum stage stage,
                           uint64_t task)
{
    char *const path = failure_path(st, stage, task);
    if (path)
        unlink(path);
    free(path);
}

static stage_fn *const stages[NSTAGES] = {
    [STAGE_SKETCH] = stage_sketch, [STAGE_BAND] = stage_band,
    [STAGE_LINK] = stage_link,     [STAGE_DEAL] = stage_deal,
    [STAGE_PAIRS] = stage_pairs,   [STAGE_SETS] = stage_sets,
    [STAGE_KEEP] = stage_keep,     [STAGE_WRITE] = stage_write,
};

int staged_task(const struct staged *st, enum stage stage, uint64_t task)
{
    struct dedup_job job;
    uint64_t nbytes;
    double seconds;
    int status = YES;
    if (part_there(st, stage, task, &nbytes, &seconds)) {
        note("%s %llu of %s was done before", stage_names[stage],
             (unsigned long long)task, st->folder);
        return YES;
    }
    dedup_job_init(&job, st->opt);
    if (stage == STAGE_JOIN)
        status = stage_join(&job, st);
    else if (!stages[stage](&job, st, task))
        status = fail("%s %llu: %s", stage_names[stage],
                      (unsigned long long)task, job.error);
    if (job.error[0])
        keep_failure(st, stage, task, job.error);
    else
        forget_failure(st, stage, task);
    dedup_job_free(&job);
    return status;
}

static bool read_task(const struct staged *st, const char *word,
                      const char *number, enum stage *stage, uint64_t *task)
{
    char *end;
    for (*stage = STAGE_SKETCH; *stage < NSTAGES; ++*stage)
        if (strcmp(word, stage_names[*stage]) == 0)
            break;
    if (*stage == NSTAGES)
        return refuse("%s: not a stage; the stages are sketch, band, link, "
                      "deal, pairs, sets, keep, write and join",
                      word);
    errno = 0;
    *task = strtoull(number, &end, 10);
    if (errno || *end || end == number || number[0] == '-')
        return refuse("%s: expected the number of a task", number);
    return takes(st, *stage, *task) ||
           refuse("%s has tasks 0 to %llu, not %s", word,
                  (unsigned long long)stage_tasks(st, *stage) - 1, number);
}

int split_task(const struct dedup_options *o, const char *folder,
               const char *stage_word, const char *number)
{
    struct dedup_job job = { .opt = o };
    struct staged st;
    enum stage stage;
    uint64_t task = 0;
    int status = TROUBLE;
    if (!staged_open(&job, folder, &st) || !staged_fits(&job, &st))
        fail("%s", job.error);
    else if (chdir(st.words[0]) != 0)
        fail("%s: %s; tasks run where the run was planned", st.words[0],
             strerror(errno));
    else if (read_task(&st, stage_word, number, &stage, &task))
        status = staged_task(&st, stage, task);
    staged_free(&st);
    return status;
}

int split_words(const char *folder, struct list *words)
{
    const struct dedup_options none = { .memory = 0 };
    struct dedup_job job = { .opt = &none };
    struct staged st;
    bool ok = staged_open(&job, folder, &st);
    *words = (struct list){ 0 };
    words->at = ok ? calloc(st.head.nwords + 1, sizeof *words->at) : NULL;
    ok = ok && (words->at || dedup_fail(&job, "out of memory"));
    for (uint64_t i = 1; ok && i < st.head.nwords; i++) {
        words->at[words->n] = strdup(st.words[i]);
        ok = words->at[words->n++] || dedup_fail(&job, "out of memory");
    }
    staged_free(&st);
    return ok ? YES : fail("%s", job.error);
}

void split_words_free(struct list *words)
{
    for (size_t i = 0; i < words->n; i++)
        free((char *)words->at[i]);
    free(words->at);
    *words = (struct list){ 0 };
}

/* --------------------------------------------------------------------- local
 */

struct running {
    pid_t child;
    uint64_t task;
};

struct local {
    const struct staged *st;
    struct running *at; /* at most at_once */
    unsigned n, at_once;
    uint8_t *tries; /* of each task of the stage */
    uint64_t done, all;
    int status;
};

static bool start_child(struct local *l, enum stage stage, uint64_t task)
{
    fflush(stdout);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        const int status =
            getppid() == parent ? staged_task(l->st, stage, task) : TROUBLE;
        fflush(stdout);
        _exit(status);
    }
    if (child > 0)
        l->at[l->n++] = (struct running){ child, task };
    return child > 0 || refuse("no process for a task: %s", strerror(errno));
}

/* Wait for one of them. False if its task is not done, and will not be. */
static bool end_child(struct local *l, enum stage stage)
{
    int how;
    unsigned i = 0;
    const pid_t child = wait(&how);
    if (child < 0)
        return errno == EINTR || refuse("%s", strerror(errno));
    while (i < l->n && l->at[i].child != child)
        i++;
    if (i == l->n)
        return true;
    const uint64_t task = l->at[i].task;
    l->at[i] = l->at[--l->n];
    if (WIFEXITED(how)) {
        uint64_t nbytes;
        double seconds;
        l->done++;
        progress_at(l->done, l->done, l->all);
        if (WEXITSTATUS(how) == YES)
            return true;
        l->status = WEXITSTATUS(how);
        return part_there(l->st, stage, task, &nbytes, &seconds);
    }
    if (++l->tries[task] == MOST_TRIES)
        return refuse("%s %llu: ended by signal %d, %d times",
                      stage_names[stage], (unsigned long long)task,
                      WTERMSIG(how), MOST_TRIES);
    warn("%s %llu: ended by signal %d; it is run again", stage_names[stage],
         (unsigned long long)task, WTERMSIG(how));
    return start_child(l, stage, task);
}

static bool run_stage(struct local *l, enum stage stage)
{
    const uint64_t n = stage_tasks(l->st, stage);
    bool ok = true;
    memset(l->tries, 0, (size_t)l->st->head.ntasks);
    for (uint64_t i = 0; ok && i < n; i++) {
        uint64_t nbytes;
        double seconds;
        if (part_there(l->st, stage, i, &nbytes, &seconds)) {
            l->done++;
            continue;
        }
        while (ok && l->n == l->at_once)
            ok = end_child(l, stage);
        ok = ok && start_child(l, stage, i);
    }
    while (l->n)
        ok = end_child(l, stage) && ok;
    return ok;
}

static int run_local(const struct staged *st, unsigned at_once,
                     const char *goes_on)
{
    struct local l = { .st = st,
                       .at_once = at_once,
                       .at = calloc(at_once, sizeof *l.at),
                       .tries = calloc(st->head.ntasks, 1) };
    bool ok = (l.at && l.tries) || refuse("out of memory");
    for (enum stage s = STAGE_SKETCH; s < NSTAGES; s++)
        l.all += stage_tasks(st, s);
    progress_start(false);
    progress_unit("tasks");
    for (enum stage s = STAGE_SKETCH; ok && s < NSTAGES; s++)
        ok = run_stage(&l, s);
    progress_clear();
    free(l.at);
    free(l.tries);
    if (!ok)
        fail("what is done stays in %s; %s", st->folder, goes_on);
    return ok ? l.status : TROUBLE;
}

/* ------------------------------------------------------------ script and slurm
 */

/* A word for the shell. */
static void put_quoted(FILE *to, const char *word)
{
    putc('\'', to);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", to);
        else
            putc(*word, to);
    putc('\'', to);
}

static char *this_program(void)
{
    char *const path = realpath("/proc/self/exe", NULL);
    return path ? path : strdup("bloomery");
}

static int print_script(const struct staged *st)
{
    char *const program = this_program();
    if (!program)
        return fail("out of memory");
    for (enum stage s = STAGE_SKETCH; s < NSTAGES; s++)
        for (uint64_t i = 0; i < stage_tasks(st, s); i++) {
            printf("%s\t", stage_names[s]);
            put_quoted(stdout, program);
            fputs(" dedup task ", stdout);
            put_quoted(stdout, st->folder);
            printf(" %s %llu\n", stage_names[s], (unsigned long long)i);
        }
    free(program);
    return ferror(stdout) ? fail("standard output: %s", strerror(errno)) : YES;
}

#define ARRAY_MOST 1000 /* Slurm's limit if nothing is configured: 1001 */
#define SLOW 2e6        /* bytes per second of a task, at the least */
#define LEAST_MINUTES 10

/* What is reserved for a task, in MiB: its --memory, and what does not grow. */
static uint64_t task_memory(const struct staged *st)
{
    return (st->opt->memory >> 20) + (st->opt->memory >> 22) + 256;
}

static uint64_t task_minutes(const struct staged *st, enum stage stage)
{
    double all = 0;
    for (uint64_t i = 0; i < st->head.nfiles; i++)
        all += (double)st->files[i].size;
    return LEAST_MINUTES +
           (uint64_t)(all / (double)stage_tasks(st, stage) / SLOW / 60);
}

static void put_job(FILE *to, const struct staged *st, enum stage stage,
                    const char *program)
{
    const char *const name = stage_names[stage];
    fprintf(to,
            "#!/bin/sh\n"
            "#SBATCH --job-name=dedup-%s\n"
            "#SBATCH --cpus-per-task=1\n"
            "#SBATCH --mem=%lluM\n"
            "#SBATCH --time=%llu\n"
            "#SBATCH --requeue\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --output=%s-%%A_%%a.log\n"
            "task=$((${BLY_FROM:-0} + ${SLURM_ARRAY_TASK_ID:-0}))\n",
            name, (unsigned long long)task_memory(st),
            (unsigned long long)task_minutes(st, stage), name);
    put_quoted(to, program);
    fputs(" dedup task ", to);
    put_quoted(to, st->folder);
    fprintf(to,
            " %s $task\n"
            "status=$?\n"
            "[ $status = 0 ] && exit 0\n",
            name);
    if (stage == STAGE_JOIN) {
        fputs("# Results are there, and lines were malformed.\n[ -e ", to);
        put_quoted(to, st->folder);
        fputs("/join/0 ] && exit $status\n", to);
    }
    fputs("# Killed, or a disk that was away for a moment: a few times more.\n"
          "if [ ${SLURM_RESTART_COUNT:-0} -lt 5 ]; then\n"
          "    scontrol requeue $SLURM_JOB_ID && sleep 60\n"
          "fi\n"
          "exit $status\n",
          to);
}

static void put_submit(FILE *to, const struct staged *st)
{
    fputs("#!/bin/sh\n"
          "# Hands all stages to Slurm. Arguments go to every sbatch:\n"
          "#     ./submit --partition=long --account=me\n"
          "set -eu\n"
          "cd ",
          to);
    put_quoted(to, st->folder);
    fputs("/slurm\n"
          "after=\n"
          "stage() { # name, tasks\n"
          "    from=0\n"
          "    ids=\n"
          "    while [ $from -lt $2 ]; do\n",
          to);
    fprintf(to, "        last=$(($2 - from > %d ? %d : $2 - from - 1))\n",
            ARRAY_MOST, ARRAY_MOST - 1);
    fputs("        id=$(sbatch --parsable --kill-on-invalid-dep=yes \\\n"
          "            ${after:+--dependency=afterok$after} \\\n"
          "            --export=ALL,BLY_FROM=$from --array=0-$last $more "
          "$1.sh)\n"
          "        ids=$ids:${id%%;*}\n"
          "        from=$((from + last + 1))\n"
          "    done\n"
          "    after=$ids\n"
          "    echo $1 ${ids#:}\n"
          "}\n"
          "more=$*\n",
          to);
    for (enum stage s = STAGE_SKETCH; s < NSTAGES; s++)
        fprintf(to, "stage %s %llu\n", stage_names[s],
                (unsigned long long)stage_tasks(st, s));
}

/* One of the job files, whole or not at all. stage NSTAGES: what hands them
 * in. */
static bool write_job(const struct staged *st, enum stage stage,
                      const char *program)
{
    char *path = NULL, *text = NULL;
    size_t n;
    bly_draft *d;
    const char *const name = stage == NSTAGES ? "submit" : stage_names[stage];
    FILE *const to = open_memstream(&text, &n);
    if (!to || asprintf(&path, "%s/slurm/%s%s", st->folder, name,
                        stage == NSTAGES ? "" : ".sh") < 0)
        return refuse("out of memory");
    if (stage == NSTAGES)
        put_submit(to, st);
    else
        put_job(to, st, stage, program);
    bool ok = fclose(to) == 0 && !bly_draft_new(path, NULL, NULL, &d);
    if (ok) {
        bly_draft_put(d, text, n);
        ok = !bly_draft_commit(d);
    }
    if (!ok)
        refuse_library();
    else if (stage == NSTAGES && chmod(path, 0777 & ~umask(022)) != 0)
        ok = refuse_path(path, errno);
    free(path);
    free(text);
    return ok;
}

static int write_slurm(const struct staged *st)
{
    char *folder = NULL, *const program = this_program();
    bool ok = program && asprintf(&folder, "%s/slurm", st->folder) >= 0;
    if (!ok)
        return fail("out of memory");
    ok = !bly_folder_make(folder) || refuse_library();
    for (enum stage s = STAGE_SKETCH; ok && s <= NSTAGES; s++)
        ok = write_job(st, s, program);
    if (ok && !quiet)
        printf("%s/submit hands %u job arrays of up to %llu tasks to Slurm, "
               "%llu MiB each\n",
               folder, NSTAGES - 1, (unsigned long long)st->head.ntasks,
               (unsigned long long)task_memory(st));
    free(folder);
    free(program);
    return ok ? YES : TROUBLE;
}

/* --------------------------------------------------------------------- split
 */

static int hand_over(const struct staged *st, const struct split_options *how)
{
    switch (how->engine) {
    case SPLIT_LOCAL:
        return run_local(st, how->at_once, "the same command goes on");
    case SPLIT_SCRIPT:
        return print_script(st);
    case SPLIT_SLURM:
        return write_slurm(st);
    default:
        if (!quiet)
            printf("%s: planned, %llu tasks for each stage; bloomery dedup "
                   "task %s STAGE I does one\n",
                   st->folder, (unsigned long long)st->head.ntasks, st->folder);
        return YES;
    }
}

int split_run(const struct dedup_options *o, const struct split_options *how,
              const struct list *operands)
{
    struct dedup_job job;
    struct staged st = { 0 };
    struct input in;
    struct list files = { 0 };
    const char *const outs[] = DEDUP_OUTPUTS(o);
    for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++)
        if (outs[i] && is_stdout(outs[i]))
            return fail("tasks may run anywhere, so results cannot go to "
                        "standard output; name a file");
    if (operands->n == 0)
        return fail("tasks read the inputs several times, so standard input "
                    "cannot be one; name files");
    if (!dedup_outputs_work(o, operands) ||
        !files_named(operands, o->format == DEDUP_FILES, NULL, &files))
        return TROUBLE;
    input_documents(&in, files.at, files.n);
    dedup_job_init(&job, o);
    const bool ok = dedup_corpus_fits(&job, &in) &&
                    staged_plan(&job, how, files.at, files.n, &st);
    const int status = ok ? hand_over(&st, how) : fail("%s", job.error);
    staged_free(&st);
    dedup_job_free(&job);
    input_close(&in);
    files_free(&files);
    return status;
}

/* -------------------------------------------------------------------- --work
 */

/* Arrays of a run that meets its documents at random take up to 8 bytes for one
 * of the input, and where they are not in memory a document costs ten times as
 * much as in a run by tasks. */
#define ARRAY_SHARE 8
#define MOST_WORK_TASKS 1000

static char *in_folder(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static bool is_in_folder(const char *folder, const char *name)
{
    char *const path = in_folder(folder, name);
    const bool is = path && access(path, F_OK) == 0;
    free(path);
    return is;
}

/* Bytes of all inputs; 0 where one of them can be read only once. */
static uint64_t bytes_of_inputs(const struct list *files)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < files->n; i++) {
        struct stat s;
        if (is_dash(files->at[i]) || stat(files->at[i], &s) != 0 ||
            !S_ISREG(s.st_mode) || strchr(files->at[i], '\n'))
            return 0;
        sum += (uint64_t)s.st_size;
    }
    return sum;
}

bool split_is_better(const struct dedup_options *o, const struct list *files)
{
    if (!o->work || o->against || o->save_index || o->strict ||
        o->format == DEDUP_WARC)
        return false;
    const uint64_t nbytes = bytes_of_inputs(files);
    if (nbytes == 0 || (o->resume && is_in_folder(o->work, "journal")))
        return false;
    return nbytes > o->memory / ARRAY_SHARE ||
           (o->resume && is_in_folder(o->work, "plan"));
}

/* What an earlier run in tasks left, if it is one. */
static bool forget_run(struct dedup_job *job, const char *folder)
{
    struct staged st = { .folder = realpath(folder, NULL) };
    uint64_t nbytes;
    double seconds;
    bool ok = st.folder || dedup_fail(job, "out of memory");
    const bool ours = ok && part_there(&st, STAGE_PLAN, 0, &nbytes, &seconds);
    for (enum stage s = STAGE_SKETCH; ours && s <= NSTAGES; s++) {
        char *const path =
            in_folder(st.folder, s == NSTAGES ? "failed" : stage_names[s]);
        DIR *const dir = path ? opendir(path) : NULL;
        for (struct dirent *e; dir && (e = readdir(dir));)
            if (e->d_name[strspn(e->d_name, "0123456789")] == '\0' ||
                s == NSTAGES)
                unlinkat(dirfd(dir), e->d_name, 0);
        if (dir)
            closedir(dir);
        if (path)
            rmdir(path); /* unless there is something else in it */
        free(path);
    }
    if (ours) {
        char *const plan = part_path(&st, STAGE_PLAN, 0);
        ok = (plan && unlink(plan) == 0) ||
             dedup_fail(job, "%s/plan: %s", folder, strerror(errno));
        free(plan);
    }
    free(st.folder);
    return ok;
}

int split_in_work(const struct dedup_options *o, const struct list *files)
{
    struct dedup_options mine = *o;
    struct dedup_job job;
    struct staged st = { 0 };
    struct input in;
    const uint64_t each = o->memory / ARRAY_SHARE + 1;
    const uint64_t n = bytes_of_inputs(files) / each + 1;
    const struct split_options how = {
        .ntasks = n < MOST_WORK_TASKS ? n : MOST_WORK_TASKS,
        .folder = o->work,
        .words = o->words.at,
        .nwords = o->words.n,
    };
    mine.work = NULL;
    mine.nthreads = 1;
    mine.memory /= o->nthreads; /* so many tasks at once */
    dedup_job_init(&job, &mine);
    input_documents(&in, files->at, files->n);
    const bool ok = (o->resume || forget_run(&job, o->work)) &&
                    dedup_corpus_fits(&job, &in) &&
                    staged_plan(&job, &how, files->at, files->n, &st);
    const int status =
        ok ? run_local(&st, o->nthreads, "--resume goes on from what is done")
           : fail("%s", job.error);
    staged_free(&st);
    dedup_job_free(&job);
    input_close(&in);
    return status;
}

/* -------------------------------------------------------------------- status
 */

struct stage_row {
    const char *stage;
    uint64_t tasks, done, bytes;
    double seconds, left; /* of tasks; left NAN: not known yet */
};

struct failure {
    char stage[16], why[400];
    uint64_t task;
};

#define FAILURES_SHOWN 100

struct split_told {
    const char *folder;
    struct stage_row rows[NSTAGES];
    size_t nrows, nfailed;
    struct failure failed[FAILURES_SHOWN];
    uint64_t tasks, done, bytes;
    double seconds, left;
    bool complete;
    const char *next; /* stage that is not done */
};

static const struct field row_fields[] = {
    FIELD(struct stage_row, stage, NONE, "its name"),
    FIELD(struct stage_row, tasks, NONE, "how many tasks it has"),
    FIELD(struct stage_row, done, NONE, "those that are done"),
    FIELD(struct stage_row, bytes, BYTES, "that they made"),
    FIELD(struct stage_row, seconds, SECONDS, "that they took, together"),
    FIELD(struct stage_row, left, SECONDS | MAYBE,
          "that the others will take, together"),
    { 0 },
};

static const struct field failure_fields[] = {
    FIELD(struct failure, stage, NONE, "of the task"),
    FIELD(struct failure, task, NONE, "its number"),
    FIELD(struct failure, why, NONE, "what went wrong"),
    { 0 },
};

const struct field split_fields[] = {
    FIELD(struct split_told, folder, NONE, "of the run"),
    FIELD(struct split_told, complete, NONE, "whether the results are written"),
    FIELD(struct split_told, tasks, NONE, "of all stages"),
    FIELD(struct split_told, done, NONE, "those that are done"),
    FIELD(struct split_told, bytes, BYTES, "in the folder"),
    FIELD(struct split_told, seconds, SECONDS, "that tasks took, together"),
    FIELD(struct split_told, left, SECONDS | MAYBE,
          "that the others of stages that were begun will take, together"),
    LIST(struct split_told, "stages", rows, nrows, NONE, row_fields,
         "in their order"),
    FIELD(struct split_told, next, NONE | MAYBE,
          "the first stage that is not done"),
    LIST(struct split_told, "failed", failed, nfailed, NONE, failure_fields,
         "tasks that failed last time"),
    { 0 },
};

static void look_at_stage(const struct staged *st, enum stage stage,
                          struct split_told *t)
{
    struct stage_row *const r = &t->rows[t->nrows++];
    *r = (struct stage_row){ .stage = stage_names[stage],
                             .tasks = stage_tasks(st, stage) };
    for (uint64_t i = 0; i < r->tasks; i++) {
        uint64_t nbytes;
        double seconds;
        if (!part_there(st, stage, i, &nbytes, &seconds))
            continue;
        r->done++;
        r->bytes += nbytes;
        r->seconds += seconds;
    }
    r->left = r->done
                  ? r->seconds / (double)r->done * (double)(r->tasks - r->done)
                  : (double)NAN;
    t->tasks += r->tasks;
    t->done += r->done;
    t->bytes += r->bytes;
    t->seconds += r->seconds;
    t->left += r->done ? r->left : 0;
    t->complete = stage == STAGE_JOIN && r->done;
    if (!t->next && r->done < r->tasks)
        t->next = r->stage;
}

static void look_at_failures(const struct staged *st, struct split_told *t)
{
    char *path = NULL;
    if (asprintf(&path, "%s/failed", st->folder) < 0)
        return;
    DIR *const dir = opendir(path);
    for (struct dirent *e;
         dir && t->nfailed < FAILURES_SHOWN && (e = readdir(dir));) {
        struct failure *const f = &t->failed[t->nfailed];
        unsigned long long task;
        char *file = NULL;
        if (sscanf(e->d_name, "%15[a-z].%llu", f->stage, &task) != 2 ||
            asprintf(&file, "%s/%s", path, e->d_name) < 0)
            continue;
        FILE *const from = fopen(file, "r");
        free(file);
        if (!from)
            continue;
        if (fgets(f->why, sizeof f->why, from)) {
            f->why[strcspn(f->why, "\n")] = '\0';
            f->task = task;
            t->nfailed++;
        }
        fclose(from);
    }
    if (dir)
        closedir(dir);
    free(path);
}

static int by_task(const void *x, const void *y)
{
    const struct failure *const a = x, *const b = y;
    const int c = strcmp(a->stage, b->stage);
    return c ? c : (a->task > b->task) - (a->task < b->task);
}

int split_status(const char *folder, bool json)
{
    const struct dedup_options none = { .memory = 0 };
    struct dedup_job job = { .opt = &none };
    struct staged st;
    struct split_told *const t = calloc(1, sizeof *t);
    if (!t)
        return fail("out of memory");
    int status = YES;
    if (!staged_open(&job, folder, &st)) {
        status = fail("%s", job.error);
    } else {
        t->folder = st.folder;
        for (enum stage s = STAGE_SKETCH; s < NSTAGES; s++)
            look_at_stage(&st, s, t);
        look_at_failures(&st, t);
        qsort(t->failed, t->nfailed, sizeof *t->failed, by_task);
        status = t->nfailed ? TROUBLE : t->complete ? YES : NO;
        report(stdout, json, split_fields, t,
               "{folder}: {done} of {tasks} tasks done, {bytes}"
               "[{?complete}; the results are written|; the next is a task of "
               "{next}]\n");
        for (size_t i = 0; !json && i < t->nrows; i++)
            report_text(stdout, row_fields, &t->rows[i],
                        "  {stage:-8}{done} of {tasks}, {bytes}, {seconds:.1} "
                        "s of tasks[; about {left:.1} s more]\n");
        for (size_t i = 0; !json && i < t->nfailed; i++)
            report_text(stdout, failure_fields, &t->failed[i],
                        "failed: {stage} {task}: {why}\n");
    }
    staged_free(&st);
    free(t);
    return status;
}

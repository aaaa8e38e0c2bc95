/* local.c - this machine: ranks as threads of one process, or as processes under the launcher of an MPI, with a supervisor. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "launch/launch.h"
#include "launch/supervise.h"

enum { EXTRA = 16 }; /* words in front of and behind the job's own */

struct flavour {
    const char *name;
    const char *program[3]; /* the first that is on the path */
    const char *word[4];
    const char *recovery;   /* ranks that are left may live on when one dies; NULL = they cannot */
};
static const struct flavour flavours[] = {
    /* ranks are not tied to a core: each has threads, and shares the cores that are there */
    {"openmpi", {"mpirun.openmpi", "mpirun"}, {"--oversubscribe", "--bind-to", "none"}, "--enable-recovery"},
    {"mpich", {"mpiexec.mpich", "mpiexec.hydra", "mpiexec"}, {NULL}, NULL},
};

static bool on_path(const char *program) {
    const char *path = getenv("PATH");
    char full[4096];
    while (path && *path) {
        const size_t n = strcspn(path, ":");
        snprintf(full, sizeof full, "%.*s/%s", (int)n, path, program);
        if (access(full, X_OK) == 0) return true;
        path += n + (path[n] == ':');
    }
    return false;
}

static err find_launcher(const struct flavour *f, const char **out) {
    for (size_t i = 0; i < COUNT(f->program) && f->program[i]; i++)
        if (on_path(f->program[i])) return *out = f->program[i], 0;
    return FAIL_AT(E803, "--mpi", "--mpi none   (ranks as threads of one process)", "--mpi %s, and there is no %s on the path",
                   f->name, f->program[0]);
}

struct words {
    char **word;
    i32 n;
    err e;
};

static void put(struct words *w, const char *word) {
    if (w->e < 0) return;
    w->word[w->n] = mem_strdup(word);
    if (!w->word[w->n++]) w->e = -E601;
}

static err put_launcher(struct words *w, const struct launch_job *job) {
    const char *program = NULL;
    char number[16];
    for (size_t i = 0; i < COUNT(flavours); i++) {
        const struct flavour *f = &flavours[i];
        if (strcmp(f->name, job->mpi) != 0) continue;
        TRY(find_launcher(f, &program));
        put(w, program);
        for (size_t k = 0; k < COUNT(f->word) && f->word[k]; k++) put(w, f->word[k]);
        if (f->recovery && job->heals) put(w, f->recovery);
    }
    if (!program) return 0;
    snprintf(number, sizeof number, "%d", job->ranks);
    put(w, "-n");
    put(w, number);
    return 0;
}

err local_command(const struct launch_job *job, bool again, char ***argv) {
    const struct launch_words *own = again ? &job->again : &job->first;
    struct words w = {0};
    char ranks[32];
    NEW(w.word, own->n + EXTRA);
    err e = put_launcher(&w, job);
    const bool threads = w.n == 0;
    put(&w, job->program);
    for (i32 i = 0; i < own->n; i++) put(&w, own->word[i]);
    snprintf(ranks, sizeof ranks, "--ranks=%d", job->ranks);
    if (threads) put(&w, ranks);
    if (e >= 0) e = w.e;
    if (e < 0) {
        launch_free_words(w.word);
        return e;
    }
    *argv = w.word;
    return 0;
}

static err render_line(const struct launch_job *job, bool again, struct str *out) {
    char **argv = NULL;
    TRY(local_command(job, again, &argv));
    launch_line(out, argv);
    str_add(out, "\n");
    launch_free_words(argv);
    return 0;
}

static err render(const struct launch_job *job, struct str *out) {
    str_add(out, "# first\n");
    TRY(render_line(job, false, out));
    str_addf(out, "# after a death or a stop, once there is a checkpoint in ");
    launch_quote(out, job->run_dir);
    str_addf(out, "/checkpoints; at most %d times without a newer one\n", job->max_restarts);
    TRY(render_line(job, true, out));
    return str_ok(out);
}

/* The supervisor in a session of its own; its words go to RUN/supervisor.out. */
static err in_background(const struct launch_job *job, i32 *exit_status) {
    char path[4200];
    TRY(file_make_dir(job->run_dir));
    snprintf(path, sizeof path, "%s/supervisor.out", job->run_dir);
    const pid_t child = fork();
    if (child < 0) return FAIL(E601, "no process could be made for the supervisor");
    if (child > 0) {
        launch_say(job, "supervisor: process %d, its words are in %s", (int)child, path);
        return *exit_status = 0, 0;
    }
    setsid();
    const int null = open("/dev/null", O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (null >= 0) dup2(null, 0);
    if (to >= 0 && dup2(to, 1) >= 0) dup2(to, 2);
    return supervise(job, exit_status);
}

static err submit(const struct launch_job *job, i32 *exit_status) {
    return job->wait ? supervise(job, exit_status) : in_background(job, exit_status);
}

extern const struct launcher launcher_local;
const struct launcher launcher_local = {
    .name = "local", .help = "this machine, with a supervisor that starts again what died", .render = render, .submit = submit};

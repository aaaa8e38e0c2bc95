/* launch.c - the launchers of launchers.def, what each of them takes, and words of command lines. */
#include "launch/launch.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LAUNCHER(name) extern const struct launcher launcher_##name;
#include "launch/launchers.def"
#undef LAUNCHER

static const struct launcher *const all[] = {
#define LAUNCHER(name) &launcher_##name,
#include "launch/launchers.def"
#undef LAUNCHER
};

const struct launcher *launcher_at(i32 i) { return i < (i32)COUNT(all) ? all[i] : NULL; }

const struct launcher *launcher_find(const char *name) {
    for (size_t i = 0; i < COUNT(all); i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}

/* ------------------------------------------------------------------ requests ------------------------------------------------ */

/* E106: names the option, and the launchers that take it. */
static err refuse(const struct launcher *l, enum launch_request r) {
    static const char *const options[] = {
#define REQUEST(id, option) option,
        LAUNCH_REQUESTS(REQUEST)
#undef REQUEST
    };
    char option[32];
    struct str fix = {0};
    snprintf(option, sizeof option, "--%s", options[r]);
    str_addf(&fix, "leave out %s", option);
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i]->takes >> r & 1) str_addf(&fix, "   or   --on %s", all[i]->name);
    err e = FAIL_AT(E106, NULL, str_text(&fix), "--on %s takes no %s", l->name, option);
    str_free(&fix);
    return e;
}

err launch_prepare(const struct launcher *l, struct launch_job *job) {
    for (i32 r = 0; r < REQUEST_COUNT; r++)
        if ((job->given & ~l->takes) >> r & 1) return refuse(l, (enum launch_request)r);
    if (l->takes >> REQUEST_NODES & 1) job->ranks = job->nodes * job->ranks_per_node;
    if (strcmp(job->mpi, "auto") == 0) job->mpi = l->remote && job->ranks > 1 ? job->plugin : "none";
    if (job->mpi) return 0;
    return FAIL_AT(E803, "--mpi", "install Open MPI or MPICH and build again, or one rank",
                   "this build has no plug-in for MPI, and %d ranks are asked for", job->ranks);
}

/* ------------------------------------------------------------------ words --------------------------------------------------- */

void launch_say(const struct launch_job *job, const char *fmt, ...) {
    char line[1024];
    va_list ap;
    if (!job->say) return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    job->say(job->self, line);
}

void launch_quote(struct str *out, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        str_add(out, word);
        return;
    }
    str_add(out, "'");
    for (; *word; word++) str_addn(out, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    str_add(out, "'");
}

void launch_line(struct str *out, char *const *word) {
    for (i32 i = 0; word[i]; i++) {
        if (i) str_add(out, " ");
        launch_quote(out, word[i]);
    }
}

bool launch_on_path(const char *program) {
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

/* Ranks under mpirun are its children, not the supervisor's: each ties itself to its parent.  The mark in the environment finds
 * a rank whose parent was gone before that, when the job is started again. */
void launch_join(void) {
    if (getenv(MARK)) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

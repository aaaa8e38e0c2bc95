/* launch.c - the launchers of launchers.def, what each of them takes, time limits as schedulers write them, words of command
 * lines. */
#include "launch/launch.h"

#include <ctype.h>
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

/* ------------------------------------------------------------------ requests of submit -------------------------------------- */

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
    if (l->mpi && strcmp(job->mpi, "auto") != 0 && strcmp(job->mpi, l->mpi) != 0)
        return FAIL_AT(E106, "--mpi", "leave out --mpi", "--on %s starts ranks by %s, not by %s", l->name, l->mpi, job->mpi);
    if (l->mpi) job->mpi = job->plugin;
    else if (strcmp(job->mpi, "auto") == 0) job->mpi = l->remote && job->ranks > 1 ? job->plugin : "none";
    if (job->mpi) return 0;
    return FAIL_AT(E803, "--mpi", "install Open MPI or MPICH and build again, or one rank",
                   "this build has no plug-in for %s, and %d ranks are asked for", l->mpi ? l->mpi : "MPI", job->ranks);
}

/* ------------------------------------------------------------------ time limits --------------------------------------------- */

enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };

/* Numbers separated by colons, the last one seconds; days before '-'. */
static bool clock_text(const char *text, i64 *seconds) {
    i64 part[3], v, days = 0;
    i32 n = 0;
    const char *dash = strchr(text, '-');
    if (dash) {
        if (!str_to_i64(text, (size_t)(dash - text), &days) || days < 0 || days > 366) return false;
        text = dash + 1;
    }
    for (;;) {
        size_t len = strcspn(text, ":");
        if (n == 3 || len == 0 || len > 6 || !isdigit((unsigned char)text[0]) || !str_to_i64(text, len, &v)) return false;
        part[n++] = v;
        if (!text[len]) break;
        text += len + 1;
    }
    if (n < 2 || (dash && n != 3)) return false;
    for (i32 i = 1; i < n; i++)
        if (part[i] > 59) return false;
    *seconds = days * DAY + (n == 3 ? part[0] * HOUR + part[1] * MINUTE + part[2] : part[0] * MINUTE + part[1]);
    return true;
}

err launch_seconds(const char *text, i64 *seconds) {
    static const char fix[] = "--time 2:00:00   or   --time 90m";
    f64 s = 0;
    const size_t n = strlen(text);
    const bool unit = n > 0 && isalpha((unsigned char)text[n - 1]) && str_time(text, &s);
    if (unit) *seconds = (i64)s;
    if (!unit && !clock_text(text, seconds))
        return FAIL_AT(E103, "--time", fix, "\"%.40s\" is no time: hours, minutes and seconds, or a number with its unit", text);
    if (*seconds < MINUTE || *seconds > (i64)366 * DAY)
        return FAIL_AT(E103, "--time", fix, "%.40s: a time limit is from a minute to a year", text);
    return 0;
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

/* Ends this process when its parent ends: ranks under mpirun are its children, not the supervisor's. A rank whose parent
 * had died before this call is found by its environment (marked.c) at the next start of the job. */
void launch_join(void) {
    if (getenv(MARK)) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* verdict.c - decides how an attempt ended, from its exit status and the status records of its ranks.
 *
 *     0                    done
 *     75, 8                stopped, or a rank was lost: restart; but failed if ranks differ (E804), since they would again
 *     a signal             restart
 *     anything else        failed, with that status
 *
 * An MPI launcher has exit statuses of its own for a rank that a signal killed (Open MPI 137; MPICH 9, which also means "model
 * file unreadable"): then the records tell whether a rank failed by itself.  mpirun --enable-recovery always returns 0, and so
 * does mpiexec of MPICH in some cases in which all ranks stopped with 75 (5 of 50 Ctrl-C).  Records, if any, decide. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/json.h"
#include "launch/supervise.h"

enum { RANKS = 1024 };

i32 exit_of(int wait_status) {
    return WIFSIGNALED(wait_status) ? EXIT_BY_SIGNAL + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

f64 backoff(i32 n) {
    f64 s = 0.2;
    for (i32 i = 1; i < n && s < 10; i++) s *= 2;
    return s < 10 ? s : 10;
}

/* Summary of the last status records of the ranks in this attempt. */
struct records {
    i32 n, failed; /* failed: exit status of the first rank that failed by itself, 0 = none */
    bool done;     /* rank 0 had written the model */
    bool differ;   /* the ranks differ in options, data or weights (E804) */
};

static void add_record(struct records *r, i32 rank, const struct js *o, f64 since) {
    const i32 status = (i32)js_i64(js_get(o, "exit"), -1);
    if (js_f64(js_get(o, "time"), 0) < since) return;
    r->n++;
    if (strcmp(js_str(js_get(o, "phase"), ""), "differs") == 0) r->differ = true;
    if (rank == 0 && strcmp(js_str(js_get(o, "phase"), ""), "done") == 0) r->done = true;
    if (status > 0 && status != EXIT_STOPPED && status != EXIT_LOST && r->failed == 0) r->failed = status;
}

static struct records read_records(const char *run_dir, f64 since) {
    struct records r = {0};
    char path[4300];
    for (i32 k = 0; k < RANKS; k++) {
        struct js *o = NULL;
        snprintf(path, sizeof path, "%s/status/rank-%d.json", run_dir, k);
        if (!file_exists(path)) {
            if (k > 0) break;
            continue;
        }
        if (js_load(path, &o) >= 0) add_record(&r, k, o, since);
        js_free(o);
    }
    r.done = r.done || run_finished(run_dir, since); /* if ranks write no records (STRETTO_WATCH=off) */
    return r;
}

static enum verdict verdict_of_records(const struct records *r, i32 *code) {
    if (r->done) return VERDICT_DONE;
    *code = r->failed > 0 ? r->failed : EXIT_LOST;
    return r->failed > 0 || r->differ || r->n == 0 ? VERDICT_FINAL : VERDICT_AGAIN;
}

enum verdict verdict_of(const struct launch_job *job, int wait_status, f64 since, i32 *code) {
    const bool mpi = strcmp(job->mpi, "none") != 0;
    *code = exit_of(wait_status);
    if (*code == 0 && !mpi) return VERDICT_DONE;
    const struct records r = read_records(job->run_dir, since);
    if (*code == 0) return r.n == 0 && !job->heals ? VERDICT_DONE : verdict_of_records(&r, code);
    if (r.differ) *code = EXIT_LOST;
    if (r.differ) return VERDICT_FINAL;
    if (WIFSIGNALED(wait_status) || *code == EXIT_STOPPED || *code == EXIT_LOST) return VERDICT_AGAIN;
    if (!mpi) return *code > EXIT_BY_SIGNAL ? VERDICT_AGAIN : VERDICT_FINAL;
    if (r.failed > 0) return *code = r.failed, VERDICT_FINAL;
    /* killed after everything was written */
    if (r.done) return *code > EXIT_BY_SIGNAL || *code == SIGKILL ? VERDICT_DONE : VERDICT_FINAL;
    return r.n > 0 || *code > EXIT_BY_SIGNAL ? VERDICT_AGAIN : VERDICT_FINAL;
}

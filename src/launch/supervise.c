/* supervise.c - starts a job, waits for it, and restarts it when it fails.
 *
 *     start --> wait --> verdict: done ------------------------------> 0
 *       ^                         failed ----------------------------> its status
 *       |                         restart: kill what is left of it, check the allowance, pause
 *       `-------------------------------'
 *
 * One thread, no signal handlers: signals are blocked and fetched one by one.  The job ends with the supervisor
 * (PR_SET_PDEATHSIG), and processes that a launcher leaves behind become children of the supervisor, which reaps
 * them (PR_SET_CHILD_SUBREAPER). */
#define _GNU_SOURCE
#include "launch/supervise.h"

#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define STOP_S 60.0 /* seconds that a job has to write its checkpoint after a stop request */
#define KILL_S 20.0 /* seconds to wait for a killed process */
#define SEEN_S 1.0  /* seconds to watch a child process that has no mark and is not the job */
enum { LOOK_NS = 2000000 };

struct watch {
    const struct launch_job *job;
    struct ledger log;
    char mark[PATH_MAX];
    f64 since;        /* older checkpoints and records belong to an earlier run */
    i64 newest;       /* newest checkpoint when the restart allowance was last reset */
    i32 left, failed; /* restarts that remain; consecutive starts without progress */
    pid_t child;      /* the job's main process, 0 = reaped */
    f64 began, ended; /* wall-clock start and monotonic end of the last attempt */
    int status;       /* of waitpid */
    bool asked;       /* to stop */
    sigset_t taken, before;
};

static struct ledger_event event_of(const struct watch *w, const char *what) {
    return (struct ledger_event){.what = what, .checkpoint = run_checkpoint(w->job->run_dir, w->since), .pid = -1, .exit = -1,
                                 .signal = -1, .left = w->left, .down = -1};
}

static err note(struct watch *w, const struct ledger_event *e) { return ledger_write(&w->log, w->job->ranks, e); }

/* ------------------------------------------------------------------ child processes ----------------------------------------- */

void child_tie(pid_t parent, const sigset_t *mask) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(EXIT_NO_PROGRAM); /* it had ended before */
    sigprocmask(SIG_SETMASK, mask, NULL);
}

void child_without_input(void) {
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, 0);
}

static void become(const struct watch *w, char **argv, pid_t parent) {
    child_tie(parent, &w->before);
    child_without_input();
    setsid(); /* the supervisor receives Ctrl-C and forwards it */
    setenv(MARK, w->mark, 1);
    if (strcmp(w->job->mpi, "openmpi") == 0) scratch_use(w->mark);
    execvp(argv[0], argv);
    _exit(EXIT_NO_PROGRAM);
}

static err start(struct watch *w) {
    const bool again = run_checkpoint(w->job->run_dir, w->since) >= 0;
    char **argv = NULL;
    struct str line = {0};
    const pid_t parent = getpid();
    TRY(launch_command(w->job, again, &argv));
    w->began = clock_wall();
    w->child = fork();
    if (w->child == 0) become(w, argv, parent);
    launch_line(&line, argv);
    launch_free_words(argv);
    struct ledger_event e = event_of(w, "start");
    e.command = str_text(&line);
    e.pid = (i32)w->child;
    e.down = w->ended > 0 ? clock_now() - w->ended : -1;
    err r = w->child < 0 ? FAIL(E601, "no process could be made for the job") : note(w, &e);
    if (r >= 0 && w->ended > 0) launch_say(w->job, "supervisor: started again after %.2f s: %s", e.down, str_text(&line));
    str_free(&line);
    return r;
}

/* Reaps dead processes; true if the job's main process is among them. *more: others still exist (more may be NULL). */
static bool reap(struct watch *w, bool *more) {
    bool ours = false;
    int status;
    pid_t p;
    while ((p = waitpid(-1, &status, WNOHANG)) > 0) {
        if (p != w->child) continue;
        w->status = status;
        w->child = 0;
        ours = true;
    }
    if (more) *more = p == 0;
    return ours;
}

/* Waits up to some seconds for the next signal, 0 = none. */
static int next_signal(const struct watch *w, f64 seconds) {
    const struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - (f64)(time_t)seconds))};
    const int got = sigtimedwait(&w->taken, NULL, &t);
    return got > 0 ? got : 0;
}

/* Signals every rank directly: launchers kill their ranks soon after a SIGTERM, whether or not a checkpoint is written. */
static err forward_stop(struct watch *w, int number) {
    struct ledger_event e = event_of(w, "stop");
    e.signal = number;
    w->asked = true;
    launch_say(w->job, "supervisor: asked to stop; waiting for the checkpoint");
    marked_signal(w->mark, w->job->program, SIGUSR1);
    return note(w, &e);
}

/* Kills all processes of the job: those with the mark, and the main process, which may have changed its environment. False
 * if marked ones survive. */
static bool kill_all(const struct watch *w) {
    if (w->child > 0) kill(w->child, SIGKILL);
    return marked_end(w->mark, KILL_S);
}

/* Describes why a killed process does not end, e.g. an uninterruptible read from a lost file server. */
static err stays(const struct watch *w) {
    return FAIL_AT(E801, NULL, "look at its state (ps -o pid,stat,wchan), end it, then the same command again",
                   "process %d was killed %.0f s ago and does not end", (int)w->child, KILL_S);
}

static err wait_for_end(struct watch *w) {
    f64 killed_at = INFINITY, given_up = INFINITY;
    for (;;) {
        const int number = next_signal(w, 0.5);
        if (reap(w, NULL)) break;
        if (number != 0 && number != SIGCHLD) {
            if (w->asked) killed_at = 0; /* asked twice */
            else TRY(forward_stop(w, number));
            if (killed_at > 0) killed_at = clock_now() + STOP_S;
        }
        if (clock_now() > killed_at) {
            kill_all(w);
            killed_at = INFINITY;
            given_up = clock_now() + KILL_S;
        }
        if (clock_now() > given_up) return stays(w);
    }
    w->ended = clock_now();
    return 0;
}

/* ------------------------------------------------------------------ between attempts ---------------------------------------- */

static err end(struct watch *w, i32 code, i32 *exit_status) {
    struct ledger_event e = event_of(w, "end");
    e.exit = *exit_status = code;
    return note(w, &e);
}

/* A process has no mark while it executes another program and while it exits, so children of this process without a mark
 * are watched for a moment more. Those that still have none have dropped it, or existed before the job, and are left alone. */
static bool end_all(struct watch *w) {
    const f64 begin = clock_now();
    for (bool more = true;;) {
        if (!kill_all(w)) return false;
        reap(w, &more);
        if (!more || (w->child <= 0 && clock_now() - begin > SEEN_S)) return true;
        if (clock_now() - begin > KILL_S) return false;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
}

static err clean_up(struct watch *w) {
    const bool gone = end_all(w);
    if (gone) scratch_remove(w->mark);
    if (gone) return 0;
    return FAIL_AT(E801, NULL, "end those processes, then the same command again",
                   "processes of the last attempt do not end (their environment has %s=%s)", MARK, w->mark);
}

/* Progress resets the restart allowance. Returns false if none is left. */
static bool may_go_on(struct watch *w) {
    const i64 newest = run_checkpoint(w->job->run_dir, w->since);
    if (newest > w->newest) {
        w->left = w->job->max_restarts;
        w->failed = 0;
    }
    w->newest = newest > w->newest ? newest : w->newest;
    w->failed++;
    return w->left-- > 0;
}

static err wait_a_while(struct watch *w) {
    const f64 until = clock_now() + backoff(w->failed);
    struct ledger_event e = event_of(w, "pause");
    TRY(note(w, &e));
    for (f64 left; !w->asked && (left = until - clock_now()) > 0;) {
        const int number = next_signal(w, left);
        reap(w, NULL);
        w->asked = number != 0 && number != SIGCHLD;
    }
    return 0;
}

static void report_end(const struct watch *w) {
    if (WIFSIGNALED(w->status)) launch_say(w->job, "supervisor: the job died by signal %d", WTERMSIG(w->status));
    else launch_say(w->job, "supervisor: the job ended with status %d", WEXITSTATUS(w->status));
}

/* Runs one attempt; *over if no further one follows. */
static err attempt(struct watch *w, bool *over, i32 *exit_status) {
    i32 code;
    TRY(start(w));
    TRY(wait_for_end(w));
    struct ledger_event e = event_of(w, "ended");
    if (WIFSIGNALED(w->status)) e.signal = WTERMSIG(w->status);
    else e.exit = WEXITSTATUS(w->status);
    const enum verdict v = verdict_of(w->job, w->status, w->began, &code);
    TRY(note(w, &e));
    TRY(clean_up(w));
    *over = true;
    if (run_finished(w->job->run_dir, w->since)) run_clear(w->job->run_dir);
    if (v == VERDICT_DONE || run_finished(w->job->run_dir, w->since)) return end(w, v == VERDICT_FINAL ? code : 0, exit_status);
    if (w->asked) return end(w, EXIT_STOPPED, exit_status);
    if (v == VERDICT_FINAL) return end(w, code, exit_status);
    report_end(w);
    if (!may_go_on(w)) {
        launch_say(w->job, "supervisor: given up after %d restarts without a newer checkpoint", w->job->max_restarts);
        return end(w, w->newest >= 0 ? EXIT_STOPPED : EXIT_LOST, exit_status);
    }
    TRY(wait_a_while(w));
    if (w->asked) return end(w, EXIT_STOPPED, exit_status);
    *over = false;
    return 0;
}

static void take_signals(struct watch *w) {
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    struct sigaction hup;
    const bool nohup = sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler == SIG_IGN; /* a blocked signal is not ignored */
    sigemptyset(&w->taken);
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (numbers[i] != SIGHUP || !nohup) sigaddset(&w->taken, numbers[i]);
    sigprocmask(SIG_BLOCK, &w->taken, &w->before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* If the log says that this very command has not ended, continues from there; otherwise starts at the beginning. */
static err begin(struct watch *w, const struct ledger_past *past, const char *command) {
    const bool resumes = w->job->first.word == w->job->again.word; /* resume counts checkpoints of earlier submissions */
    w->left = past->open && past->left >= 0 ? past->left : w->job->max_restarts;
    w->newest = past->open ? past->checkpoint : -1;
    w->since = resumes ? 0 : past->open ? past->since : w->job->since > 0 ? (f64)w->job->since : clock_wall();
    struct ledger_event e = event_of(w, "begin");
    e.command = command;
    if (!past->open) return note(w, &e);
    launch_say(w->job, "supervisor: continuing from %s", w->log.path);
    return 0;
}

static err run(struct watch *w, const struct ledger_past *past, const char *command, i32 *exit_status) {
    bool over = false;
    if (!realpath(w->job->run_dir, w->mark)) return FAIL(E702, "the run folder %s is gone", w->job->run_dir);
    TRY(clean_up(w));
    TRY(begin(w, past, command));
    if (past->open && run_finished(w->job->run_dir, w->since)) {
        run_clear(w->job->run_dir);
        launch_say(w->job, "supervisor: the run is finished, its model is written");
        return end(w, 0, exit_status);
    }
    while (!over) TRY(attempt(w, &over, exit_status));
    return 0;
}

err supervise(const struct launch_job *job, i32 *exit_status) {
    struct watch *w;
    struct ledger_past past;
    struct str command = {0};
    NEW(w, 1);
    w->job = job;
    for (i32 i = 0; i < job->first.n; i++) {
        if (i) str_add(&command, " ");
        launch_quote(&command, job->first.word[i]);
    }
    err e = str_ok(&command);
    if (e >= 0) e = ledger_open(&w->log, job->run_dir, str_text(&command), &past);
    if (e >= 0) {
        take_signals(w);
        e = run(w, &past, str_text(&command), exit_status);
        if (e < 0 && end_all(w)) scratch_remove(w->mark);
        sigprocmask(SIG_SETMASK, &w->before, NULL);
    }
    ledger_close(&w->log);
    str_free(&command);
    mem_free(w);
    return e;
}

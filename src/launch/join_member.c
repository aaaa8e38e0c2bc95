/* join_member.c - a container's part of a job: says that it is there, runs its launch line in every round, ends its ranks when a
 * round is over.  Member 0 also runs the supervisor, in a process of its own. */
#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "launch/join_files.h"
#include "launch/supervise.h"

#define LOOK_NS 100000000L
#define APART_NS 500000000L /* looks into HDFS are requests to its name node */
#define KILL_S 20.0
#define LOCK_S 90.0 /* another supervisor of this run may need so long to notice that it has lost its place */
enum { BUSY = 704 };

struct member {
    const struct launch_job *job;
    const struct join *j;
    struct join_place at;
    char token[JOIN_TOKEN], mark[PATH_MAX + 32];
    i64 round;               /* the newest seen; 0 = none */
    bool ran, stopped;       /* its line was started; its ranks were asked to stop */
    bool leaving;            /* the scheduler wants the container back */
    pid_t proxy, supervisor; /* 0 = none */
    sigset_t taken, before;
};

/* The hash of the program that runs; 0 = it cannot be read. */
static u64 hash_program(void) {
    const struct err_record before = *err_last();
    struct file_map m = {0};
    if (file_map("/proc/self/exe", &m) < 0) err_put(&before);
    const u64 hash = m.p ? hash_bytes(HASH_SEED, m.p, (size_t)m.size) : 0;
    file_unmap(&m);
    return hash;
}

/* Unlike for every process that was ever member I: container, node, process, time; then the program. */
static void make_token(char out[JOIN_TOKEN]) {
    const char *container = getenv("CONTAINER_ID"), *node = getenv("NM_HOST");
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(out, JOIN_TOKEN, "%.80s %.60s %d %.3f %016llx", container && *container ? container : "-",
             node && *node ? node : host, (int)getpid(), clock_wall(), (unsigned long long)hash_program());
}

/* ------------------------------------------------------------------ ranks of this member ------------------------------------ */

static void become_proxy(const struct member *m, const char *line, pid_t parent) {
    child_tie(parent, &m->before);
    child_without_input();
    setenv(MARK, m->mark, 1);
    setenv(JOIN_PROGRAM, m->job->program, 1);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(EXIT_NO_PROGRAM);
}

static err start_proxy(struct member *m) {
    char name[64], line[JOIN_TEXT];
    const pid_t parent = getpid();
    place_name(name, m->round, "line", m->j->member);
    if (m->ran || !place_read(&m->at, name, line, sizeof line)) return 0;
    m->ran = true;
    m->proxy = fork();
    if (m->proxy == 0) become_proxy(m, line, parent);
    return m->proxy < 0 ? FAIL(E601, "no process could be made for the ranks") : 0;
}

static err end_ranks(struct member *m) {
    if (m->proxy > 0) kill(m->proxy, SIGKILL);
    if (m->proxy > 0) waitpid(m->proxy, NULL, 0);
    m->proxy = 0;
    if (marked_end(m->mark, KILL_S)) return 0;
    return FAIL(E801, "ranks of member %d were killed %.0f s ago and do not end", m->j->member, KILL_S);
}

/* Zombies: the proxy, whose status the others learn, and the supervisor. */
static err reap(struct member *m, bool *over, i32 *code) {
    char name[64], text[16];
    int status;
    pid_t p;
    while ((p = waitpid(-1, &status, WNOHANG)) > 0) {
        const i32 exit = exit_of(status);
        if (p == m->supervisor) {
            *over = true;
            *code = exit;
            m->supervisor = 0;
        }
        if (p != m->proxy) continue;
        m->proxy = 0;
        place_name(name, m->round, "exit", m->j->member);
        snprintf(text, sizeof text, "%d\n", exit);
        TRY(place_write(&m->at, name, text));
    }
    return 0;
}

/* ------------------------------------------------------------------ one look ------------------------------------------------ */

static err next_round(struct member *m) {
    char name[64];
    const i64 round = place_number(&m->at, "round", 0);
    if (round <= m->round) return 0;
    TRY(end_ranks(m));
    m->round = round;
    m->ran = m->stopped = false;
    place_name(name, round, "node", m->j->member);
    return place_write(&m->at, name, m->token);
}

static void pass_stop(struct member *m) {
    char name[64];
    place_name(name, m->round, "stop", -1);
    if (m->stopped || m->proxy <= 0 || !place_has(&m->at, name)) return;
    m->stopped = true;
    marked_signal(m->mark, m->job->program, SIGUSR1);
}

/* Another container is this member now: the scheduler had given this one up. */
static bool is_replaced(const struct member *m) {
    char name[64], now[JOIN_TOKEN];
    place_hello(name, m->j->member);
    return place_read(&m->at, name, now, sizeof now) && strncmp(now, m->token, strlen(m->token)) != 0;
}

static err look(struct member *m, bool *over, i32 *code) {
    TRY(reap(m, over, code));
    if (*over) return 0;
    if (is_replaced(m)) {
        launch_say(m->job, "member %d: another container has taken this place", m->j->member);
        *over = true;
    } else if (m->supervisor == 0 && place_has(&m->at, "end"))
        *over = true;
    if (*over) return 0;
    TRY(next_round(m));
    if (m->round > 0) TRY(start_proxy(m));
    pass_stop(m);
    return 0;
}

/* ------------------------------------------------------------------ member 0 ------------------------------------------------ */

/* The supervisor of the run, as under `submit --on local`, with join_start in place of mpirun.  A supervisor on a host that the
 * scheduler has given up may still hold the lock of the run for a moment. */
static err supervise_patiently(const struct launch_job *job, i32 *code) {
    const f64 begin = clock_now();
    for (;;) {
        err e = supervise(job, code);
        if (e != -BUSY || clock_now() - begin > LOCK_S) return e;
        clock_sleep(1);
    }
}

static void become_supervisor(const struct member *m, pid_t parent) {
    i32 code = 0;
    child_tie(parent, &m->before);
    if (supervise_patiently(m->job, &code) < 0) {
        const struct err_record *r = err_last();
        launch_say(m->job, "error[E%d] %s%s%s", (int)r->code, r->where, *r->where ? ": " : "", r->text);
        code = err_exit_status(-r->code);
    }
    _exit(code == JOIN_DIFFERS ? EXIT_LOST : code);
}

static err fork_supervisor(struct member *m) {
    const pid_t parent = getpid();
    m->supervisor = fork();
    if (m->supervisor == 0) become_supervisor(m, parent);
    return m->supervisor < 0 ? FAIL(E601, "no process could be made for the supervisor") : 0;
}

/* ------------------------------------------------------------------ the member ---------------------------------------------- */

static void take_signals(struct member *m) {
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    sigemptyset(&m->taken);
    for (size_t i = 0; i < COUNT(numbers); i++) sigaddset(&m->taken, numbers[i]);
    sigprocmask(SIG_BLOCK, &m->taken, &m->before);
}

static err begin(struct member *m) {
    char name[64], run[PATH_MAX];
    place_of(&m->at, m->job->meeting, m->j->session);
    TRY(file_make_dir(m->at.folder));
    TRY(file_make_dir(m->job->run_dir));
    if (!realpath(m->job->run_dir, run)) return FAIL(E702, "the run folder %s is gone", m->job->run_dir);
    snprintf(m->mark, sizeof m->mark, "%s#%d", run, m->j->member);
    make_token(m->token);
    place_hello(name, m->j->member);
    return place_write(&m->at, name, m->token);
}

/* The scheduler wants the container back: all ranks write a checkpoint if they are given the time. */
static void leave(struct member *m) {
    m->leaving = true;
    if (m->proxy > 0 && m->supervisor <= 0) marked_signal(m->mark, m->job->program, SIGUSR1);
}

static err serve(struct member *m, i32 *code) {
    for (bool over = false; !over;) {
        const int number = sigtimedwait(&m->taken, NULL, &(struct timespec){.tv_nsec = m->job->apart ? APART_NS : LOOK_NS});
        if (number > 0 && number != SIGCHLD) {
            if (m->supervisor > 0) kill(m->supervisor, number);
            leave(m);
        }
        TRY(look(m, &over, code));
        if (m->leaving && m->proxy <= 0 && m->supervisor <= 0) break; /* the others notice */
    }
    return 0;
}

err join_member(const struct launch_job *job, const struct join *j, i32 *exit_status) {
    struct member m = {.job = job, .j = j};
    char text[16];
    *exit_status = 0;
    TRY(begin(&m));
    if (place_has(&m.at, "end")) return 0; /* a container that was started once too often */
    take_signals(&m);
    err e = j->member == 0 ? fork_supervisor(&m) : 0;
    if (e >= 0) e = serve(&m, exit_status);
    const bool back = m.leaving && j->again && (j->member > 0 || *exit_status == EXIT_STOPPED);
    const bool ends = j->member == 0 && m.supervisor == 0 && e >= 0 && !back && !is_replaced(&m);
    if (m.supervisor > 0) kill(m.supervisor, SIGKILL);
    snprintf(text, sizeof text, "%d\n", *exit_status);
    if (j->closing) j->closing(job, j);
    if (ends) e = place_write(&m.at, "end", text);
    if (back) *exit_status = JOIN_GIVEN_BACK;
    if (end_ranks(&m) < 0 && e >= 0) e = -E801;
    sigprocmask(SIG_SETMASK, &m.before, NULL);
    return e;
}

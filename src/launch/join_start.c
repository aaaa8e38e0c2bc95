/* join_start.c - one attempt: a new round, all members in it, mpiexec, whose launch lines go to the members.
 *
 *     mpiexec.mpich -genvnone -launcher manual -hosts member0,member1 -ppn K -n N program ..
 *     HYDRA_LAUNCH: hydra_pmi_proxy --control-port HOST:PORT .. --proxy-id 0       -> R/line-0
 *     HYDRA_LAUNCH_END                                                            what follows is output of the ranks
 *
 * -genvnone: the ranks have the environment of their own container.  mpiexec does not end when a proxy is lost, and ignores
 * SIGTERM while it waits for proxies: it is killed here. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "launch/join_files.h"
#include "launch/supervise.h"

#define LINE "HYDRA_LAUNCH: "
#define LAST "HYDRA_LAUNCH_END"
#define LOOK_NS 50000000L
#define TOGETHER_S 5.0 /* from the first proxy that failed until mpiexec should have ended by itself */
#define MISSED_S 0.5   /* a shared file system may show a file late */
#define APART_S 0.5    /* pause between looks into HDFS, which are requests to its name node */
enum { WORDS_AROUND = 24 };

struct start {
    const struct join *j;
    struct join_place at;
    i64 round;
    pid_t mpiexec;      /* 0 = ended */
    int from;           /* its standard output */
    int status;         /* of waitpid */
    struct str pending; /* the start of a line whose end has not come */
    i32 lines;          /* handed out */
    bool passing;       /* after HYDRA_LAUNCH_END: output of the ranks */
    f64 failed_at;      /* when a proxy was first seen to have failed; 0 = never */
    f64 missed_at;      /* since when a member is not there; 0 = all are */
    bool lost;
    sigset_t stop, before; /* signals by which the supervisor asks for a checkpoint */
};

/* ------------------------------------------------------------------ members ------------------------------------------------- */

/* The member is in this round, and is the one that said hello last. */
static bool is_there(const struct start *s, i32 member) {
    char at[64], in[64], hello[JOIN_TOKEN], node[JOIN_TOKEN];
    place_hello(at, member);
    place_name(in, s->round, "node", member);
    return place_read(&s->at, at, hello, sizeof hello) && place_read(&s->at, in, node, sizeof node) && strcmp(hello, node) == 0;
}

static i32 count_there(const struct start *s) {
    i32 n = 0;
    for (i32 i = 0; i < s->j->members; i++) n += is_there(s, i);
    return n;
}

static bool asked_to_stop(const struct start *s) {
    return sigtimedwait(&s->stop, NULL, &(struct timespec){.tv_nsec = LOOK_NS}) > 0;
}

/* What the ranks print goes on as it comes, as does what is said here. */
static void pass(const struct start *s, const char *bytes, size_t n) {
    for (ssize_t done; n > 0 && ((done = write(s->j->out, bytes, n)) > 0 || errno == EINTR);) {
        bytes += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
}

/* 0 when all members are there, else the exit status of the attempt. */
static i32 gather(struct start *s) {
    const f64 begin = clock_now();
    char text[160];
    for (i32 n; (n = count_there(s)) < s->j->members;) {
        if (s->at.remote) clock_sleep(APART_S);
        if (asked_to_stop(s)) return EXIT_STOPPED;
        if (clock_now() - begin < s->j->patience) continue;
        snprintf(text, sizeof text, "%d of %d containers came within %.0f s: they are given back\n", n, s->j->members,
                 s->j->patience);
        pass(s, text, strlen(text));
        return JOIN_INCOMPLETE;
    }
    return 0;
}

/* The words of a member's token: container, node, process, time, program. */
static void node_and_program(const struct start *s, i32 member, char node[64], char program[32]) {
    char name[64], token[JOIN_TOKEN];
    place_name(name, s->round, "node", member);
    node[0] = program[0] = 0;
    if (place_read(&s->at, name, token, sizeof token)) sscanf(token, "%*s %63s %*s %*s %31s", node, program);
}

/* Programs that differ would refuse each other later, or worse. */
static i32 compare_programs(const struct start *s) {
    char first[64], node[64], wanted[32], program[32], text[400];
    node_and_program(s, 0, first, wanted);
    for (i32 i = 1; i < s->j->members; i++) {
        node_and_program(s, i, node, program);
        if (strcmp(program, wanted) == 0) continue;
        snprintf(text, sizeof text,
                 "container %d on %s runs another build of stretto than container 0 on %s: install the same on every node, or "
                 "submit with --stage hdfs://NAMENODE:9870, which brings it\n",
                 i, node, first);
        pass(s, text, strlen(text));
        if (place_write(&s->at, "why", text) < 0) err_clear();
        return JOIN_DIFFERS;
    }
    return 0;
}

static err begin_round(struct start *s) {
    char text[32];
    s->round = place_number(&s->at, "round", 0) + 1;
    snprintf(text, sizeof text, "%lld\n", (long long)s->round);
    return place_write(&s->at, "round", text);
}

/* ------------------------------------------------------------------ mpiexec ------------------------------------------------- */

/* The address of this host as the scheduler knows it; it stands in the launch lines. */
static const char *address(void) {
    const char *node = getenv("NM_HOST");
    return node && *node ? node : NULL;
}

static void become_mpiexec(const struct start *s, struct launch_words words, int to, pid_t parent) {
    static char script[] = "exec \"${" JOIN_PROGRAM "}\" \"$@\"";
    struct str hosts = {0};
    char ppn[16], n[16];
    const char **argv = mem_alloc(((size_t)words.n + WORDS_AROUND) * sizeof *argv); /* exec follows, or exit */
    i32 k = 0;
    child_tie(parent, &s->before);
    for (i32 i = 0; i < s->j->members; i++) str_addf(&hosts, "%smember%d", i ? "," : "", i);
    if (!argv || str_ok(&hosts) < 0 || dup2(to, 1) < 0) _exit(EXIT_NO_PROGRAM);
    snprintf(ppn, sizeof ppn, "%d", s->j->ranks_per_member);
    snprintf(n, sizeof n, "%d", s->j->ranks_per_member * s->j->members);
    const char *const front[] = {"mpiexec.mpich", "-genvnone", "-launcher", "manual", "-hosts", str_text(&hosts)};
    const char *const sizes[] = {"-ppn", ppn, "-n", n};
    for (size_t i = 0; i < COUNT(front); i++) argv[k++] = front[i];
    for (size_t i = 0; i < COUNT(sizes); i++) argv[k++] = sizes[i];
    if (address()) argv[k++] = "-localhost", argv[k++] = address();
    const char *const shell[] = {"/bin/sh", "-c", script, "stretto"};
    for (size_t i = 0; i < COUNT(shell); i++) argv[k++] = shell[i];
    for (i32 i = 1; i < words.n; i++) argv[k++] = words.word[i]; /* word 0: the program, which each host finds at its own place */
    execvp(argv[0], (char *const *)(const void *)argv);
    execvp(argv[0] = "mpiexec.hydra", (char *const *)(const void *)argv);
    static const char absent[] = "there is no mpiexec.mpich on the path of the container: install MPICH on the nodes\n";
    pass(s, absent, sizeof absent - 1);
    _exit(EXIT_NO_PROGRAM);
}

static err start_mpiexec(struct start *s, struct launch_words words) {
    int ends[2];
    const pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0) return FAIL(E601, "no pipe could be made: %s", strerror(errno));
    s->mpiexec = fork();
    if (s->mpiexec == 0) become_mpiexec(s, words, ends[1], parent);
    close(ends[1]);
    s->from = ends[0];
    fcntl(s->from, F_SETFL, O_NONBLOCK);
    return s->mpiexec < 0 ? FAIL(E601, "no process could be made for mpiexec") : 0;
}

static err take_line(struct start *s, char *line) {
    char name[64], text[JOIN_TEXT];
    if (strcmp(line, LAST) == 0) return s->passing = true, 0;
    if (strncmp(line, LINE, strlen(LINE)) != 0) return pass(s, line, strlen(line)), pass(s, "\n", 1), 0;
    place_name(name, s->round, "line", s->lines++);
    snprintf(text, sizeof text, "exec %s\n", line + strlen(LINE));
    return place_write(&s->at, name, text);
}

static err take_output(struct start *s) {
    char part[4096];
    ssize_t n;
    while ((n = read(s->from, part, sizeof part)) > 0) {
        if (s->passing) {
            pass(s, part, (size_t)n);
            continue;
        }
        str_addn(&s->pending, part, (size_t)n);
        TRY(str_ok(&s->pending));
        for (char *end; !s->passing && s->pending.s && (end = strchr(s->pending.s, '\n'));) {
            *end = 0;
            TRY(take_line(s, s->pending.s));
            s->pending.len -= (size_t)(end + 1 - s->pending.s);
            memmove(s->pending.s, end + 1, s->pending.len + 1);
        }
        if (s->passing) pass(s, str_text(&s->pending), s->pending.len);
    }
    return 0;
}

/* ------------------------------------------------------------------ until the end ------------------------------------------- */

/* A member that failed, or that another container has replaced. */
static void watch_members(struct start *s) {
    char name[64];
    const f64 now = clock_now();
    for (i32 i = 0; i < s->j->members; i++) {
        place_name(name, s->round, "exit", i);
        if (place_number(&s->at, name, 0) != 0 && s->failed_at == 0) s->failed_at = now;
    }
    if (count_there(s) == s->j->members) s->missed_at = 0;
    else if (s->missed_at == 0) s->missed_at = now;
    s->lost = (s->failed_at > 0 && now - s->failed_at > TOGETHER_S) || (s->missed_at > 0 && now - s->missed_at > MISSED_S);
}

static err wait_for_end(struct start *s) {
    char name[64];
    place_name(name, s->round, "stop", -1);
    while (s->mpiexec > 0) {
        if (asked_to_stop(s)) TRY(place_write(&s->at, name, "stop\n"));
        const bool ended = waitpid(s->mpiexec, &s->status, WNOHANG) == s->mpiexec;
        TRY(take_output(s));
        watch_members(s);
        if (s->at.remote) clock_sleep(ended ? 0 : APART_S);
        if (ended)
            s->mpiexec = 0;
        else if (s->lost)
            break;
    }
    return 0;
}

static err attempt(struct start *s, struct launch_words words, i32 *exit_status) {
    TRY(begin_round(s));
    *exit_status = gather(s);
    if (*exit_status == 0) *exit_status = compare_programs(s);
    if (*exit_status != 0) return 0;
    TRY(start_mpiexec(s, words));
    TRY(wait_for_end(s));
    *exit_status = s->mpiexec > 0 ? EXIT_LOST : exit_of(s->status);
    return 0;
}

err join_start(const char *meeting, const struct join *j, struct launch_words words, i32 *exit_status) {
    struct start s = {.j = j, .from = -1};
    place_of(&s.at, meeting, j->session);
    sigemptyset(&s.stop);
    sigaddset(&s.stop, SIGUSR1);
    sigaddset(&s.stop, SIGTERM);
    sigprocmask(SIG_BLOCK, &s.stop, &s.before);
    err e = attempt(&s, words, exit_status);
    if (s.mpiexec > 0) kill(s.mpiexec, SIGKILL);
    if (s.mpiexec > 0) waitpid(s.mpiexec, NULL, 0);
    if (s.from >= 0) close(s.from);
    sigprocmask(SIG_SETMASK, &s.before, NULL);
    str_free(&s.pending);
    return e;
}

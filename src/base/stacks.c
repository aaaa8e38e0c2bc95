/* stacks.c - see stacks.h: signals one thread at a time, whose handler stores its return addresses in one shared buffer. */
#define _GNU_SOURCE
#include "base/stacks.h"

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/symbol.h"

enum { DEPTH = 48, OWN = 2 /* frames of the handler itself */, LOOKS = 500, LOOK_NS = 500000, LINE = 256 };

/* asked: id of the thread that must answer; -1 while it writes; 0 = none. A late signal finds another id there and returns. */
static struct {
    _Atomic i32 asked;
    i32 n;
    void *at[DEPTH];
} desk;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static int number; /* signal number; 0 = none taken yet */

static i32 thread_id(void) { return (i32)syscall(SYS_gettid); }

static void on_signal(int n) {
    const int before = errno;
    i32 me = thread_id();
    (void)n;
    if (atomic_compare_exchange_strong(&desk.asked, &me, -1)) {
        desk.n = backtrace(desk.at, DEPTH);
        atomic_store(&desk.asked, 0);
    }
    errno = before;
}

/* Takes the first unused real-time signal permanently: a late signal to a slow thread must still find a handler. */
static bool take_signal(void) {
    struct sigaction old, a = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
    sigemptyset(&a.sa_mask);
    for (int n = SIGRTMIN + 1; number == 0 && n <= SIGRTMAX; n++)
        if (sigaction(n, NULL, &old) == 0 && old.sa_handler == SIG_DFL && sigaction(n, &a, NULL) == 0) number = n;
    return number > 0;
}

static void put(int fd, const char *text, i32 n) {
    if (n > 0 && write(fd, text, (size_t)imin(n, LINE - 1)) < 0) return; /* skip what cannot be written */
}

static void put_frames(int fd, i32 from) {
    char line[LINE], name[SYMBOL];
    for (i32 k = from; k < desk.n; k++) {
        /* The return address lies after the call, which may be the last instruction of its function: look up the byte before. */
        symbol_name((const char *)desk.at[k] - (k > from), name);
        put(fd, line, snprintf(line, sizeof line, "  #%-2d %s\n", k - from, name));
    }
}

/* True if the thread answers in time; one that has started to write gets four times as long. */
static bool ask(i32 tid) {
    atomic_store(&desk.asked, tid);
    if (syscall(SYS_tgkill, getpid(), tid, number) == 0) {
        for (i32 k = 0; k < 4 * LOOKS; k++) {
            const i32 now = atomic_load(&desk.asked);
            if (now == 0) return true;
            if (now != -1 && k >= LOOKS) break;
            nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        }
    }
    i32 still = tid;
    return !atomic_compare_exchange_strong(&desk.asked, &still, 0) && atomic_load(&desk.asked) == 0;
}

/* Writes a thread's name and state ("S" sleeping, "R" running, "D" in the kernel) from /proc. */
static void put_head(int fd, i32 tid) {
    char path[64], line[LINE], text[LINE] = "", state = '?';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *f = fopen(path, "r");
    if (f && !fgets(text, sizeof text, f)) text[0] = 0;
    if (f) fclose(f);
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (open && close && close[1] == ' ') {
        *close = 0;
        state = close[2];
    }
    put(fd, line, snprintf(line, sizeof line, "thread %d %.32s, state %c\n", tid, open && close ? open + 1 : "?", state));
}

static void put_thread(int fd, i32 tid) {
    static const char silent[] = "  does not answer\n";
    put_head(fd, tid);
    if (tid == thread_id()) {
        desk.n = backtrace(desk.at, DEPTH);
        put_frames(fd, 0);
    } else if (atomic_load(&desk.asked) == 0 && ask(tid)) {
        put_frames(fd, OWN);
    } else {
        put(fd, silent, sizeof silent - 1);
    }
}

void stacks_write(int fd) {
    pthread_mutex_lock(&one_at_a_time);
    DIR *d = take_signal() ? opendir("/proc/self/task") : NULL;
    desk.n = backtrace(desk.at, DEPTH); /* the first call of backtrace loads a library, which a handler must not do */
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        const i32 tid = (i32)strtol(e->d_name, NULL, 10);
        if (tid > 0) put_thread(fd, tid);
    }
    if (d) closedir(d);
    pthread_mutex_unlock(&one_at_a_time);
}

/* marked.c - finds the processes of a run by a variable in their environment, the mark.
 *
 * Launchers put ranks into process groups and sessions of their own, and a killed launcher leaves them to init.  The environment
 * is inherited in all these cases, and a process that has reused a pid does not have the mark. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "launch/supervise.h"

enum { ENVIRONMENT = 1 << 20, NAP_NS = 10000000 };

/* True if /proc/PID/environ contains NAME=mark. */
static bool has_mark(const char *pid, const char *mark, char *room) {
    char path[64], want[4300];
    snprintf(path, sizeof path, "/proc/%.20s/environ", pid);
    snprintf(want, sizeof want, "%s=%s", MARK, mark);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = 0, got;
    while (n < ENVIRONMENT - 1 && (got = read(fd, room + n, (size_t)(ENVIRONMENT - 1 - n))) > 0) n += got;
    close(fd);
    room[n] = 0;
    for (const char *s = room; s < room + n; s += strlen(s) + 1)
        if (strcmp(s, want) == 0) return true;
    return false;
}

static bool runs(const char *pid, const char *program) {
    char path[64], exe[4096];
    if (!program) return true;
    snprintf(path, sizeof path, "/proc/%.20s/exe", pid);
    const ssize_t n = readlink(path, exe, sizeof exe - 1);
    if (n < 0) return false;
    exe[n] = 0;
    const size_t len = strlen(program);
    /* the executable was replaced meanwhile */
    return strncmp(exe, program, len) == 0 && (!exe[len] || strcmp(exe + len, " (deleted)") == 0);
}

i32 marked_find(const char *mark, const char *program, i32 pid[MARKED_MOST]) {
    char *room = mem_alloc(ENVIRONMENT);
    DIR *proc = room ? opendir("/proc") : NULL;
    i32 n = 0;
    for (struct dirent *d; proc && n < MARKED_MOST && (d = readdir(proc));) {
        const i32 number = (i32)strtol(d->d_name, NULL, 10);
        if (number <= 0 || number == (i32)getpid()) continue;
        if (has_mark(d->d_name, mark, room) && runs(d->d_name, program)) pid[n++] = number;
    }
    if (proc) closedir(proc);
    mem_free(room);
    return n;
}

void marked_signal(const char *mark, const char *program, int number) {
    i32 pid[MARKED_MOST];
    const i32 n = marked_find(mark, program, pid);
    for (i32 i = 0; i < n; i++) kill(pid[i], number);
}

bool marked_end(const char *mark, f64 seconds) {
    i32 pid[MARKED_MOST];
    for (const f64 end = clock_now() + seconds;;) {
        const i32 n = marked_find(mark, NULL, pid); /* zombies have no environment */
        if (n == 0) return true;
        if (clock_now() > end) return false;
        for (i32 i = 0; i < n; i++) kill(pid[i], SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

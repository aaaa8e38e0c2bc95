/* signals.c - signals that ask a command to stop: the first one asks, a second Ctrl-C ends the process. */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/unfinished.h"

/* Read by the signal handler only. */
static const struct cli *volatile listener;
static void (*volatile act)(bool first);
static volatile sig_atomic_t requested;
static struct timespec request_time;

/* Signals on which a run ends in order, including a closed terminal and the soft CPU time limit. */
static const int stops[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP, SIGXCPU};

#define TWICE_S 1.0   /* a launcher forwards a Ctrl-C that its ranks have received already */
#define AT_ONCE_S 0.1 /* timeout(1) sends a signal to its command, and then to the group of both */

/* True for a second Ctrl-C of the user. */
static bool is_second_request(int number) {
    struct timespec now;
    if (!requested || number != SIGINT) return false;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double since = (double)(now.tv_sec - request_time.tv_sec) + 1e-9 * (double)(now.tv_nsec - request_time.tv_nsec);
    return since > (listener->among ? TWICE_S : AT_ONCE_S);
}

/* Handles one signal at a time; the others are blocked meanwhile. */
static void on_signal(int number) {
    const int kept = errno;
    const bool first = !requested;
    if (is_second_request(number)) {
        unfinished_remove();
        _exit(130);
    }
    if (first) clock_gettime(CLOCK_MONOTONIC, &request_time);
    requested = 1;
    act(first);
    errno = kept;
}

void cli_say_stop(const char *text) {
    if (*text && !listener->silent && write(STDERR_FILENO, text, strlen(text)) < 0) return; /* stderr is closed */
}

bool cli_stop_requested(void) { return requested; }

/* What was written under a temporary name is of no use to anyone. */
static void on_end(int number) {
    unfinished_remove();
    signal(number, SIG_DFL);
    raise(number);
}

void cli_end_cleanly(void) {
    struct sigaction a = {.sa_handler = on_end}, before;
    sigemptyset(&a.sa_mask);
    for (size_t i = 0; i < COUNT(stops); i++)
        if (sigaction(stops[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(stops[i], &a, NULL);
}

void cli_catch_signals(const struct cli *c, void (*on_stop)(bool first)) {
    struct sigaction a = {.sa_handler = on_signal};
    sigemptyset(&a.sa_mask);
    for (size_t i = 0; i < COUNT(stops); i++) sigaddset(&a.sa_mask, stops[i]);
    listener = c;
    act = on_stop;
    for (size_t i = 0; i < COUNT(stops); i++) {
        struct sigaction before;
        const bool ignored = stops[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (!ignored) sigaction(stops[i], &a, NULL); /* nohup stays nohup */
    }
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error of that output only */
}

/* browser.c - see browser.h. */
#define _GNU_SOURCE
#include "browser.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

enum { ABSENT = 127, PATIENCE = 120, URL = 3 * PATH_MAX + 16 };

/* True if PATH has such a program. */
static bool installed(const char *program) {
    char path[PATH_MAX];
    if (strchr(program, '/')) return access(program, X_OK) == 0;
    for (const char *at = getenv("PATH"); at && *at;) {
        const size_t n = strcspn(at, ":");
        const int length = snprintf(path, sizeof path, "%.*s/%s", (int)n, at, program);
        if (n > 0 && length < PATH_MAX && access(path, X_OK) == 0) return true;
        at += n + (at[n] == ':');
    }
    return false;
}

/* file:// and the absolute path, with what is no letter of a URL as %XX. */
static stretto_err url_of(const char *path, char out[URL]) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-~";
    char full[PATH_MAX];
    if (!realpath(path, full)) return FAIL_AT(E701, path, "", "cannot read: %s", strerror(errno));
    size_t n = (size_t)snprintf(out, URL, "file://");
    for (const char *p = full; *p; p++) {
        if (strchr(plain, *p))
            out[n++] = *p;
        else
            n += (size_t)snprintf(out + n, URL - n, "%%%02X", (unsigned char)*p);
    }
    out[n] = 0;
    return 0;
}

/* Starts a program without a terminal; -1 = it cannot be started. */
static pid_t start(char *const argv[], bool waits) {
    const pid_t child = fork();
    if (child != 0) return child;
    const int none = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3 && none >= 0; i++) dup2(none, i);
    if (!waits) setsid();        /* it outlives this command */
    alarm(waits ? PATIENCE : 0); /* survives exec */
    execvp(argv[0], argv);
    _exit(ABSENT);
}

/* ------------------------------------------------------------------ show ---------------------------------------------------- */

static const char *opener(void) {
    static const char *const usual[] = {"xdg-open", "open", "wslview", "x-www-browser"};
    const char *own = getenv("BROWSER");
    if (own && *own && installed(own)) return own;
    for (size_t i = 0; i < COUNT(usual); i++)
        if (installed(usual[i])) return usual[i];
    return NULL;
}

stretto_err browser_open(const char *html_path) {
    char url[URL];
    const char *program = opener();
    if (!program)
        return FAIL_AT(E707, "--open", "BROWSER=firefox stretto report .. --open   or   the package xdg-utils",
                       "no program here opens a page; the report is %.2000s", html_path);
    TRY(url_of(html_path, url));
    char *argv[] = {(char *)(uintptr_t)program, url, NULL};
    signal(SIGCHLD, SIG_IGN); /* nobody waits for it */
    if (start(argv, false) < 0) return FAIL_AT(E707, "--open", "", "%s cannot be started: %s", program, strerror(errno));
    return 0;
}

/* ------------------------------------------------------------------ print --------------------------------------------------- */

static const char *printer(void) {
    static const char *const family[] = {"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
                                         "chrome",   "microsoft-edge",   "brave-browser", "headless_shell"};
    const char *own = getenv("STRETTO_BROWSER");
    if (own && *own) return installed(own) ? own : NULL;
    for (size_t i = 0; i < COUNT(family); i++)
        if (installed(family[i])) return family[i];
    return NULL;
}

/* Status of a child that was waited for; ABSENT if it was killed. */
static int status_of(pid_t child) {
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : ABSENT;
}

static stretto_err run_printer(const char *program, const char *url, const char *pdf, const char *profile) {
    char out[PATH_MAX + 32], data[PATH_MAX + 32];
    struct stat st;
    snprintf(out, sizeof out, "--print-to-pdf=%s", pdf);
    snprintf(data, sizeof data, "--user-data-dir=%s", profile);
    char *argv[] = {(char *)(uintptr_t)program,
                    "--headless",
                    "--disable-gpu",
                    "--no-first-run",
                    "--no-pdf-header-footer",
                    "--disable-background-networking",
                    data,
                    out,
                    (char *)(uintptr_t)url,
                    geteuid() == 0 ? "--no-sandbox" : NULL,
                    NULL}; /* root has no sandbox */
    if (status_of(start(argv, true)) == 0 && stat(pdf, &st) == 0 && st.st_size > 0) return 0;
    return FAIL_AT(E707, "--pdf", "another browser: STRETTO_BROWSER=google-chrome", "%s did not print the report", program);
}

/* A folder of settings of its own, so that a browser that is open does not take the page over. */
static void remove_profile(const char *profile) {
    char *argv[] = {"rm", "-rf", (char *)(uintptr_t)profile, NULL};
    status_of(start(argv, true));
}

stretto_err browser_print(const char *html_path, const char *pdf_path) {
    char url[URL], profile[PATH_MAX];
    const char *program = printer(), *tmp = getenv("TMPDIR");
    if (!program)
        return FAIL_AT(E707, "--pdf", "the package chromium   or   print the report in any browser",
                       "no Chromium or Chrome in PATH prints %.2000s", html_path);
    TRY(url_of(html_path, url));
    snprintf(profile, sizeof profile, "%.3000s/stretto-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(profile)) return FAIL_AT(E702, profile, "TMPDIR=OTHER", "cannot make a folder: %s", strerror(errno));
    const stretto_err e = run_printer(program, url, pdf_path, profile);
    remove_profile(profile);
    return e;
}

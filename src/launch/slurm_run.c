/* slurm_run.c - sbatch and scontrol, as programs: what they are given, what they print, how they end.
 *
 * Their input and output are temporary files without a name, so that no pipe can fill or break. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch/slurm.h"

enum { ABSENT = 127, POLLS = 600, NAP_FIRST = 1, NAP_LONGEST = 5 };

static void file_text(FILE *f, struct str *out) {
    char part[4096];
    size_t n;
    rewind(f);
    while ((n = fread(part, 1, sizeof part, f)) > 0) str_addn(out, part, n);
}

static int run_child(char *const argv[], FILE *in, FILE *out, FILE *bad) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (dup2(fileno(in), 0) < 0 || dup2(fileno(out), 1) < 0 || dup2(fileno(bad), 2) < 0) _exit(ABSENT);
        execvp(argv[0], argv);
        _exit(ABSENT);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : ABSENT;
}

/* Runs a program to its end: *status, what it printed, what it complained about. */
static err ask(char *const argv[], const char *input, struct str *said, struct str *complaint, int *status) {
    FILE *in = tmpfile(), *out = tmpfile(), *bad = tmpfile();
    err e = in && out && bad ? 0 : FAIL(E702, "no temporary file can be made: %s", strerror(errno));
    if (e >= 0 && (fputs(input, in) == EOF || fflush(in) != 0)) e = FAIL(E703, "a temporary file cannot be written");
    if (e >= 0) {
        rewind(in);
        *status = run_child(argv, in, out, bad);
        file_text(out, said);
        file_text(bad, complaint);
        e = str_ok(said);
    }
    if (in) fclose(in);
    if (out) fclose(out);
    if (bad) fclose(bad);
    return e;
}

static err refused(const char *program, int status, const struct str *complaint) {
    const char *text = str_text(complaint);
    if (status == ABSENT)
        return FAIL_AT(E805, NULL, "submit on a host of the cluster   or   --dry-run (prints the script)",
                       "there is no program %s here", program);
    return FAIL_AT(E805, NULL, "--dry-run   (prints the script), sinfo (what the cluster has)", "%s: %.*s", program,
                   (int)(strlen(text) - (*text && text[strlen(text) - 1] == '\n')), *text ? text : "it gave no reason");
}

err slurm_submit(const char *script, char job[32]) {
    char *const argv[] = {"sbatch", "--parsable", NULL};
    struct str said = {0}, complaint = {0};
    int status = 0;
    err e = ask(argv, script, &said, &complaint, &status);
    if (e >= 0 && status != 0) e = refused("sbatch", status, &complaint);
    snprintf(job, 32, "%.*s", (int)strcspn(str_text(&said), ";\n"), str_text(&said)); /* "17;cluster" */
    if (e >= 0 && !*job) e = FAIL_AT(E805, NULL, NULL, "sbatch gave no job number");
    str_free(&said);
    str_free(&complaint);
    return e;
}

/* known: false while the controller does not answer. */
static err look(const char *job, struct slurm_state *out, bool *known) {
    char *const argv[] = {"scontrol", "show", "job", "-o", (char *)job, NULL};
    struct str said = {0}, complaint = {0};
    int status = 0;
    err e = ask(argv, "", &said, &complaint, &status);
    if (e >= 0 && status == ABSENT) e = refused("scontrol", status, &complaint);
    if (e >= 0 && strstr(str_text(&complaint), "Invalid job id"))
        e = FAIL_AT(E805, NULL, "the log of the job says how it ended", "Slurm does not know job %s any more", job);
    *known = e >= 0 && status == 0 && slurm_state_read(str_text(&said), out);
    str_free(&said);
    str_free(&complaint);
    return e;
}

/* A job that is to be started again is FAILED for a moment: only an end that is seen twice is one.  A controller that does not
 * answer for a while is waited for. */
err slurm_wait(const char *job, void (*tell)(const struct slurm_state *s, void *to), void *to, struct slurm_state *end) {
    struct slurm_state now;
    i32 silent = 0, seen = 0, nap = NAP_FIRST;
    *end = (struct slurm_state){0};
    for (;;) {
        bool known;
        TRY(look(job, &now, &known));
        silent = known ? 0 : silent + 1;
        if (silent > POLLS) return FAIL_AT(E805, NULL, "scontrol ping", "Slurm says nothing about job %s", job);
        if (known) {
            const bool changed = strcmp(now.name, end->name) != 0 || now.restarts != end->restarts;
            nap = changed ? NAP_FIRST : imin(nap + 1, NAP_LONGEST);
            *end = now;
            if (changed && tell) tell(&now, to);
            seen = now.over ? seen + 1 : 0;
            if (seen >= 2) return 0;
            if (now.over) nap = NAP_FIRST;
        }
        nanosleep(&(struct timespec){.tv_sec = nap}, NULL);
    }
}

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

enum { ABSENT = 127, SILENT = 126, POLLS = 600, NAP_FIRST = 1, NAP_LONGEST = 5 };

static void file_text(FILE *f, struct str *out) {
    char part[4096];
    size_t n;
    rewind(f);
    while ((n = fread(part, 1, sizeof part, f)) > 0) str_addn(out, part, n);
}

/* patience: seconds after which it is ended by its own alarm; 0 = none. */
static int run_child(char *const argv[], unsigned patience, FILE *in, FILE *out, FILE *bad) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (dup2(fileno(in), 0) < 0 || dup2(fileno(out), 1) < 0 || dup2(fileno(bad), 2) < 0) _exit(ABSENT);
        alarm(patience); /* outlives the exec */
        execvp(argv[0], argv);
        _exit(ABSENT);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (child > 0 && WIFSIGNALED(status)) return SILENT;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : ABSENT;
}

/* Runs a program to its end: *status, what it printed, what it complained about. */
static err ask(char *const argv[], unsigned patience, const char *input, struct str *said, struct str *complaint, int *status) {
    FILE *in = tmpfile(), *out = tmpfile(), *bad = tmpfile();
    err e = in && out && bad ? 0 : FAIL(E702, "no temporary file can be made: %s", strerror(errno));
    if (e >= 0 && (fputs(input, in) == EOF || fflush(in) != 0)) e = FAIL(E703, "a temporary file cannot be written");
    if (e >= 0) {
        rewind(in);
        *status = run_child(argv, patience, in, out, bad);
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

err slurm_weight_command(const char *node, i32 weight, struct slurm_weight *out) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const size_t n = strlen(node);
    if (n == 0 || n >= 64 || strspn(node, letters) != n)
        return FAIL_AT(E103, "--node", "--node node1   (as sinfo -N shows it)", "\"%.80s\" is no name of a node", node);
    snprintf(out->node, sizeof out->node, "NodeName=%s", node);
    snprintf(out->weight, sizeof out->weight, "Weight=%d", weight);
    char *const argv[SLURM_WEIGHT_WORDS] = {"scontrol", "update", out->node, out->weight, NULL};
    memcpy(out->argv, argv, sizeof argv);
    return 0;
}

err slurm_set_weight(const struct slurm_weight *w, u32 patience) {
    static const char fix[] = "--node NAME   (as sinfo -N shows it)\nexport SLURM_CONF=..   (where it is not the default one)\n"
                              "run as the user of slurmd or an operator   (others may not set weights)";
    struct str said = {0}, complaint = {0};
    int status = 0;
    err e = ask(w->argv, patience, "", &said, &complaint, &status);
    const char *why = str_text(*str_text(&complaint) ? &complaint : &said);
    if (e >= 0 && status == ABSENT)
        e = FAIL_AT(E805, NULL, "run it on a host of the cluster, with scontrol on the path   or   --dry-run",
                    "there is no program scontrol here");
    else if (e >= 0 && status == SILENT)
        e = FAIL_AT(E805, NULL, "scontrol ping", "scontrol gave no answer within %u s", patience);
    else if (e >= 0 && status != 0)
        e = FAIL_AT(E805, NULL, fix, "scontrol update %s: %.*s", w->node, (int)strcspn(why, "\n"),
                    *why ? why : "it gave no reason");
    str_free(&said);
    str_free(&complaint);
    return e;
}

err slurm_submit(const char *script, char job[32]) {
    char *const argv[] = {"sbatch", "--parsable", NULL};
    struct str said = {0}, complaint = {0};
    int status = 0;
    err e = ask(argv, 0, script, &said, &complaint, &status);
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
    err e = ask(argv, 0, "", &said, &complaint, &status);
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

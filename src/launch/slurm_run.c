/* slurm_run.c - runs sbatch and scontrol as programs: input, output and exit status. Input and output are unnamed temporary
 * files, so that no pipe can fill or break. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/slurm.h"

enum { ABSENT = 127, SILENT = 126, POLLS = 600, NAP_FIRST = 1, NAP_LONGEST = 5 };

static void file_text(FILE *f, struct str *out) {
    char part[4096];
    size_t n;
    rewind(f);
    while ((n = fread(part, 1, sizeof part, f)) > 0) str_addn(out, part, n);
}

/* patience: seconds after which an alarm ends the program; 0 = none. */
static int run_child(char *const argv[], unsigned patience, FILE *in, FILE *out, FILE *bad) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (dup2(fileno(in), 0) < 0 || dup2(fileno(out), 1) < 0 || dup2(fileno(bad), 2) < 0) _exit(ABSENT);
        alarm(patience); /* survives exec */
        execvp(argv[0], argv);
        _exit(ABSENT);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (child > 0 && WIFSIGNALED(status)) return SILENT;
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : ABSENT;
}

/* Standard output, standard error and exit status of a program. */
struct answer {
    struct str said, complaint;
    int status;
};

static void answer_free(struct answer *a) {
    str_free(&a->said);
    str_free(&a->complaint);
}

/* Runs a program and waits for it. */
static err run_program(char *const argv[], unsigned patience, const char *input, struct answer *a) {
    FILE *in = tmpfile(), *out = tmpfile(), *bad = tmpfile();
    *a = (struct answer){0};
    err e = in && out && bad ? 0 : FAIL(E702, "no temporary file can be made: %s", strerror(errno));
    if (e >= 0 && (fputs(input, in) == EOF || fflush(in) != 0)) e = FAIL(E703, "a temporary file cannot be written");
    if (e >= 0) {
        rewind(in);
        a->status = run_child(argv, patience, in, out, bad);
        file_text(out, &a->said);
        file_text(bad, &a->complaint);
        e = str_ok(&a->said);
    }
    if (in) fclose(in);
    if (out) fclose(out);
    if (bad) fclose(bad);
    return e;
}

static err refused(const char *program, const struct answer *a) {
    const char *text = str_text(&a->complaint);
    if (a->status == ABSENT)
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
    struct answer a;
    err e = run_program(w->argv, patience, "", &a);
    const char *why = str_text(*str_text(&a.complaint) ? &a.complaint : &a.said);
    if (e >= 0 && a.status == ABSENT)
        e = FAIL_AT(E805, NULL, "run it on a host of the cluster, with scontrol on the path   or   --dry-run",
                    "there is no program scontrol here");
    else if (e >= 0 && a.status == SILENT)
        e = FAIL_AT(E805, NULL, "scontrol ping", "scontrol gave no answer within %u s", patience);
    else if (e >= 0 && a.status != 0)
        e = FAIL_AT(E805, NULL, fix, "scontrol update %s: %.*s", w->node, (int)strcspn(why, "\n"),
                    *why ? why : "it gave no reason");
    answer_free(&a);
    return e;
}

err slurm_submit(const char *script, char id[LAUNCH_ID]) {
    char *const argv[] = {"sbatch", "--parsable", NULL};
    struct answer a;
    err e = run_program(argv, 0, script, &a);
    if (e >= 0 && a.status != 0) e = refused("sbatch", &a);
    snprintf(id, LAUNCH_ID, "%.*s", (int)strcspn(str_text(&a.said), ";\n"), str_text(&a.said)); /* "17;cluster" */
    if (e >= 0 && !*id) e = FAIL_AT(E805, NULL, NULL, "sbatch gave no job number");
    answer_free(&a);
    return e;
}

/* ------------------------------------------------------------------ job states ---------------------------------------------- */

/* The word after "Key=". */
static bool word_of(const char *text, const char *key, char *out, size_t size) {
    size_t n = strlen(key);
    for (const char *p = text; (p = strstr(p, key)) != NULL; p += n) {
        if ((p != text && p[-1] != ' ') || p[n] != '=') continue;
        snprintf(out, size, "%.*s", (int)strcspn(p + n + 1, " \n"), p + n + 1);
        return true;
    }
    return false;
}

bool slurm_state_read(const char *text, struct slurm_state *out) {
    static const char *const ends[] = {"COMPLETED", "FAILED",        "CANCELLED", "TIMEOUT", "NODE_FAIL",
                                       "PREEMPTED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"};
    char word[32];
    *out = (struct slurm_state){0};
    if (!word_of(text, "JobState", out->name, sizeof out->name)) return false;
    word_of(text, "Reason", out->why, sizeof out->why);
    if (word_of(text, "ExitCode", word, sizeof word)) sscanf(word, "%d:%d", &out->exit_code, &out->signal);
    if (word_of(text, "Restarts", word, sizeof word)) sscanf(word, "%d", &out->restarts);
    for (size_t i = 0; i < COUNT(ends); i++) out->over |= strcmp(out->name, ends[i]) == 0;
    return true;
}

/* known: false while the controller does not answer. */
static err look(const char *id, struct slurm_state *out, bool *known) {
    char *const argv[] = {"scontrol", "show", "job", "-o", (char *)id, NULL};
    struct answer a;
    err e = run_program(argv, 0, "", &a);
    if (e >= 0 && a.status == ABSENT) e = refused("scontrol", &a);
    if (e >= 0 && strstr(str_text(&a.complaint), "Invalid job id"))
        e = FAIL_AT(E805, NULL, "the log of the job says how it ended", "Slurm does not know job %s any more", id);
    *known = e >= 0 && a.status == 0 && slurm_state_read(str_text(&a.said), out);
    answer_free(&a);
    return e;
}

static void report(const struct launch_job *job, const struct slurm_state *s) {
    char start[32] = "", why[80] = "";
    if (s->restarts > 0) snprintf(start, sizeof start, ", start %d", s->restarts + 1);
    if (strcmp(s->name, "PENDING") == 0) snprintf(why, sizeof why, " (%s)", s->why);
    launch_say(job, "%s%s%s", s->name, start, why);
}

/* A job that Slurm is about to requeue is FAILED for a moment: an end counts only if it is seen twice. Polling continues
 * while the controller does not answer. */
err slurm_wait(const struct launch_job *job, const char *id, struct slurm_state *end) {
    struct slurm_state now;
    i32 silent = 0, seen = 0, nap = NAP_FIRST;
    *end = (struct slurm_state){0};
    for (;;) {
        bool known;
        TRY(look(id, &now, &known));
        silent = known ? 0 : silent + 1;
        if (silent > POLLS) return FAIL_AT(E805, NULL, "scontrol ping", "Slurm says nothing about job %s", id);
        if (known) {
            const bool changed = strcmp(now.name, end->name) != 0 || now.restarts != end->restarts;
            nap = changed ? NAP_FIRST : imin(nap + 1, NAP_LONGEST);
            *end = now;
            if (changed) report(job, &now);
            seen = now.over ? seen + 1 : 0;
            if (seen >= 2) return 0;
            if (now.over) nap = NAP_FIRST;
        }
        clock_sleep(nap);
    }
}

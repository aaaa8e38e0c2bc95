/* slurm.c - the batch script of a training, as text. */
#include "launch/slurm.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum { EARLY = 120, MINUTE = 60, HOUR = 3600, DAY = 86400 };

/* Numbers between colons, the last one seconds; a day in front of '-'. */
static bool clock_text(const char *text, i64 *seconds) {
    i64 part[3], v, days = 0;
    i32 n = 0;
    const char *dash = strchr(text, '-');
    if (dash) {
        if (!str_to_i64(text, (size_t)(dash - text), &days) || days < 0 || days > 366) return false;
        text = dash + 1;
    }
    for (;;) {
        size_t len = strcspn(text, ":");
        if (n == 3 || len == 0 || len > 6 || !isdigit((unsigned char)text[0]) || !str_to_i64(text, len, &v)) return false;
        part[n++] = v;
        if (!text[len]) break;
        text += len + 1;
    }
    if (n < 2 || (dash && n != 3)) return false;
    for (i32 i = 1; i < n; i++)
        if (part[i] > 59) return false;
    *seconds = days * DAY + (n == 3 ? part[0] * HOUR + part[1] * MINUTE + part[2] : part[0] * MINUTE + part[1]);
    return true;
}

err slurm_seconds(const char *text, i64 *seconds) {
    static const char fix[] = "--time 2:00:00   or   --time 90m";
    f64 s = 0;
    size_t n = strlen(text);
    const bool unit = n > 0 && isalpha((unsigned char)text[n - 1]) && str_time(text, &s);
    if (unit) *seconds = (i64)s;
    if (!unit && !clock_text(text, seconds))
        return FAIL_AT(E103, "--time", fix, "\"%.40s\" is no time: hours, minutes and seconds, or a number with its unit", text);
    if (*seconds < MINUTE || *seconds > (i64)366 * DAY)
        return FAIL_AT(E103, "--time", fix, "%.40s: Slurm takes times from a minute to a year", text);
    return 0;
}

/* What a line of #SBATCH can hold: no blank, no quote, nothing that ends it. */
static err plain(const char *option, const char *text) {
    static const char fix[] = "another name: letters, digits and ._-+,/:@%=";
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-+,/:@%=", *p))
            return FAIL_AT(E103, option, fix, "\"%.60s\" has a '%c', which a line of #SBATCH cannot hold", text, *p);
    return *text ? 0 : FAIL_AT(E103, option, fix, "an empty name");
}

/* One word of the shell, whatever it holds. */
static void quote(struct str *out, const char *word) {
    bool bare = *word != 0;
    for (const char *p = word; *p; p++) bare = bare && (isalnum((unsigned char)*p) || strchr("._-+,/:@%=", *p));
    if (bare) {
        str_add(out, word);
        return;
    }
    str_add(out, "'");
    for (const char *p = word; *p; p++) {
        if (*p == '\'') str_add(out, "'\\''");
        else str_addn(out, p, 1);
    }
    str_add(out, "'");
}

static void demands(const struct slurm_job *j, struct str *out) {
    str_addf(out, "#SBATCH --job-name=%s\n#SBATCH --output=%s\n#SBATCH --open-mode=append\n", j->name, j->log);
    str_addf(out, "#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=%d\n", j->nodes, j->ranks_per_node);
    if (j->threads > 0) str_addf(out, "#SBATCH --cpus-per-task=%d\n", j->threads);
    if (j->gpus_per_node > 0) str_addf(out, "#SBATCH --gpus-per-node=%d\n", j->gpus_per_node);
    if (j->memory > 0) str_addf(out, "#SBATCH --mem=%lldM\n", (long long)((j->memory + (1 << 20) - 1) >> 20));
    if (j->queue) str_addf(out, "#SBATCH --partition=%s\n", j->queue);
    str_add(out, "#SBATCH --requeue\n");
    if (j->seconds <= 0) return;
    const i64 s = j->seconds;
    str_addf(out, "#SBATCH --time=%lld:%02d:%02d\n", (long long)(s / HOUR), (int)(s % HOUR / MINUTE), (int)(s % MINUTE));
    str_addf(out, "#SBATCH --signal=USR1@%lld   # so early, or up to a minute earlier: checkpoint, exit 75, again\n",
             (long long)(s / 2 < EARLY ? s / 2 : EARLY));
}

static void start(const struct slurm_job *j, struct str *out) {
    str_add(out, "run=");
    quote(out, j->run);
    str_add(out, "\nhas_checkpoint() { ls \"$run\"/checkpoints/*.ckpt >/dev/null 2>&1; }\n\n");
    str_add(out, "if has_checkpoint; then\n    set -- resume \"$run\"\nelse\n    set --");
    for (i32 i = 0; i < j->narg; i++) {
        str_add(out, " ");
        quote(out, j->arg[i]);
    }
    str_addf(out, "\nfi\nsrun --mpi=%s --kill-on-bad-exit=1%s", j->mpi, j->threads > 0 ? " --cpus-per-task=" : "");
    if (j->threads > 0) str_addf(out, "%d", j->threads);
    str_add(out, " ");
    quote(out, j->program);
    str_add(out, " \"$@\"\nstatus=$?\n\n");
}

/* Which ends are worth another try, how many there are, and how Slurm is asked for one. */
static void again(const struct slurm_job *j, struct str *out) {
    str_add(out, "case $status in\n"
                 "75) ;;                                      # asked to stop: a checkpoint is written\n"
                 "8) has_checkpoint || exit 8 ;;              # a rank was lost\n"
                 "*) [ $status -ge 128 ] || exit $status ;;   # done, or nothing that another try mends; else ended by a signal\n"
                 "esac\n");
    str_addf(out, "if [ \"${SLURM_RESTART_COUNT:-0}\" -ge %d ]; then\n"
                  "    echo \"stretto: exit status $status after ${SLURM_RESTART_COUNT:-0} restarts: given up\" >&2\n"
                  "    exit 8\nfi\n",
             j->max_restarts);
    str_add(out,
            "if ! scontrol show config | grep -Eq '^RequeueExit +=.*[ ,]75(,|$)'; then # else Slurm does it for an exit of 75\n"
            "    scontrol requeue \"$SLURM_JOB_ID\"\nfi\nexit 75\n");
}

err slurm_render(const struct slurm_job *job, struct str *out) {
    TRY(plain("name of the job", job->name));
    TRY(plain("-o", job->log));
    if (job->queue) TRY(plain("--queue", job->queue));
    str_add(out,
            "#!/bin/bash\n# Made by `stretto submit --on slurm`.  Can be started again at any time: it goes on from the newest "
            "checkpoint.\n");
    demands(job, out);
    str_add(out, "\n");
    start(job, out);
    again(job, out);
    return str_ok(out);
}

/* ------------------------------------------------------------------ how a job stands ---------------------------------------- */

/* The word behind "Key=". */
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

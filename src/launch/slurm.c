/* slurm.c - the launcher of Slurm: a training as a batch script.
 *
 * The script can be started again at any point: it resumes where RUN has a checkpoint.  So Slurm starts the same script after a
 * lost node, a pre-emption or the end of the time limit. */
#include "launch/slurm.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { EARLY = 120, MINUTE = 60, HOUR = 3600, EXIT_CLUSTER = 8 };

struct names {
    char job[LAUNCH_PATH], log[LAUNCH_PATH]; /* %j in log stands for the job number */
};

static struct names names_of(const struct launch_job *j) {
    struct names n;
    const char *slash = strrchr(j->model, '/');
    snprintf(n.job, sizeof n.job, "%s", slash ? slash + 1 : j->model);
    for (char *p = n.job; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-+", *p)) *p = '_';
    snprintf(n.log, sizeof n.log, "%.4000s.slurm-%%j.out", j->model);
    return n;
}

/* The value of srun --mpi; one rank needs none. */
static const char *srun_mpi(const struct launch_job *j) {
    if (j->ranks == 1) return "none";
    return strcmp(j->mpi, "openmpi") == 0 ? "pmix" : strcmp(j->mpi, "mpich") == 0 ? "pmi2" : j->mpi;
}

/* E103 if the text cannot stand in an #SBATCH line, because of a space, quote or line end. */
static err plain(const char *option, const char *text) {
    static const char fix[] = "another name: letters, digits and ._-+,/:@%=";
    for (const char *p = text; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-+,/:@%=", *p))
            return FAIL_AT(E103, option, fix, "\"%.60s\" has a '%c', which a line of #SBATCH cannot hold", text, *p);
    return *text ? 0 : FAIL_AT(E103, option, fix, "an empty name");
}

static void put_requests(const struct launch_job *j, const struct names *names, struct str *out) {
    str_addf(out, "#SBATCH --job-name=%s\n#SBATCH --output=%s\n#SBATCH --open-mode=append\n", names->job, names->log);
    str_addf(out, "#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=%d\n", j->nodes, j->ranks_per_node);
    if (j->threads > 0) str_addf(out, "#SBATCH --cpus-per-task=%d\n", j->threads);
    if (j->gpus_per_node > 0) str_addf(out, "#SBATCH --gpus-per-node=%d\n", j->gpus_per_node);
    if (j->memory > 0) str_addf(out, "#SBATCH --mem=%lldM\n", (long long)((j->memory + (1 << 20) - 1) >> 20));
    if (j->queue) str_addf(out, "#SBATCH --partition=%s\n", j->queue);
    if (j->label) str_addf(out, "#SBATCH --constraint=%s\n", j->label);
    str_add(out, "#SBATCH --requeue\n");
    if (j->seconds <= 0) return;
    const i64 s = j->seconds;
    str_addf(out, "#SBATCH --time=%lld:%02d:%02d\n", (long long)(s / HOUR), (int)(s % HOUR / MINUTE), (int)(s % MINUTE));
    str_addf(out, "#SBATCH --signal=USR1@%lld   # so early, or up to a minute earlier: checkpoint, exit 75, again\n",
             (long long)(s / 2 < EARLY ? s / 2 : EARLY));
}

static void put_start(const struct launch_job *j, struct str *out) {
    for (i32 i = 0; i < j->env.n; i++) {
        str_add(out, "export ");
        launch_quote(out, j->env.word[i]);
        str_add(out, "\n");
    }
    str_add(out, "run=");
    launch_quote(out, j->run_dir);
    str_add(out, "\nhas_checkpoint() { ls \"$run\"/checkpoints/*.ckpt >/dev/null 2>&1; }\n\n");
    str_add(out, "if has_checkpoint; then\n    set -- resume \"$run\"\nelse\n    set --");
    for (i32 i = 0; i < j->first.n; i++) {
        str_add(out, " ");
        launch_quote(out, j->first.word[i]);
    }
    str_addf(out, "\nfi\nsrun --mpi=%s --kill-on-bad-exit=1%s", srun_mpi(j), j->threads > 0 ? " --cpus-per-task=" : "");
    if (j->threads > 0) str_addf(out, "%d", j->threads);
    str_add(out, " ");
    launch_quote(out, j->program);
    str_add(out, " \"$@\"\nstatus=$?\n\n");
}

/* Which exit statuses are worth a restart, how many restarts there are, and how Slurm is asked for one. */
static void put_restart(const struct launch_job *j, struct str *out) {
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

static err render(const struct launch_job *j, struct str *out) {
    const struct names names = names_of(j);
    TRY(plain("name of the job", names.job));
    TRY(plain("-o", names.log));
    if (j->queue) TRY(plain("--queue", j->queue));
    if (j->label) TRY(plain("--node-label", j->label));
    str_add(out,
            "#!/bin/bash\n# Made by `stretto submit --on slurm`.  Can be started again at any time: it continues from the newest "
            "checkpoint.\n");
    put_requests(j, &names, out);
    str_add(out, "\n");
    put_start(j, out);
    put_restart(j, out);
    return str_ok(out);
}

static err submit(const struct launch_job *job, struct launch_ticket *out) {
    const struct names names = names_of(job);
    struct str script = {0};
    err e = render(job, &script);
    if (e >= 0) e = slurm_submit(str_text(&script), out->id);
    str_free(&script);
    if (e < 0) return e;
    const size_t stem = strlen(names.log) - strlen("%j.out");
    snprintf(out->log, sizeof out->log, "%.*s%s.out", (int)stem, names.log, out->id);
    return 0;
}

static err wait_for_end(const struct launch_job *job, struct launch_ticket *t, i32 *exit_status) {
    struct slurm_state end;
    TRY(slurm_wait(job, t->id, &end));
    *exit_status = 0;
    if (end.exit_code == 0 && end.signal == 0 && strcmp(end.name, "COMPLETED") == 0) return 0;
    *exit_status = end.exit_code > 0 ? end.exit_code : EXIT_CLUSTER;
    snprintf(t->end, sizeof t->end, "job %s: %s, exit code %d; its log is %s", t->id, end.name, end.exit_code, t->log);
    return 0;
}

extern const struct launcher launcher_slurm;
const struct launcher launcher_slurm = {
    .name = "slurm",
    .help = "a batch job of Slurm, which starts it again after a loss",
    .example = "stretto submit --on slurm --nodes 2 -- train DATA --target COL -o MODEL",
    .program = "srun",
    .takes = 1u << REQUEST_NODES | 1u << REQUEST_RANKS_PER_NODE | 1u << REQUEST_GPUS | 1u << REQUEST_MEMORY |
             1u << REQUEST_QUEUE | 1u << REQUEST_NODE_LABEL | 1u << REQUEST_TIME,
    .remote = true,
    .render = render,
    .submit = submit,
    .wait = wait_for_end,
};

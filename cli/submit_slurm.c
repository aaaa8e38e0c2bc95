/* submit_slurm.c - `submit --on slurm`: a training as a job of a cluster.
 *
 *     stretto submit --on slurm --nodes 2 --time 2:00:00 -- train DATA .. -o MODEL
 *                    '------- this verb's -------------'   '-- checked here as train would, then started on the nodes */
#include <ctype.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/lists.h"
#include "cli.h"
#include "launch/slurm.h"

enum { EXIT_CLUSTER = 8, WORDS = 1024 };

/* The command behind "--", read as it will be read on the nodes. */
struct inner {
    struct cli c;
    const char *argv[WORDS];
    char model[CLI_PATH], run[CLI_PATH];
};

static stretto_err read_inner(const struct args *outer, struct inner *in) {
    static const char fix[] = "stretto submit --on slurm --nodes 2 -- train DATA --target COL -o MODEL";
    struct cli *c = &in->c;
    if (outer->nrest < 1)
        return FAIL_AT(E105, "submit", fix, "the command to run on the cluster is missing: it stands behind --");
    if (outer->nrest + 2 > (i32)COUNT(in->argv)) return FAIL_AT(E105, "submit", NULL, "%d arguments are too many", outer->nrest);
    in->argv[0] = "stretto";
    for (i32 i = 0; i < outer->nrest; i++) in->argv[i + 1] = outer->rest[i];
    TRY(opt_defaults(&c->o, api_lists()));
    TRY(args_parse(outer->nrest + 1, (char *const *)(const void *)in->argv, &c->o, &c->args));
    if (c->args.help || (c->args.verb != VERB_train && c->args.verb != VERB_resume))
        return FAIL_AT(E103, "submit", fix, "\"%.40s\" cannot be handed to a cluster: train and resume can", outer->rest[0]);
    return cli_config(c);
}

/* The names that `train` would take. */
static void name_files(struct inner *in) {
    const struct cli *c = &in->c;
    const char *data = c->args.arg[0];
    if (c->args.verb != VERB_resume) {
        cli_train_files(&c->args, &c->o, in->model, in->run);
        return;
    }
    const size_t n = strlen(data), tail = n > 4 && strcmp(data + n - 4, ".run") == 0 ? 4 : 0;
    snprintf(in->run, sizeof in->run, "%s", data);
    snprintf(in->model, sizeof in->model, "%.*s", (int)(n - tail), data);
}

/* Is there a plan for so many ranks? */
static stretto_err check_plan(struct cli *c, stretto_data *data, const struct slurm_job *j) {
    const i32 ranks = j->nodes * j->ranks_per_node;
    stretto_plan *p = NULL;
    char machine[64];
    snprintf(machine, sizeof machine, "host*%d(cpu*%d)", ranks, j->threads > 0 ? j->threads : 1);
    TRY(stretto_config_flag(c->config, "machine", machine));
    stretto_err e = stretto_plan_new(c->config, data, &p);
    stretto_plan_free(p);
    return e;
}

/* Train would begin anew, but the job goes on where there is a checkpoint: which of the two is not for us to say. */
static stretto_err check_run(const char *run) {
    char pattern[CLI_PATH + 32], fix[CLI_PATH + 80];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/checkpoints/*.ckpt", run);
    const bool has = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    if (has) globfree(&found);
    snprintf(fix, sizeof fix, "submit .. -- resume %s   (goes on), or another -o MODEL", run);
    return has ? FAIL_AT(E106, "submit", fix, "train begins anew, but %s has a checkpoint of a run that was stopped", run) : 0;
}

static stretto_err check_inner(struct inner *in, const struct slurm_job *j) {
    struct cli *c = &in->c;
    const i64 ranks = (i64)j->nodes * j->ranks_per_node;
    if (c->o.meta[OPT_ranks].rank == OPT_RANK_FLAG && c->o.ranks != ranks)
        return FAIL_AT(E106, "--ranks", "leave out --ranks", "--ranks %lld, and %d hosts of %d ranks are asked for",
                       (long long)c->o.ranks, j->nodes, j->ranks_per_node);
    if (c->args.verb == VERB_resume) {
        char *data = NULL, *model = NULL;
        stretto_err e = stretto_run_paths(c->args.arg[0], &data, &model);
        if (e >= 0 && access(data, R_OK) != 0) e = FAIL(E701, "the data file of the run cannot be read: %s", data);
        stretto_text_free(data);
        stretto_text_free(model);
        return e;
    }
    stretto_data *data = NULL;
    TRY(check_run(in->run));
    stretto_err e = stretto_data_open(c->config, c->args.arg[0], &data);
    if (e >= 0 && !c->o.quiet) fprintf(stderr, "%s\n", stretto_data_summary(data));
    if (e >= 0) e = check_plan(c, data, j);
    stretto_data_free(data);
    return e;
}

/* The library that was built, in the words of srun. */
static stretto_err choose_mpi(const struct cli *c, struct slurm_job *j) {
    const char *wish = c->o.mpi;
    j->mpi = strcmp(wish, "openmpi") == 0 ? "pmix" : strcmp(wish, "mpich") == 0 ? "pmi2" : wish;
    if (j->nodes * j->ranks_per_node == 1) j->mpi = "none";
    else if (strcmp(wish, "auto") == 0) j->mpi = api_has_mpi("openmpi") ? "pmix" : api_has_mpi("mpich") ? "pmi2" : NULL;
    return j->mpi ? 0
                  : FAIL_AT(E803, "--mpi", "install Open MPI or MPICH and build again, or one rank",
                            "this build has no plug-in for MPI, and %d ranks are asked for", j->nodes * j->ranks_per_node);
}

static void tell_state(const struct slurm_state *s, void *to) {
    const struct cli *c = to;
    if (c->o.quiet) return;
    fprintf(stderr, "%s", s->name);
    if (s->restarts > 0) fprintf(stderr, ", start %d", s->restarts + 1);
    if (strcmp(s->name, "PENDING") == 0) fprintf(stderr, " (%s)", s->why);
    fputc('\n', stderr);
}

static stretto_err await(struct cli *c, const char *id, const struct slurm_job *j) {
    struct slurm_state end;
    TRY(slurm_wait(id, tell_state, c, &end));
    if (end.exit_code == 0 && end.signal == 0 && strcmp(end.name, "COMPLETED") == 0) return 0;
    c->status = end.exit_code > 0 ? end.exit_code : EXIT_CLUSTER;
    fprintf(stderr, "job %s: %s, exit code %d; its log is %s\n", id, end.name, end.exit_code, j->log);
    return 0;
}

static stretto_err hand_over(struct cli *c, const struct slurm_job *j) {
    struct str script = {0};
    char id[32] = "";
    stretto_err e = slurm_render(j, &script);
    if (e >= 0 && c->o.dry_run) fputs(str_text(&script), stdout);
    else if (e >= 0) e = slurm_submit(str_text(&script), id);
    str_free(&script);
    TRY(e);
    if (c->o.dry_run) return 0;
    printf(c->o.json ? "{\"job\": \"%s\"}\n" : "job %s\n", id);
    fflush(stdout);
    if (!c->o.quiet) fprintf(stderr, "log %.*s%s.out\nrun %s\n", (int)(strlen(j->log) - 6), j->log, id, j->run);
    return opt_given(&c->o, OPT_wait) && c->o.wait ? await(c, id, j) : 0;
}

static stretto_err fill(const struct cli *c, const struct inner *in, struct slurm_job *j) {
    static char name[CLI_PATH], log[CLI_PATH], program[PATH_MAX]; /* one job a process */
    const char *slash = strrchr(in->model, '/');
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : in->model);
    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-+", *p)) *p = '_';
    snprintf(log, sizeof log, "%.4000s.slurm-%%j.out", in->model);
    *j = (struct slurm_job){.name = name, .log = log, .program = n > 0 ? program : "stretto", .run = in->run,
                            .arg = in->argv + 1, .narg = c->args.nrest,
                            .queue = c->o.queue && *c->o.queue ? c->o.queue : NULL,
                            .nodes = (i32)c->o.nodes, .ranks_per_node = (i32)c->o.ranks_per_node,
                            .gpus_per_node = (i32)c->o.gpus_per_node, .memory = c->o.mem, .max_restarts = (i32)c->o.max_restarts};
    if (in->c.o.meta[OPT_threads].rank == OPT_RANK_FLAG && in->c.o.threads > 0) j->threads = (i32)in->c.o.threads;
    if (c->o.time && *c->o.time) TRY(slurm_seconds(c->o.time, &j->seconds));
    return choose_mpi(c, j);
}

stretto_err submit_slurm(struct cli *c) {
    static struct inner in; /* the pointers of its config live as long as the program */
    struct slurm_job job;
    stretto_err e = read_inner(&c->args, &in);
    if (e >= 0) {
        name_files(&in);
        e = fill(c, &in, &job);
    }
    if (e >= 0) e = check_inner(&in, &job);
    if (e >= 0) e = hand_over(c, &job);
    stretto_config_free(in.c.config);
    opt_free(&in.c.o);
    return e;
}

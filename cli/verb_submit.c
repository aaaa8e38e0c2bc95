/* verb_submit.c - `submit`: hands the command line behind "--" to a launcher.
 *
 *     stretto submit --on slurm --nodes 2 --time 2:00:00 -- train DATA .. -o MODEL
 *                    '------- struct launch_job --------'   '-- struct inner: parsed here as the ranks will --'
 *
 * The job resumes by itself: first is the command as given, again is `resume MODEL.run` with the options that resume takes. */
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/lists.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli.h"
#include "launch/launch.h"

extern char **environ;

enum { AGAIN_MOST = OPT_COUNT + 2, ENV_MOST = 64 };

struct inner {
    struct cli c;
    const char **argv;      /* "stretto", then the command */
    const char *again[AGAIN_MOST], *env[ENV_MOST];
    char *text[AGAIN_MOST]; /* words of `again` that are allocated */
    i32 nagain, ntext, nenv;
    char model[CLI_PATH], run[CLI_PATH], program[PATH_MAX];
};

/* ------------------------------------------------------------------ the command --------------------------------------------- */

static stretto_err parse_inner(const struct args *outer, const struct launcher *l, struct inner *in) {
    struct cli *c = &in->c;
    if (outer->nrest == 0) return FAIL_AT(E105, NULL, l->example, "submit needs a command line after --");
    NEW(in->argv, outer->nrest + 2);
    in->argv[0] = "stretto";
    for (i32 i = 0; i < outer->nrest; i++) in->argv[i + 1] = outer->rest[i];
    TRY(opt_defaults(&c->o, api_lists()));
    TRY(args_parse(outer->nrest + 1, (char *const *)(const void *)in->argv, &c->o, &c->args));
    if (c->args.help || (c->args.verb != VERB_train && c->args.verb != VERB_resume))
        return FAIL_AT(l->remote ? E103 : E101, NULL, l->example, "submit runs train and resume, not \"%.60s\"", outer->rest[0]);
    if (!l->remote && opt_given(&c->o, OPT_ranks))
        return FAIL_AT(E106, "--ranks", "stretto submit --ranks N -- train DATA ..", "--ranks stands before --, once");
    return cli_config(c);
}

/* The model and run that `train` would write, or that `resume` continues. */
static stretto_err name_files(struct inner *in) {
    const struct cli *c = &in->c;
    const char *data = c->args.arg[0];
    if (c->args.verb != VERB_resume) {
        cli_train_files(&c->args, &c->o, in->model, in->run);
        return 0;
    }
    char *run;
    TRY(stretto_run_fetch(data, &run));
    const size_t n = strlen(data), tail = n > 4 && strcmp(data + n - 4, ".run") == 0 ? 4 : 0;
    snprintf(in->run, sizeof in->run, "%s", run);
    stretto_text_free(run);
    snprintf(in->model, sizeof in->model, "%.*s", (int)(n - tail), data);
    return 0;
}

static stretto_err add_option(struct inner *in, enum opt_id id) {
    const char *name = opt_info(id)->name, *value = in->c.o.meta[id].text;
    const size_t size = strlen(name) + strlen(value) + 4;
    char *word = mem_alloc(size);
    if (!word) return -E601;
    snprintf(word, size, "--%s=%s", name, value);
    in->text[in->ntext++] = word;
    in->again[in->nagain++] = word;
    return 0;
}

/* config.json of the run has the options of train; the command adds those that resume takes. */
static stretto_err make_again(struct inner *in) {
    in->again[in->nagain++] = "resume";
    in->again[in->nagain++] = in->run;
    for (i32 i = 0; i < OPT_COUNT; i++)
        if (in->c.o.meta[i].rank == OPT_RANK_FLAG && opt_info((enum opt_id)i)->verbs >> VERB_resume & 1)
            TRY(add_option(in, (enum opt_id)i));
    return 0;
}

/* --heal: a flag, else the config file of the run that begins or resumes. */
static stretto_err find_heal(struct inner *in) {
    char path[CLI_PATH + 16];
    snprintf(path, sizeof path, "%s/config.json", in->run);
    if (in->c.args.verb == VERB_resume && file_exists(path)) TRY(stretto_config_load(in->c.config, path));
    return cli_take(&in->c, OPT_heal);
}

/* Environment variables that change results or speed, for the job; without those of a supervisor. */
static void find_environment(struct inner *in) {
    for (char **v = environ; *v && in->nenv < ENV_MOST; v++)
        if (strncmp(*v, "STRETTO_", strlen("STRETTO_")) == 0 && strncmp(*v, MARK "=", strlen(MARK "=")) != 0)
            in->env[in->nenv++] = *v;
}

/* ------------------------------------------------------------------ checks of a remote job ---------------------------------- */

/* Checks that a plan exists for this number of ranks. */
static stretto_err check_plan(struct cli *c, stretto_data *data, const struct launch_job *j) {
    stretto_plan *p = NULL;
    char machine[64];
    snprintf(machine, sizeof machine, "host*%d(cpu*%d)", j->ranks, j->threads > 0 ? j->threads : 1);
    TRY(stretto_config_flag(c->config, "machine", machine));
    stretto_err e = stretto_plan_new(c->config, data, &p);
    stretto_plan_free(p);
    return e;
}

/* Train starts from scratch, but a restarted job resumes a checkpoint: the user has to choose one. */
static stretto_err check_run(const char *run) {
    char pattern[CLI_PATH + 32], fix[CLI_PATH + 80];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/checkpoints/*.ckpt", run);
    const bool has = glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    if (has) globfree(&found);
    snprintf(fix, sizeof fix, "submit .. -- resume %s   (continues), or another -o MODEL", run);
    return has ? FAIL_AT(E106, "submit", fix, "train begins anew, but %s has a checkpoint of a run that was stopped", run) : 0;
}

static stretto_err check_resume(const char *run) {
    char *data = NULL, *model = NULL;
    stretto_err e = stretto_run_paths(run, &data, &model);
    const bool readable = e >= 0 && (file_is_remote(data) ? file_exists(data) : access(data, R_OK) == 0);
    if (e >= 0 && !readable) e = FAIL(E701, "the data file of the run cannot be read: %s", data);
    stretto_text_free(data);
    stretto_text_free(model);
    return e;
}

/* A mistake is found now, not after hours in a queue. */
static stretto_err check_remote(struct inner *in, const struct launch_job *j) {
    struct cli *c = &in->c;
    if (c->o.meta[OPT_ranks].rank == OPT_RANK_FLAG && c->o.ranks != j->ranks)
        return FAIL_AT(E106, "--ranks", "leave out --ranks", "--ranks %lld, and %d hosts of %d ranks are asked for",
                       (long long)c->o.ranks, j->nodes, j->ranks_per_node);
    if (c->args.verb == VERB_resume) return check_resume(c->args.arg[0]);
    stretto_data *data = NULL;
    TRY(check_run(in->run));
    stretto_err e = stretto_data_open(c->config, c->args.arg[0], &data);
    if (e >= 0 && !c->o.quiet) fprintf(stderr, "%s\n", stretto_data_summary(data));
    if (e >= 0) e = check_plan(c, data, j);
    stretto_data_free(data);
    return e;
}

/* ------------------------------------------------------------------ the job ------------------------------------------------- */

static void say(void *cli, const char *line) {
    const struct cli *c = cli;
    if (!c->o.quiet) fprintf(stderr, "%s\n", line);
}

/* The srun options that fit the MPI library. */
static const char *library(const char *wish) {
    return strcmp(wish, "pmix") == 0 ? "openmpi" : strcmp(wish, "pmi2") == 0 ? "mpich" : wish;
}

static u32 requests_given(const struct options *o) {
    static const char *const names[] = {
#define REQUEST(id, option) option,
        LAUNCH_REQUESTS(REQUEST)
#undef REQUEST
    };
    u32 given = 0;
    for (u32 r = 0; r < COUNT(names); r++)
        if (o->meta[opt_find(names[r])].rank >= OPT_RANK_FLAG) given |= 1u << r;
    return given;
}

static stretto_err fill(struct cli *c, const struct launcher *l, struct inner *in, struct launch_job *job) {
    const ssize_t n = readlink("/proc/self/exe", in->program, sizeof in->program - 1);
    const struct options *o = &c->o, *inner = &in->c.o;
    if (n <= 0) return FAIL(E701, "the path of this program cannot be found");
    TRY(name_files(in));
    TRY(make_again(in));
    TRY(find_heal(in));
    find_environment(in);
    *job = (struct launch_job){.program = in->program,
                               .model = in->model,
                               .run_dir = in->run,
                               .first = {in->argv + 1, c->args.nrest},
                               .again = {in->again, in->nagain},
                               .env = {in->env, in->nenv},
                               .heals = inner->heal,
                               .given = requests_given(o),
                               .ranks = (i32)o->ranks,
                               .nodes = (i32)o->nodes,
                               .ranks_per_node = (i32)o->ranks_per_node,
                               .gpus_per_node = (i32)o->gpus_per_node,
                               .memory = o->mem,
                               .queue = o->queue && *o->queue ? o->queue : NULL,
                               .max_restarts = (i32)o->max_restarts,
                               .mpi = library(o->mpi),
                               .plugin = api_has_mpi("openmpi") ? "openmpi" : api_has_mpi("mpich") ? "mpich" : NULL,
                               .wait = o->wait && (!l->remote || opt_given(o, OPT_wait)),
                               .say = say,
                               .self = c};
    if (in->c.args.verb == VERB_resume) job->again = job->first;
    if (inner->meta[OPT_threads].rank == OPT_RANK_FLAG && inner->threads > 0) job->threads = (i32)inner->threads;
    if (o->time && *o->time) TRY(launch_seconds(o->time, &job->seconds));
    TRY(launch_prepare(l, job));
    return l->remote ? check_remote(in, job) : 0;
}

static stretto_err dry_run(const struct launcher *l, const struct launch_job *job) {
    struct str text = {0};
    char *out = NULL;
    stretto_err e = l->render(job, &text);
    if (e >= 0 && !(out = mem_strdup(str_text(&text)))) e = -E601;
    str_free(&text);
    return e < 0 ? e : cli_print(out);
}

static stretto_err hand_over(struct cli *c, const struct launcher *l, const struct launch_job *job) {
    struct launch_ticket t = {0};
    TRY(l->submit(job, &t));
    if (t.id[0]) {
        printf(c->o.json ? "{\"job\": \"%s\"}\n" : "job %s\n", t.id);
        fflush(stdout);
        launch_say(job, "log %s\nrun %s", t.log, job->run_dir);
    }
    if (!t.here && (!job->wait || !l->wait)) return 0;
    TRY(l->wait(job, &t, &c->status));
    if (t.end[0]) fprintf(stderr, "%s\n", t.end);
    return 0;
}

stretto_err cmd_submit(struct cli *c) {
    const struct launcher *l = launcher_find(c->o.on);
    struct launch_job job;
    struct inner *in;
    if (!l) return FAIL_AT(E103, "--on", "--on local", "there is no launcher \"%s\"", c->o.on);
    NEW(in, 1);
    stretto_err e = parse_inner(&c->args, l, in);
    if (e >= 0) e = fill(c, l, in, &job);
    if (e >= 0) e = c->o.dry_run ? dry_run(l, &job) : hand_over(c, l, &job);
    for (i32 i = 0; i < in->ntext; i++) mem_free(in->text[i]);
    stretto_config_free(in->c.config);
    opt_free(&in->c.o);
    mem_free((void *)in->argv);
    mem_free(in);
    return e;
}

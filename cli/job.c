/* job.c - the training behind "--" of submit and join: its files, how it resumes, the environment of its ranks. */
#include "job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/lists.h"
#include "base/file.h"
#include "base/input.h"
#include "base/mem.h"

extern char **environ;

stretto_err job_parse(const struct args *outer, const struct launcher *l, struct inner *in) {
    struct cli *c = &in->c;
    if (outer->nrest == 0)
        return FAIL_AT(E105, NULL, l->example, "%s needs a command line after --", verb_info((enum verb)outer->verb)->name);
    NEW(in->argv, outer->nrest + 2);
    in->argv[0] = "stretto";
    for (i32 i = 0; i < outer->nrest; i++) in->argv[i + 1] = outer->rest[i];
    TRY(opt_defaults(&c->o, api_lists()));
    TRY(args_parse(outer->nrest + 1, (char *const *)(const void *)in->argv, &c->o, &c->args));
    if (c->args.help || (c->args.verb != VERB_train && c->args.verb != VERB_resume))
        return FAIL_AT(l->remote ? E103 : E101, NULL, l->example, "%s runs train and resume, not \"%.60s\"",
                       verb_info((enum verb)outer->verb)->name, outer->rest[0]);
    if (input_is(c->args.arg[0]))
        return FAIL_AT(E106, "-", "the name of a file that the job can read",
                       "a job has no standard input, and a restart would need it again");
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

/* Where the hosts share no folder, they meet beside the model in HDFS. */
static stretto_err name_stage(const struct options *o, struct inner *in) {
    const bool staged = o->stage && *o->stage;
    if (staged) TRY(stage_folder(o->stage, in->stage));
    if ((staged || o->submitted > 0) && file_is_remote(in->model))
        str_print(in->meeting, sizeof in->meeting, "%s.run", in->model);
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
    in->again[in->nagain++] = *in->meeting ? in->meeting : in->run;
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
    for (char **v = environ; *v && in->nenv < JOB_ENV_MOST; v++)
        if (strncmp(*v, "STRETTO_", strlen("STRETTO_")) == 0 && strncmp(*v, MARK "=", strlen(MARK "=")) != 0)
            in->env[in->nenv++] = *v;
}

/* The MPI library of a wish that is written as an option of srun. */
static const char *library(const char *wish) {
    return strcmp(wish, "pmix") == 0 ? "openmpi" : strcmp(wish, "pmi2") == 0 ? "mpich" : wish;
}

/* The MPI of this build for the job's ranks; NULL = none. */
static const char *plugin_for(const struct launcher *l) {
    if (l->mpi) return api_has_mpi(l->mpi) ? l->mpi : NULL;
    return api_has_mpi("openmpi") ? "openmpi" : api_has_mpi("mpich") ? "mpich" : NULL;
}

static void say(void *cli, const char *line) {
    const struct cli *c = cli;
    if (!c->o.quiet) fprintf(stderr, "%s\n", line);
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

stretto_err job_fill(struct cli *c, const struct launcher *l, struct inner *in, struct launch_job *job) {
    const ssize_t n = readlink("/proc/self/exe", in->program, sizeof in->program - 1);
    const struct options *o = &c->o, *inner = &in->c.o;
    if (n <= 0) return FAIL(E701, "the path of this program cannot be found");
    TRY(name_files(in));
    TRY(name_stage(o, in));
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
                               .label = o->node_label && *o->node_label ? o->node_label : NULL,
                               .yarn = o->manager ? o->manager : "",
                               .stage = in->stage,
                               .archive = "",
                               .plugin_path = plugin_for(l) && api_mpi_plugin(plugin_for(l), in->plugin) ? in->plugin : NULL,
                               .meeting = *in->meeting ? in->meeting : in->run,
                               .apart = *in->meeting != 0,
                               .since = o->submitted,
                               .occupancy = o->occupancy,
                               .patience = o->gather_time,
                               .max_restarts = (i32)o->max_restarts,
                               .mpi = library(o->mpi),
                               .plugin = plugin_for(l),
                               .wait = o->wait && (!l->remote || opt_given(o, OPT_wait)),
                               .say = say,
                               .self = c};
    if (in->c.args.verb == VERB_resume) job->again = job->first;
    if (inner->meta[OPT_threads].rank == OPT_RANK_FLAG && inner->threads > 0) job->threads = (i32)inner->threads;
    if (o->time && *o->time) TRY(launch_seconds(o->time, &job->seconds));
    return launch_prepare(l, job);
}

void job_free(struct inner *in) {
    for (i32 i = 0; i < in->ntext; i++) mem_free(in->text[i]);
    for (i32 i = 0; i < in->nstaged; i++) mem_free(in->staged[i]);
    stretto_config_free(in->c.config);
    opt_free(&in->c.o);
    mem_free((void *)in->argv);
    mem_free(in);
}

/* submit_local.c - `submit --on local`: a command line of this program, given to a launcher of this host.
 *
 *     stretto submit --ranks 4 -- train DATA .. -o MODEL       first:  train DATA .. -o MODEL
 *                                                              again:  resume MODEL.run, and options that resume takes too */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/config.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli.h"
#include "launch/launch.h"

enum { AGAIN_MOST = OPT_COUNT + 2 };

/* The command line after "--", read as this program would. */
struct inner {
    struct args args;
    struct options o;
    const char *again[AGAIN_MOST];
    char *text[AGAIN_MOST]; /* those of again that are ours */
    i32 nagain, ntext;
    char run_dir[CLI_PATH], program[PATH_MAX];
};

static stretto_err read_inner(const struct cli *c, struct inner *in) {
    static const char *const example = "stretto submit --ranks 2 -- train DATA --target COLUMN -o MODEL";
    char *words[1024] = {"stretto"};
    if (c->args.nrest == 0) return FAIL_AT(E105, NULL, example, "submit needs a command line after --");
    if (c->args.nrest + 1 >= (i32)COUNT(words)) return FAIL(E103, "the command line after -- has too many words");
    for (i32 i = 0; i < c->args.nrest; i++) words[i + 1] = c->args.rest[i];
    TRY(opt_defaults(&in->o, c->o.lists));
    TRY(args_parse(c->args.nrest + 1, words, &in->o, &in->args));
    if ((in->args.verb != VERB_train && in->args.verb != VERB_resume) || in->args.help)
        return FAIL_AT(E101, NULL, example, "submit runs train and resume, not \"%.60s\"", c->args.rest[0]);
    if (opt_given(&in->o, OPT_ranks))
        return FAIL_AT(E106, "--ranks", "stretto submit --ranks N -- train DATA ..", "--ranks stands before --, once");
    return 0;
}

/* What `train` makes of its options; the folder that `resume` names. */
static void find_run_dir(struct inner *in) {
    char model[CLI_PATH];
    if (in->args.verb == VERB_resume) snprintf(in->run_dir, sizeof in->run_dir, "%s", in->args.arg[0]);
    else cli_train_files(&in->args, &in->o, model, in->run_dir);
}

static stretto_err add_option(struct inner *in, enum opt_id id) {
    const char *name = opt_info(id)->name, *value = in->o.meta[id].text;
    const size_t size = strlen(name) + strlen(value) + 4;
    char *word = mem_alloc(size);
    if (!word) return -E601;
    snprintf(word, size, "--%s=%s", name, value);
    in->text[in->ntext++] = word;
    in->again[in->nagain++] = word;
    return 0;
}

/* config.json of the run has what train was told; of the rest resume takes what it knows. */
static stretto_err make_again(struct inner *in) {
    in->again[in->nagain++] = "resume";
    in->again[in->nagain++] = in->run_dir;
    for (i32 i = 0; i < OPT_COUNT; i++)
        if (in->o.meta[i].rank == OPT_RANK_FLAG && opt_info((enum opt_id)i)->verbs >> VERB_resume & 1)
            TRY(add_option(in, (enum opt_id)i));
    return 0;
}

/* A flag, else the config file of the run that begins or goes on. */
static stretto_err find_heals(struct cli *c, struct inner *in, bool *out) {
    char path[CLI_PATH + 16];
    struct options file;
    *out = in->o.heal;
    if (in->o.meta[OPT_heal].rank >= OPT_RANK_FLAG) return 0;
    if (in->args.verb == VERB_resume) snprintf(path, sizeof path, "%s/config.json", in->run_dir);
    else snprintf(path, sizeof path, "%s", in->o.config ? in->o.config : "");
    if (!path[0] || (in->args.verb == VERB_resume && !file_exists(path))) return 0; /* resume says what is missing */
    TRY(opt_defaults(&file, c->o.lists));
    const err e = config_load(path, &file);
    *out = file.heal;
    opt_free(&file);
    return e;
}

static void say(void *cli, const char *line) {
    const struct cli *c = cli;
    if (!c->o.quiet) fprintf(stderr, "%s\n", line);
}

/* The words of srun are understood here too; alone on a host, threads need no library. */
static const char *library(const char *wish) {
    if (strcmp(wish, "auto") == 0) return "none";
    return strcmp(wish, "pmix") == 0 ? "openmpi" : strcmp(wish, "pmi2") == 0 ? "mpich" : wish;
}

static stretto_err hand_over(struct cli *c, struct inner *in) {
    const struct launcher *l = launcher_find(c->o.on);
    const ssize_t n = readlink("/proc/self/exe", in->program, sizeof in->program - 1);
    if (!l) return FAIL_AT(E103, "--on", "--on local", "there is no launcher \"%s\"", c->o.on);
    if (n <= 0) return FAIL(E701, "the path of this program cannot be found");
    find_run_dir(in);
    TRY(make_again(in));
    struct launch_job job = {.program = in->program,
                             .run_dir = in->run_dir,
                             .first = {(const char *const *)c->args.rest, c->args.nrest},
                             .again = {in->again, in->nagain},
                             .ranks = (i32)c->o.ranks,
                             .max_restarts = (i32)c->o.max_restarts,
                             .mpi = library(c->o.mpi),
                             .wait = c->o.wait,
                             .say = say,
                             .self = c};
    if (in->args.verb == VERB_resume) job.again = job.first;
    TRY(find_heals(c, in, &job.heals));
    if (!c->o.dry_run) return l->submit(&job, &c->status);
    struct str text = {0};
    char *out = NULL;
    stretto_err e = l->render(&job, &text);
    if (e >= 0 && !(out = mem_strdup(str_text(&text)))) e = -E601;
    str_free(&text);
    return e < 0 ? e : cli_print(out);
}

stretto_err submit_local(struct cli *c) {
    struct inner *in;
    NEW(in, 1);
    stretto_err e = read_inner(c, in);
    if (e >= 0) e = hand_over(c, in);
    for (i32 i = 0; i < in->ntext; i++) mem_free(in->text[i]);
    opt_free(&in->o);
    mem_free(in);
    return e;
}

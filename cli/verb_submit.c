/* verb_submit.c - `submit`: hands the command line behind "--" to a launcher.
 *
 *     stretto submit --on slurm --nodes 2 --time 2:00:00 -- train DATA .. -o MODEL
 *                    '------- struct launch_job --------'   '----- job.h -----' */
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "job.h"
#include "launch/supervise.h"

/* ------------------------------------------------------------------ checks of a remote job ---------------------------------- */

/* What a rank holds by the plan. */
static stretto_err read_need(const stretto_plan *p, struct launch_job *j) {
    struct js *o = NULL;
    char *text = NULL;
    TRY(stretto_plan_summary(p, 1, &text));
    stretto_err e = js_parse(text, strlen(text), "plan", &o);
    j->rank_bytes = js_i64(js_get(o, "peak_bytes"), 0);
    js_free(o);
    stretto_text_free(text);
    return e;
}

/* Checks that a plan exists for this number of ranks. */
static stretto_err check_plan(struct cli *c, stretto_data *data, struct launch_job *j) {
    stretto_plan *p = NULL;
    char machine[64];
    snprintf(machine, sizeof machine, "host*%d(cpu*%d)", j->ranks, j->threads > 0 ? j->threads : 1);
    TRY(stretto_config_flag(c->config, "machine", machine));
    stretto_err e = stretto_plan_new(c->config, data, &p);
    if (e >= 0) e = read_need(p, j);
    stretto_plan_free(p);
    return e;
}

/* Train starts from scratch, but a restarted job resumes a checkpoint: the user has to choose one. */
static stretto_err check_run(const struct inner *in) {
    char pattern[CLI_PATH + 32], fix[CLI_PATH + 80];
    const char *run = *in->meeting ? in->meeting : in->run;
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/checkpoints%s", run, *in->meeting ? "" : "/*.ckpt");
    const bool here = !*in->meeting && glob(pattern, GLOB_NOSORT, NULL, &found) == 0;
    const bool has = *in->meeting ? run_checkpoint_apart(pattern, 0) >= 0 : here;
    if (here) globfree(&found);
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
static stretto_err check_remote(struct inner *in, struct launch_job *j) {
    struct cli *c = &in->c;
    struct file_in file;
    if (c->o.meta[OPT_ranks].rank == OPT_RANK_FLAG && c->o.ranks != j->ranks)
        return FAIL_AT(E106, "--ranks", "leave out --ranks", "--ranks %lld, and %d hosts of %d ranks are asked for",
                       (long long)c->o.ranks, j->nodes, j->ranks_per_node);
    if (c->args.verb == VERB_resume) return check_resume(c->args.arg[0]);
    stretto_data *data = NULL;
    TRY(check_run(in));
    if (file_open(c->args.arg[0], &file) >= 0) {
        j->data_bytes = file.size > 0 ? file.size : 0;
        file_close(&file);
    }
    stretto_err e = stretto_data_open(c->config, c->args.arg[0], &data);
    if (e >= 0 && !c->o.quiet) fprintf(stderr, "%s\n", stretto_data_summary(data));
    if (e >= 0) e = check_plan(c, data, j);
    stretto_data_free(data);
    return e;
}

/* ------------------------------------------------------------------ the job ------------------------------------------------- */

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
    stretto_err e = job_parse(&c->args, l, in);
    if (e >= 0) e = job_fill(c, l, in, &job);
    if (e >= 0 && l->remote) e = check_remote(in, &job);
    if (e >= 0) e = job_stage(in, &job, !c->o.dry_run);
    if (e >= 0) e = c->o.dry_run ? dry_run(l, &job) : hand_over(c, l, &job);
    job_free(in);
    return e;
}

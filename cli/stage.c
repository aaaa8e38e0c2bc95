/* stage.c - `submit --stage`: files of this host that the job behind "--" reads go to HDFS, and its command line names them
 * there.
 *
 *     submit --on yarn --stage hdfs://NN:9870 -- train sales.csv .. -o hdfs://NN:9870/models/sales.model
 *                                                      '--> hdfs://NN:9870/user/NAME/.stretto/HASH-sales.csv */
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "job.h"
#include "launch/stage.h"

/* Options of train that name files it reads, and files it writes. */
static const enum opt_id reads[] = {OPT_config, OPT_template, OPT_plan, OPT_replay},
                         writes[] = {OPT_log, OPT_trace, OPT_plot, OPT_scores};

/* Puts `now` in place of a path in a word: PATH, or --name=PATH. */
static stretto_err replace(struct inner *in, const char **word, const char *path, const char *now) {
    const char *value = strncmp(*word, "--", 2) == 0 ? strchr(*word, '=') : NULL;
    const size_t front = value ? (size_t)(value + 1 - *word) : 0;
    if (strcmp(*word + front, path) != 0 || in->nstaged == JOB_STAGED_MOST) return 0;
    const size_t size = front + strlen(now) + 1;
    char *text = mem_alloc(size);
    if (!text) return -E601;
    snprintf(text, size, "%.*s%s", (int)front, *word, now);
    in->staged[in->nstaged++] = text;
    *word = text;
    return 0;
}

static stretto_err stage_one(struct inner *in, const struct launch_job *job, const char *path, bool send) {
    char url[STAGE_PATH], fix[STAGE_PATH];
    struct stat st;
    i64 bytes;
    bool sent = false;
    if (!path || !*path || file_is_remote(path)) return 0;
    snprintf(fix, sizeof fix, "hdfs dfs -put %.1000s   and its path hdfs://NAMENODE:9870/..", path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return FAIL_AT(E106, "--stage", fix, "%.1000s is a folder: --stage sends single files", path);
    TRY(stage_name(job->stage, path, &bytes, url));
    if (send) TRY(stage_send_file(url, path, &sent));
    launch_say(job, "stage: %s, %lld bytes, as %s (--stage)%s", path, (long long)bytes, url,
               send && !sent ? ": it is there" : "");
    for (i32 i = 1; in->argv[i]; i++) TRY(replace(in, &in->argv[i], path, url));
    for (i32 i = 0; i < in->nagain; i++) TRY(replace(in, &in->again[i], path, url));
    return 0;
}

/* What the job writes into its container is lost with it. */
static stretto_err check_outputs(const struct inner *in, const struct launch_job *job) {
    for (size_t i = 0; job->apart && i < COUNT(writes); i++) {
        const char *value = in->c.o.meta[writes[i]].text, *name = opt_info(writes[i])->name;
        char option[64], fix[96];
        if (!value || !*value || file_is_remote(value)) continue;
        snprintf(option, sizeof option, "--%s", name);
        snprintf(fix, sizeof fix, "--%s hdfs://NAMENODE:9870/..   or   without it", name);
        return FAIL_AT(E106, option, fix,
                       "%.500s would be a file of a container: with --stage and a model in HDFS no folder is shared", value);
    }
    return 0;
}

stretto_err job_stage(struct inner *in, const struct launch_job *job, bool send) {
    const struct cli *c = &in->c;
    if (!*job->stage) return 0;
    TRY(check_outputs(in, job));
    for (size_t i = 0; i < COUNT(reads); i++) TRY(stage_one(in, job, c->o.meta[reads[i]].text, send));
    return c->args.verb == VERB_train && c->args.narg > 0 ? stage_one(in, job, c->args.arg[0], send) : 0;
}

/* yarn.c - the launcher of YARN: a training as a service whose containers join (join.h).
 *
 *     --nodes N containers, each on a node of its own, with --ranks-per-node ranks     one component, restart_policy ON_FAILURE
 *     a container, its node or the application master is lost   ->  YARN starts the container again, the supervisor in member 0
 *                                                                   resumes from the newest checkpoint
 *     the application is lost, or its containers never came     ->  a waiting `submit` hands in another one, which resumes as
 * well */
#include "launch/yarn.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/hdfs.h"
#include "base/mem.h"
#include "launch/join_files.h"
#include "launch/stage.h"
#include "launch/supervise.h"

enum { CREATED = 202, OK_STATUS = 200, ABSENT = 404, START_LOOKS = 4 };
#define MIB (1 << 20)
#define ENDING_S 5.0     /* YARN may refuse to delete or kill for a moment */
#define FAILOVER_S 120.0 /* time that a ResourceManager has to come back */

/* ------------------------------------------------------------------ the request --------------------------------------------- */

/* "stretto-load-18c2f0a41b7": letters, digits and dashes, at most 63, unlike every earlier one. */
static void name_session(const struct launch_job *j, char out[YARN_NAME]) {
    char stem[40] = "";
    const char *slash = strrchr(j->model, '/');
    snprintf(stem, sizeof stem, "%.32s", slash ? slash + 1 : j->model);
    for (char *p = stem; *p; p++)
        *p = isalnum((unsigned char)*p) && (unsigned char)*p < 128 ? (char)tolower((unsigned char)*p) : '-';
    snprintf(out, YARN_NAME, "stretto-%s-%llx", stem, (unsigned long long)(clock_wall() * 1000));
}

static void log_of(const struct launch_job *j, const char *session, i32 member, char out[LAUNCH_PATH]) {
    snprintf(out, LAUNCH_PATH, "%.4000s/%.63s.out.%d", j->meeting, session, member);
}

/* The numbers of the request, with where each comes from. */
static void explain(const struct launch_job *j) {
    const f64 mib = MIB;
    launch_say(j, "yarn: %d container%s with %d rank%s%s (--nodes, --ranks-per-node)", j->nodes, j->nodes == 1 ? "" : "s",
               j->ranks_per_node, j->ranks_per_node == 1 ? "" : "s", j->nodes == 1 ? "" : " each, on nodes of their own");
    launch_say(j, "yarn: %d vcores a container = ranks x %d thread%s (%s)", yarn_cores(j), imax(1, j->threads),
               imax(1, j->threads) == 1 ? "" : "s", j->threads > 0 ? "--threads" : "--threads sets more");
    if (j->label) launch_say(j, "yarn: nodes with the label %s (--node-label)", j->label);
    if (j->memory > 0)
        launch_say(j, "yarn: %.0f MiB a container (--mem)", ceil((f64)j->memory / mib));
    else
        launch_say(j, "yarn: %.0f MiB a container = %.0f + ranks x (%.0f process + %.0f plan + %.0f data); --mem sets another",
                   (f64)yarn_memory(j) / mib, (f64)YARN_CONTAINER / mib, (f64)YARN_PROCESS / mib, ceil((f64)j->rank_bytes / mib),
                   ceil((f64)(YARN_DATA_TIMES * j->data_bytes) / mib));
}

/* What the containers bring, and where they meet. */
static void explain_stage(const struct launch_job *j, i64 bytes, const char *url) {
    if (bytes > 0) launch_say(j, "yarn: the program, its plug-in and libraries, %.1f MB, as %s (--stage)", (f64)bytes / 1e6, url);
    if (j->apart) launch_say(j, "yarn: no folder is shared: members meet in %s, checkpoints and output go there", j->meeting);
}

/* Puts the program into HDFS (send), or only names it. */
static err stage_program(struct launch_job *j, char url[STAGE_PATH], bool send) {
    struct str tar = {0};
    bool sent = false;
    if (!*j->stage) return 0;
    err e = stage_pack(j->stage, j->program, j->plugin_path, &tar, url);
    if (e >= 0) explain_stage(j, (i64)tar.len, url);
    if (e >= 0 && send) e = stage_send(url, str_text(&tar), (i64)tar.len, &sent);
    if (e >= 0) j->archive = url;
    str_free(&tar);
    return e;
}

/* YARN keeps to the label of one constraint, and several nodes with a load would be two. */
static err check_label(const struct launch_job *j) {
    if (!j->label || j->nodes < 2 || strcmp(j->occupancy, "auto") == 0 || strcmp(j->occupancy, "off") == 0) return 0;
    return FAIL_AT(E106, "--node-label", "--occupancy off   or   --nodes 1   or   no --node-label",
                   "YARN does not place several containers by a label and by GPU load at once");
}

static err render(const struct launch_job *j, struct str *out) {
    const char *named = j->yarn && *j->yarn ? j->yarn : getenv(YARN_VARIABLE);
    char url[STAGE_PATH];
    struct launch_job staged = *j;
    explain(j);
    TRY(check_label(j));
    TRY(stage_program(&staged, url, false));
    if (strcmp(j->occupancy, "auto") == 0) launch_say(j, "yarn: nodes by GPU load are chosen at submission (--occupancy auto)");
    TRY(yarn_describe(&staged, "stretto-MODEL-TIME", named && *named ? named : "http://RESOURCEMANAGER:8088", out));
    str_add(out, "\n");
    return str_ok(out);
}

/* ------------------------------------------------------------------ what the cluster has ------------------------------------ */

static err too_few_nodes(const struct launch_job *j, const struct yarn_nodes *n) {
    if (j->label && n->running == 0)
        return FAIL_AT(E805, "--node-label", "leave out --node-label, or a label of the cluster (yarn cluster -lnl)",
                       "no node that runs has the label \"%.80s\"%s%s", j->label, *n->labels ? "; the labels are " : "",
                       n->labels);
    return FAIL_AT(E805, "--nodes", "--nodes with fewer nodes", "%d nodes are asked for, and the cluster has %d that run%s%s",
                   j->nodes, n->running, j->label ? " with the label " : "", j->label ? j->label : "");
}

static err check_nodes(const struct launch_job *j, const struct yarn_nodes *n) {
    const i32 cores = yarn_cores(j);
    if (n->running < j->nodes) return too_few_nodes(j, n);
    if (yarn_memory(j) > n->most_memory)
        return FAIL_AT(E805, "--mem", "fewer --ranks-per-node   or   a smaller --batch",
                       "a container needs %lld MiB, and the largest node has %lld MiB", (long long)(yarn_memory(j) / MIB),
                       (long long)(n->most_memory / MIB));
    if (cores > n->most_cores)
        return FAIL_AT(E805, "--ranks-per-node", "fewer --ranks-per-node or --threads",
                       "a container needs %d vcores, and the largest node has %d", cores, n->most_cores);
    return 0;
}

/* --occupancy auto: the idlest levels that suffice. */
static const char *choose_load(const struct launch_job *j, const struct yarn_nodes *n) {
    if (strcmp(j->occupancy, "auto") != 0) return j->occupancy;
    const char *load = n->idle >= j->nodes ? "idle" : n->idle + n->light >= j->nodes ? "light" : "off";
    if (n->idle + n->light + n->busy == 0 || (j->label && j->nodes > 1)) return "off";
    launch_say(j, "yarn: GPU load of the nodes: %d idle, %d light, %d busy; the job goes to %s (--occupancy)", n->idle, n->light,
               n->busy,
               strcmp(load, "idle") == 0    ? "idle ones"
               : strcmp(load, "light") == 0 ? "idle and light ones"
                                            : "any, since too few have room");
    return load;
}

/* A job that its queue can never hold would wait for ever. */
static err check_queue(const struct launch_job *j, const struct js *answer, const struct yarn_nodes *n) {
    const f64 most = yarn_queue_most(answer, j->queue), room = most / 100 * n->memory,
              need = (f64)(j->nodes * yarn_memory(j));
    if (j->queue && !yarn_has_queue(answer, j->queue))
        return FAIL_AT(E805, "--queue", "leave out --queue, or a queue of the cluster (yarn queue -list)",
                       "the cluster has no queue \"%.80s\"", j->queue);
    if (j->label && !yarn_queue_reaches(answer, j->queue, j->label))
        return FAIL_AT(E805, "--node-label", "another --queue   or   no --node-label",
                       "the queue \"%.80s\" may not use nodes with the label \"%.80s\"", j->queue ? j->queue : "default",
                       j->label);
    if (n->memory <= 0 || need <= room || j->label) return 0; /* a queue has a part of its own of each label */
    return FAIL_AT(E805, "--queue", "another --queue   or   fewer --nodes or --ranks-per-node   or   less --mem",
                   "the job needs %.0f MiB, and the queue \"%.80s\" may have %.0f MiB, %.4g %% of the cluster", need / MIB,
                   j->queue ? j->queue : "default", floor(room / MIB), most);
}

static err look_at_cluster(struct yarn *y, struct launch_job *j) {
    struct js *answer = NULL;
    struct yarn_nodes nodes;
    i32 status;
    TRY(yarn_ask(y, "GET", "/ws/v1/cluster/nodes", NULL, 0, &answer, &status));
    yarn_nodes_read(answer, j->label, &nodes);
    js_free(answer);
    if (status == OK_STATUS) {
        TRY(check_nodes(j, &nodes));
        j->occupancy = choose_load(j, &nodes);
    }
    if (strcmp(j->occupancy, "auto") == 0) j->occupancy = "off";
    TRY(yarn_ask(y, "GET", "/ws/v1/cluster/scheduler", NULL, 0, &answer, &status));
    const err e = status == OK_STATUS ? check_queue(j, answer, &nodes) : 0;
    js_free(answer);
    return e;
}

/* ------------------------------------------------------------------ submission ---------------------------------------------- */

/* "Application ID: application_1732_0007" */
static void id_of(const struct js *answer, char id[LAUNCH_ID]) {
    const char *at = strstr(js_str(js_get(answer, "diagnostics"), ""), "application_");
    snprintf(id, LAUNCH_ID, "%.*s", at ? (int)strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789") : 0, at ? at : "");
}

static err hand_in(struct yarn *y, const struct launch_job *j, const char *session, char id[LAUNCH_ID]) {
    struct str text = {0};
    struct js *answer = NULL;
    i32 status = 0;
    err e = yarn_describe(j, session, yarn_addresses(y), &text);
    if (e >= 0) e = yarn_ask(y, "POST", "/app/v1/services", str_text(&text), 0, &answer, &status);
    if (e >= 0) id_of(answer, id);
    if (e >= 0 && (status != CREATED || !*id)) e = yarn_refused("the service", answer, status);
    js_free(answer);
    str_free(&text);
    return e;
}

/* The time of the file system with the checkpoints, from which on they count. */
static err begin_apart(const struct launch_job *j, const char *session, i64 *since) {
    struct join_place p;
    struct hdfs_status s;
    char path[LAUNCH_PATH + 16];
    place_of(&p, j->meeting, session);
    TRY(place_write(&p, "begin", "begin\n"));
    snprintf(path, sizeof path, "%s/begin", p.folder);
    TRY(hdfs_stat(path, &s));
    if (*since == 0) *since = s.time / 1000;
    return 0;
}

/* YARN looks for the archive in its own file system. */
static err check_stage(struct yarn *y, const struct launch_job *j) {
    char system[256];
    if (!*j->stage || !yarn_file_system(y, system) || strncmp(system, "file:", 5) != 0) return 0;
    return FAIL_AT(E805, "--stage", "leave out --stage, and submit from a folder that all nodes share",
                   "the cluster works on %.200s, and YARN looks for the program there, not in HDFS", system);
}

static err submit_to(struct yarn *y, struct launch_job *j, struct launch_ticket *out) {
    char session[YARN_NAME], url[STAGE_PATH];
    name_session(j, session);
    TRY(look_at_cluster(y, j));
    TRY(check_stage(y, j));
    TRY(stage_program(j, url, true));
    if (j->apart)
        TRY(begin_apart(j, session, &out->since));
    else
        TRY(file_make_dir(j->run_dir));
    j->since = out->since;
    TRY(hand_in(y, j, session, out->id));
    log_of(j, session, 0, out->log);
    snprintf(out->session, sizeof out->session, "%s", session);
    return 0;
}

static err submit(const struct launch_job *job, struct launch_ticket *out) {
    struct launch_job j = *job;
    struct yarn *y;
    explain(job);
    TRY(check_label(job));
    TRY(yarn_open(job->yarn, &y));
    const err e = submit_to(y, &j, out);
    yarn_close(y);
    return e;
}

/* The file of this host with what the container prints. */
static void output_of(const struct launch_job *j, const char *session, i32 member, char out[LAUNCH_PATH]) {
    snprintf(out, LAUNCH_PATH, "%.4000s/%.63s.out.%d", j->run_dir, session, member);
}

/* YARN keeps what a container prints for a while, on its node; a file in the run folder stays. */
err yarn_enter(const struct launch_job *job, const char *session, i32 member) {
    char log[LAUNCH_PATH];
    if (!yarn_is_here()) return 0;
    output_of(job, session, member, log);
    TRY(file_make_dir(job->run_dir));
    const int to = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (to < 0) return file_failed(log);
    launch_say(job, "output: %s", log);
    const bool good = dup2(to, 1) >= 0 && dup2(to, 2) >= 0;
    close(to);
    return good ? 0 : file_failed(log);
}

/* A container's folder goes with it: its output is copied to where the members met. */
void yarn_keep_output(const struct launch_job *job, const char *session, i32 member) {
    const struct err_record before = *err_last();
    char from[LAUNCH_PATH], to[LAUNCH_PATH];
    struct file_map m;
    if (!job->apart) return;
    output_of(job, session, member, from);
    log_of(job, session, member, to);
    if (file_map(from, &m) >= 0) {
        if (hdfs_put(to, m.p, m.size) < 0) launch_say(job, "the output stays in %s: %s", from, err_last()->text);
        file_unmap(&m);
    }
    err_put(&before);
}

/* ------------------------------------------------------------------ waiting ------------------------------------------------- */

struct watch {
    const struct launch_job *job;
    struct launch_ticket *ticket;
    struct yarn *y;
    struct yarn_state state;
    char told[64];
    i32 present;
    f64 known_at; /* when YARN last knew the application */
};

static void report(struct watch *w) {
    const i32 present = join_present(w->job->meeting, w->ticket->session, w->job->nodes);
    if (strcmp(w->told, w->state.name) != 0) launch_say(w->job, "%s %s", w->ticket->id, w->state.name);
    if (present != w->present) launch_say(w->job, "%d of %d containers have come", present, w->job->nodes);
    snprintf(w->told, sizeof w->told, "%s", w->state.name);
    w->present = present;
}

/* A ResourceManager that has just started does not know its applications yet. */
static err look(struct watch *w) {
    char path[160];
    struct js *answer = NULL;
    i32 status;
    snprintf(path, sizeof path, "/ws/v1/cluster/apps/%s", w->ticket->id);
    TRY(yarn_ask(w->y, "GET", path, NULL, FAILOVER_S, &answer, &status));
    const bool known = status == OK_STATUS && js_get(answer, "app");
    if (known) yarn_state_read(answer, &w->state);
    if (known) w->known_at = clock_now();
    js_free(answer);
    if (status != ABSENT || clock_now() - w->known_at < FAILOVER_S) return 0;
    return FAIL_AT(E805, NULL, "its log says how it ended", "YARN does not know %s any more", w->ticket->id);
}

/* An application whose containers cannot start: a service that has never been stable cannot be stopped, YARN answers 503. */
static void kill_application(struct watch *w) {
    char path[LAUNCH_ID + 40];
    struct js *answer = NULL;
    i32 status;
    snprintf(path, sizeof path, "/ws/v1/cluster/apps/%s/state", w->ticket->id);
    if (yarn_ask(w->y, "PUT", path, "{\"state\": \"KILLED\"}", ENDING_S, &answer, &status) < 0) err_clear();
    js_free(answer);
}

/* The name stays taken until the service is deleted; YARN may answer 503 for a moment. */
static void delete_service(struct watch *w) {
    char path[YARN_NAME + 32];
    struct js *answer = NULL;
    i32 status;
    snprintf(path, sizeof path, "/app/v1/services/%s", w->ticket->session);
    if (yarn_ask(w->y, "DELETE", path, NULL, ENDING_S, &answer, &status) < 0) err_clear();
    js_free(answer);
}

/* Until the job has left its exit status, or the application is over without one: -1. */
static err watch_one(struct watch *w, i32 *code) {
    w->told[0] = 0;
    w->present = -1;
    w->known_at = clock_now();
    err e = 0;
    for (i32 looks = 0;;) {
        TRY(look(w));
        report(w);
        *code = join_ended(w->job->meeting, w->ticket->session);
        if (*code >= 0 || w->state.over) break;
        if (w->present < w->job->nodes && ++looks % START_LOOKS == 0) e = yarn_check_start(w->y, w->job, w->ticket->session);
        if (e < 0) break;
        clock_sleep(1);
    }
    const struct err_record why = *err_last();
    if (e < 0) kill_application(w);
    delete_service(w);
    if (e < 0) err_put(&why);
    return e;
}

static err again(struct watch *w, i32 n) {
    const f64 pause = backoff(n + 1);
    launch_say(w->job, "%s: handed in again after %.1f s (%s)", w->ticket->id, pause,
               w->state.over ? *w->state.why ? w->state.why : w->state.end : "not all containers came");
    clock_sleep(pause);
    return submit(w->job, w->ticket);
}

static bool has_checkpoint(const struct launch_job *job) {
    char folder[LAUNCH_PATH];
    snprintf(folder, sizeof folder, "%.4000s/checkpoints", job->meeting);
    return (job->apart ? run_checkpoint_apart(folder, 0) : run_checkpoint(job->run_dir, 0)) >= 0;
}

static err wait_for_end(const struct launch_job *job, struct launch_ticket *t, i32 *exit_status) {
    struct watch w = {.job = job, .ticket = t};
    char why[LAUNCH_ID + 400];
    i32 code = -1;
    TRY(yarn_open(job->yarn, &w.y));
    err e = watch_one(&w, &code);
    for (i32 n = 0; e >= 0 && (code < 0 || code == JOIN_INCOMPLETE) && n < job->max_restarts; n++) {
        if (code < 0 && strcmp(w.state.name, "FAILED") != 0) break; /* a user stopped the application */
        e = again(&w, n);
        if (e >= 0) e = watch_one(&w, &code);
    }
    yarn_close(w.y);
    *exit_status = code >= 0 ? code : has_checkpoint(job) ? EXIT_STOPPED : EXIT_LOST;
    join_why(job->meeting, t->session, why, sizeof why);
    if (e >= 0 && *exit_status != 0 && *why)
        str_print(t->end, sizeof t->end, "error: %s: %s", t->id, why);
    else if (e >= 0 && *exit_status != 0)
        str_print(t->end, sizeof t->end, "%s: exit status %d%s%s; its log is %s", t->id, *exit_status, code < 0 ? ", " : "",
                  code < 0 ? *w.state.why ? w.state.why : w.state.end : "", t->log);
    return e;
}

extern const struct launcher launcher_yarn;
const struct launcher launcher_yarn = {
    .name = "yarn",
    .help = "a service of YARN, whose containers join and start again after a loss",
    .example = "stretto submit --on yarn --nodes 2 -- train DATA --target COL -o MODEL",
    .takes = 1u << REQUEST_NODES | 1u << REQUEST_RANKS_PER_NODE | 1u << REQUEST_GPUS | 1u << REQUEST_MEMORY |
             1u << REQUEST_STAGE | 1u << REQUEST_QUEUE | 1u << REQUEST_NODE_LABEL | 1u << REQUEST_TIME,
    .mpi = "mpich",
    .remote = true,
    .render = render,
    .submit = submit,
    .wait = wait_for_end,
};

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
#include "base/mem.h"
#include "launch/join.h"
#include "launch/supervise.h"

enum { CREATED = 202, OK_STATUS = 200, ABSENT = 404 };
#define MIB (1 << 20)
#define STEP (64ll * MIB)       /* container memory is a multiple of it */
#define PROCESS (64ll * MIB)    /* of a rank besides plan and data: program, MPI, messages */
#define CONTAINER (128ll * MIB) /* of a container besides its ranks: member, supervisor, mpiexec */
#define DATA_TIMES 4            /* memory of a data file read, in times of its size */
#define ENDING_S 30.0           /* from the end of a job to that of its application */
#define FAILOVER_S 120.0        /* time that a ResourceManager has to come back */

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
    snprintf(out, LAUNCH_PATH, "%.4000s/%.63s.out.%d", j->run_dir, session, member);
}

static i32 threads_of(const struct launch_job *j) { return imax(1, j->threads); }

static i64 memory_of(const struct launch_job *j) {
    if (j->memory > 0) return j->memory;
    const i64 all = CONTAINER + j->ranks_per_node * (PROCESS + j->rank_bytes + DATA_TIMES * j->data_bytes);
    return (all + STEP - 1) / STEP * STEP;
}

/* The numbers of the request, with where each comes from. */
static void explain(const struct launch_job *j) {
    const f64 mib = MIB;
    launch_say(j, "yarn: %d container%s with %d rank%s%s (--nodes, --ranks-per-node)", j->nodes, j->nodes == 1 ? "" : "s",
               j->ranks_per_node, j->ranks_per_node == 1 ? "" : "s", j->nodes == 1 ? "" : " each, on nodes of their own");
    launch_say(j, "yarn: %d vcores a container = ranks x %d thread%s (%s)", j->ranks_per_node * threads_of(j), threads_of(j),
               threads_of(j) == 1 ? "" : "s", j->threads > 0 ? "--threads" : "--threads sets more");
    if (j->memory > 0)
        launch_say(j, "yarn: %.0f MiB a container (--mem)", ceil((f64)j->memory / mib));
    else
        launch_say(j, "yarn: %.0f MiB a container = %.0f + ranks x (%.0f process + %.0f plan + %.0f data); --mem sets another",
                   (f64)memory_of(j) / mib, (f64)CONTAINER / mib, (f64)PROCESS / mib, ceil((f64)j->rank_bytes / mib),
                   ceil((f64)(DATA_TIMES * j->data_bytes) / mib));
}

/* ------------------------------------------------------------------ the service --------------------------------------------- */

static void add_command(const struct launch_job *j, const char *session, struct str *out) {
    char here[LAUNCH_PATH] = ".", word[LAUNCH_PATH + 64];
    if (!getcwd(here, sizeof here)) here[0] = 0;
    launch_quote(out, j->program);
    snprintf(word, sizeof word, "--workdir=%s", here);
    str_add(out, " join ");
    launch_quote(out, word);
    str_addf(out,
             " --session=%s --member=${COMPONENT_ID} --nodes=%d --ranks-per-node=%d --gather-time=%.0fs --max-restarts=%d --",
             session, j->nodes, j->ranks_per_node, j->patience, j->max_restarts);
    for (i32 i = 0; i < j->first.n; i++) {
        str_add(out, " ");
        launch_quote(out, j->first.word[i]);
    }
    if (j->threads <= 0) str_add(out, " --threads=1");
}

static struct js *constraint(const char *type) {
    struct js *c = js_object();
    js_put_text(c, "type", type);
    js_put_text(c, "scope", "NODE");
    return c;
}

/* Members on nodes of their own; on nodes whose GPUs are as idle as asked. */
static void put_placement(const struct launch_job *j, struct js *component) {
    struct js *all = js_array();
    const bool light = strcmp(j->occupancy, "light") == 0;
    if (j->nodes > 1) {
        struct js *c = constraint("ANTI_AFFINITY"), *tags = js_array();
        js_push(tags, js_new_text("member"));
        js_put(c, "target_tags", tags);
        js_push(all, c);
    }
    if (light || strcmp(j->occupancy, "idle") == 0) {
        struct js *c = constraint("AFFINITY"), *attributes = js_object(), *values = js_array();
        js_push(values, js_new_text("idle"));
        if (light) js_push(values, js_new_text("light"));
        js_put(attributes, "nm.yarn.io/gpuload", values);
        js_put(c, "node_attributes", attributes);
        js_push(all, c);
    }
    if (js_len(all) == 0) {
        js_free(all);
        return;
    }
    struct js *policy = js_object();
    js_put(policy, "constraints", all);
    js_put(component, "placement_policy", policy);
}

static void put_resource(const struct launch_job *j, struct js *component) {
    char memory[32];
    struct js *r = js_object();
    js_put_i64(r, "cpus", j->ranks_per_node * threads_of(j));
    snprintf(memory, sizeof memory, "%lld", (long long)(memory_of(j) / MIB));
    js_put_text(r, "memory", memory);
    if (j->gpus_per_node > 0) {
        struct js *more = js_object(), *gpu = js_object();
        js_put_i64(gpu, "value", j->gpus_per_node);
        js_put_text(gpu, "unit", "");
        js_put(more, "yarn.io/gpu", gpu);
        js_put(r, "additional", more);
    }
    js_put(component, "resource", r);
}

/* What YARN does by default to a container that ends: it starts it again on the same node for ever, and gives up a node after
 * three. */
static void put_configuration(const struct launch_job *j, const char *addresses, struct js *service) {
    struct js *c = js_object(), *properties = js_object(), *env = js_object();
    char limit[32], name[256];
    snprintf(limit, sizeof limit, "%d", (j->max_restarts + 1) * j->nodes);
    js_put_text(properties, "yarn.service.container-failure.retry.max", "0");
    js_put_text(properties, "yarn.service.container-failure-per-component.threshold", limit);
    js_put_text(properties, "yarn.service.node-blacklist.threshold", limit);
    for (i32 i = 0; i < j->env.n; i++) {
        const char *value = strchr(j->env.word[i], '=');
        if (!value) continue;
        snprintf(name, sizeof name, "%.*s", (int)(value - j->env.word[i]), j->env.word[i]);
        js_put_text(env, name, value + 1);
    }
    js_put_text(env, YARN_VARIABLE, addresses);
    js_put(c, "properties", properties);
    js_put(c, "env", env);
    js_put(service, "configuration", c);
}

static err describe(const struct launch_job *j, const char *session, const char *addresses, struct str *out) {
    struct js *service = js_object(), *component = js_object(), *all = js_array();
    struct str command = {0};
    add_command(j, session, &command);
    js_put_text(service, "name", session);
    js_put_text(service, "version", "1");
    if (j->seconds > 0) js_put_i64(service, "lifetime", j->seconds);
    if (j->queue) js_put_text(service, "queue", j->queue);
    put_configuration(j, addresses, service);
    js_put_text(component, "name", "member");
    js_put_i64(component, "number_of_containers", j->nodes);
    js_put_text(component, "restart_policy", "ON_FAILURE");
    js_put_text(component, "launch_command", str_text(&command));
    put_resource(j, component);
    put_placement(j, component);
    js_push(all, component);
    js_put(service, "components", all);
    err e = str_ok(&command);
    if (e >= 0) e = js_text(service, out, 2);
    js_free(service);
    str_free(&command);
    return e;
}

static err render(const struct launch_job *j, struct str *out) {
    const char *named = j->yarn && *j->yarn ? j->yarn : getenv(YARN_VARIABLE);
    explain(j);
    if (strcmp(j->occupancy, "auto") == 0) launch_say(j, "yarn: nodes by GPU load are chosen at submission (--occupancy auto)");
    TRY(describe(j, "stretto-MODEL-TIME", named && *named ? named : "http://RESOURCEMANAGER:8088", out));
    str_add(out, "\n");
    return str_ok(out);
}

/* ------------------------------------------------------------------ what the cluster has ------------------------------------ */

static err check_nodes(const struct launch_job *j, const struct yarn_nodes *n) {
    const i32 cores = j->ranks_per_node * threads_of(j);
    if (n->running < j->nodes)
        return FAIL_AT(E805, "--nodes", "--nodes with fewer nodes", "%d nodes are asked for, and the cluster has %d that run",
                       j->nodes, n->running);
    if (memory_of(j) > n->most_memory)
        return FAIL_AT(E805, "--mem", "fewer --ranks-per-node   or   a smaller --batch",
                       "a container needs %lld MiB, and the largest node has %lld MiB", (long long)(memory_of(j) / MIB),
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
    if (n->idle + n->light + n->busy == 0) return "off";
    launch_say(j, "yarn: GPU load of the nodes: %d idle, %d light, %d busy; the job goes to %s (--occupancy)", n->idle, n->light,
               n->busy,
               strcmp(load, "idle") == 0    ? "idle ones"
               : strcmp(load, "light") == 0 ? "idle and light ones"
                                            : "any, since too few have room");
    return load;
}

static err look_at_cluster(struct yarn *y, struct launch_job *j) {
    struct js *answer = NULL;
    struct yarn_nodes nodes;
    i32 status;
    TRY(yarn_ask(y, "GET", "/ws/v1/cluster/nodes", NULL, 0, &answer, &status));
    yarn_nodes_read(answer, &nodes);
    js_free(answer);
    if (status == OK_STATUS) {
        TRY(check_nodes(j, &nodes));
        j->occupancy = choose_load(j, &nodes);
    }
    if (strcmp(j->occupancy, "auto") == 0) j->occupancy = "off";
    if (!j->queue) return 0;
    TRY(yarn_ask(y, "GET", "/ws/v1/cluster/scheduler", NULL, 0, &answer, &status));
    const bool known = status != OK_STATUS || yarn_has_queue(answer, j->queue);
    js_free(answer);
    return known ? 0
                 : FAIL_AT(E805, "--queue", "leave out --queue, or a queue of the cluster (yarn queue -list)",
                           "the cluster has no queue \"%.80s\"", j->queue);
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
    err e = describe(j, session, yarn_addresses(y), &text);
    if (e >= 0) e = yarn_ask(y, "POST", "/app/v1/services", str_text(&text), 0, &answer, &status);
    if (e >= 0) id_of(answer, id);
    if (e >= 0 && (status != CREATED || !*id)) e = yarn_refused("the service", answer, status);
    js_free(answer);
    str_free(&text);
    return e;
}

static err submit(const struct launch_job *job, struct launch_ticket *out) {
    struct launch_job j = *job;
    char session[YARN_NAME];
    struct yarn *y;
    explain(job);
    TRY(yarn_open(job->yarn, &y));
    name_session(job, session);
    err e = look_at_cluster(y, &j);
    if (e >= 0) e = file_make_dir(job->run_dir);
    if (e >= 0) e = hand_in(y, &j, session, out->id);
    if (e >= 0) {
        log_of(job, session, 0, out->log);
        snprintf(out->session, sizeof out->session, "%s", session);
    }
    yarn_close(y);
    return e;
}

/* YARN keeps what a container prints for a while, on its node; a file in the run folder stays. */
err yarn_enter(const struct launch_job *job, const char *session, i32 member) {
    char log[LAUNCH_PATH];
    if (!yarn_is_here()) return 0;
    log_of(job, session, member, log);
    const int to = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (to < 0) return file_failed(log);
    launch_say(job, "output: %s", log);
    const bool good = dup2(to, 1) >= 0 && dup2(to, 2) >= 0;
    close(to);
    return good ? 0 : file_failed(log);
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
    const i32 present = join_present(w->job->run_dir, w->ticket->session, w->job->nodes);
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

/* The name stays taken until the service is deleted. */
static void delete_service(struct watch *w) {
    char path[YARN_NAME + 32];
    struct js *answer = NULL;
    i32 status;
    snprintf(path, sizeof path, "/app/v1/services/%s", w->ticket->session);
    if (yarn_ask(w->y, "DELETE", path, NULL, 0, &answer, &status) < 0) err_clear();
    js_free(answer);
}

/* Until the job has left its exit status, or the application is over without one: -1. */
static err watch_one(struct watch *w, i32 *code) {
    w->told[0] = 0;
    w->present = -1;
    w->known_at = clock_now();
    for (;;) {
        TRY(look(w));
        report(w);
        *code = join_ended(w->job->run_dir, w->ticket->session);
        if (*code >= 0 || w->state.over) break;
        clock_sleep(1);
    }
    delete_service(w);
    return 0;
}

static err again(struct watch *w, i32 n) {
    const f64 pause = backoff(n + 1);
    launch_say(w->job, "%s: handed in again after %.1f s (%s)", w->ticket->id, pause,
               w->state.over ? *w->state.why ? w->state.why : w->state.end : "not all containers came");
    clock_sleep(pause);
    return submit(w->job, w->ticket);
}

static err wait_for_end(const struct launch_job *job, struct launch_ticket *t, i32 *exit_status) {
    struct watch w = {.job = job, .ticket = t};
    i32 code = -1;
    TRY(yarn_open(job->yarn, &w.y));
    err e = watch_one(&w, &code);
    for (i32 n = 0; e >= 0 && (code < 0 || code == JOIN_INCOMPLETE) && n < job->max_restarts; n++) {
        if (code < 0 && strcmp(w.state.name, "FAILED") != 0) break; /* a user stopped the application */
        e = again(&w, n);
        if (e >= 0) e = watch_one(&w, &code);
    }
    yarn_close(w.y);
    *exit_status = code >= 0 ? code : run_checkpoint(job->run_dir, 0) >= 0 ? EXIT_STOPPED : EXIT_LOST;
    if (e >= 0 && *exit_status != 0)
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
             1u << REQUEST_QUEUE | 1u << REQUEST_TIME,
    .mpi = "mpich",
    .remote = true,
    .render = render,
    .submit = submit,
    .wait = wait_for_end,
};

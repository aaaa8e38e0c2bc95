/* yarn_service.c - a job as the JSON of a service of YARN: one component, a container a node. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch/stage.h"
#include "launch/yarn.h"

#define MIB (1 << 20)

i32 yarn_cores(const struct launch_job *j) { return j->ranks_per_node * imax(1, j->threads); }

i64 yarn_memory(const struct launch_job *j) {
    if (j->memory > 0) return j->memory;
    const i64 all = YARN_CONTAINER + j->ranks_per_node * (YARN_PROCESS + j->rank_bytes + YARN_DATA_TIMES * j->data_bytes);
    return (all + YARN_STEP - 1) / YARN_STEP * YARN_STEP;
}

/* The archive lies unpacked in the folder of the container.  A program that cannot start stays for a moment, so that YARN does
 * not start containers in a hurry and its message can be read (yarn_log.c).  The shell of YARN expands $PWD; the session's files
 * are below it where the hosts share no folder. */
static void add_program(const struct launch_job *j, struct str *out) {
    struct str program = {0};
    if (*j->archive) {
        str_addf(out, "export LD_LIBRARY_PATH=%s/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; ", YARN_PROGRAM);
        str_addf(&program, "%s/bin/stretto", YARN_PROGRAM);
    } else
        launch_quote(&program, j->program);
    str_addf(out, "{ %s --version >/dev/null || { sleep %d; exit 127; }; } && %s", str_text(&program), YARN_STAY_S,
             str_text(&program));
    str_free(&program);
}

static void add_command(const struct launch_job *j, const char *session, struct str *out) {
    char here[LAUNCH_PATH] = ".", word[LAUNCH_PATH + 64];
    if (!getcwd(here, sizeof here)) here[0] = 0;
    str_add(out, "{ "); /* YARN redirects the output of the last command */
    add_program(j, out);
    snprintf(word, sizeof word, "--workdir=%s", here);
    str_add(out, " join ");
    if (j->since > 0)
        str_addf(out, "--submitted=%lld", (long long)j->since);
    else if (j->apart)
        str_add(out, "--submitted=TIME");
    else
        launch_quote(out, word);
    str_addf(out,
             " --session=%s --member=${COMPONENT_ID} --nodes=%d --ranks-per-node=%d --gather-time=%.0fs --max-restarts=%d --",
             session, j->nodes, j->ranks_per_node, j->patience, j->max_restarts);
    for (i32 i = 0; i < j->first.n; i++) {
        str_add(out, " ");
        launch_quote(out, j->first.word[i]);
    }
    if (j->threads <= 0) str_add(out, " --threads=1");
    str_add(out, "; }");
}

/* The program in HDFS: NodeManagers fetch it once, unpack it, and link it into each container. */
static void put_files(const struct launch_job *j, struct js *c) {
    if (!*j->archive) return;
    struct js *all = js_array(), *file = js_object();
    js_put_text(file, "type", "ARCHIVE");
    js_put_text(file, "dest_file", "stretto");
    js_put_text(file, "src_file", stage_path(j->archive));
    js_put_text(file, "visibility", "PRIVATE");
    js_push(all, file);
    js_put(c, "files", all);
}

/* Variables that name folders of this host stay here where the containers bring their own. */
static bool goes_along(const struct launch_job *j, const char *name) {
    return !*j->archive || (strcmp(name, "STRETTO_PLUGINS") != 0 && (!j->apart || strcmp(name, "STRETTO_RUNS") != 0));
}

static struct js *constraint(const char *type) {
    struct js *c = js_object();
    js_put_text(c, "type", type);
    js_put_text(c, "scope", "NODE");
    return c;
}

static void put_words(struct js *o, const char *name, const char *first, const char *second) {
    struct js *words = js_array();
    js_push(words, js_new_text(first));
    if (second) js_push(words, js_new_text(second));
    js_put(o, name, words);
}

static bool places_by_load(const struct launch_job *j) {
    return strcmp(j->occupancy, "idle") == 0 || strcmp(j->occupancy, "light") == 0;
}

/* Members on nodes of their own; on nodes with a label; on nodes whose GPUs are as idle as asked.  The scheduler of YARN finds a
 * label only where there is one constraint (SingleConstraintAppPlacementAllocator), so it is part of the first. */
static void put_placement(const struct launch_job *j, struct js *component) {
    struct js *all = js_array(), *first = constraint(j->nodes > 1 ? "ANTI_AFFINITY" : "AFFINITY");
    if (j->nodes > 1) put_words(first, "target_tags", "member", NULL);
    if (j->label) put_words(first, "node_partitions", j->label, NULL);
    const bool apart = j->nodes > 1 && places_by_load(j); /* two constraints */
    struct js *load = apart ? constraint("AFFINITY") : first;
    if (places_by_load(j)) {
        struct js *attributes = js_object();
        put_words(attributes, "nm.yarn.io/gpuload", "idle", strcmp(j->occupancy, "light") == 0 ? "light" : NULL);
        js_put(load, "node_attributes", attributes);
    }
    if (j->nodes > 1 || j->label || places_by_load(j)) js_push(all, first);
    else js_free(first);
    if (apart) js_push(all, load);
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
    js_put_i64(r, "cpus", yarn_cores(j));
    snprintf(memory, sizeof memory, "%lld", (long long)(yarn_memory(j) / MIB));
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
        if (goes_along(j, name)) js_put_text(env, name, value + 1);
    }
    js_put_text(env, YARN_VARIABLE, addresses);
    js_put(c, "properties", properties);
    js_put(c, "env", env);
    put_files(j, c);
    js_put(service, "configuration", c);
}

err yarn_describe(const struct launch_job *j, const char *session, const char *addresses, struct str *out) {
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

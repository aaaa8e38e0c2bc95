/* yarn_log.c - why a container does not start the program: what it printed, from its NodeManager.
 *
 *     services/NAME           containers: id, node                     member-1 container_17_0003_01_000003 on node7
 *     ws/v1/cluster/nodes     the address of a node                    node7:8042
 *     node7:8042/ws/v1/node/containers/ID/logs/stderr.txt              .. error while loading shared libraries: libhwloc.so.15:
 * ..
 *
 * Such a container stays for YARN_STAY_S seconds (yarn_service.c), so that its output can be read. */
#include <stdio.h>
#include <string.h>

#include "launch/join_files.h"
#include "launch/yarn.h"

/* The first line that says why a shell or the loader could not start a program. */
bool yarn_start_failure(const char *text, char *out, size_t size) {
    static const char *const signs[] = {"No such file or directory",
                                        "error while loading shared libraries",
                                        "GLIBC_",
                                        "Permission denied",
                                        "cannot execute",
                                        "Exec format error",
                                        "Illegal instruction"};
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        snprintf(out, size, "%.*s", (int)n, line);
        for (size_t i = 0; i < COUNT(signs); i++)
            if (strstr(out, signs[i]) && !strstr(out, "locale")) return true;
        line += n + (line[n] == '\n');
    }
    out[0] = 0;
    return false;
}

/* The address of a node's web server; "" = not known. */
static void address_of(const struct js *nodes, const char *host, char out[256]) {
    const struct js *all = js_get(js_get(nodes, "nodes"), "node");
    out[0] = 0;
    for (i64 i = 0; i < js_len(all); i++)
        if (strcmp(js_str(js_get(js_at(all, i), "nodeHostName"), ""), host) == 0)
            snprintf(out, 256, "%.200s", js_str(js_get(js_at(all, i), "nodeHTTPAddress"), ""));
}

static bool read_output(struct yarn *y, const struct js *nodes, const struct js *container, char *why, size_t size) {
    char address[256];
    struct str url = {0}, text = {0};
    address_of(nodes, js_str(js_get(container, "bare_host"), ""), address);
    str_addf(&url, "http://%s/ws/v1/node/containers/%s/logs/stderr.txt", address, js_str(js_get(container, "id"), ""));
    const bool read = *address && str_ok(&url) >= 0 && yarn_fetch(y, str_text(&url), &text);
    const bool found = read && yarn_start_failure(str_text(&text), why, size);
    str_free(&url);
    str_free(&text);
    return found;
}

/* A member that has not said hello. */
static bool is_silent(const struct launch_job *job, const char *session, const struct js *container) {
    struct join_place p;
    char name[64];
    const char *instance = js_str(js_get(container, "component_instance_name"), ""), *dash = strrchr(instance, '-');
    i64 member;
    if (!dash || !str_to_i64(dash + 1, strlen(dash + 1), &member) || member < 0 || member >= job->nodes) return false;
    place_of(&p, job->meeting, session);
    place_hello(name, (i32)member);
    return !place_has(&p, name);
}

static bool look(struct yarn *y, const struct launch_job *job, const char *session, const struct js *service, struct js *nodes,
                 char *why, size_t size) {
    const struct js *all = js_get(js_at(js_get(service, "components"), 0), "containers");
    for (i64 i = 0; i < js_len(all); i++)
        if (is_silent(job, session, js_at(all, i)) && read_output(y, nodes, js_at(all, i), why, size)) return true;
    return false;
}

err yarn_check_start(struct yarn *y, const struct launch_job *job, const char *session) {
    char path[YARN_NAME + 32], why[512] = "";
    struct js *service = NULL, *nodes = NULL;
    i32 status;
    snprintf(path, sizeof path, "/app/v1/services/%s", session);
    err e = yarn_ask(y, "GET", path, NULL, 0, &service, &status);
    if (e >= 0) e = yarn_ask(y, "GET", "/ws/v1/cluster/nodes", NULL, 0, &nodes, &status);
    if (e < 0) err_clear(); /* the next look at the application tells */
    const bool found = e >= 0 && look(y, job, session, service, nodes, why, sizeof why);
    js_free(service);
    js_free(nodes);
    if (!found) return 0;
    return FAIL_AT(E805, NULL,
                   *job->archive ? "install what is missing on every node"
                                 : "--stage hdfs://NAMENODE:9870   (brings the program)   or   install it on every node",
                   "a node of the cluster cannot start the program: %s", why);
}

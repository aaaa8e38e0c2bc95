/* yarn_rest.c - which ResourceManager is active, requests to it, and what its answers say. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/http.h"
#include "base/mem.h"
#include "launch/join.h"
#include "launch/yarn.h"

enum { ADDRESSES = 8, ADDRESS = 256, SITE_MOST = 4 << 20, UNREACHABLE = 811, UNAVAILABLE = 503 };
#define PORT 8088
#define DOCS "docs/yarn.md"

struct yarn {
    struct http *http;
    char address[ADDRESSES][ADDRESS];
    i32 n, at; /* at: the active one */
    struct str all;
};

/* ------------------------------------------------------------------ addresses ----------------------------------------------- */

/* The value of a property of Hadoop's XML; false = none. */
static bool property(const char *text, const char *name, char *out, size_t size) {
    char tag[256];
    snprintf(tag, sizeof tag, "<name>%s</name>", name);
    const char *at = strstr(text, tag), *end = at ? strstr(at, "</property>") : NULL, *value = at ? strstr(at, "<value>") : NULL;
    if (!value || (end && value > end)) return false;
    value += strlen("<value>");
    while (isspace((unsigned char)*value)) value++;
    snprintf(out, size, "%.*s", (int)strcspn(value, "< \t\r\n"), value);
    return *out != 0;
}

/* Of one ResourceManager; id: "" or ".rm1" where there are several. */
static void add_address(const char *text, const char *id, struct str *out) {
    char name[128], value[ADDRESS];
    bool tls = property(text, "yarn.http.policy", value, sizeof value) && strcmp(value, "HTTPS_ONLY") == 0;
    snprintf(name, sizeof name, "yarn.resourcemanager.webapp%s.address%s", tls ? ".https" : "", id);
    bool found = property(text, name, value, sizeof value) && !strstr(value, "${");
    if (!found) {
        snprintf(name, sizeof name, "yarn.resourcemanager.hostname%s", id);
        if (!property(text, name, value, sizeof value)) return;
    }
    str_addf(out, "%s%s://%s", out->len ? "," : "", tls ? "https" : "http", value);
    if (!found) str_addf(out, ":%d", tls ? PORT + 2 : PORT);
}

void yarn_site(const char *text, struct str *out) {
    char ids[ADDRESS], id[64], suffix[72];
    if (!property(text, "yarn.resourcemanager.ha.rm-ids", ids, sizeof ids)) {
        add_address(text, "", out);
        return;
    }
    for (const char *p = ids; str_list_next(&p, id, sizeof id);) {
        snprintf(suffix, sizeof suffix, ".%s", id);
        add_address(text, suffix, out);
    }
}

static void from_site(struct str *out) {
    static const char *const variables[] = {"YARN_CONF_DIR", "HADOOP_CONF_DIR"};
    for (size_t i = 0; i < COUNT(variables) && out->len == 0; i++) {
        const char *folder = getenv(variables[i]);
        char path[4200], *text = NULL;
        i64 n;
        if (!folder || !*folder) continue;
        snprintf(path, sizeof path, "%.4096s/yarn-site.xml", folder);
        if (file_exists(path) && file_load(path, SITE_MOST, &text, &n) >= 0) yarn_site(text, out);
        mem_free(text);
    }
}

static err find_addresses(struct yarn *y, const char *wish) {
    char one[ADDRESS];
    const char *named = wish && *wish ? wish : getenv(YARN_VARIABLE);
    if (named && *named)
        str_add(&y->all, named);
    else
        from_site(&y->all);
    TRY(str_ok(&y->all));
    for (const char *p = str_text(&y->all); y->n < ADDRESSES && str_list_next(&p, one, sizeof one);) {
        size_t n = strlen(one);
        while (n > 0 && one[n - 1] == '/') one[--n] = 0;
        snprintf(y->address[y->n++], ADDRESS, "%s%.*s", strstr(one, "://") ? "" : "http://", ADDRESS - 8, one);
    }
    if (y->n > 0) return 0;
    return FAIL_AT(
        E805, NULL,
        "--manager http://HOST:8088   or   export STRETTO_YARN=..   or   export HADOOP_CONF_DIR=..   (with yarn-site.xml)",
        "the ResourceManager of the cluster is not known");
}

/* ------------------------------------------------------------------ requests ------------------------------------------------ */

static err ask_at(struct yarn *y, i32 at, const char *method, const char *path, const char *body, struct http_reply *r) {
    struct str url = {0};
    str_addf(&url, "%s%s%suser.name=", y->address[at], path, strchr(path, '?') ? "&" : "?");
    http_escape(&url, *http_hadoop_user() ? http_hadoop_user() : "root", "");
    err e = str_ok(&url);
    if (e >= 0)
        e = http_ask(y->http,
                     &(struct http_request){.method = method,
                                            .url = str_text(&url),
                                            .type = "application/json",
                                            .body = body,
                                            .n = body ? (i64)strlen(body) : 0},
                     r);
    str_free(&url);
    return e;
}

bool yarn_fetch(struct yarn *y, const char *url, struct str *out) {
    const struct err_record before = *err_last();
    struct http_reply r = {0};
    struct str whole = {0};
    str_addf(&whole, "%s?user.name=", url);
    http_escape(&whole, *http_hadoop_user() ? http_hadoop_user() : "root", "");
    const bool good =
        str_ok(&whole) >= 0 && http_ask(y->http, &(struct http_request){.url = str_text(&whole)}, &r) >= 0 && r.status == 200;
    if (good) str_addn(out, str_text(&r.body), r.body.len);
    http_reply_free(&r);
    str_free(&whole);
    err_put(&before);
    return good && str_ok(out) >= 0;
}

bool yarn_file_system(struct yarn *y, char out[256]) {
    char url[ADDRESS + 8];
    struct str text = {0};
    snprintf(url, sizeof url, "%s/conf", y->address[y->at]);
    const bool known = yarn_fetch(y, url, &text) && property(str_text(&text), "fs.defaultFS", out, 256);
    if (!known) out[0] = 0;
    str_free(&text);
    return known;
}

/* Is this ResourceManager the active one?  A stand-by one forwards what it is asked to the active one, where it knows it. */
static bool is_active(struct yarn *y, i32 at) {
    struct http_reply r = {0};
    struct js *o = NULL;
    bool active = false;
    if (ask_at(y, at, "GET", "/ws/v1/cluster/info", NULL, &r) >= 0 && r.status == 200 &&
        js_parse_foreign(str_text(&r.body), r.body.len, "cluster/info", &o) >= 0) {
        const char *state = js_str(js_get(js_get(o, "clusterInfo"), "haState"), "ACTIVE");
        active = js_get(o, "clusterInfo") != NULL && strcmp(state, "ACTIVE") == 0;
    }
    js_free(o);
    http_reply_free(&r);
    return active;
}

static bool find_active(struct yarn *y) {
    for (i32 k = 0; k < y->n; k++)
        if (is_active(y, (y->at + k) % y->n)) return y->at = (y->at + k) % y->n, true;
    return false;
}

err yarn_ask(struct yarn *y, const char *method, const char *path, const char *body, f64 patience, struct js **answer,
             i32 *status) {
    struct http_reply r = {0};
    const f64 begin = clock_now();
    *answer = NULL;
    for (f64 pause = 0.2;; pause = dmin(2 * pause, 5)) {
        err e = ask_at(y, y->at, method, path, body, &r);
        const bool again = e == -UNREACHABLE || (e >= 0 && r.status == UNAVAILABLE);
        *status = r.status;
        if (e >= 0 && !again && js_parse_foreign(str_text(&r.body), r.body.len, path, answer) < 0) *answer = NULL;
        http_reply_free(&r);
        if (!again || clock_now() - begin > patience) return e < 0 ? e : 0;
        clock_sleep(pause);
        find_active(y);
    }
}

err yarn_refused(const char *what, const struct js *answer, i32 status) {
    const char *why = js_str(js_get(answer, "diagnostics"), NULL);
    if (!why) why = js_str(js_get(js_get(answer, "RemoteException"), "message"), NULL);
    if (status == 401 || status == 403)
        return FAIL_AT(E805, NULL, "kinit   (a cluster with Kerberos)   or   HADOOP_USER_NAME=NAME",
                       "YARN refuses %s to this user (%d)%s%s", what, status, why ? ": " : "", why ? why : "");
    if (status == 404)
        return FAIL_AT(E805, NULL,
                       "yarn.webapp.api-service.enable true in yarn-site.xml of the ResourceManager   (YARN services, " DOCS ")",
                       "%s: this ResourceManager has no such service%s%s", what, why ? ": " : "", why ? why : "");
    return FAIL_AT(E805, NULL, "--dry-run   (prints the service); " DOCS " has what the cluster must allow",
                   "%s: YARN answers %d: %.600s", what, status, why ? why : "no reason given");
}

err yarn_open(const char *wish, struct yarn **out) {
    struct yarn *y;
    *out = NULL;
    NEW(y, 1);
    err e = find_addresses(y, wish);
    if (e >= 0) e = http_open(&y->http);
    if (e >= 0 && !find_active(y)) {
        struct http_reply r;
        e = ask_at(y, 0, "GET", "/ws/v1/cluster/info", NULL, &r);
        if (e >= 0)
            e = FAIL_AT(E805, y->address[0], "--manager URL of the ResourceManager   (port 8088 by default)",
                        "this is no active ResourceManager of YARN (it answers %d)", r.status);
        http_reply_free(&r);
    }
    if (e < 0)
        yarn_close(y);
    else
        *out = y;
    return e;
}

void yarn_close(struct yarn *y) {
    if (!y) return;
    http_close(y->http);
    str_free(&y->all);
    mem_free(y);
}

const char *yarn_addresses(const struct yarn *y) { return str_text(&y->all); }

/* ------------------------------------------------------------------ answers ------------------------------------------------- */

void yarn_state_read(const struct js *answer, struct yarn_state *out) {
    const struct js *app = js_get(answer, "app");
    *out = (struct yarn_state){.known = app != NULL};
    snprintf(out->name, sizeof out->name, "%s", js_str(js_get(app, "state"), ""));
    snprintf(out->end, sizeof out->end, "%s", js_str(js_get(app, "finalStatus"), ""));
    snprintf(out->service, sizeof out->service, "%s", js_str(js_get(app, "name"), ""));
    snprintf(out->why, sizeof out->why, "%.399s", js_str(js_get(app, "diagnostics"), ""));
    out->over = strcmp(out->name, "FINISHED") == 0 || strcmp(out->name, "FAILED") == 0 || strcmp(out->name, "KILLED") == 0;
}

/* The value of an attribute of a node; "" = none. */
static const char *attribute(const struct js *node, const char *name) {
    const struct js *all = js_get(js_get(node, "nodeAttributesInfo"), "nodeAttributeInfo");
    for (i64 i = 0; i < js_len(all); i++)
        if (strcmp(js_str(js_get(js_at(all, i), "name"), ""), name) == 0) return js_str(js_get(js_at(all, i), "value"), "");
    return "";
}

/* A list of texts, which is a single text where it has one element. */
static bool lists(const struct js *list, const char *word) {
    for (i64 i = 0; i < js_len(list); i++)
        if (strcmp(js_str(js_at(list, i), ""), word) == 0) return true;
    return strcmp(js_str(list, ""), word) == 0;
}

/* Adds the label of a node, which has at most one, to a list with commas. */
static void note_label(const struct js *labels, char all[YARN_LABELS]) {
    const char *label = js_str(js_at(labels, 0), js_str(labels, ""));
    const size_t n = strlen(all), length = strlen(label);
    for (const char *at = all; (at = strstr(at, label)) && length; at++)
        if ((at == all || at[-1] == ' ') && (at[length] == ',' || !at[length])) return;
    if (length) snprintf(all + n, YARN_LABELS - n, "%s%s", n ? ", " : "", label);
}

/* What a node has: used and free together, as only their sum holds where YARN overbooks a node (less than nothing is free then).
 * Bounded, whatever the answer says. */
static i64 node_has(const struct js *node, const char *used, const char *available) {
    const i64 most = (i64)1 << 30, a = js_i64(js_get(node, used), 0), b = js_i64(js_get(node, available), 0);
    return lmax(0, lmin(most, lmax(-most, lmin(most, a)) + lmax(-most, lmin(most, b))));
}

void yarn_nodes_read(const struct js *answer, const char *label, struct yarn_nodes *out) {
    const struct js *all = js_get(js_get(answer, "nodes"), "node");
    *out = (struct yarn_nodes){0};
    for (i64 i = 0; i < js_len(all); i++) {
        const struct js *node = js_at(all, i);
        const char *load = attribute(node, "gpuload");
        const i64 memory = node_has(node, "usedMemoryMB", "availMemoryMB") << 20;
        const i64 cores = node_has(node, "usedVirtualCores", "availableVirtualCores");
        if (strcmp(js_str(js_get(node, "state"), ""), "RUNNING") != 0) continue;
        note_label(js_get(node, "nodeLabels"), out->labels);
        if (label && !lists(js_get(node, "nodeLabels"), label)) continue;
        out->running++;
        out->idle += strcmp(load, "idle") == 0;
        out->light += strcmp(load, "light") == 0;
        out->busy += strcmp(load, "busy") == 0;
        out->memory += (f64)memory;
        out->most_memory = lmax(out->most_memory, memory);
        out->most_cores = imax(out->most_cores, (i32)cores);
    }
}

/* A queue is named by its last part, or by its path from root on. */
static bool is_queue(const struct js *info, const char *queue) {
    return strcmp(js_str(js_get(info, "queueName"), ""), queue) == 0 || strcmp(js_str(js_get(info, "queuePath"), ""), queue) == 0;
}

/* Queues are nested. */
static const struct js *find_queue(const struct js *info, const char *queue) {
    const struct js *all = js_get(js_get(info, "queues"), "queue"), *found = NULL;
    if (is_queue(info, queue)) return info;
    for (i64 i = 0; !found && i < js_len(all); i++) found = find_queue(js_at(all, i), queue);
    return found;
}

f64 yarn_queue_most(const struct js *answer, const char *queue) {
    const struct js *info = js_get(js_get(answer, "scheduler"), "schedulerInfo");
    const struct js *found = info ? find_queue(info, queue ? queue : "default") : NULL;
    const f64 most = js_f64(js_get(found, "absoluteMaxCapacity"), 100);
    return most > 0 && most < 100 ? most : 100;
}

/* A queue without labels has no list. */
bool yarn_queue_reaches(const struct js *answer, const char *queue, const char *label) {
    const struct js *info = js_get(js_get(answer, "scheduler"), "schedulerInfo");
    const struct js *found = info ? find_queue(info, queue ? queue : "default") : NULL, *labels = js_get(found, "nodeLabels");
    return !found || lists(labels, "*") || lists(labels, label);
}

bool yarn_has_queue(const struct js *answer, const char *queue) {
    const struct js *info = js_get(js_get(answer, "scheduler"), "schedulerInfo");
    return !info || js_len(js_get(js_get(info, "queues"), "queue")) == 0 ||
           find_queue(info, queue) != NULL; /* unknown: YARN decides */
}

/* ------------------------------------------------------------------ in a container ------------------------------------------ */

bool yarn_is_here(void) {
    const char *container = getenv("CONTAINER_ID");
    return container && *container;
}

i32 yarn_leave(const struct launch_job *job, i32 status) {
    const char *container = getenv("CONTAINER_ID");
    char id[80], path[128];
    long long stamp;
    int number;
    struct yarn *y;
    struct js *answer = NULL;
    i32 http = 0;
    if (!yarn_is_here()) return status;
    if (status == 0 || status == JOIN_GIVEN_BACK) return status;
    const char *from = strncmp(container, "container_e", 11) == 0 ? strchr(container + 11, '_') : container + strlen("container");
    if (!from || sscanf(from, "_%lld_%d", &stamp, &number) != 2) return 0;
    snprintf(id, sizeof id, "application_%lld_%04d", stamp, number);
    snprintf(path, sizeof path, "/ws/v1/cluster/apps/%s/state", id);
    if (yarn_open(NULL, &y) < 0) return 0;
    if (yarn_ask(y, "PUT", path, "{\"state\": \"KILLED\"}", 10, &answer, &http) >= 0)
        launch_say(job, "the job ended with exit status %d: %s is marked as killed (HTTP %d)", status, id, http);
    js_free(answer);
    yarn_close(y);
    return 0;
}

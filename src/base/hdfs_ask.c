/* hdfs_ask.c - see hdfs_ask.h: addresses, users, redirects, refusals in one sentence, attempts. */
#include "base/hdfs_ask.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"

#define FIRST_WAIT 0.05 /* seconds before the second attempt; doubles up to LAST_WAIT */
#define LAST_WAIT 2.0
#define PATIENCE 30.0   /* seconds of attempts on a server that has answered, or STRETTO_HDFS_PATIENCE */
#define FIRST_PATIENCE 1.0 /* of a server that has not answered, or not since the last attempts */

enum { HOSTS = 8, NAME = 256, REDIRECT = 307, UNAUTHORISED = 401, FORBIDDEN = 403, ABSENT = 404, SERVER = 500 };

static _Atomic i32 active;      /* the name node of the list that answered last */
static _Atomic bool reached;    /* some name node has answered */
static _Atomic bool no_user;    /* a secure name node wants the user of the ticket only */

/* ------------------------------------------------------------------ addresses ----------------------------------------------- */

static const struct {
    const char *front, *http;
    i32 port;
} schemes[] = {{"hdfs://", "http://", 9870}, {"webhdfs://", "http://", 9870}, {"swebhdfs://", "https://", 9871}};

static i32 scheme_of(const char *path) {
    for (i32 i = 0; i < (i32)COUNT(schemes); i++)
        if (strncmp(path, schemes[i].front, strlen(schemes[i].front)) == 0) return i;
    return -1;
}

bool hdfs_is(const char *path) { return path && scheme_of(path) >= 0; }

static const char *hosts_of(const char *path) { return path + strlen(schemes[scheme_of(path)].front); }

/* The path below the hosts: it begins with '/'. */
static const char *name_of(const char *path) {
    const char *hosts = hosts_of(path);
    return hosts + strcspn(hosts, "/");
}

static i32 host_count(const char *path) {
    i32 n = 1;
    for (const char *p = hosts_of(path); *p && *p != '/'; p++) n += *p == ',';
    return n;
}

/* "host:port" of name node k of the list. */
static void host_at(const char *path, i32 k, char out[NAME]) {
    const char *p = hosts_of(path);
    for (; k > 0; k--) p += strcspn(p, ",/") + 1;
    const i32 n = (i32)strcspn(p, ",/");
    const bool port = memchr(p, ':', (size_t)n) != NULL;
    if (port) str_print(out, NAME, "%.*s", n, p);
    else str_print(out, NAME, "%.*s:%d", n, p, schemes[scheme_of(path)].port);
}

err hdfs_begin(const char *path, struct hdfs *h) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:,[]";
    const char *hosts = hosts_of(path);
    const size_t n = strspn(hosts, plain);
    *h = (struct hdfs){.path = path};
    if (n == 0 || hosts[n] != '/' || host_count(path) > HOSTS)
        return FAIL_AT(E701, path, "hdfs://HOST:9870/PATH   (the HTTP address of the name node)", "this is no address of a file");
    return http_open(&h->http);
}

void hdfs_end(struct hdfs *h) { http_close(h->http); }

static void add_user(struct str *url) {
    const char *token = getenv("STRETTO_HDFS_TOKEN"), *user = http_hadoop_user();
    if (token && *token) {
        str_add(url, "&delegation=");
        http_escape(url, token, "");
        return;
    }
    if (!*user || atomic_load(&no_user)) return;
    str_add(url, "&user.name=");
    http_escape(url, user, "");
}

static void name_node_url(const struct hdfs *h, const struct hdfs_ask *a, const char *host, struct str *url) {
    str_addf(url, "%s%s/webhdfs/v1", schemes[scheme_of(h->path)].http, host);
    http_escape(url, name_of(h->path), "/");
    str_addf(url, "?%s", a->query);
    if (a->data && h->avoid[0]) {
        str_add(url, "&excludedatanodes=");
        http_escape(url, h->avoid, "");
    }
    add_user(url);
}

/* ------------------------------------------------------------------ refusals ------------------------------------------------ */

/* What the server says in a RemoteException, or the first line of another answer. */
struct refusal {
    i32 status;
    char kind[NAME], text[600];
};

static void read_refusal(const struct http_reply *r, struct refusal *out) {
    struct js *root = NULL;
    const struct err_record before = *err_last();
    *out = (struct refusal){.status = r->status};
    str_print(out->text, sizeof out->text, "%.*s", (i32)strcspn(str_text(&r->body), "\r\n"), str_text(&r->body));
    if (r->body.len > 0 && js_parse(r->body.s, r->body.len, "the answer", &root) >= 0) {
        const struct js *x = js_get(root, "RemoteException");
        const char *text = js_str(js_get(x, "message"), "no reason is given");
        str_print(out->kind, NAME, "%s", js_str(js_get(x, "exception"), ""));
        str_print(out->text, sizeof out->text, "%.*s", (i32)strcspn(text, "\r\n"), text);
    }
    js_free(root);
    err_put(&before);
}

static bool is_kind(const struct refusal *r, const char *kind) { return strstr(r->kind, kind) != NULL; }

static bool may_pass(const struct refusal *r) {
    static const char *const kinds[] = {"StandbyException", "RetriableException", "SafeModeException", "ConnectException"};
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (is_kind(r, kinds[i]) || strstr(r->text, kinds[i])) return true;
    return r->status >= SERVER;
}

static err not_usable(const struct hdfs *h, const struct refusal *r) {
    if (strstr(r->text, "Hadoop IPC port"))
        return FAIL_AT(E706, h->path, "hdfs://HOST:9870/PATH   (dfs.namenode.http-address of hdfs-site.xml)",
                       "this is the RPC port of the name node; WebHDFS is on its HTTP port");
    if (r->status == UNAUTHORISED || is_kind(r, "InvalidToken") || is_kind(r, "AuthenticationException"))
        return FAIL_AT(E706, h->path, "kinit   or   STRETTO_HDFS_TOKEN=TOKEN   (a delegation token that is valid)",
                       "HDFS refuses the login: %s", r->text[0] ? r->text : "401 Unauthorized");
    if (is_kind(r, "StandbyException"))
        return FAIL_AT(E706, h->path, "hdfs://ACTIVE:9870/PATH   or both: hdfs://A:9870,B:9870/PATH",
                       "the name node is on standby");
    if (is_kind(r, "SafeModeException"))
        return FAIL_AT(E706, h->path, "wait, or: hdfs dfsadmin -safemode get", "the name node is in safe mode: %s", r->text);
    if (r->status >= SERVER || is_kind(r, "RetriableException"))
        return FAIL_AT(E706, h->path, "see the log of the name node or data node; then run again",
                       "HDFS fails with status %d: %s", r->status, r->text);
    return FAIL_AT(E706, h->path, "hdfs://HOST:9870/PATH   (dfs.namenode.http-address of hdfs-site.xml)",
                   "this server does not answer like WebHDFS: status %d %.200s", r->status, r->text);
}

static err refused(const struct hdfs *h, const struct hdfs_ask *a, const struct refusal *r) {
    const enum err_code code = a->writes ? E702 : E701;
    const char *what = a->writes ? "write" : "read";
    if (is_kind(r, "InvalidToken") || !r->kind[0] || may_pass(r) || r->status == UNAUTHORISED) return not_usable(h, r);
    if (is_kind(r, "FileNotFoundException"))
        return FAIL_AT(code, h->path, a->writes ? "hdfs dfs -mkdir -p FOLDER" : "check the name and the folder",
                       "cannot %s the file: it is not in HDFS", what);
    if (is_kind(r, "AccessControlException") || is_kind(r, "SecurityException"))
        return FAIL_AT(code, h->path, "hdfs dfs -chmod or -chown, or HADOOP_USER_NAME=OWNER",
                       "HDFS does not let you %s this: %s", what, r->text);
    if (is_kind(r, "QuotaExceededException"))
        return FAIL_AT(E703, h->path, "make room, or ask for a larger quota (hdfs dfsadmin -setSpaceQuota)",
                       "the quota is used up: %s", r->text);
    return FAIL_AT(code, h->path, NULL, "HDFS cannot %s this: %s: %s", what, r->kind, r->text);
}

/* ------------------------------------------------------------------ one attempt --------------------------------------------- */

static err no_answer(struct hdfs *h, const char *who) {
    const struct err_record r = *err_last();
    if (r.code != E811) return -r.code; /* of take, or of memory */
    h->passes = true;
    return FAIL_AT(E706, h->path, "is it the HTTP address of the name node (dfs.namenode.http-address), and is it up?",
                   "the %s cannot be used: %.700s", who, r.text);
}

static err judge(struct hdfs *h, const struct hdfs_ask *a, struct http_reply *r) {
    struct refusal why;
    if (r->status / 100 == 2) return 0;
    read_refusal(r, &why);
    if (a->absent && r->status == ABSENT && is_kind(&why, "FileNotFoundException")) {
        *a->absent = true;
        return 0;
    }
    h->passes = may_pass(&why);
    if (strstr(why.text, "Usernames not matched") && !getenv("HADOOP_USER_NAME")) h->passes = !atomic_exchange(&no_user, true);
    if (is_kind(&why, "StandbyException")) atomic_fetch_add(&active, 1);
    if (h->avoid[0] && a->data && r->status == FORBIDDEN) { /* perhaps there is no other data node */
        h->avoid[0] = 0;
        h->passes = true;
    }
    return refused(h, a, &why);
}

/* Keeps the host of a data node that failed, so that the name node chooses another one. */
static void avoid(struct hdfs *h, const char *location) {
    const char *p = strstr(location, "://");
    const size_t n = p ? strcspn(p + 3, ":/") : 0;
    if (n > 0 && n < sizeof h->avoid) str_print(h->avoid, sizeof h->avoid, "%.*s", (i32)n, p + 3);
}

static err ask_data_node(struct hdfs *h, const struct hdfs_ask *a, struct http_reply *r) {
    char location[HTTP_URL];
    memcpy(location, r->location, sizeof location);
    http_reply_free(r);
    const struct http_request q = {
        .method = a->method, .url = location, .body = a->body, .n = a->n, .take = a->take, .self = a->self};
    err e = http_ask(h->http, &q, r);
    e = e < 0 ? no_answer(h, "data node") : judge(h, a, r);
    if (e < 0 && h->passes) avoid(h, location);
    return e;
}

err hdfs_once(struct hdfs *h, const struct hdfs_ask *a, struct str *answer) {
    char host[NAME];
    struct str url = {0};
    struct http_reply r = {0};
    h->passes = false;
    if (a->absent) *a->absent = false;
    host_at(h->path, atomic_load(&active) % host_count(h->path), host);
    name_node_url(h, a, host, &url);
    err e = str_ok(&url);
    const struct http_request q = {.method = a->method, .url = str_text(&url), .stay = true, .take = a->take, .self = a->self};
    if (e >= 0 && (e = http_ask(h->http, &q, &r)) < 0) {
        e = no_answer(h, "name node");
        atomic_fetch_add(&active, 1);
    } else if (e >= 0) {
        atomic_store(&reached, true);
        if (r.status != REDIRECT) e = judge(h, a, &r);
        else if (!r.location[0] || !a->data) e = not_usable(h, &(struct refusal){.status = r.status, .text = "a redirect"});
        else e = ask_data_node(h, a, &r);
    }
    if (e >= 0 && answer) str_addn(answer, str_text(&r.body), r.body.len);
    str_free(&url);
    http_reply_free(&r);
    return e < 0 ? e : answer ? str_ok(answer) : 0;
}

/* ------------------------------------------------------------------ attempts ------------------------------------------------ */

static f64 patience(void) {
    const char *given = getenv("STRETTO_HDFS_PATIENCE");
    f64 seconds = PATIENCE;
    if (given && (!str_to_f64(given, strlen(given), '.', &seconds) || seconds < 0)) seconds = PATIENCE;
    return atomic_load(&reached) ? seconds : dmin(seconds, FIRST_PATIENCE);
}

/* Sleeps in short intervals, so that a stop is noticed. */
static bool sleep_for(const struct hdfs *h, f64 seconds) {
    enum { SLICE_NS = 10000000 };
    for (const f64 until = clock_now() + seconds; clock_now() < until;) {
        if (h->stop && atomic_load(h->stop)) return false;
        nanosleep(&(struct timespec){.tv_nsec = SLICE_NS}, NULL);
    }
    return !(h->stop && atomic_load(h->stop));
}

bool hdfs_again(const struct hdfs *h, struct hdfs_tries *t) {
    const f64 now = clock_now();
    if (!h->passes) return false;
    if (t->until <= 0) {
        t->until = now + patience();
        t->wait = FIRST_WAIT;
    }
    if (now >= t->until) {
        atomic_store(&reached, false); /* the next request does not wait as long again */
        return false;
    }
    const f64 part = now * 1e6 - (f64)(i64)(now * 1e6); /* clients that failed together do not return together */
    const f64 wait = dmin(t->wait * (0.75 + 0.5 * part), t->until - now);
    t->wait = dmin(2 * t->wait, LAST_WAIT);
    return sleep_for(h, wait);
}

err hdfs_ask(struct hdfs *h, const struct hdfs_ask *a, struct str *answer) {
    struct hdfs_tries tries = {0};
    err e;
    do {
        if (answer) str_free(answer);
        e = hdfs_once(h, a, answer);
    } while (e < 0 && hdfs_again(h, &tries));
    return e;
}

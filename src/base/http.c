/* http.c - libcurl by dlopen: a program that asks no server needs no libcurl.
 *
 *     libcurl.so.4 or $STRETTO_CURL
 *
 * The numbers below are libcurl's binary interface, unchanged since 7.19 of 2008. */
#define _GNU_SOURCE
#include "base/http.h"

#include <dlfcn.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/library.h"
#include "base/mem.h"

#define LIBRARY "libcurl.so.4"

enum {
    OPT_WRITEDATA = 10001, OPT_URL = 10002, OPT_USERPWD = 10005, OPT_ERRORBUFFER = 10010, OPT_POSTFIELDS = 10015,
    OPT_USERAGENT = 10018, OPT_HTTPHEADER = 10023, OPT_CUSTOMREQUEST = 10036, OPT_WRITEFUNCTION = 20011,
    OPT_POSTFIELDSIZE = 30120, OPT_LOW_SPEED_LIMIT = 19, OPT_LOW_SPEED_TIME = 20, OPT_FOLLOWLOCATION = 52, OPT_MAXREDIRS = 68,
    OPT_NOSIGNAL = 99, OPT_HTTPAUTH = 107, OPT_CONNECTTIMEOUT_MS = 156, OPT_PROTOCOLS = 181, OPT_REDIR_PROTOCOLS = 182,
    INFO_STATUS = 0x200000 + 2, INFO_AUTH_OFFERED = 0x200000 + 23, INFO_REDIRECT = 0x100000 + 31,
    GLOBAL_DEFAULT = 3, HTTP_AND_HTTPS = 1 | 2, AUTH_NEGOTIATE = 1 << 2, WHY = 256, REDIRECTS = 8, CONNECT_MOST = 10000
};
enum { CURL_RESOLVE = 6, CURL_CONNECT = 7, CURL_TIMED_OUT = 28 };

struct curl {
    int (*global_init)(long flags);
    void *(*init)(void);
    void (*reset)(void *easy);
    void (*cleanup)(void *easy);
    int (*set)(void *easy, int option, ...);
    int (*perform)(void *easy);
    int (*info)(void *easy, int what, ...);
    const char *(*text)(int status);
    void *(*list_add)(void *list, const char *line);
    void (*list_free)(void *list);
    char why[WHY]; /* "" = open */
};

static struct curl curl;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool find(void *library, const char *symbol, void *call, size_t size) {
    const bool found = library_find(library, symbol, call, size);
    if (!found) str_print(curl.why, sizeof curl.why, "it has no %s", symbol);
    return found;
}

static void open_library(void) {
    const char *named = getenv("STRETTO_CURL"), *name = named && *named ? named : LIBRARY;
    void *l = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!l) {
        const char *why = dlerror();
        str_print(curl.why, sizeof curl.why, "%s", why ? why : "no reason is given");
        return;
    }
    const bool whole = find(l, "curl_global_init", &curl.global_init, sizeof curl.global_init) &&
                       find(l, "curl_easy_init", &curl.init, sizeof curl.init) &&
                       find(l, "curl_easy_reset", &curl.reset, sizeof curl.reset) &&
                       find(l, "curl_easy_cleanup", &curl.cleanup, sizeof curl.cleanup) &&
                       find(l, "curl_easy_setopt", &curl.set, sizeof curl.set) &&
                       find(l, "curl_easy_perform", &curl.perform, sizeof curl.perform) &&
                       find(l, "curl_easy_getinfo", &curl.info, sizeof curl.info) &&
                       find(l, "curl_easy_strerror", &curl.text, sizeof curl.text) &&
                       find(l, "curl_slist_append", &curl.list_add, sizeof curl.list_add) &&
                       find(l, "curl_slist_free_all", &curl.list_free, sizeof curl.list_free);
    if (whole && curl.global_init(GLOBAL_DEFAULT) != 0) str_print(curl.why, sizeof curl.why, "curl_global_init failed");
}

struct http {
    void *easy;
    bool kerberos;  /* the last server asked for it */
    char why[WHY];  /* libcurl's own words about the last failure */
};

err http_open(struct http **out) {
    *out = NULL;
    pthread_once(&once, open_library);
    if (curl.why[0])
        return FAIL_AT(E810, NULL, "install libcurl   (Debian and Ubuntu: package libcurl4), or STRETTO_CURL=FILE",
                       "libcurl cannot be opened: %s", curl.why);
    NEW(*out, 1);
    if (((*out)->easy = curl.init()) != NULL) return 0;
    http_close(*out);
    *out = NULL;
    return -E601;
}

void http_close(struct http *h) {
    if (h && h->easy) curl.cleanup(h->easy);
    mem_free(h);
}

/* ------------------------------------------------------------------ one request --------------------------------------------- */

struct receipt {
    struct http *h;
    const struct http_request *q;
    struct http_reply *r;
    err e; /* of q->take, or of memory */
};

static size_t receive(char *bytes, size_t one, size_t n, void *self) {
    struct receipt *x = self;
    long status = 0;
    curl.info(x->h->easy, INFO_STATUS, &status);
    n *= one;
    if (x->q->take && status / 100 == 2) x->e = x->q->take(x->q->self, bytes, n);
    else if (x->r->body.len + n > HTTP_ANSWER) x->e = FAIL(E811, "the answer is longer than %d bytes", HTTP_ANSWER);
    else {
        str_addn(&x->r->body, bytes, n);
        x->e = str_ok(&x->r->body);
    }
    return x->e < 0 ? 0 : n;
}

static void prepare(struct http *h, const struct http_request *q, struct receipt *x, void *header) {
    void *c = h->easy;
    const f64 patience = q->patience > 0 ? q->patience : clock_deadline();
    curl.reset(c);
    curl.set(c, OPT_URL, q->url);
    curl.set(c, OPT_PROTOCOLS, (long)HTTP_AND_HTTPS);
    curl.set(c, OPT_REDIR_PROTOCOLS, (long)HTTP_AND_HTTPS);
    curl.set(c, OPT_NOSIGNAL, 1L);
    curl.set(c, OPT_USERAGENT, "stretto");
    curl.set(c, OPT_ERRORBUFFER, h->why);
    curl.set(c, OPT_CONNECTTIMEOUT_MS, (long)dmin(CONNECT_MOST, patience * 1000));
    curl.set(c, OPT_LOW_SPEED_LIMIT, 1L);
    curl.set(c, OPT_LOW_SPEED_TIME, (long)dmax(1, patience));
    curl.set(c, OPT_FOLLOWLOCATION, q->stay ? 0L : 1L);
    curl.set(c, OPT_MAXREDIRS, (long)REDIRECTS);
    curl.set(c, OPT_HTTPHEADER, header);
    curl.set(c, OPT_WRITEFUNCTION, receive);
    curl.set(c, OPT_WRITEDATA, (void *)x);
    if (q->n > 0 || (q->method && strcmp(q->method, "GET") != 0)) {
        curl.set(c, OPT_POSTFIELDS, q->n > 0 ? q->body : (const void *)"");
        curl.set(c, OPT_POSTFIELDSIZE, q->n);
        curl.set(c, OPT_CUSTOMREQUEST, q->method ? q->method : "POST");
    }
    if (!h->kerberos) return;
    curl.set(c, OPT_HTTPAUTH, (long)AUTH_NEGOTIATE);
    curl.set(c, OPT_USERPWD, ":");
}

/* "http://host:port" of a URL: what a message needs. */
static i32 server_of(const char *url) {
    const char *p = strstr(url, "://");
    return (i32)((p ? p + 3 + strcspn(p + 3, "/?#") : url + strlen(url)) - url);
}

static err no_answer(struct http *h, const struct http_request *q, int status) {
    const bool absent = status == CURL_RESOLVE || status == CURL_CONNECT;
    const char *fix = absent                     ? "is the address right, the service up, and no firewall or proxy between?"
                      : status == CURL_TIMED_OUT ? "is the service well?   or   STRETTO_DEADLINE=SECONDS   (wait longer)"
                                                 : "the same command again";
    return FAIL_AT(E811, NULL, fix, "%.*s gave no %sanswer: %s", server_of(q->url), q->url, absent ? "" : "whole ",
                   h->why[0] ? h->why : curl.text(status));
}

static err once_over(struct http *h, const struct http_request *q, struct http_reply *out) {
    char line[256];
    struct receipt x = {h, q, out, 0};
    long status = 0;
    const char *location = NULL;
    str_print(line, sizeof line, "Content-Type: %s", q->type ? q->type : "application/octet-stream");
    void *header = curl.list_add(NULL, "Expect:"); /* no round trip before a body */
    if (header && q->n > 0) curl.list_add(header, line);
    h->why[0] = 0;
    prepare(h, q, &x, header);
    const int end = curl.perform(h->easy);
    curl.info(h->easy, INFO_STATUS, &status);
    curl.info(h->easy, INFO_REDIRECT, &location);
    out->status = (i32)status;
    if (location) str_print(out->location, sizeof out->location, "%s", location);
    curl.list_free(header);
    if (x.e < 0) return x.e;
    return end == 0 ? 0 : no_answer(h, q, end);
}

err http_ask(struct http *h, const struct http_request *q, struct http_reply *out) {
    enum { UNAUTHORISED = 401 };
    long offered = 0;
    *out = (struct http_reply){0};
    TRY(once_over(h, q, out));
    curl.info(h->easy, INFO_AUTH_OFFERED, &offered);
    if (out->status != UNAUTHORISED || h->kerberos || !(offered & AUTH_NEGOTIATE)) return 0;
    http_reply_free(out);
    h->kerberos = true;
    return once_over(h, q, out);
}

static char login[256];
static pthread_once_t login_once = PTHREAD_ONCE_INIT;

static void find_login(void) {
    const struct passwd *p = getpwuid(geteuid());
    if (p) str_print(login, sizeof login, "%s", p->pw_name);
}

const char *http_hadoop_user(void) {
    const char *named = getenv("HADOOP_USER_NAME");
    if (named && *named) return named;
    pthread_once(&login_once, find_login);
    return login;
}

void http_reply_free(struct http_reply *r) {
    str_free(&r->body);
    *r = (struct http_reply){0};
}

void http_escape(struct str *out, const char *text, const char *keep) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    for (; *text; text++) {
        if (strchr(plain, *text) || strchr(keep, *text)) str_addn(out, text, 1);
        else str_addf(out, "%%%02X", (unsigned char)*text);
    }
}

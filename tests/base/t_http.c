/* t_http.c - requests to a server of this test: bodies both ways, redirects, refusals, an answer that breaks off. */
#define _GNU_SOURCE
#include "t.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http.h"
#include "base/mem.h"

enum { ASKED = 8192, URL = 128 };

struct server {
    int at, port;
    pthread_t thread;
    char asked[ASKED]; /* the last request */
};

static const char *const answers[][2] = {
    {"/hello", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
    {"/absent", "HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nno file"},
    {"/moved", "HTTP/1.1 307 Moved\r\nLocation: /hello\r\nContent-Length: 0\r\n\r\n"},
    {"/cut", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"},
    {"/file", "HTTP/1.1 307 Moved\r\nLocation: file:///etc/hostname\r\nContent-Length: 0\r\n\r\n"},
    {"/silent", ""},
    {"/stop", NULL},
};

static const char *answer_to(const char *asked) {
    const char *path = strchr(asked, ' ') + 1;
    for (size_t i = 0; i < COUNT(answers); i++)
        if (strncmp(path, answers[i][0], strlen(answers[i][0])) == 0) return answers[i][1];
    return answers[1][1];
}

/* The whole request: head, and as many bytes of body as it says. */
static void read_request(int to, char *asked) {
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n < ASKED - 1; n += (size_t)got) {
        const char *end = strstr(asked, "\r\n\r\n"), *length = strcasestr(asked, "content-length:");
        const size_t body = length ? strtoul(length + strlen("content-length:"), NULL, 10) : 0;
        if (end && n >= (size_t)(end + 4 - asked) + body) break;
        got = read(to, asked + n, ASKED - 1 - n);
        asked[got > 0 ? n + (size_t)got : n] = 0;
    }
}

static void *serve(void *self) {
    struct server *s = self;
    for (;;) {
        const int to = accept(s->at, NULL, NULL);
        s->asked[0] = 0;
        read_request(to, s->asked);
        const char *answer = s->asked[0] ? answer_to(s->asked) : "";
        if (answer && !*answer) usleep(1500000); /* longer than the patience of its request */
        if (answer && write(to, answer, strlen(answer)) < 0) answer = "";
        close(to); /* each connection has one request */
        if (!answer) return NULL;
    }
}

static void begin(struct server *s) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof a;
    s->at = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(s->at, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(s->at, 8), 0);
    assert_int_equal(getsockname(s->at, (struct sockaddr *)&a, &n), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static const char *url_of(const struct server *s, const char *path) {
    static char url[URL];
    snprintf(url, sizeof url, "http://127.0.0.1:%d%s", s->port, path);
    return url;
}

static struct http *session(void) {
    struct http *h;
    if (http_open(&h) < 0) {
        print_message("skipped: %s\n", err_last()->text);
        skip();
    }
    return h;
}

static err add(void *self, const void *bytes, size_t n) {
    str_addn(self, bytes, n);
    return 0;
}
static err refuse(void *self, const void *bytes, size_t n) { return (void)self, (void)bytes, (void)n, FAIL(E703, "no room"); }

TEST(http_requests_and_answers) {
    struct http *h = session();
    struct server s = {0};
    struct http_reply r;
    struct str text = {0};
    begin(&s);
    T_OK(http_ask(h, &(struct http_request){.url = url_of(&s, "/hello")}, &r));
    assert_int_equal(r.status, 200);
    assert_string_equal(str_text(&r.body), "hello");
    http_reply_free(&r);
    T_OK(http_ask(h, &(struct http_request){.url = url_of(&s, "/hello"), .take = add, .self = &text}, &r));
    assert_string_equal(str_text(&text), "hello");
    assert_string_equal(str_text(&r.body), "");
    http_reply_free(&r);
    T_OK(http_ask(h, &(struct http_request){.url = url_of(&s, "/absent"), .take = add, .self = &text}, &r));
    assert_int_equal(r.status, 404);
    assert_string_equal(str_text(&text), "hello"); /* a refusal is no data */
    assert_string_equal(str_text(&r.body), "no file");
    http_reply_free(&r);
    T_OK(http_ask(h, &(struct http_request){"PUT", url_of(&s, "/hello"), "application/json", "{\"a\":1}", 7, .stay = true}, &r));
    http_reply_free(&r);
    assert_non_null(strstr(s.asked, "PUT /hello"));
    assert_non_null(strstr(s.asked, "Content-Type: application/json"));
    assert_non_null(strstr(s.asked, "{\"a\":1}"));
    T_OK(http_ask(h, &(struct http_request){.method = "DELETE", .url = url_of(&s, "/hello")}, &r));
    http_reply_free(&r);
    assert_non_null(strstr(s.asked, "DELETE /hello"));
    T_FAILS(http_ask(h, &(struct http_request){.url = url_of(&s, "/stop")}, &r), 811);
    http_reply_free(&r);
    pthread_join(s.thread, NULL);
    close(s.at);
    str_free(&text);
    http_close(h);
}

TEST(http_redirects_and_failures) {
    struct http *h = session();
    struct server s = {0};
    struct http_reply r;
    begin(&s);
    T_OK(http_ask(h, &(struct http_request){.url = url_of(&s, "/moved")}, &r));
    assert_string_equal(str_text(&r.body), "hello");
    http_reply_free(&r);
    T_OK(http_ask(h, &(struct http_request){.url = url_of(&s, "/moved"), .stay = true}, &r));
    assert_int_equal(r.status, 307);
    assert_non_null(strstr(r.location, "/hello"));
    http_reply_free(&r);
    T_FAILS(http_ask(h, &(struct http_request){.url = url_of(&s, "/cut")}, &r), 811);
    http_reply_free(&r);
    T_FAILS(http_ask(h, &(struct http_request){.url = url_of(&s, "/file")}, &r), 811); /* a server must not name local files */
    http_reply_free(&r);
    T_FAILS(http_ask(h, &(struct http_request){.url = "file:///etc/hostname"}, &r), 811);
    http_reply_free(&r);
    T_FAILS(http_ask(h, &(struct http_request){.url = url_of(&s, "/silent"), .patience = 1}, &r), 811);
    http_reply_free(&r);
    T_FAILS(http_ask(h, &(struct http_request){.url = url_of(&s, "/hello"), .take = refuse}, &r), 703);
    http_reply_free(&r);
    T_FAILS(http_ask(h, &(struct http_request){.url = url_of(&s, "/stop")}, &r), 811);
    http_reply_free(&r);
    pthread_join(s.thread, NULL);
    close(s.at);
    T_FAILS(http_ask(h, &(struct http_request){.url = url_of(&s, "/hello")}, &r), 811); /* nobody is there */
    assert_non_null(strstr(err_last()->text, "127.0.0.1"));
    http_reply_free(&r);
    http_close(h);
}

TEST(http_escapes_what_urls_cannot_hold) {
    struct str s = {0};
    http_escape(&s, "a b/c%ü&=?", "/");
    assert_string_equal(str_text(&s), "a%20b/c%25%C3%BC%26%3D%3F");
    str_free(&s);
}

T_MAIN(cmocka_unit_test(http_requests_and_answers), cmocka_unit_test(http_redirects_and_failures),
       cmocka_unit_test(http_escapes_what_urls_cannot_hold))

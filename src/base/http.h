/* http.h - requests over HTTP and HTTPS through libcurl, which is opened when the first request is made.
 *
 *     struct http *h;
 *     TRY(http_open(&h));                                    E810: no libcurl on this host
 *     struct http_reply r;
 *     TRY(http_ask(h, &(struct http_request){.url = url}, &r));
 *     if (r.status == 404) ..                                every answer is a reply, also one that refuses
 *     http_reply_free(&r);
 *     http_close(h);
 *
 * A session keeps its connections open for the next request and belongs to one thread.  Proxies, certificates and TLS follow
 * libcurl's own rules (http_proxy, SSL_CERT_FILE, ..).  A server that asks for Kerberos (401 with Negotiate, SPNEGO) gets
 * the ticket of the user (kinit).  Only http and https are spoken. */
#ifndef STRETTO_BASE_HTTP_H
#define STRETTO_BASE_HTTP_H

#include "base/str.h"

struct http;

enum { HTTP_URL = 4096, HTTP_ANSWER = 16 << 20 };

struct http_request {
    const char *method; /* NULL = GET */
    const char *url;
    const char *type;   /* Content-Type of the body; NULL = application/octet-stream */
    const void *body;   /* borrowed */
    i64 n;              /* bytes of the body; 0 = none */
    bool stay;          /* do not follow a redirect: reply.location has it */
    f64 patience;       /* seconds without a byte until the request is given up; 0 = clock_deadline() */
    /* Receives the body of a 2xx answer piece by piece, in order; an error of it ends the request.  NULL: reply.body holds it. */
    err (*take)(void *self, const void *bytes, size_t n);
    void *self;
};

struct http_reply {
    i32 status;             /* 200, 404, .. */
    struct str body;        /* without take, or of an answer that is not 2xx; at most HTTP_ANSWER bytes */
    char location[HTTP_URL]; /* of a redirect that was not followed; "" = none */
};

err http_open(struct http **out);
void http_close(struct http *h); /* NULL is allowed */
/* E811 when there is no whole answer: no connection, a connection that ends early, no byte within the patience.  Free the
 * reply in any case. */
err http_ask(struct http *h, const struct http_request *q, struct http_reply *out);
void http_reply_free(struct http_reply *r);
/* The user of Hadoop's services where there is no Kerberos: $HADOOP_USER_NAME, else the login name; "" = neither is known. */
const char *http_hadoop_user(void);
/* Appends a text, percent-encoded but for letters, digits, -._~ and the characters of `keep`. */
void http_escape(struct str *out, const char *text, const char *keep);

#endif

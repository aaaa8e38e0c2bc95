/* hdfs_ask.h - one WebHDFS operation; private to hdfs*.c.
 *
 *     PUT /webhdfs/v1/dir/file?op=CREATE   -->  name node: 307, Location: http://data-node/..   -->  PUT with the body
 *
 * A session belongs to one thread. hdfs_once makes one attempt; hdfs_again decides whether to make another one, and waits. */
#ifndef STRETTO_BASE_HDFS_ASK_H
#define STRETTO_BASE_HDFS_ASK_H

#include <stdatomic.h>

#include "base/hdfs.h"
#include "base/http.h"

struct hdfs {
    struct http *http;
    const char *path;           /* "hdfs://host:port/path"; borrowed */
    bool passes;                /* the last failure may pass */
    const _Atomic bool *stop;   /* may be NULL: true ends the attempts */
    char avoid[256];            /* host of a data node that failed */
};

struct hdfs_tries {             /* {0} = no failure yet */
    f64 until, wait;
};

struct hdfs_ask {
    const char *method;         /* NULL = GET */
    const char *query;          /* "op=OPEN&offset=0" */
    const void *body;           /* for the address that the name node answers */
    i64 n;
    bool writes;                /* a refusal is E702, otherwise E701 */
    bool data;                  /* the answer comes from a data node */
    bool *absent;               /* may be NULL: where to note that the path does not exist, which is then no error */
    err (*take)(void *self, const void *bytes, size_t n); /* of http_request */
    void *self;
};

err hdfs_begin(const char *path, struct hdfs *h); /* E810 without libcurl; E701 for a path that is no address */
void hdfs_end(struct hdfs *h);

err hdfs_once(struct hdfs *h, const struct hdfs_ask *a, struct str *answer); /* answer may be NULL */
bool hdfs_again(const struct hdfs *h, struct hdfs_tries *t);

/* All attempts. */
err hdfs_ask(struct hdfs *h, const struct hdfs_ask *a, struct str *answer);
err hdfs_status_of(struct hdfs *h, bool *absent, struct hdfs_status *out); /* absent as in hdfs_ask */

#endif

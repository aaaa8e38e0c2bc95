/* hdfs.h - files of a Hadoop file system over WebHDFS. file.h uses it for every path that hdfs_is() accepts.
 *
 *     hdfs://HOST:PORT/path       the HTTP address of the name node (9870 if no port is given); webhdfs:// is the same
 *     swebhdfs://HOST:PORT/path   HTTPS (9871)
 *     hdfs://A:9870,B:9870/path   several name nodes of one file system: the active one is found
 *
 *     name node    status, names, rights  <--->  hdfs_ask.c          answers OPEN and CREATE with the address of a data node
 *     data node    bytes                  <--->  hdfs_read.c, hdfs_put
 *
 * Every request is repeated while its failure may pass: 5xx, a lost connection, an answer that is too short, a name node that
 * is on standby or in safe mode. The user is $HADOOP_USER_NAME or the login name; $STRETTO_HDFS_TOKEN is a delegation token. */
#ifndef STRETTO_BASE_HDFS_H
#define STRETTO_BASE_HDFS_H

#include "base/str.h"

bool hdfs_is(const char *path);

struct hdfs_status {
    bool folder;
    i64 bytes, time, id; /* time: of the last change, in milliseconds; id: of the inode, -1 = the server gives none */
};

/* E706 for a server that cannot be used: not reached, no WebHDFS, login refused. E701 for a path that cannot be read. */
err hdfs_stat(const char *path, struct hdfs_status *out);
err hdfs_find(const char *path, bool *there, struct hdfs_status *out); /* absent is no error */
/* Calls each for the members of a folder until it fails; none if there is no folder. */
err hdfs_list(const char *path, err (*each)(void *self, const char *name, const struct hdfs_status *s), void *self);

/* Writes a whole file: CREATE PATH.tmp, then RENAME. Readers see the old file or the new one. E702, E703. */
err hdfs_put(const char *path, const void *p, i64 n);
err hdfs_writable(const char *path); /* E702 if the folder of this file is absent or may not be written to */
err hdfs_make_dir(const char *path); /* with its parents */
err hdfs_rename(const char *from, const char *to); /* replaces `to` if it is a file */
err hdfs_remove(const char *path);   /* a file, or a folder with all that is in it; succeeds if it does not exist */

/* hdfs_read.c: reads blocks ahead on a few threads; any number of threads may read at the same time. */
struct hdfs_in;
err hdfs_open(const char *path, struct hdfs_in **out, i64 *bytes);
err hdfs_read_at(struct hdfs_in *f, i64 offset, void *to, i64 n);           /* E213 if the file has changed since hdfs_open */
err hdfs_read_some(struct hdfs_in *f, void *to, i64 n, i64 *got);           /* at the current position; one thread */
void hdfs_close(struct hdfs_in *f);                                         /* NULL is allowed */

#endif

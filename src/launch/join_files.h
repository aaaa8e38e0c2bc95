/* join_files.h - inside join: the small files by which members of a job talk. */
#ifndef STRETTO_LAUNCH_JOIN_FILES_H
#define STRETTO_LAUNCH_JOIN_FILES_H

#include "launch/join.h"

enum { JOIN_TEXT = 2048, JOIN_TOKEN = 240 };

struct join_place {
    char folder[LAUNCH_PATH];
    bool remote; /* in HDFS */
};

void place_of(struct join_place *p, const char *run_dir, const char *session);
err place_write(const struct join_place *p, const char *name, const char *text); /* whole, or not at all */
bool place_read(const struct join_place *p, const char *name, char *out, size_t size); /* the first line; false = no such file */
bool place_has(const struct join_place *p, const char *name);
i64 place_number(const struct join_place *p, const char *name, i64 otherwise);
/* "3/node-1": a file of a round, of a member (-1 = of all). */
void place_name(char out[64], i64 round, const char *what, i32 member);
void place_hello(char out[64], i32 member); /* the name "hello-1" */

#endif

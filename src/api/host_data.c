/* host_data.c - see host_data.h. */
#include "api/host_data.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/ranks.h"
#include "base/mem.h"
#include "base/pager.h"
#include "base/spill.h"
#include "data/share.h"

/* The first rank of the host of this one. */
static i32 reader_here(const struct comm *c) {
    const char *host = comm_rank_info(c, comm_rank(c))->host;
    i32 k = 0;
    while (strcmp(comm_rank_info(c, k)->host, host) != 0) k++;
    return k;
}

/* All ranks answer alike. */
static bool may_share(const struct data_kind *kind) {
    const char *near = getenv("STRETTO_NEAR");
    return kind->share && !(near && strcmp(near, "off") == 0);
}

/* Reads the file and gives what it holds; *fd: to be closed when all have taken it. */
static err give(const struct options *o, const struct data_kind *kind, const char *path, struct dataset **set,
                struct share_place *place, int *fd) {
    struct share x;
    spill_share(true);
    err e = kind->read(o, path, set);
    spill_share(false);
    TRY(e);
    share_give(&x);
    e = kind->share(o, path, &x, set);
    if (e > 0) { /* each rank reads */
        str_free(&x.out);
        return 0;
    }
    return share_publish(&x, place, fd);
}

static err take(const struct options *o, const struct data_kind *kind, const char *path, const struct share_place *place,
                struct dataset **set) {
    struct share x;
    TRY(share_open(&x, place));
    err e = kind->share(o, path, &x, set);
    const err end = share_close(&x);
    return e < 0 ? e : end;
}

/* Takes what the reader of this host has given; where the system does not allow it, reads the file. */
static err take_or_read(const struct options *o, const struct data_kind *kind, const char *path, const struct share_place *place,
                        struct dataset **set) {
    err e = place->fd < 0 ? -E701 : take(o, kind, path, place, set);
    if (e >= 0) (*set)->borrowed = true;
    if (e != -E701) return e;
    dataset_free(*set);
    *set = NULL;
    err_clear();
    return kind->read(o, path, set);
}

/* A rank may take only what it would have read itself. */
struct offer {
    struct share_place place;
    u64 file; /* the same for names of one file of the host */
};

static u64 file_of(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0) return comm_hash(COMM_HASH, path, strlen(path));
    return comm_hash(comm_hash(COMM_HASH, &st.st_dev, sizeof st.st_dev), &st.st_ino, sizeof st.st_ino);
}

static err read_together(const struct options *o, struct comm *c, const struct data_kind *kind, const char *path,
                         struct offer *all, struct dataset **set) {
    const i32 reader = reader_here(c);
    struct offer mine = {.place = {.fd = -1}, .file = file_of(path)};
    int fd = -1;
    err e = reader == comm_rank(c) ? give(o, kind, path, set, &mine.place, &fd) : 0;
    e = comm_agree(c, "read", e);
    if (e >= 0) e = comm_allgather(c, "places", &mine, sizeof mine, all);
    if (e >= 0 && all[reader].file != mine.file) all[reader].place.fd = -1;
    if (e >= 0) e = comm_agree(c, "taken", reader == comm_rank(c) ? 0 : take_or_read(o, kind, path, &all[reader].place, set));
    if (fd >= 0) close(fd);
    if (*set) (*set)->shared = true;
    return e;
}

static err read_on_ranks(const struct options *o, struct comm *c, const struct data_kind *kind, const char *path,
                         struct dataset **set) {
    struct offer *all;
    if (!may_share(kind)) return comm_agree(c, "read", kind->read(o, path, set));
    NEW(all, comm_size(c));
    const err e = read_together(o, c, kind, path, all, set);
    mem_free(all);
    return e;
}

/* The ranks that know of each other's error end together, so that the launcher ends none of them before rank 0 has shown it. */
static void end_together(struct comm *c, err e) {
    if (err_info(-e)->exit_status != err_info(E801)->exit_status) comm_succeed(c);
}

err host_data_read(const struct options *o, struct comm *c, const struct data_kind *kind, const char *path,
                   struct dataset **out) {
    struct dataset *set = NULL;
    if (comm_size(c) == 1) return kind->read(o, path, out);
    const err e = read_on_ranks(o, c, kind, path, &set);
    if (e < 0) end_together(c, e);
    if (e < 0) dataset_free(set);
    else *out = set;
    return e;
}

/* A rank with borrowed arrays leaves them as they are: it computes what follows before their owner changes them. */
err host_data_prepare(struct comm *c, const struct learner *learner, struct learn_job *job) {
    if (!learner->prepare) return 0;
    if (!job->data->shared) return learner->prepare(job);
    TRY(comm_agree(c, "prepare", job->data->borrowed ? learner->prepare(job) : 0));
    return comm_agree(c, "prepared", job->data->borrowed ? 0 : learner->prepare(job));
}

stretto_err stretto_config_join(stretto_config *self) {
    if (self->comm) return 0;
    mem_set_limit(self->o.memory);
    const err e = ranks_join(&self->o, &self->comm);
    pager_restart();
    return e;
}

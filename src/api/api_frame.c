/* api_frame.c - tables in memory as data, and models as bytes in memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/api.h"
#include "base/file.h"
#include "base/mem.h"
#include "data/frame.h"

/* ------------------------------------------------------------------ frames -------------------------------------------------- */

struct stretto_frame {
    struct frame *f;
};

stretto_err stretto_frame_new(struct ArrowArrayStream *stream, const char *label, stretto_frame **out) {
    stretto_frame *frame = mem_alloc(sizeof *frame);
    *out = NULL;
    if (!frame) {
        stream->release(stream);
        return -E601;
    }
    const err e = frame_new(stream, label, &frame->f);
    if (e < 0) mem_free(frame);
    else *out = frame;
    return e;
}

const char *stretto_frame_path(const stretto_frame *self) { return self->f->path; }

void stretto_frame_free(stretto_frame *self) {
    if (!self) return;
    frame_free(self->f);
    mem_free(self);
}

/* ------------------------------------------------------------------ bytes --------------------------------------------------- */

/* A model file that lies in memory: written and read by its descriptor. */
struct memory_file {
    int fd;
    char path[40];
};

static err memory_file(struct memory_file *m) {
    m->fd = memfd_create("stretto-model", MFD_CLOEXEC);
    if (m->fd < 0) return FAIL(E601, "no memory for the bytes of a model: %s", strerror(errno));
    snprintf(m->path, sizeof m->path, "/proc/self/fd/%d", m->fd);
    return 0;
}

stretto_err stretto_model_to_bytes(const stretto_model *self, void **bytes_out, size_t *n_out) {
    struct memory_file m;
    char *bytes = NULL;
    i64 n = 0;
    *bytes_out = NULL;
    *n_out = 0;
    TRY(memory_file(&m));
    err e = stretto_model_save(self, m.path);
    if (e >= 0) e = file_load(m.path, INT64_MAX - 1, &bytes, &n);
    close(m.fd);
    TRY(e);
    *bytes_out = bytes;
    *n_out = (size_t)n;
    return 0;
}

void stretto_bytes_free(void *bytes) { mem_free(bytes); }

static err write_bytes(int fd, const char *p, size_t n) {
    while (n > 0) {
        const ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return FAIL(E601, "no memory for the bytes of a model: %s", strerror(errno));
        p += put;
        n -= (size_t)put;
    }
    return 0;
}

/* Messages name the bytes, not the descriptor that they were read from. */
static const char named[] = "bytes of a model";
static void rename_error(const char *path) {
    struct err_record r = *err_last();
    if (strstr(r.where, path)) snprintf(r.where, sizeof r.where, "%s", named);
    err_put(&r);
}

stretto_err stretto_model_from_bytes(const void *bytes, size_t n, stretto_model **out) {
    struct memory_file m;
    *out = NULL;
    TRY(memory_file(&m));
    err e = write_bytes(m.fd, bytes, n);
    if (e >= 0) {
        e = stretto_model_load(m.path, out);
        if (e < 0) rename_error(m.path);
    }
    close(m.fd);
    if (e < 0) return e;
    mem_free((*out)->path);
    (*out)->path = mem_strdup(named);
    if ((*out)->path) return 0;
    stretto_model_free(*out);
    *out = NULL;
    return -E601;
}

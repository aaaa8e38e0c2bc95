/* fuzz_safetensors.c - any bytes as a model file: E901 (E902) with a place and a reason, or a file whose content, written again,
 * reads as the same and gives the same bytes every time.  What reads is also tried as a model of a small network. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "ckpt/model_file.h"
#include "kern/kern.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(condition)            \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

static char in[64], dir[64], first[96], second[96];
static struct net net;
static f32 *theta;

static void remove_dir(void) {
    unlink(first);
    unlink(second);
    rmdir(dir);
    mem_free(theta);
}

static void begin(void) {
    i32 x, op;
    if (dir[0]) return;
    snprintf(dir, sizeof dir, "/dev/shm/stretto_fuzz_XXXXXX");
    if (!mkdtemp(dir)) {
        snprintf(dir, sizeof dir, "/tmp/stretto_fuzz_XXXXXX");
        MUST(mkdtemp(dir));
    }
    snprintf(first, sizeof first, "%s/1", dir);
    snprintf(second, sizeof second, "%s/2", dir);
    net_init(&net);
    MUST(net_input(&net, "x", 1, 2, false, &x) == 0);
    struct op_spec s = net_spec("dense", "head", x);
    s.units = 3;
    MUST(net_op(&net, &s, &op) == 0);
    theta = mem_alloc((size_t)net.ntheta * sizeof *theta);
    atexit(remove_dir);
}

static void same(const struct st_file *a, const struct st_file *b) {
    MUST(a->ntens == b->ntens && a->nmeta == b->nmeta);
    for (i32 i = 0; i < a->ntens; i++) {
        const struct tens *t = &a->tens[i], *u = st_find(b, t->name);
        MUST(u && t->dtype == u->dtype && t->ndim == u->ndim && tens_count(t) == tens_count(u));
        i64 bytes = tens_count(t) * (i64)dtype_size(t->dtype);
        MUST(bytes == 0 || memcmp(t->data, u->data, (size_t)bytes) == 0);
    }
    for (i32 i = 0; i < a->nmeta; i++) MUST(st_meta(b, a->meta[i].key) && !strcmp(st_meta(b, a->meta[i].key), a->meta[i].value));
}

static void rewrite(const struct st_file *f) {
    struct st_file *again;
    char *a, *b;
    i64 na, nb;
    err e = st_write(first, f->tens, f->ntens, f->meta, f->nmeta);
    if (e == -E601) return; /* a text that holds the mark by which base/json.c remembers refused memory */
    MUST(e == 0);
    MUST(st_read(first, &again) == 0);
    same(f, again);
    MUST(st_write(second, again->tens, again->ntens, again->meta, again->nmeta) == 0);
    MUST(file_load(first, 1 << 28, &a, &na) == 0 && file_load(second, 1 << 28, &b, &nb) == 0);
    MUST(na == nb && memcmp(a, b, (size_t)na) == 0);
    mem_free(a);
    mem_free(b);
    st_free(again);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    struct st_file *f;
    begin();
    int fd = memfd_create("fuzz", 0);
    MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(in, sizeof in, "/proc/self/fd/%d", fd);
    err e = st_read(in, &f);
    MUST(e == 0 || e == -E901);
    if (e < 0) MUST(err_last()->text[0] && !strcmp(err_last()->where, in));
    if (e == 0) rewrite(f);
    st_free(f);
    struct st_file *model;
    e = model_open(in, &model);
    if (e >= 0) {
        e = model_take(model, &net, "", theta);
        st_free(model);
    }
    MUST(e == 0 || e == -E901 || e == -E902);
    close(fd);
    return 0;
}

/* fuzz_edges.c - libFuzzer target: bytes -> edges of a graph.  What one thread reads, three read the same, or refuse in the same
 * words. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "learn/edge_set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const struct edge_set *a, const struct edge_set *b) {
    if (a->set.nrow != b->set.nrow || a->nnode != b->nnode || !a->weight != !b->weight) abort();
    for (i64 i = 0; i < a->set.nrow; i++) {
        if (a->from[i] != b->from[i] || a->to[i] != b->to[i] || a->from[i] >= (u32)a->nnode || a->to[i] >= (u32)a->nnode) abort();
        if (a->weight && (!(a->weight[i] >= 0) || isinf(a->weight[i]) || a->weight[i] != b->weight[i])) abort();
    }
    for (u32 k = 0; k < (u32)a->nnode; k++) {
        char x[16], y[16];
        if (strcmp(edge_set_name(a, k, x), edge_set_name(b, k, y)) != 0) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[64];
    static int fd = -1;
    struct dataset *one = NULL, *three = NULL;
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) return 0;
    const i64 before = mem_stats().live;
    mem_set_limit(512 << 20);
    const err e = edge_set_read(path, "", 1, &one);
    const struct err_record why = *err_last();
    const err again = edge_set_read(path, "", 3, &three);
    if (e != again || (e < 0 && strcmp(why.text, err_last()->text) != 0)) abort();
    if (e >= 0) same(edge_set_of(one), edge_set_of(three));
    if (e >= 0) dataset_free(one);
    if (e >= 0) dataset_free(three);
    if (mem_stats().live != before) abort();
    return 0;
}

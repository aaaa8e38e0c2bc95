/* fuzz_manifest.c - any bytes as a manifest, with a matching checksum: it is refused, or its pieces lie inside its shards. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ckpt/crc32c.h"
#include "ckpt/manifest.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(condition)            \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

static void check(const struct manifest *m) {
    for (i32 i = 0; i < m->ntensor; i++) {
        const struct manifest_tensor *t = &m->tensor[i];
        i64 at = 0;
        for (i32 k = 0; k < t->npiece; k++) {
            const struct manifest_piece *p = &t->piece[k];
            MUST(p->shard >= 0 && p->shard < m->nshard && p->lo == at && p->hi >= p->lo && p->at >= 0);
            MUST(p->at + (p->hi - p->lo) * (i64)dtype_size(t->dtype) <= m->shard[p->shard].bytes);
            at = p->hi;
        }
        MUST(at == t->n && manifest_find(m, t->name) == t);
    }
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    struct manifest m;
    char path[64], tail[32];
    int fd = memfd_create("fuzz", 0), n = snprintf(tail, sizeof tail, ",\"crc32c\":\"%08x\"}\n", crc32c(0, data, (i64)size));
    MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size && write(fd, tail, (size_t)n) == n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    err e = manifest_load(path, &m);
    MUST(e == 0 || e == -E901 || e == -E902);
    if (e == 0) check(&m);
    else MUST(err_last()->text[0]);
    manifest_free(&m);
    close(fd);
    return 0;
}

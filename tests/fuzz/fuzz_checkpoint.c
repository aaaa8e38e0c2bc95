/* fuzz_checkpoint.c - any bytes as a checkpoint of one file: it fills every item, or fails and touches none. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ckpt/checkpoint.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(condition)            \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

struct things {
    f64 best;
    i64 step[2];
    f32 theta[4];
    u8 raw[4];
};

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    struct things got, untouched;
    struct ckpt *c = NULL;
    char path[64];
    memset(&got, 7, sizeof got);
    memset(&untouched, 7, sizeof untouched);
    const struct ckpt_item item[] = {{"theta", DTYPE_F32, got.theta, 4},
                                     {"best", DTYPE_F64, &got.best, 1},
                                     {"step", DTYPE_I64, got.step, 2},
                                     {"raw", DTYPE_U8, got.raw, 4}};
    int fd = memfd_create("fuzz", 0);
    MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    err e = ckpt_open(path, &c);
    if (e == 0) e = ckpt_take(c, item, COUNT(item));
    MUST(e == 0 || e == -E901 || e == -E902);
    if (e < 0) MUST(memcmp(&got, &untouched, sizeof got) == 0 && err_last()->text[0]);
    ckpt_close(c);
    close(fd);
    return 0;
}

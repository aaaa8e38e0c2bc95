/* fuzz_onnx.c - any bytes as an ONNX file: E905, E906, or a network that saves and runs; and as one tensor. */
#include <stdlib.h>

#include "base/mem.h"
#include "kern/kern.h"
#include "learn/network/network.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define MUST(condition)            \
    do {                           \
        if (!(condition)) abort(); \
    } while (0)

enum { SMALL = 1 << 16 };

static void run(const struct network *w) {
    f32 *x = mem_alloc(sizeof *x * (size_t)w->I * 2), *y = mem_alloc(sizeof *y * (size_t)w->O * 2);
    MUST(x && y && network_run(w, kern_get(KERN_REF), 2, 1, x, y) == 0);
    mem_free(x);
    mem_free(y);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    struct onnx_file *f;
    struct network *w = NULL;
    struct network_io io;
    struct arena a = {0};
    struct onnx_constant t;
    mem_set_limit(1 << 28);
    err e = onnx_read(data, (i64)size, "f.onnx", &f);
    MUST(e == 0 || e == -E905 || e == -E601);
    if (e == 0) e = network_import(f, "f.onnx", &w, &io);
    MUST(e == 0 || e == -E905 || e == -E906 || e == -E601);
    if (w && w->net.ntheta < SMALL) run(w);
    if (w) network_free(&w->model);
    onnx_file_free(f);
    e = onnx_read_tensor(data, (i64)size, "t.pb", &a, &t);
    MUST(e == 0 || e == -E905 || e == -E601);
    arena_free(&a);
    return 0;
}

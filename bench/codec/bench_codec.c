/* bench_codec.c - speed and packet size of every wire codec, one thread:   bench_codec [SECONDS] [CODEC[:VALUE] ...]
 *
 * The input is normal noise with deviation 0.01 plus, in the matrices, a product of rank 2: gradients of LSTM layers with 512
 * hidden units, 16 inputs, in the packed layout. GB/s count the f32 bytes of the range, the fastest of the rounds. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "codec/codec.h"
#include "kern/kern.h"

enum { ROWS = 16 + 512, PANELS = 512 / LANES, WIDTH = 4 * LANES, BIAS = 4 * 512, INPUTS = 4, LAYERS = 8, WARM = 512 };

static f64 now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

static void draw(i64 n, const struct wire_layout *l, u32 seed, f32 *v) {
    for (i64 i = 0; i < n; i++) v[i] = 0.01f * (f32)rng_normal(seed, RNG_TEST, 0, (u64)i);
    for (i32 m = 0; m < l->n; m++) {
        const i64 row = WIDTH, most = lmin(n - l->matrix[m].at, (i64)ROWS * PANELS * WIDTH);
        for (i64 i = 0; i < most; i++) {
            const u64 r = (u64)(i / row % ROWS), c = (u64)(i / row / ROWS * row + i % row);
            v[l->matrix[m].at + i] += 0.02f * (rng_uniform(1, RNG_TEST, 1, r) - 0.5f) * (rng_uniform(2, RNG_TEST, 2, c) - 0.5f);
        }
    }
}

static void measure(const char *text, i64 n, const struct wire_layout *l, f32 *const *in, f64 seconds) {
    struct wire_args a = {.layout = l, .hi = n, .gradient = true};
    if (wire_parse(text, &a.choice) < 0) {
        fprintf(stderr, "%s\n", err_last()->text);
        exit(2);
    }
    const struct wire_codec *c = a.choice.codec;
    f32 *state = mem_alloc((size_t)wire_state(&a) * 4), *scratch = mem_alloc((size_t)wire_scratch(&a) * 4);
    f32 *v = mem_alloc((size_t)n * 4);
    unsigned char *out = mem_alloc((size_t)c->room(&a));
    if (!state || !scratch || !v || !out) exit(1);
    f64 encode = 1e9, decode = 1e9, begin = now();
    u32 bytes = 0;
    a.round = WARM; /* behind the warm-up of topk */
    for (i32 k = 0; k < 5 || now() - begin < seconds; k++, a.round++) {
        f64 t = now();
        bytes = c->encode(&a, in[k % INPUTS], state, scratch, out);
        encode = fmin(encode, now() - t);
        t = now();
        if (!c->decode(&a, out, bytes, v)) exit(1);
        decode = fmin(decode, now() - t);
    }
    printf("| %s | %lld Mi | %.1f | %.1f | %.1f | %.2f |\n", text, (long long)(n >> 20), 4e-9 * (f64)n / encode,
           4e-9 * (f64)n / decode, 4.0 * (f64)n / bytes, (f64)wire_state(&a) / (f64)n);
    fflush(stdout);
    mem_free(out);
    mem_free(v);
    mem_free(scratch);
    mem_free(state);
}

int main(int argc, char **argv) {
    static const char *const every[] = {"none",      "fp16",       "bf16",       "int8",       "sign",
                                        "topk:0.01", "topk:0.001", "powersgd:1", "powersgd:4", "powersgd:16"};
    const f64 seconds = argc > 1 ? atof(argv[1]) : 1;
    struct wire_matrix matrix[LAYERS];
    f32 *in[INPUTS];
    for (i32 m = 0; m < LAYERS; m++)
        matrix[m] = (struct wire_matrix){(i64)m * (ROWS * PANELS * WIDTH + BIAS), ROWS, PANELS, WIDTH};
    printf(
        "%s\n\n| codec | floats | encode GB/s | decode GB/s | times fewer bytes | floats of state a float "
        "|\n|---|---|---|---|---|---|\n",
        kern_best()->name);
    for (i64 n = 1 << 20; n <= 8 << 20; n *= 8) {
        const struct wire_layout l = {matrix, n == 1 << 20 ? 1 : LAYERS};
        for (u32 i = 0; i < INPUTS; i++) {
            in[i] = mem_alloc((size_t)n * 4);
            if (!in[i]) return 1;
            draw(n, &l, i, in[i]);
        }
        for (i32 k = 2; k < argc; k++) measure(argv[k], n, &l, in, seconds);
        for (size_t k = 0; argc < 3 && k < COUNT(every); k++) measure(every[k], n, &l, in, seconds);
        for (i32 i = 0; i < INPUTS; i++) mem_free(in[i]);
    }
    return 0;
}

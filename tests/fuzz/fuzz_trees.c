/* fuzz_trees.c - any shape and tensor of boosted trees in a base: E901, or trees that forecast within their memory.
 *
 *     input = the text of a base up to the first line feed, then the tensor as f32 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bases/base.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

enum { TEXT = 200, FLOATS = 2048, ROWS = 64, COLUMNS = 4 };

static void forecast(const struct base *b) {
    static f32 v[COLUMNS * ROWS], out[8];
    static i64 time[ROWS];
    static i32 codes[ROWS];
    i32 *code = codes;
    struct trees_needs n;
    struct series s = {.nrow = ROWS, .v = v, .time = time, .freq = {.step = 3600}, .code = &code, .ncat = 1};
    if (!base_trees_needs(b, &n) || n.ncol + n.npast + n.nknown > COLUMNS || n.ncat > 1) return;
    s.ntarget = n.ncol;
    s.npast = n.npast;
    s.nknown = n.nknown;
    s.ncol = s.ntarget + s.npast + s.nknown;
    for (i32 i = 0; i < COLUMNS * ROWS; i++) v[i] = i % 7 == 3 ? (f32)NAN : (f32)(i % 11);
    for (i32 i = 0; i < ROWS; i++) time[i] = 3600 * (i64)i;
    for (i32 origin = 0; origin <= ROWS; origin += 16) base_predict(b, &s, n.ncol - 1, origin, 8, out);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size) {
    static f32 w[FLOATS];
    char text[TEXT + 1];
    const u8 *end = memchr(data, '\n', size < TEXT ? size : TEXT);
    struct base *b = NULL;
    if (!end) return 0;
    const size_t length = (size_t)(end - data);
    const size_t floats = (size - length - 1) / sizeof *w < FLOATS ? (size - length - 1) / sizeof *w : FLOATS;
    memcpy(text, data, length);
    text[length] = 0;
    memcpy(w, end + 1, floats * sizeof *w);
    if (base_read_all(text, (struct base_tensors){.trees = w, .ntrees = (i64)floats}, &b) < 0) return 0;
    forecast(b);
    base_free(b);
    return 0;
}

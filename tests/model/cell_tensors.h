/* cell_tensors.h - conversion of one tensor of a cell between canonical order and packed weights. */
#ifndef STRETTO_TESTS_MODEL_CELL_TENSORS_H
#define STRETTO_TESTS_MODEL_CELL_TENSORS_H

#include "model/cell/cell.h"

static inline void cell_store(const struct cell *c, i32 tensor, i32 I, i32 H, const f32 *packed, f32 *canonical) {
    i32 rows, cols;
    cell_tensor(c, tensor, I, H, &rows, &cols);
    for (i32 row = 0; row < rows; row++)
        for (i32 col = 0; col < imax(1, cols); col++) {
            const i64 at = cell_place(c, tensor, I, H, row, col);
            *canonical++ = at < 0 ? 0 : packed[at];
        }
}

static inline void cell_load(const struct cell *c, i32 tensor, i32 I, i32 H, const f32 *canonical, f32 *packed) {
    i32 rows, cols;
    cell_tensor(c, tensor, I, H, &rows, &cols);
    for (i32 row = 0; row < rows; row++)
        for (i32 col = 0; col < imax(1, cols); col++) {
            const i64 at = cell_place(c, tensor, I, H, row, col);
            if (at < 0)
                packed[~at] += *canonical++;
            else
                packed[at] = *canonical++;
        }
}

#endif

/* table_rows.h - what ONNX graphs of learners of tables share. */
#ifndef STRETTO_LEARN_TABLE_ROWS_H
#define STRETTO_LEARN_TABLE_ROWS_H

#include "onnx/graph.h"

/* Names of the inputs in order, as JSON in the metadata "stretto.inputs". E601. */
err table_rows_describe(struct onnx_graph *g, i32 n, const char *const *name);

#endif

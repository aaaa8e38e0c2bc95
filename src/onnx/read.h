/* read.h - an ONNX file as nodes and constants, checked: the bytes may come from anywhere.
 *
 *     bytes --onnx_read--> nodes in the order of the file, constants (initializers and nodes Constant), names of inputs and
 * outputs
 *
 * Data in other files (external_data) are refused.  Bodies of nodes (If, Loop, Scan) are not read. */
#ifndef STRETTO_ONNX_READ_H
#define STRETTO_ONNX_READ_H

#include "base/arena.h"
#include "onnx/graph.h"

enum { ONNX_NODES_MOST = 1 << 16, ONNX_TENSORS_MOST = 1 << 16, ONNX_NODE_VALUES = 64, ONNX_CELLS_MOST = 1 << 28 };

/* FLOAT, DOUBLE and the whole numbers INT32, INT64, BOOL; `read` false: another type, or outside of the file. */
struct onnx_constant {
    const char *name;
    i32 type, ndim;
    i64 dim[ONNX_DIMS], n;
    bool read;
    f32 *f; /* FLOAT, DOUBLE */
    i64 *i; /* the others */
};

struct onnx_attribute {
    const char *name, *s; /* s: of a STRING, or STRINGS joined by blanks */
    f32 f;
    i64 i, n;
    i64 *ints;
    struct onnx_constant *t; /* NULL = no tensor */
};

struct onnx_in_node {
    const char *op, *domain, *name; /* domain: "" for ai.onnx */
    i32 nin, nout, nattr;
    const char **in, **out; /* "" = absent */
    struct onnx_attribute *attr;
};

struct onnx_in_value {
    const char *name;
    i32 ndim;
    i64 dim[ONNX_DIMS]; /* -1 = not given, or a name */
};

struct onnx_file {
    i32 nnode, nconstant, ninput, noutput;
    struct onnx_in_node *node;
    struct onnx_constant *constant;
    struct onnx_in_value *input, *output; /* inputs: without those that are constants */
    i64 opset;                            /* of ai.onnx; 0 = not given */
    struct arena arena;
};

/* E905 with what is wrong.  path: for messages. */
err onnx_read(const void *bytes, i64 n, const char *path, struct onnx_file **out);
void onnx_file_free(struct onnx_file *f); /* NULL is allowed */
/* A file with one TensorProto (test data of ONNX). */
err onnx_read_tensor(const void *bytes, i64 n, const char *path, struct arena *a, struct onnx_constant *out);
/* Makes an input a constant; t stays the caller's. */
void onnx_bind(struct onnx_file *f, const char *input, const struct onnx_constant *t);
const struct onnx_constant *onnx_find(const struct onnx_file *f, const char *name);        /* NULL = no constant */
const struct onnx_attribute *onnx_attr_of(const struct onnx_in_node *n, const char *name); /* NULL = not given */

#endif

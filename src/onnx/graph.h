/* graph.h - an ONNX graph while it is built: inputs, constants, nodes and outputs, written as they come.
 *
 *     onnx_input(g, "x", ..) --> val --> onnx_op(g, "Add", ..) --> val --> onnx_output(g, "y", ..) --> onnx_graph_text(g, ..)
 *
 * A val is the number of a value (a tensor) of the graph; -1 = an optional input that is absent.  The functions report no errors:
 * what fails is kept in the graph, and onnx_graph_text reports it.  Values that cannot be expressed are noted by onnx_refuse.
 * Operators are those of opset 14 of ai.onnx, and version 3 of ai.onnx.ml. */
#ifndef STRETTO_ONNX_GRAPH_H
#define STRETTO_ONNX_GRAPH_H

#include "base/arena.h"
#include "base/str.h"

typedef i32 val;

enum onnx_type { ONNX_FLOAT = 1, ONNX_INT32 = 6, ONNX_INT64 = 7, ONNX_BOOL = 9, ONNX_DOUBLE = 11 };
enum { ONNX_OPSET = 14, ONNX_ML_OPSET = 3, ONNX_IR = 7, ONNX_DIMS = 6 };

/* A dimension: a number, or the name of a dimension that each call may choose. */
struct onnx_dim {
    const char *name; /* NULL = n */
    i64 n;
};

struct onnx_graph {
    struct onnx_graph *outer; /* of a body: the graph whose values it may use; NULL = a graph of its own */
    struct str node, init, input, output, meta;
    const char **name; /* [nval] */
    i64 nval, room;
    i32 serial; /* of the bodies made so far */
    const char *prefix;
    struct str reasons; /* what cannot be expressed, one a line */
    i32 nreason;
    const char *fix; /* the remedy where there is one reason alone; NULL = none is known */
    bool failed, ml; /* out of memory; nodes of ai.onnx.ml are used */
    struct arena arena;
};

void onnx_graph_free(struct onnx_graph *g); /* g = {0} before its first use */

val onnx_input(struct onnx_graph *g, const char *name, enum onnx_type type, i32 ndim, const struct onnx_dim *dim);
void onnx_output(struct onnx_graph *g, val v, const char *name, enum onnx_type type, i32 ndim, const struct onnx_dim *dim);
/* A constant, row-major; name NULL = a number.  The data are copied. */
val onnx_tensor(struct onnx_graph *g, const char *name, enum onnx_type type, i32 ndim, const i64 *dim, const void *data);
/* key and value in the metadata of the model. */
void onnx_meta(struct onnx_graph *g, const char *key, const char *value);
/* Notes a part that ONNX cannot express, as words: "boosted trees in the base". */
void onnx_refuse(struct onnx_graph *g, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Attributes of a node; the list ends with one without a name. */
struct onnx_attr {
    const char *name;
    enum { ATTR_FLOAT = 1, ATTR_INT = 2, ATTR_STRING = 3, ATTR_GRAPH = 5, ATTR_FLOATS = 6, ATTR_INTS = 7, ATTR_STRINGS = 8 } type;
    f32 f;
    i64 i;
    const char *s; /* of STRINGS: separated by blanks */
    i64 n;
    const i64 *ints;
    const f32 *floats;
    struct onnx_graph *graph; /* a body, which the node takes and frees */
};

/* Adds a node; out [nout] = its outputs, -1 where the name is to be empty (set by the caller before), else a new value. */
void onnx_node(struct onnx_graph *g, const char *op, i32 nin, const val *in, i32 nout, val *out, const struct onnx_attr *attr);

/* A body for a Scan: inputs and outputs by onnx_input and onnx_output; it may read values of g through onnx_outer. */
void onnx_body(struct onnx_graph *g, struct onnx_graph *body);
val onnx_outer(struct onnx_graph *body, val v);

/* The model as bytes.  E904 with all reasons where something was refused; E601. */
err onnx_graph_text(struct onnx_graph *g, const char *what, struct str *out);

#endif

/* network.h - the model `network`: recurrent layers and dense layers with given weights, such as an ONNX file has.
 *
 *     x [T][B][I] --layer 0 (lstm, gru, rnn; one or both directions)--> .. --> reads --> dense .. --> y [T or 1][B][O]
 *
 * It knows no columns, scales or targets: `predict` takes the rows of a table as the steps of one sequence, with the columns of
 * numbers as inputs in their order. */
#ifndef STRETTO_LEARN_NETWORK_NETWORK_H
#define STRETTO_LEARN_NETWORK_NETWORK_H

#include "learn/learner.h"
#include "model/layer.h"
#include "onnx/read.h"

enum { NETWORK_LAYERS = 32, NETWORK_WIDTH = 65536, NETWORK_STEPS = 1 << 20 };

/* What the layers behind the recurrent ones read, and what the output is. */
enum network_reads {
    READS_STEPS, /* every step; one output a step */
    READS_LAST,  /* the last step alone */
    READS_ENDS   /* the final state of each direction */
};

struct network_layer {
    i32 cell;     /* enum cell_kind; -1 = dense */
    bool both;    /* directions */
    i32 I, units; /* inputs; outputs of a direction */
    enum activation act;
    const f32 *w[8]; /* of an import: its tensors in canonical order, both directions; borrowed */
};

struct network {
    struct model model;
    i32 nlayer, I, O;
    struct network_layer layer[NETWORK_LAYERS];
    enum network_reads reads;
    char source[256]; /* the file that it comes from */
    struct net net;   /* of one step: shapes of the weights */
    f32 *theta;
};

static inline struct network *network_of(const struct model *m) { return (struct network *)(uintptr_t)m; }

/* net.c: the net for T steps; *out: the buffer of the output.  Weights from layer.w into theta. */
err network_net(const struct network *w, i32 T, struct net *n, i32 *out);
void network_weights(struct network *w);
/* x [T][B][I] -> y [T or 1][B][O]. E601. */
err network_run(const struct network *w, const struct kern *k, i32 T, i32 B, const f32 *x, f32 *y);
static inline i32 network_steps(const struct network *w, i32 T) { return w->reads == READS_STEPS ? T : 1; }

/* How the numbers of the graph's input and output lie. */
enum network_form {
    FORM_NONE,
    FORM_CONST, /* no data */
    FORM_TBF,   /* [T][B][F] */
    FORM_BTF,   /* [B][T][F] */
    FORM_TDBH,  /* Y of an operator: [T][D][B][H] */
    FORM_TBDH,
    FORM_BTDH, /* Y with layout 1 */
    FORM_DBH,  /* Y_h: [D][B][H] */
    FORM_BDH,  /* with layout 1 */
    FORM_BF    /* [B][F] */
};
struct network_io {
    enum network_form in, out;
    i32 dirs; /* of an output with D */
};
/* import.c: the layers of a graph; E906 with everything in it that a network cannot hold. */
err network_import(const struct onnx_file *f, const char *path, struct network **out, struct network_io *io);
/* x is how the input lies; true for the inputs of nodes that hold weights. */
bool network_is_weight(const struct onnx_file *f, const char *input);

/* file.c */
void network_free(struct model *m);
err network_save(const struct model *m, struct tens_list *list, struct str *json);
err network_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json,
                 struct model **out);
err network_describe(const struct model *m, struct description *out);

#endif

/* model_file.h - model files: canonical tensors with PyTorch's names in a safetensors file, plus the learner's metadata.
 *
 *     struct tens_list list = {.arena = &arena};
 *     TRY(model_put(&list, net, theta, ""));                    lstm.weight_ih_l0, lstm.bias_hh_l0, head.weight, ...
 *     TRY(tens_add(&list, "scaler.mean", DTYPE_F64, 1, n, 0, mean));
 *     TRY(model_write(path, &list, meta, nmeta));
 *
 *     TRY(model_open(path, &file));                             E901 not a model file, E902 from a newer version
 *     TRY(model_take(file, net, "", theta));                    E901 if a tensor is missing or has another shape
 *
 * A file holds any number of networks, distinguished by a prefix ("member.1."). It contains neither the loss nor optimizer
 * state. */
#ifndef STRETTO_CKPT_MODEL_FILE_H
#define STRETTO_CKPT_MODEL_FILE_H

#include "ckpt/safetensors.h"
#include "model/net.h"

enum { MODEL_SCHEMA = 3 }; /* metadata "stretto.schema"; 1: the spec beside the options, 2: it follows from them, 3: bands */

struct tens_list {
    struct tens *tens;
    i32 n, cap;
    struct arena *arena; /* holds names and canonical copies; owned by the caller */
};

/* Adds a tensor by reference: copies the name, borrows the data until the file is written. cols = 0: one dimension; rows = 0
 * too: a scalar. */
err tens_add(struct tens_list *l, const char *name, enum dtype dtype, i64 rows, i64 cols, const void *data);
/* All parameters of a network, unpacked. */
err model_put(struct tens_list *l, const struct net *n, const f32 *theta, const char *prefix);
err model_write(const char *path, const struct tens_list *l, const struct meta *meta, i32 nmeta);

/* Close with st_free. E901 also if the checksum in the metadata does not match. */
err model_open(const char *path, struct st_file **out);
err model_take(const struct st_file *f, const struct net *n, const char *prefix, f32 *theta);
/* Required tensor with this type and shape (rows, cols as in tens_add): E901. */
err model_tensor(const struct st_file *f, const char *name, enum dtype dtype, i64 rows, i64 cols, const struct tens **out);
/* Required metadata text: E901. */
err model_meta(const struct st_file *f, const char *key, const char **out);

#endif

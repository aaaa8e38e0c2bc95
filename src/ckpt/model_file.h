/* model_file.h - models as files: canonical tensors with PyTorch's names, plus whatever the learner adds.
 *
 *     struct tens_list list = {.arena = &arena};
 *     TRY(model_put(&list, net, theta, ""));                    lstm.weight_ih_l0, lstm.bias_hh_l0, head.weight, ...
 *     TRY(tens_add(&list, "scaler.mean", DTYPE_F64, 1, n, 0, mean));
 *     TRY(model_write(path, &list, meta, nmeta));
 *
 *     TRY(model_open(path, &file));                             E901 not ours, E902 from a newer version
 *     TRY(model_take(file, net, "", theta));                    E901 when a tensor is missing or has another shape
 *
 * A file holds any number of networks, told apart by a prefix ("member.1.").  Missing in a file: the loss, the optimiser. */
#ifndef STRETTO_CKPT_MODEL_FILE_H
#define STRETTO_CKPT_MODEL_FILE_H

#include "ckpt/safetensors.h"
#include "model/net.h"

enum { MODEL_SCHEMA = 1 }; /* metadata "stretto.schema" */

struct tens_list {
    struct tens *tens;
    i32 n, cap;
    struct arena *arena; /* names and canonical copies live here; owned by the caller */
};

/* A tensor by reference: name is copied, data borrowed until the file is written.  cols = 0: one dimension; rows = 0 too: a
 * scalar. */
err tens_add(struct tens_list *l, const char *name, enum dtype dtype, i64 rows, i64 cols, const void *data);
/* All parameters of a network, unpacked. */
err model_put(struct tens_list *l, const struct net *n, const f32 *theta, const char *prefix);
err model_write(const char *path, const struct tens_list *l, const struct meta *meta, i32 nmeta);

/* st_free.  E901 also where its bytes are not those that were written: their sum is in the metadata. */
err model_open(const char *path, struct st_file **out);
err model_take(const struct st_file *f, const struct net *n, const char *prefix, f32 *theta);
/* A tensor that must be there with this type and shape (rows, cols as in tens_add): E901. */
err model_tensor(const struct st_file *f, const char *name, enum dtype dtype, i64 rows, i64 cols, const struct tens **out);
/* A metadata text that must be there: E901. */
err model_meta(const struct st_file *f, const char *key, const char **out);

#endif

/* file.c - a model of sequences as a model file: tensors of member k begin with "member.k."; channels, classes, scales and the
 * linear rule are JSON and tensors of f64. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/sequence/sequence.h"

enum { CHANNELS_MOST = 1 << 20, MEMBERS_MOST = 100 };

/* ------------------------------------------------------------------ write --------------------------------------------------- */

static void member_name(i32 k, char out[24]) { snprintf(out, 24, "member.%d.", k); }

static struct js *words(const char *(*word)(const struct sequence_model *m, i32 i), const struct sequence_model *m, i32 n) {
    struct js *list = js_array();
    for (i32 i = 0; i < n; i++) js_push(list, js_new_text(word(m, i)));
    return list;
}

static const char *class_at(const struct sequence_model *m, i32 i) { return vocab_word(&m->classes, i); }
static const char *channel_at(const struct sequence_model *m, i32 i) { return m->channel[i]; }

static err write_json(const struct sequence_model *m, struct str *json) {
    struct js *o = js_object();
    js_put_i64(o, "per_step", m->per_step);
    js_put_i64(o, "members", m->members);
    js_put_i64(o, "best_step", m->best_step);
    js_put_i64(o, "rule_inputs", m->rule.n);
    js_put_f64(o, "y_mean", m->y_mean);
    js_put_f64(o, "y_deviation", m->y_deviation);
    js_put_f64(o, "y_median", m->y_median);
    if (!isnan(m->valid_loss)) js_put_f64(o, "valid_loss", m->valid_loss);
    js_put(o, "channels", words(channel_at, m, m->nchannel));
    js_put(o, "classes", words(class_at, m, m->classes.n));
    const err e = js_text(o, json, 0);
    js_free(o);
    return e;
}

err sequence_save(const struct model *model, struct tens_list *tensors, struct str *json) {
    const struct sequence_model *m = sequence_of(model);
    TRY(write_json(m, json));
    for (i32 k = 0; k < m->members; k++) {
        char name[24];
        member_name(k, name);
        TRY(model_put(tensors, &m->net, m->theta + k * m->net.ntheta, name));
    }
    TRY(tens_add(tensors, "channel.mean", DTYPE_F64, m->nchannel, 0, m->mean));
    TRY(tens_add(tensors, "channel.deviation", DTYPE_F64, m->nchannel, 0, m->deviation));
    if (!m->regress) TRY(tens_add(tensors, "class.share", DTYPE_F64, m->classes.n, 0, m->share));
    if (m->rule.n == 0) return 0;
    return tens_add(tensors, "rule.weight", DTYPE_F64, m->rule.n + 1, sequence_outputs(m), m->rule.weight);
}

/* ------------------------------------------------------------------ read ---------------------------------------------------- */

static err damaged(const char *path, const char *what) {
    return FAIL_AT(E901, NULL, "the model file that `stretto train` wrote", "%s: %s", path, what);
}

static err take_f64(const struct st_file *file, const char *path, const char *name, i64 n, struct arena *a, f64 **out) {
    const struct tens *t = st_find(file, name);
    if (!t || t->dtype != DTYPE_F64 || tens_count(t) != n) return damaged(path, "a tensor is missing or has another size");
    ARENA_NEW(a, *out, n);
    memcpy(*out, t->data, sizeof **out * (size_t)n);
    for (i64 i = 0; i < n; i++)
        if (!isfinite((*out)[i])) return damaged(path, "a tensor holds numbers that are not finite");
    return 0;
}

static err read_classes(const struct js *list, const char *path, struct sequence_model *m) {
    const i64 n = js_len(list);
    if (m->regress) return 0;
    if (n < 2 || n > INT32_MAX / 2) return damaged(path, "its classes are missing");
    for (i32 i = 0; i < n; i++) {
        const char *word = js_str(js_at(list, i), NULL);
        i32 at;
        if (!word) return damaged(path, "a class is no text");
        TRY(vocab_code(&m->classes, word, (i64)strlen(word), &at));
        if (at != i) return damaged(path, "a class stands twice in its list");
    }
    return 0;
}

static err read_channels(const struct js *list, const char *path, struct sequence_model *m) {
    const i64 n = js_len(list);
    if (n < 1 || n > CHANNELS_MOST) return damaged(path, "its channels are missing");
    m->nchannel = (i32)n;
    ARENA_NEW(&m->arena, m->channel, n);
    for (i32 i = 0; i < n; i++) {
        const char *name = js_str(js_at(list, i), NULL);
        if (!name) return damaged(path, "a channel has no name");
        TRY(arena_keep(&m->arena, &m->channel[i], name));
    }
    return 0;
}

static err read_json(const struct js *json, const char *path, struct sequence_model *m) {
    const i64 members = js_i64(js_get(json, "members"), 0), inputs = js_i64(js_get(json, "rule_inputs"), -1);
    m->per_step = js_i64(js_get(json, "per_step"), 0) != 0;
    m->best_step = js_i64(js_get(json, "best_step"), 0);
    m->y_mean = js_f64(js_get(json, "y_mean"), (f64)NAN);
    m->y_deviation = js_f64(js_get(json, "y_deviation"), (f64)NAN);
    m->y_median = js_f64(js_get(json, "y_median"), (f64)NAN);
    m->valid_loss = js_f64(js_get(json, "valid_loss"), (f64)NAN);
    TRY(read_channels(js_get(json, "channels"), path, m));
    TRY(read_classes(js_get(json, "classes"), path, m));
    if (members < 1 || members > MEMBERS_MOST) return damaged(path, "its members are missing");
    const bool three = inputs == 3 * (i64)m->nchannel && !m->per_step;
    if (inputs != 0 && inputs != m->nchannel && !three) return damaged(path, "its linear rule is not complete");
    m->members = (i32)members;
    m->rule = (struct sequence_rule){.n = (i32)inputs, .per = three ? 3 : 1};
    return 0;
}

static err read_numbers(const struct st_file *file, const char *path, struct sequence_model *m) {
    if (m->regress && !(isfinite(m->y_mean) && isfinite(m->y_median) && m->y_deviation > 0))
        return damaged(path, "the scale of its numbers is missing");
    TRY(take_f64(file, path, "channel.mean", m->nchannel, &m->arena, &m->mean));
    TRY(take_f64(file, path, "channel.deviation", m->nchannel, &m->arena, &m->deviation));
    for (i32 c = 0; c < m->nchannel; c++)
        if (!(m->deviation[c] > 0)) return damaged(path, "a deviation is not positive");
    if (!m->regress) TRY(take_f64(file, path, "class.share", m->classes.n, &m->arena, &m->share));
    if (m->rule.n == 0) return 0;
    return take_f64(file, path, "rule.weight", (i64)(m->rule.n + 1) * sequence_outputs(m), &m->arena, &m->rule.weight);
}

err sequence_load(const struct st_file *file, const char *path, const struct options *o, const struct js *json,
                  struct model **out) {
    struct sequence_model *m;
    NEW(m, 1);
    *out = &m->model;
    sequence_take_options(m, o);
    TRY(read_json(json, path, m));
    TRY(read_numbers(file, path, m));
    TRY(sequence_net(m, 1, &m->net));
    NEW(m->theta, m->members * m->net.ntheta);
    for (i32 k = 0; k < m->members; k++) {
        char name[24];
        member_name(k, name);
        TRY(model_take(file, &m->net, name, m->theta + k * m->net.ntheta));
    }
    return 0;
}

void sequence_free(struct model *model) {
    struct sequence_model *m = sequence_of(model);
    if (!m) return;
    vocab_free(&m->classes);
    mem_free(m->theta);
    arena_free(&m->arena);
    model_drop(&m->model);
    mem_free(m);
}

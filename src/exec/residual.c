/* residual.c - what codecs drop in one step and add in a later one, as one vector of all ranks, for checkpoints.
 *
 *     vector   | rank 0: of message 0, of message 2, .. | rank 1: of message 1, .. |     each rank has those of the messages
 *              first[0]                                 first[1]                   first[2]            that it sends */
#include <string.h>

#include "exec/bound.h"

/* Counts a message of any rank; all ranks count the same messages in the same order. */
void residual_count(struct exec *x, const struct plan_message *m) {
    const struct codec *codec = codec_for(x->plan, m);
    struct {
        char buffer[COMM_NAME];
        i64 lo, hi, floats, from, to;
    } name = {.lo = m->lo, .hi = m->hi, .from = m->from, .to = m->to};
    if (!codec || !codec->residual) return;
    name.floats = codec->residual(x->plan, m);
    exec_buffer_name(x, m->buf, name.buffer);
    x->residuals.key = (i64)comm_hash((u64)x->residuals.key, &name, sizeof name);
    x->residuals.floats += name.floats;
    for (i32 k = m->from + 1; k <= comm_size(x->comm); k++) x->residuals.first[k] += name.floats;
}

/* Elements of this rank in the vector, from *first on. */
static i64 own_range(const struct exec *x, i64 *first) {
    if (x->residuals.floats == 0) return 0;
    const i64 *of = x->residuals.first + comm_rank(x->comm);
    *first = of[0];
    return of[1] - of[0];
}

err residual_bind(struct exec *x) {
    i64 first, at = 0;
    ARENA_NEW(&x->arena, x->residual, own_range(x, &first));
    for (u32 k = 0; k < x->nlink; k++) {
        struct link *l = &x->link[k];
        if (!l->m.sends || !l->codec || !l->codec->residual) continue;
        l->residual = x->residual + at;
        at += l->codec->residual(x->plan, &l->plan);
    }
    return 0;
}

struct exec_residuals exec_residuals(const struct exec *x) { return x->residuals; }

void exec_save_residuals(const struct exec *x, f32 *to) {
    i64 first;
    const i64 n = own_range(x, &first);
    if (n > 0) memcpy(to + first, x->residual, (size_t)n * sizeof *to);
}

void exec_load_residuals(struct exec *x, const f32 *from) {
    i64 first;
    const i64 n = own_range(x, &first);
    if (n > 0 && from) memcpy(x->residual, from + first, (size_t)n * sizeof *from);
    if (n > 0 && !from) memset(x->residual, 0, (size_t)n * sizeof *x->residual);
}

/* learners.c - see learners.h. */
#include "gpu/learners.h"

#include "gpu/gpu.h"
#include "gpu/text/args.h"

enum { GROUP_ITEMS = GPU_GROUP };

static i64 at(const void *p) { return p ? gpu_offset(p) / (i64)sizeof(f32) : -1; }

/* A work item for each of n rows. */
static void launch(enum gpu_kernel k, i64 n, const void *args, size_t size) {
    const struct gpu_size local = {GROUP_ITEMS, 1, 1}, groups = {(i32)((n + GROUP_ITEMS - 1) / GROUP_ITEMS), 1, 1};
    gpu_launch(k, groups, local, args, size);
}

void gpu_nearest(const struct gpu_nearest *n) {
    const struct nearest_args a = {.at_x = at(n->x), .at_panel = at(n->panel), .at_start = at(n->start), .at_label = at(n->label),
                                   .from = n->from, .to = n->to, .d = n->d, .groups = n->groups, .margin = n->margin,
                                   .share = n->share};
    launch(GPU_nearest, n->to - n->from, &a, sizeof a);
}

/* A group for each chunk, input and 16 classes. */
void gpu_histogram(const struct gpu_histogram *h) {
    enum { CLASSES = 16 };
    const struct histogram_args a = {.at_bin = gpu_offset(h->bin), .bin_step = h->bin_step, .at_entry = at(h->entry),
                                     .at_input = at(h->input), .at_part = at(h->part), .n = h->n, .chunk = GPU_HISTOGRAM_CHUNK,
                                     .chunks = gpu_histogram_chunks(h->n), .nclass = h->nclass};
    const struct gpu_size local = {GROUP_ITEMS, 1, 1}, groups = {a.chunks, h->ninput, imax(1, ceil_div(h->nclass, CLASSES))};
    gpu_launch(GPU_histogram, groups, local, &a, sizeof a);
}

/* Items of a sequence with L labels. */
static i32 width_of(i32 L) {
    i32 width = 16;
    while (width < L) width *= 2;
    return width;
}

void gpu_viterbi(const struct gpu_viterbi *v) {
    const i32 width = width_of(v->L);
    const struct viterbi_args a = {.at_trans = at(v->trans), .at_start = at(v->start), .at_emit = at(v->emit),
                                   .at_first = at(v->first), .at_word = at(v->word), .at_back = gpu_offset(v->back),
                                   .at_path = gpu_offset(v->path), .n = v->n, .L = v->L, .Lp = v->Lp, .shift = v->shift,
                                   .width = width};
    launch(GPU_viterbi, (i64)v->n * width, &a, sizeof a);
}

static struct chain_args chain_of(const struct gpu_chain *c) {
    return (struct chain_args){.at_w = at(c->w), .at_at = at(c->at), .at_attribute = at(c->attribute), .at_gold = at(c->gold),
                               .at_first = at(c->first), .at_block = at(c->block), .at_M = at(c->M),
                               .at_back = at(c->back), .at_u = at(c->u), .at_a = at(c->a), .at_d = at(c->d),
                               .at_note = at(c->note), .at_pair = at(c->pair),
                               .at_from = gpu_offset(c->from), .at_path = gpu_offset(c->path), .token0 = c->token0,
                               .L = c->L, .Lp = c->Lp, .width = width_of(c->L)};
}

static void launch_rows(enum gpu_kernel k, i32 n, struct chain_args a) {
    a.n = n;
    if (n > 0) launch(k, (i64)n * a.width, &a, sizeof a);
}

void gpu_chain_pass(const struct gpu_chain *c) {
    const struct gpu_size local = {GROUP_ITEMS, 1, 1}, groups = {c->blocks, ceil_div(c->L * c->Lp, GROUP_ITEMS), 1};
    struct chain_args a = chain_of(c);
    launch_rows(GPU_chain_score, c->tokens, a);
    launch_rows(GPU_chain_pass, c->n, a);
    a.n = c->blocks;
    if (c->blocks > 0) gpu_launch(GPU_chain_pairs, groups, local, &a, sizeof a);
}

void gpu_chain_paths(const struct gpu_chain *c) {
    struct chain_args a = chain_of(c);
    a.raw = 1;
    launch_rows(GPU_chain_score, c->tokens, a);
    launch_rows(GPU_chain_paths, c->n, a);
}

/* learners.c - see learners.h. */
#include "gpu/learners.h"

#include "gpu/gpu.h"
#include "gpu/text/args.h"

enum { GROUP_ITEMS = GPU_GROUP };

static i64 at(const void *p) { return gpu_offset(p) / (i64)sizeof(f32); }

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

void gpu_viterbi(const struct gpu_viterbi *v) {
    enum { LEAST = 16 };
    i32 width = LEAST;
    while (width < v->L) width *= 2;
    const struct viterbi_args a = {.at_trans = at(v->trans), .at_start = at(v->start), .at_emit = at(v->emit),
                                   .at_first = at(v->first), .at_word = at(v->word), .at_back = gpu_offset(v->back),
                                   .at_path = gpu_offset(v->path), .n = v->n, .L = v->L, .Lp = v->Lp, .shift = v->shift,
                                   .width = width};
    launch(GPU_viterbi, (i64)v->n * width, &a, sizeof a);
}

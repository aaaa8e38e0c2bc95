/* stages.c - the plan of a stage, its kernels T_GR and T_NS, and the tasks of the next stage; see stages.h. */
#include "learn/forest/stages.h"

#include <string.h>

#include "base/mem.h"
#include "plan/build.h"

enum { TASK_GAIN, TASK_SPLIT, TASK_KINDS };

/* ------------------------------------------------------------------ T_GR --------------------------------------------------- */

static i64 block_bytes(const struct stages *s) { return counts_bytes(s->d->nclass); }
static struct counts block(const struct stages *s, i64 k) { return counts_at(s->counts + block_bytes(s) * k, s->d->nclass); }

/* --reduce: half of the inputs by their score in the root, the others drawn from the rest. */
static void choose_inputs(const struct stages *s, struct grower *g, struct plant *p, const struct entry *e, i64 n) {
    const i32 M = s->d->ninput, m = p->ninput, top = (m + 1) / 2;
    struct totals all = {.class = g->class};
    struct drawing w = {.n = M - top, .input = p->input + top, .swaps = g->swaps, .key = node_key(p->key, true)};
    f64 *score = g->gain;
    totals_of(s->d, e, n, &all);
    for (i32 i = 0; i < M; i++) {
        const struct counts c = counts_at(g->counts, s->d->nclass);
        memset(g->counts, 0, (size_t)block_bytes(s));
        counts_add(s->d, i, e, n, c);
        const struct node_split best = split_counts(s->d, s->q, i, &all, c, g->side);
        score[i] = best.found ? best.score : -1;
        p->input[i] = i;
    }
    for (i32 k = 0; k < top; k++) {
        i32 best = k;
        for (i32 i = k + 1; i < M; i++)
            if (score[p->input[i]] > score[p->input[best]]) best = i;
        const i32 input = p->input[best];
        p->input[best] = p->input[k];
        p->input[k] = input;
    }
    for (i32 k = top; k < m; k++) drawing_next(&w);
}

static err sample_tree(struct stages *s, struct grower *g, struct plant *p) {
    const bool large = s->d->rows > g->room;
    struct open_node *root = &p->node[0];
    if (large) {
        NEW(p->entry, s->d->rows + 1);
        NEW(p->spare, s->d->rows + 1);
    }
    struct entry *e = large ? p->entry : g->entry;
    p->n = tree_entries(s->d, p->key, e);
    *root = (struct open_node){.hi = p->n, .key = p->key, .left = -1, .right = -1, .state = OPEN_GAIN};
    for (i32 i = 0; i < s->d->ninput; i++) p->input[i] = i;
    if (p->n == 0) { /* no row was drawn: the tree gives what is common */
        root->state = OPEN_DONE;
        return 0;
    }
    if (p->ninput < s->d->ninput) choose_inputs(s, g, p, e, p->n);
    if (p->n <= s->q->fused) root->state = OPEN_SUBTREE;
    if (large) return 0;
    root->state = OPEN_DONE;
    return subtree_grow(g, e, p->n, p->key, 0, p->input, p->ninput, &root->sub);
}

/* The input of a slot: drawings are functions of the node's key. */
static i32 slot_input(const struct plant *p, const struct open_node *v, i32 slot, struct grower *g) {
    struct drawing w = {.n = p->ninput, .input = g->input, .swaps = g->swaps, .key = v->key};
    i32 input = 0;
    memcpy(g->input, p->input, sizeof *g->input * (size_t)p->ninput);
    while (w.drawn <= v->drawn + slot) input = drawing_next(&w);
    return input;
}

static void count_piece(struct stages *s, struct grower *g, const struct grow_task *t) {
    const struct plant *p = &s->plant[t->plant];
    const struct open_node *v = &p->node[t->node];
    const i64 n = v->hi - v->lo, k = v->counts + (i64)t->slot * v->pieces + t->piece;
    const i64 from = n * t->piece / v->pieces, to = n * (t->piece + 1) / v->pieces;
    memset(s->counts + block_bytes(s) * k, 0, (size_t)block_bytes(s));
    counts_add(s->d, slot_input(p, v, t->slot, g), p->entry + v->lo + from, to - from, block(s, k));
}

static err run_task(struct stages *s, struct grower *g, const struct grow_task *t) {
    struct plant *p = &s->plant[t->plant];
    struct open_node *v = &p->node[t->node];
    if (t->kind == ITEM_ROOT) return sample_tree(s, g, p);
    if (t->kind == ITEM_GAIN) {
        count_piece(s, g, t);
        return 0;
    }
    const i32 depth = v->leaf ? TREE_DEPTH : v->depth;
    v->state = OPEN_DONE;
    return subtree_grow(g, p->entry + v->lo, v->hi - v->lo, v->key, depth, p->input, p->ninput, &v->sub);
}

static void run_tasks(void *self, const struct kernel_call *c) {
    struct stages *s = self;
    struct grower *g = &s->worker[c->task->device];
    for (i64 i; (i = atomic_fetch_add(&s->next[0], 1)) < s->ntask;) {
        const err e = run_task(s, g, &s->task[i]);
        if (e < 0) atomic_store(&s->failed, e);
    }
}

/* ------------------------------------------------------------------ T_NS --------------------------------------------------- */

static void merge_pieces(const struct stages *s, const struct open_node *v, i32 slot) {
    const i64 cells = (i64)BINS * imax(1, s->d->nclass), first = v->counts + (i64)slot * v->pieces;
    const struct counts to = block(s, first);
    for (i32 k = 1; k < v->pieces; k++) {
        const struct counts from = block(s, first + k);
        for (i64 i = 0; i < cells; i++) to.count[i] += from.count[i];
        for (i64 i = 0; to.sum && i < cells; i++) to.sum[i] += from.sum[i];
    }
}

static void split_node(struct stages *s, struct grower *g, const struct grow_task *t) {
    struct plant *p = &s->plant[t->plant];
    struct open_node *v = &p->node[t->node];
    struct totals all = {.class = g->class};
    struct node_split best = {0};
    totals_of(s->d, p->entry + v->lo, v->hi - v->lo, &all);
    v->leaf = node_is_leaf(s->q, &all, v->depth);
    for (i32 k = 0; k < v->slots && !v->leaf; k++) {
        const i32 input = slot_input(p, v, k, g);
        merge_pieces(s, v, k);
        const struct node_split one = split_counts(s->d, s->q, input, &all, block(s, v->counts + (i64)k * v->pieces), g->side);
        if (one.found && (!best.found || one.score > best.score)) best = one;
    }
    v->drawn += v->slots;
    if (!best.found) {
        if (v->drawn >= p->ninput) v->leaf = true;
        v->state = v->leaf ? OPEN_SUBTREE : OPEN_GAIN;
        return;
    }
    v->split = best;
    v->mid = v->lo + entries_split(s->d, &best, p->entry + v->lo, v->hi - v->lo, p->spare + v->lo);
    v->state = OPEN_SPLIT;
}

static void run_splits(void *self, const struct kernel_call *c) {
    struct stages *s = self;
    for (i64 i; (i = atomic_fetch_add(&s->next[1], 1)) < s->nsplit;)
        split_node(s, &s->worker[c->task->device], &s->split[i]);
}

/* ------------------------------------------------------------------ the plan ----------------------------------------------- */

static struct exec_result result(void *self, void *const *mem) {
    (void)self, (void)mem;
    return (struct exec_result){.finite = true};
}

static const struct kernel kernels[TASK_KINDS] = {
    [TASK_GAIN] = {.name = "T_GR", .run = run_tasks, .compute = true},
    [TASK_SPLIT] = {.name = "T_NS", .run = run_splits},
};

/* Per device a task that takes items of the stage until there are none, then one that takes nodes. */
static err build(const struct machine *m, struct builder *b) {
    const i32 n = m->ndevice;
    u32 counts;
    TRY(build_begin(b, "forest", m, n));
    b->plan->exact = true;
    b->plan->B = b->plan->ngrain = n;
    b->plan->grain = 1;
    TRY(build_buffer(b, (struct pbuf){.element = ELEMENT_U8, .home = HOME_WRITER, .bytes = n, .extent = n}, &counts));
    for (i32 d = 0; d < n; d++) {
        TRY(build_task(b, (struct task){.kind = TASK_GAIN, .device = (u32)d, .box = {d, d + 1, 0, 1}}));
        TRY(build_use(b, (struct use){.buf = counts, .mode = USE_W, .lo = d, .hi = d + 1}));
    }
    for (i32 d = 0; d < n; d++) {
        TRY(build_task(b, (struct task){.kind = TASK_SPLIT, .device = (u32)d, .box = {d, d + 1, 0, 1}}));
        TRY(build_use(b, (struct use){.buf = counts, .mode = USE_R, .lo = 0, .hi = n}));
    }
    return build_end(b);
}

/* Each rank runs a plan of its own over its trees. */
static err open_run(struct stages *s, const struct resources *use) {
    struct resources alone = *use;
    struct builder b = {0};
    const err e = build(use->machine, &b);
    if (e < 0) {
        build_drop(&b);
        return e;
    }
    alone.comm = NULL;
    alone.ranks = NULL;
    const struct client client = {.kernel = kernels, .nkernel = TASK_KINDS, .self = s, .result = result};
    s->opened = true;
    TRY(plan_run_open(b.plan, &client, &alone, NULL, &s->run));
    s->run.use = use;
    return 0;
}

err stages_open(const struct tree_data *d, struct forest *f, const struct resources *use, struct stages *s) {
    *s = (struct stages){.d = d, .q = &f->spec, .f = f, .workers = use->machine->ndevice};
    NEW(s->worker, s->workers);
    for (i32 k = 0; k < s->workers; k++) TRY(grower_new(d, s->q, lmin(d->rows, s->q->fused), &s->worker[k]));
    if (offload_wanted(use)) TRY(shared_counts_open(d, s->q->mtry, use, &s->shared));
    return open_run(s, use);
}

void stages_close(struct stages *s) {
    if (s->opened) map_run_close(&s->run);
    for (i32 k = 0; s->worker && k < s->workers; k++) grower_free(&s->worker[k]);
    mem_free(s->worker);
    mem_free(s->task);
    mem_free(s->split);
    mem_free(s->counts);
    shared_counts_close(s->shared);
    mem_free(s->node);
    mem_free(s->counted);
    mem_free(s->input);
    *s = (struct stages){0};
}

/* ------------------------------------------------------------------ stage by stage ------------------------------------------ */

static err add_task(struct stages *s, struct grow_task t) {
    if (t.kind == ITEM_SPLIT) {
        GROW(s->split, s->nsplit, s->split_cap);
        s->split[s->nsplit++] = t;
        return 0;
    }
    GROW(s->task, s->ntask, s->cap);
    s->task[s->ntask++] = t;
    return 0;
}

static err add_child(struct plant *p, i32 parent, i64 lo, i64 hi, bool right, i64 fused) {
    const i32 at = (i32)p->nnode;
    const u64 key = node_key(p->node[parent].key, right);
    const i32 depth = p->node[parent].depth + 1;
    GROW(p->node, p->nnode, p->cap);
    p->nnode++;
    p->node[at] = (struct open_node){.lo = lo, .hi = hi, .key = key, .depth = depth, .left = -1, .right = -1,
                                     .state = hi - lo <= fused ? OPEN_SUBTREE : OPEN_GAIN};
    if (right) p->node[parent].right = at;
    else p->node[parent].left = at;
    return 0;
}

/* A node that devices count. */
static err add_counted(struct stages *s, i32 plant, i32 node) {
    GROW(s->counted, s->nnode, s->counted_cap);
    s->counted[s->nnode++] = (struct grow_task){.kind = ITEM_GAIN, .plant = plant, .node = node};
    return 0;
}

/* The tasks of an open node. */
static err add_node(struct stages *s, i32 plant, i32 node, i64 *blocks) {
    struct open_node *v = &s->plant[plant].node[node];
    struct forest_stage *count = &s->f->stage[imin(s->stage, FOREST_STAGES - 1)];
    if (v->state == OPEN_SUBTREE) {
        count->subtree++;
        return add_task(s, (struct grow_task){ITEM_SUBTREE, plant, node, 0, 0});
    }
    const i64 piece = lmax(s->q->piece, block_bytes(s) / 4);
    v->slots = v->drawn == 0 ? imin(s->q->mtry, s->plant[plant].ninput) : 1;
    v->pieces = (i32)lmax(1, (v->hi - v->lo) / piece);
    count->gain += (i64)v->slots * v->pieces; /* also on devices, which cut the rows by their speed: model files are equal */
    count->split++;
    if (s->shared) v->pieces = 1;
    v->counts = *blocks;
    *blocks += (i64)v->slots * v->pieces;
    if (s->shared) TRY(add_counted(s, plant, node));
    if (s->shared) return add_task(s, (struct grow_task){ITEM_SPLIT, plant, node, 0, 0});
    for (i32 k = 0; k < v->slots; k++)
        for (i32 i = 0; i < v->pieces; i++) TRY(add_task(s, (struct grow_task){ITEM_GAIN, plant, node, k, i}));
    return add_task(s, (struct grow_task){ITEM_SPLIT, plant, node, 0, 0});
}

/* The tasks of the next stage, from the nodes that the last one left open. */
static err next_tasks(struct stages *s) {
    i64 blocks = 0;
    s->ntask = s->nsplit = s->nnode = 0;
    for (i32 t = 0; t < s->nplant; t++) {
        struct plant *p = &s->plant[t];
        const i64 n = p->nnode;
        for (i32 k = 0; k < n; k++) {
            if (p->node[k].state != OPEN_SPLIT || p->node[k].left >= 0) continue;
            const struct open_node v = p->node[k];
            TRY(add_child(p, k, v.lo, v.mid, false, s->q->fused));
            TRY(add_child(p, k, v.mid, v.hi, true, s->q->fused));
        }
        for (i32 k = 0; k < p->nnode; k++)
            if (p->node[k].state == OPEN_GAIN || p->node[k].state == OPEN_SUBTREE) TRY(add_node(s, t, k, &blocks));
    }
    if (blocks <= s->counts_cap) return 0;
    mem_free(s->counts);
    s->counts_cap = 0;
    NEW(s->counts, blocks * block_bytes(s));
    s->counts_cap = blocks;
    return 0;
}

/* The counts of this stage, on devices. */
static err count_nodes(struct stages *s) {
    if (s->nnode > s->node_cap) {
        mem_free(s->node);
        mem_free(s->input);
        s->node_cap = 0;
        s->node = NULL;
        s->input = NULL;
        NEW(s->node, s->nnode);
        NEW(s->input, s->nnode * s->q->mtry);
        s->node_cap = s->nnode;
    }
    for (i64 i = 0; i < s->nnode; i++) {
        const struct plant *p = &s->plant[s->counted[i].plant];
        const struct open_node *v = &p->node[s->counted[i].node];
        i32 *input = s->input + i * s->q->mtry;
        for (i32 k = 0; k < v->slots; k++) input[k] = slot_input(p, v, k, &s->worker[0]);
        s->node[i] = (struct count_node){.entry = p->entry + v->lo, .n = v->hi - v->lo, .slots = v->slots, .input = input,
                                         .counts = s->counts + block_bytes(s) * v->counts};
        memset(s->node[i].counts, 0, (size_t)(block_bytes(s) * v->slots));
    }
    return shared_counts_run(s->shared, s->node, (i32)s->nnode);
}

static err run_stage(struct stages *s) {
    if (s->nnode > 0) TRY(count_nodes(s));
    atomic_store(&s->next[0], 0);
    atomic_store(&s->next[1], 0);
    TRY(map_run_step(&s->run, NULL));
    s->stage++;
    return atomic_load(&s->failed) ? FAIL(E601, "no memory for the nodes of a tree") : 0;
}

/* ------------------------------------------------------------------ from nodes to a tree ------------------------------------ */

static void put_subtree(struct tree *t, const struct subtree *sub, i32 nclass, f64 *importance) {
    for (i32 i = 0; i < sub->n; i++) {
        struct tree_node v = sub->node[i];
        if (v.split != NODE_LEAF) {
            importance[node_input(v)] += sub->gain[i];
            v.next += (u32)t->n;
        } else if (nclass > 0 && v.next & LEAF_SHARES) {
            v.next += (u32)t->nleaf;
        }
        t->node[t->n + i] = v;
    }
    if (sub->nleaf > 0)
        memcpy(t->leaf + (i64)t->nleaf * nclass, sub->leaf, sizeof *t->leaf * (size_t)sub->nleaf * (size_t)nclass);
    t->n += sub->n;
    t->nleaf += sub->nleaf;
}

/* In preorder, with a stack of nodes whose right child is still to come. */
static err put_nodes(const struct plant *p, struct tree *t, i32 nclass, f64 *importance) {
    struct {
        i32 node, parent;
    } *stack;
    i32 top = 1;
    NEW(stack, p->nnode + 2);
    while (top > 0) {
        const i32 k = stack[--top].node, parent = stack[top].parent;
        const struct open_node *v = &p->node[k];
        if (parent > 0) t->node[parent - 1].next = (u32)t->n;
        if (v->state == OPEN_DONE) {
            put_subtree(t, &v->sub, nclass, importance);
            continue;
        }
        importance[v->split.input] += v->split.gain;
        t->node[t->n].split = (u32)v->split.input << 9 | (u32)v->split.missing_right << 8 | (u32)v->split.bin;
        t->n++;
        stack[top].node = v->right;
        stack[top++].parent = t->n;
        stack[top].node = v->left;
        stack[top++].parent = 0;
    }
    mem_free(stack);
    return 0;
}

static err finish(struct stages *s, const struct plant *p, struct tree *t, f64 *importance) {
    i64 n = 0, nleaf = 0;
    for (i64 k = 0; k < p->nnode; k++) {
        n += p->node[k].state == OPEN_DONE ? p->node[k].sub.n : 1;
        nleaf += p->node[k].sub.nleaf;
    }
    if (n > INT32_MAX / 2) return FAIL(E601, "a tree has %lld nodes (--min-leaf, --depth)", (long long)n);
    NEW(t->node, lmax(1, n));
    if (nleaf > 0) NEW(t->leaf, nleaf * s->d->nclass);
    if (p->n > 0) return put_nodes(p, t, s->d->nclass, importance);
    const f32 mean = (f32)s->f->common;
    t->node[0] = (struct tree_node){.split = NODE_LEAF, .next = (u32)s->f->common};
    if (s->d->nclass == 0) memcpy(&t->node[0].next, &mean, sizeof mean);
    t->n = 1;
    return 0;
}

static void free_plant(struct plant *p) {
    for (i64 k = 0; k < p->nnode; k++) subtree_free(&p->node[k].sub);
    mem_free(p->node);
    mem_free(p->entry);
    mem_free(p->spare);
    mem_free(p->input);
    *p = (struct plant){0};
}

static err plant_trees(struct stages *s, i32 from, i32 to) {
    s->nplant = to - from;
    s->ntask = s->nsplit = s->nnode = 0;
    s->stage = 0;
    for (i32 t = 0; t < s->nplant; t++) {
        struct plant *p = &s->plant[t];
        p->number = from + t;
        p->key = tree_key(s->q->seed, p->number);
        p->ninput = s->q->reduce > 0 ? imin(s->q->reduce, s->d->ninput) : s->d->ninput;
        NEW(p->input, s->d->ninput);
        GROW(p->node, 0, p->cap);
        p->nnode = 1;
        TRY(add_task(s, (struct grow_task){ITEM_ROOT, t, 0, 0, 0}));
        s->f->stage[0].subtree++;
    }
    return 0;
}

static err grow_all(struct stages *s, i32 from, i32 to, f64 *importance) {
    TRY(plant_trees(s, from, to));
    while (s->ntask + s->nsplit > 0) {
        TRY(run_stage(s));
        TRY(next_tasks(s));
    }
    for (i32 t = 0; t < s->nplant; t++)
        TRY(finish(s, &s->plant[t], &s->f->tree[from + t], importance + (i64)t * s->d->ninput));
    return 0;
}

err stages_grow(struct stages *s, i32 from, i32 to, f64 *importance) {
    if (to <= from) return 0;
    NEW(s->plant, to - from);
    const err e = grow_all(s, from, to, importance);
    for (i32 t = 0; t < s->nplant; t++) free_plant(&s->plant[t]);
    mem_free(s->plant);
    s->plant = NULL;
    return e;
}

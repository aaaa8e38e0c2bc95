/* viterbi_slices.c - plan, kernels and rounds of viterbi_slices.h. */
#include "learn/viterbi_slices.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "learn/map_run.h"
#include "plan/build.h"

/* Buffers: boundary scores that enter and leave each slice; the label before each slice and the last one of it (-1 = not known);
 * what each slice has left to do; the path.  Kernels: boundaries to the right neighbour and labels to the left one; the slices of
 * a task. */
enum { BUF_IN, BUF_OUT, BUF_LINK, BUF_LAST, BUF_STATE, BUF_PATH, NBUF };
enum { KERNEL_PASS, KERNEL_SLICE, NKERNEL };

/* Phases of the rounds: blocks from the guess; repeats from better boundaries; labels. */
enum phase { PHASE_GUESS, PHASE_REPEAT, PHASE_TRACE };

enum { BLOCK = 1024, CUT_MAX = 256, STEPS_LEAST = 4 * BLOCK, GUESS_ROUNDS = 40 };

/* What a slice reports after a round. */
struct slice_state {
    i32 busy;            /* blocks of the guess to do; or its boundary moved in this round; or its path is not complete */
    i32 again, traced;   /* blocks so far */
    i64 score;           /* what its blocks took off; of the last slice with the best score after it */
};

struct long_slice {
    i64 from, to;        /* steps */
    i32 nblock, next;    /* next: block that the guess has reached */
    i32 first;           /* its first block, in the arrays of all */
};

/* Scratch of a slice. */
struct lane {
    u8 *back[2];         /* [block][Lb] backpointers of this block and of the one before */
    i64 meet[2];         /* rows of each whose path is known: where all paths meet; -1 = nowhere */
    i32 *row;            /* [block] */
    i32 *v;              /* [Lp] */
};

struct slicing {
    struct viterbi_long q;
    enum phase phase;
    i32 quota;                /* blocks of each slice in a round of the guess */
    i32 P, nblock;
    i32 frontier;             /* one slice after the other: the one that gets its boundary; -1 = all do */
    struct long_slice *slice; /* [P] */
    i32 *bound;               /* [nblock + P][Lp] scores before each block, and after the last one of each slice */
    i32 *before;              /* [nblock + P] label before each block, -1 = not known; the one after a slice is its last label */
    u8 *done;                 /* [nblock] its path is written */
    struct lane *lane;        /* [P] */
    i32 *in, *out;            /* [P][Lp] */
    i32 *link, *last;         /* [P] */
    struct slice_state *state; /* [P] */
    i64 *base;                /* [nblock] what the steps of a block took off its scores */
};

/* ------------------------------------------------------------------ blocks -------------------------------------------------- */

static i64 block_from(const struct slicing *z, const struct long_slice *s, i32 k) { return s->from + (i64)k * z->q.block; }
static i64 block_steps(const struct slicing *z, const struct long_slice *s, i32 k) {
    return lmin(z->q.block, s->to - block_from(z, s, k));
}
/* Slice s has one boundary more than blocks, so its entries are s places further. */
static i32 *bound_of(const struct slicing *z, const struct long_slice *s, i32 k) {
    return z->bound + (i64)(s->first + k + (i32)(s - z->slice)) * z->q.kern->Lp;
}
static i32 *before_of(const struct slicing *z, const struct long_slice *s, i32 k) {
    return &z->before[s->first + k + (s - z->slice)];
}
/* The first step of the sequence has no label before it. */
static i32 lead(const struct slicing *z, const struct long_slice *s, i32 k) { return block_from(z, s, k) == 0; }

static void rows_of(const struct viterbi_long *q, i64 from, i64 n, i32 *row) {
    if (q->symbol_bytes == 1)
        for (i64 i = 0; i < n; i++) row[i] = ((const u8 *)q->symbol)[from + i];
    else if (q->symbol_bytes == 2)
        for (i64 i = 0; i < n; i++) row[i] = ((const u16 *)q->symbol)[from + i];
    else memcpy(row, (const i32 *)q->symbol + from, (size_t)n * sizeof *row);
}

/* The stream of block k of a slice, before its first step. */
static struct viterbi_stream open_block(const struct slicing *z, const struct long_slice *s, i32 k, struct lane *lane) {
    const struct viterbi *m = z->q.kern;
    const i64 from = block_from(z, s, k), n = block_steps(z, s, k);
    struct viterbi_stream to = {.unary = z->q.unary, .ld = m->Lp, .v = lane->v, .back = lane->back[k & 1]};
    rows_of(&z->q, from, n, lane->row);
    if (from == 0) viterbi_start(m, z->q.start, z->q.unary + (i64)lane->row[0] * m->Lp, &to);
    else memcpy(lane->v, bound_of(z, s, k), (size_t)m->Lp * sizeof *lane->v);
    to.row = lane->row + lead(z, s, k);
    return to;
}

/* A block to run: the slice, its number in it, the lane of the slice. */
struct turn {
    const struct long_slice *s;
    i32 k;
    struct lane *lane;
};

/* Runs n <= VITERBI_STREAMS blocks of as many slices. */
static void run_blocks(const struct slicing *z, const struct turn *turn, i32 n) {
    const struct viterbi *m = z->q.kern;
    struct viterbi_stream stream[VITERBI_STREAMS];
    i64 steps[VITERBI_STREAMS], all = INT64_MAX;
    for (i32 i = 0; i < n; i++) {
        stream[i] = open_block(z, turn[i].s, turn[i].k, turn[i].lane);
        steps[i] = block_steps(z, turn[i].s, turn[i].k) - lead(z, turn[i].s, turn[i].k);
        all = lmin(all, steps[i]);
    }
    if (all > 0) m->set->steps(m, n, stream, all);
    for (i32 i = 0; i < n; i++) {
        struct viterbi_stream rest = stream[i];
        rest.row += all;
        rest.back += all * m->Lb;
        if (steps[i] > all) m->set->steps(m, 1, &rest, steps[i] - all);
        z->base[turn[i].s->first + turn[i].k] = rest.base;
    }
}

/* The path of block k below row `rows` of it, from the label of the last of these steps. */
static struct viterbi_walk walk_of(const struct slicing *z, const struct long_slice *s, i32 k, i64 rows, i32 label) {
    return (struct viterbi_walk){z->lane[s - z->slice].back[k & 1], rows, label,
                                 z->q.path + block_from(z, s, k) + lead(z, s, k)};
}

/* After a walk to the front of block k. */
static void end_walk(const struct slicing *z, const struct long_slice *s, i32 k, i32 label) {
    if (lead(z, s, k)) z->q.path[0] = (u8)label;
    *before_of(z, s, k) = label;
}

/* Completes the path of block k, whose last label is `label`: above the rows where all paths have met. */
static void finish_block(const struct slicing *z, const struct long_slice *s, i32 k, i32 label) {
    const i64 n = block_steps(z, s, k) - lead(z, s, k), meet = lmax(0, z->lane[s - z->slice].meet[k & 1]);
    struct viterbi_walk w = walk_of(z, s, k, n, label);
    w.back += meet * z->q.kern->Lb;
    w.path += meet;
    w.n -= meet;
    viterbi_trace(z->q.kern, 1, &w);
    if (z->lane[s - z->slice].meet[k & 1] < 0) end_walk(z, s, k, w.label);
    z->done[s->first + k] = 1;
}

/* After n blocks were run: their paths up to where all meet, side by side.  The block before each can then be completed. */
static void close_blocks(const struct slicing *z, const struct turn *turn, i32 n) {
    struct viterbi_walk w[VITERBI_STREAMS];
    const struct turn *of[VITERBI_STREAMS];
    i32 k = 0, label;
    for (i32 i = 0; i < n; i++) {
        const struct turn *t = &turn[i];
        const i64 rows = block_steps(z, t->s, t->k) - lead(z, t->s, t->k);
        i64 *meet = &t->lane->meet[t->k & 1];
        *meet = viterbi_meet(z->q.kern, t->lane->back[t->k & 1], rows, &label);
        *before_of(z, t->s, t->k) = -1;
        z->done[t->s->first + t->k] = 0;
        if (t->k > 0) z->done[t->s->first + t->k - 1] = 0;
        if (*meet < 0) continue;
        w[k] = walk_of(z, t->s, t->k, *meet, label);
        of[k++] = t;
    }
    viterbi_trace(z->q.kern, k, w);
    for (i32 i = 0; i < k; i++) {
        end_walk(z, of[i]->s, of[i]->k, w[i].label);
        if (of[i]->k > 0) finish_block(z, of[i]->s, of[i]->k - 1, w[i].label);
    }
}

/* ------------------------------------------------------------------ slices -------------------------------------------------- */

static i32 *vector(const struct slicing *z, i32 *of, i32 slice) { return of + (i64)slice * z->q.kern->Lp; }

static bool equal(const struct slicing *z, const i32 *a, const i32 *b) {
    return memcmp(a, b, (size_t)z->q.kern->L * sizeof *a) == 0;
}

static void keep_bound(const struct slicing *z, i32 *to, const i32 *from) {
    memcpy(to, from, (size_t)z->q.kern->Lp * sizeof *to);
}

/* Tells the neighbours the scores after the slice and the label before it. */
static void publish(struct slicing *z, i32 slice) {
    const struct long_slice *s = &z->slice[slice];
    keep_bound(z, vector(z, z->out, slice), bound_of(z, s, s->nblock));
    z->link[slice] = *before_of(z, s, 0);
}

/* Some more blocks of all slices [a, b) of a task, side by side. */
static void guess(struct slicing *z, i32 a, i32 b) {
    for (i32 done = 0; done < z->quota; done++) {
        struct turn turn[VITERBI_STREAMS];
        i32 n = 0;
        for (i32 i = a; i < b; i++)
            if (z->slice[i].next < z->slice[i].nblock)
                turn[n++] = (struct turn){&z->slice[i], z->slice[i].next++, &z->lane[i]};
        if (n == 0) break;
        run_blocks(z, turn, n);
        close_blocks(z, turn, n);
        for (i32 i = 0; i < n; i++) keep_bound(z, bound_of(z, turn[i].s, turn[i].k + 1), turn[i].lane->v);
    }
    for (i32 i = a; i < b; i++) {
        z->state[i].busy = z->slice[i].nblock - z->slice[i].next;
        if (z->state[i].busy == 0) publish(z, i);
    }
}

/* From a better boundary up to the block after which nothing changes. */
static void repeat(struct slicing *z, i32 slice) {
    struct lane *lane = &z->lane[slice];
    const struct long_slice *s = &z->slice[slice];
    z->state[slice].busy = 0;
    if (slice == 0 || equal(z, vector(z, z->in, slice), bound_of(z, s, 0))) return;
    keep_bound(z, bound_of(z, s, 0), vector(z, z->in, slice));
    i32 k = 0;
    for (bool same = false; !same && k < s->nblock; k++) {
        const struct turn turn = {s, k, lane};
        run_blocks(z, &turn, 1);
        close_blocks(z, &turn, 1);
        same = equal(z, lane->v, bound_of(z, s, k + 1));
        keep_bound(z, bound_of(z, s, k + 1), lane->v);
        z->state[slice].busy = !same;
        z->state[slice].again++;
    }
    if (k < s->nblock && *before_of(z, s, k) >= 0) finish_block(z, s, k - 1, *before_of(z, s, k));
    publish(z, slice);
}

/* The last label of a slice; *score: what the path gains in it.  All boundaries are 0 at label 0. */
static i32 last_label(const struct slicing *z, i32 slice, i64 *score) {
    const struct long_slice *s = &z->slice[slice];
    const struct viterbi_stream end = {.v = bound_of(z, s, s->nblock)};
    i32 label = z->last[slice];
    *score = 0;
    if (slice == z->P - 1) label = viterbi_best(z->q.kern, &end, score);
    for (i32 k = 0; k < s->nblock; k++) *score += z->base[s->first + k];
    return label;
}

/* From the last label of a slice on to the left: blocks without a path. */
static void complete(struct slicing *z, i32 slice) {
    struct lane *lane = &z->lane[slice];
    const struct long_slice *s = &z->slice[slice];
    i32 *last = before_of(z, s, s->nblock);
    *last = last_label(z, slice, &z->state[slice].score);
    z->state[slice].busy = *last < 0;
    if (*last < 0) return;
    for (i32 k = s->nblock - 1; k >= 0; k--) {
        if (z->done[s->first + k]) continue;
        run_blocks(z, &(struct turn){s, k, lane}, 1);
        lane->meet[k & 1] = -1;
        finish_block(z, s, k, *before_of(z, s, k + 1));
        z->state[slice].traced++;
    }
    publish(z, slice);
}

/* ------------------------------------------------------------------ kernels ------------------------------------------------- */

static void run_slices(void *self, const struct kernel_call *c) {
    struct slicing *z = self;
    const struct task *t = c->task;
    if (z->phase == PHASE_GUESS) {
        guess(z, t->node_a, t->node_b);
        return;
    }
    for (i32 i = t->node_a; i < t->node_b; i++) {
        if (z->phase == PHASE_REPEAT) repeat(z, i);
        else complete(z, i);
    }
}

/* To slices [a, b) of a task: boundaries from the left, labels from the right. */
static void pass(void *self, const struct kernel_call *c) {
    struct slicing *z = self;
    for (i32 i = c->task->node_a; i < c->task->node_b; i++) {
        if (i > 0 && (z->frontier < 0 || z->frontier == i)) keep_bound(z, vector(z, z->in, i), vector(z, z->out, i - 1));
        if (i < z->P - 1) z->last[i] = z->link[i + 1];
    }
}

static struct exec_result result(void *self, void *const *mem) {
    (void)self, (void)mem;
    return (struct exec_result){.finite = true};
}

static const struct kernel kernels[NKERNEL] = {
    [KERNEL_SLICE] = {.name = "viterbi", .run = run_slices, .compute = true},
    [KERNEL_PASS] = {.name = "pass", .run = pass},
};

/* ------------------------------------------------------------------ the plan ------------------------------------------------ */

static err add_buffer(struct builder *b, i32 home, i64 unit, i64 extent) {
    const struct pbuf buf = {.element = ELEMENT_U8, .lent = true, .home = home, .bytes = unit * extent, .extent = extent};
    u32 at;
    return build_buffer(b, buf, &at);
}

static err add_buffers(const struct slicing *z, struct builder *b) {
    const i64 bytes = (i64)sizeof(i32) * z->q.kern->Lp;
    TRY(add_buffer(b, HOME_WRITER, bytes, z->P));
    TRY(add_buffer(b, HOME_READERS, bytes, z->P)); /* read in the next round */
    TRY(add_buffer(b, HOME_READERS, sizeof(i32), z->P));
    TRY(add_buffer(b, HOME_WRITER, sizeof(i32), z->P));
    TRY(add_buffer(b, HOME_ALL, sizeof(struct slice_state), z->P));
    return add_buffer(b, HOME_READERS, 1, z->q.T);
}

static err use(struct builder *b, u32 buf, enum use_mode mode, i64 lo, i64 hi) {
    return build_use(b, (struct use){.buf = buf, .mode = (u8)mode, .lo = lo, .hi = hi});
}

static err add_pass(const struct slicing *z, struct builder *b, u32 device, i32 a, i32 end) {
    TRY(build_task(b, (struct task){.kind = KERNEL_PASS, .device = device, .node_a = a, .node_b = end}));
    TRY(use(b, BUF_OUT, USE_R, lmax(0, a - 1), end - 1));
    TRY(use(b, BUF_LINK, USE_R, a + 1, lmin(z->P, end + 1)));
    TRY(use(b, BUF_IN, USE_RW, a, end));
    return use(b, BUF_LAST, USE_RW, a, end);
}

static err add_slices(const struct slicing *z, struct builder *b, u32 device, i32 a, i32 end) {
    const i64 from = z->slice[a].from, to = z->slice[end - 1].to;
    const f64 seconds = 2e-11 * (f64)(to - from) * z->q.kern->L * z->q.kern->L;
    TRY(build_task(
        b, (struct task){.kind = KERNEL_SLICE, .device = device, .node_a = a, .node_b = end, .cost = (f32)seconds}));
    TRY(use(b, BUF_IN, USE_R, a, end));
    TRY(use(b, BUF_LAST, USE_R, a, end));
    TRY(use(b, BUF_OUT, USE_RW, a, end));
    TRY(use(b, BUF_LINK, USE_RW, a, end));
    TRY(use(b, BUF_STATE, USE_RW, a, end));
    return use(b, BUF_PATH, USE_RW, from, to);
}

/* The slices of device d of n, at most one for each stream in a task. */
static err add_tasks(const struct slicing *z, struct builder *b, i32 kernel, i32 d, i32 n) {
    const i32 to = (i32)((i64)z->P * (d + 1) / n);
    for (i32 a = (i32)((i64)z->P * d / n); a < to; a += VITERBI_STREAMS) {
        const i32 end = imin(to, a + VITERBI_STREAMS);
        TRY(kernel == KERNEL_PASS ? add_pass(z, b, (u32)d, a, end) : add_slices(z, b, (u32)d, a, end));
    }
    return 0;
}

static err fill_plan(const struct slicing *z, const struct machine *machine, struct builder *b) {
    const i32 n = imin(machine->ndevice, z->P);
    TRY(build_begin(b, "chain", machine, n));
    b->plan->exact = true;
    b->plan->B = b->plan->ngrain = z->P;
    b->plan->grain = 1;
    TRY(add_buffers(z, b));
    for (i32 d = 0; d < n; d++) TRY(add_tasks(z, b, KERNEL_PASS, d, n));
    for (i32 d = 0; d < n; d++) TRY(add_tasks(z, b, KERNEL_SLICE, d, n));
    return build_end(b);
}

static err make_plan(const struct slicing *z, const struct machine *machine, struct plan **out) {
    struct builder b = {0};
    const err e = fill_plan(z, machine, &b);
    if (e < 0) {
        build_drop(&b);
        return e;
    }
    b.plan->predicted = plan_schedule(b.plan, NULL);
    *out = b.plan;
    return 0;
}

/* ------------------------------------------------------------------ memory -------------------------------------------------- */

static void cut(struct slicing *z) {
    const i64 T = z->q.T;
    for (i32 i = 0; i < z->P; i++) {
        struct long_slice *s = &z->slice[i];
        *s = (struct long_slice){.from = T * i / z->P, .to = T * (i + 1) / z->P, .first = z->nblock};
        s->nblock = (i32)((s->to - s->from + z->q.block - 1) / z->q.block);
        z->nblock += s->nblock;
    }
}

static err alloc_slices(struct slicing *z) {
    const i32 Lp = z->q.kern->Lp;
    NEW(z->slice, z->P);
    cut(z);
    NEW(z->bound, (i64)(z->nblock + z->P) * Lp);
    NEW(z->before, z->nblock + z->P);
    NEW(z->done, z->nblock);
    NEW(z->base, z->nblock);
    NEW(z->in, (i64)z->P * Lp);
    NEW(z->out, (i64)z->P * Lp);
    NEW(z->link, z->P);
    NEW(z->last, z->P);
    NEW(z->state, z->P);
    for (i32 i = 0; i < z->P; i++) z->last[i] = z->link[i] = -1;
    return 0;
}

static err alloc_lanes(struct slicing *z) {
    const struct viterbi *m = z->q.kern;
    NEW(z->lane, z->P);
    for (i32 i = 0; i < z->P; i++) {
        NEW(z->lane[i].back[0], (i64)z->q.block * m->Lb);
        NEW(z->lane[i].back[1], (i64)z->q.block * m->Lb);
        NEW(z->lane[i].row, z->q.block);
        NEW(z->lane[i].v, m->Lp);
    }
    return 0;
}

static void free_all(struct slicing *z) {
    for (i32 i = 0; z->lane && i < z->P; i++) {
        mem_free(z->lane[i].back[0]);
        mem_free(z->lane[i].back[1]);
        mem_free(z->lane[i].row);
        mem_free(z->lane[i].v);
    }
    void *all[] = {z->lane, z->slice, z->bound, z->before, z->done, z->base, z->in, z->out, z->link, z->last, z->state};
    for (size_t i = 0; i < COUNT(all); i++) mem_free(all[i]);
}

/* ------------------------------------------------------------------ rounds -------------------------------------------------- */

struct drive {
    struct slicing *z;
    const struct resources *use;
    struct map_run *run;
    struct viterbi_long_result *result;
    f64 started;
};

/* A step of the plan; *busy: the sum of what slices have to do. */
static err step(const struct drive *d, i64 *busy) {
    const struct slicing *z = d->z;
    struct exec_result ignored;
    bool signal, late;
    TRY(map_run_stopped(d->use, 0, &signal, &late));
    if (signal) return FAIL(E806, "stopped while decoding");
    TRY(exec_step(d->run->exec, d->run->steps++, false, &ignored));
    TRY(exec_quiet(d->run->exec));
    *busy = 0;
    for (i32 i = 0; i < z->P; i++) *busy += z->state[i].busy;
    return 0;
}

static err guess_all(const struct drive *d) {
    const i64 all = d->z->nblock;
    d->z->phase = PHASE_GUESS;
    for (i64 busy = all; busy > 0;) {
        TRY(step(d, &busy));
        const f64 seconds = clock_now() - d->started, share = (f64)(all - busy) / (f64)all;
        event_emit(d->use->events, &(struct event){.kind = EVENT_WORK,
                                                   .text = "decoding",
                                                   .step = all - busy,
                                                   .steps = all,
                                                   .seconds = seconds,
                                                   .left = seconds / share * (1 - share)});
    }
    return 0;
}

/* Passes boundaries until none changes.  Slice i is exact after i rounds at the latest. */
static err repeat_all(const struct drive *d) {
    struct slicing *z = d->z;
    struct viterbi_long_result *r = d->result;
    z->phase = PHASE_REPEAT;
    for (i64 busy = z->P - 1; busy > 0; r->rounds++) {
        if (r->rounds > z->P / 2) {
            r->serial = true;
            break;
        }
        TRY(step(d, &busy));
    }
    for (i32 i = r->rounds + 1; r->serial && i < z->P; i++) {
        i64 busy;
        z->frontier = i;
        TRY(step(d, &busy));
    }
    z->frontier = -1;
    return 0;
}

static err trace_all(const struct drive *d) {
    d->z->phase = PHASE_TRACE;
    for (i64 busy = 1; busy > 0;) TRY(step(d, &busy));
    struct exec_result ignored;
    return exec_settle(d->run->exec, &ignored);
}

static err run_all(const struct drive *d) {
    const struct slicing *z = d->z;
    struct viterbi_long_result *r = d->result;
    TRY(guess_all(d));
    TRY(repeat_all(d));
    TRY(trace_all(d));
    for (i32 i = 0; i < z->P; i++) {
        r->score += z->state[i].score;
        r->again += z->state[i].again;
        r->traced += z->state[i].traced;
    }
    r->slices = z->P;
    r->blocks = z->nblock;
    r->seconds = clock_now() - d->started;
    return 0;
}

static err open_and_run(struct slicing *z, const struct resources *use, struct map_run *run, struct viterbi_long_result *out) {
    const struct client client = {.kernel = kernels, .nkernel = NKERNEL, .self = z, .result = result};
    void *lent[NBUF] = {z->in, z->out, z->link, z->last, z->state, z->q.path};
    struct plan *plan;
    TRY(make_plan(z, map_run_machine(use), &plan));
    TRY(plan_run_open(plan, &client, use, lent, run));
    const struct drive d = {z, use, run, out, clock_now()};
    return run_all(&d);
}

err viterbi_long(const struct viterbi_long *q, const struct resources *use, struct viterbi_long_result *out) {
    struct slicing z = {.q = *q, .frontier = -1};
    struct map_run run = {0};
    const i64 wanted = q->slices > 0 ? q->slices : lmin(map_run_machine(use)->ndevice * VITERBI_STREAMS, q->T / STEPS_LEAST);
    *out = (struct viterbi_long_result){0};
    z.P = (i32)lmax(1, lmin(lmin(wanted, CUT_MAX), q->T));
    if (z.q.block <= 0) z.q.block = BLOCK;
    z.quota = (i32)(q->T / z.P / z.q.block / GUESS_ROUNDS + 1);
    err e = alloc_slices(&z);
    if (e >= 0) e = alloc_lanes(&z);
    if (e >= 0) e = open_and_run(&z, use, &run, out);
    free_all(&z);
    map_run_close(&run);
    return e;
}

/* pass.c - one evaluation of the objective as a plan: dots, move, pass, columns; see train.h. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "learn/crf/devices.h"
#include "plan/build.h"

enum { DOTS, MOVE, PASS, COLUMNS, NKERNEL };
enum { BUF_W, BUF_D, BUF_PART, BUF_DOTS, BUF_SUMS, NBUF };
enum { BLOCK = 1024 }; /* elements of each vector that are in the cache together */

/* ------------------------------------------------------------------ dots and move ------------------------------------------- */

/* Gradient of F with the absolute values, where one side of a kink decreases: 0 where neither does (Andrew and Gao 2007). */
static f32 pseudo(f32 w, f32 g, f32 l1) {
    if (w > 0) return g + l1;
    if (w < 0) return g - l1;
    return g + l1 < 0 ? g + l1 : g - l1 > 0 ? g - l1 : 0;
}

/* The last move becomes the point to start from, and a pair of the history. */
static void take_point(const struct crf_run *r, i64 lo, i64 n) {
    const size_t bytes = sizeof(f32) * (size_t)n;
    f32 *S = r->S[r->slot], *Y = r->Y[r->slot];
    for (i64 i = lo; r->learn && i < lo + n; i++) {
        S[i] = r->w[i] - r->w0[i];
        Y[i] = r->g[i] - r->g0[i];
    }
    memcpy(r->w0 + lo, r->w + lo, bytes);
    memcpy(r->g0 + lo, r->g + lo, bytes);
    for (i64 i = lo; r->s->l1 > 0 && i < lo + n; i++) r->q[i] = pseudo(r->w[i], r->g[i], (f32)r->s->l1);
}

/* Forgets the products that change with this step: those with the new pair, and those with the gradient. */
static void clear_dots(const struct crf_run *r, f64 *dots) {
    const i32 c = r->slot;
    for (i32 i = 0; i < r->n; i++) {
        if (r->learn) dots[dot_sy(c, i)] = dots[dot_sy(i, c)] = dots[dot_yy(c, i)] = dots[dot_yy(i, c)] = 0;
        dots[dot_sq(i)] = dots[dot_yq(i)] = 0;
    }
}

/* The same products over elements [lo, lo + n), added to the table. */
static void add_dots(const struct crf_run *r, i64 lo, i64 n, f64 *dots) {
    const struct crf_kern *k = r->kern;
    const i32 c = r->slot;
    for (i32 i = 0; i < r->n; i++) {
        const f32 *S = r->S[i] + lo, *Y = r->Y[i] + lo;
        if (r->learn) {
            dots[dot_sy(c, i)] += k->dot(r->S[c] + lo, Y, n);
            if (i != c) dots[dot_sy(i, c)] += k->dot(S, r->Y[c] + lo, n);
            dots[dot_yy(c, i)] += k->dot(r->Y[c] + lo, Y, n);
            dots[dot_yy(i, c)] = dots[dot_yy(c, i)];
        }
        dots[dot_sq(i)] += k->dot(S, r->q + lo, n);
        dots[dot_yq(i)] += k->dot(Y, r->q + lo, n);
    }
}

static void dots(void *self, const struct kernel_call *c) {
    const struct crf_run *r = self;
    const i64 Lp = r->p->Lp;
    if (!r->turn || r->half == CRF_FROM_PASS) return;
    for (i32 k = c->task->box.b0; k < c->task->box.b1; k++) {
        f64 *to = r->table + (i64)k * CRF_NDOT; /* kept from step to step */
        const i64 end = r->p->row[k + 1] * Lp;
        clear_dots(r, to);
        for (i64 at = r->p->row[k] * Lp; at < end; at += BLOCK) {
            take_point(r, at, lmin(BLOCK, end - at));
            add_dots(r, at, lmin(BLOCK, end - at), to);
        }
        memcpy((f64 *)c->mem[BUF_DOTS] + (i64)k * CRF_NDOT, to, sizeof *to * CRF_NDOT);
    }
}

/* d = -(gamma (q + sum cy y) + sum cs s); OWL-QN: 0 where that would go uphill. */
static void turn(const struct crf_run *r, const struct crf_direction *c, i64 lo, i64 n) {
    const struct crf_kern *k = r->kern;
    f32 *d = r->d + lo;
    memcpy(d, r->q + lo, sizeof *d * (size_t)n);
    for (i32 i = 0; i < r->n; i++)
        if (c->cy[i] != 0) k->add(d, (f32)c->cy[i], r->Y[i] + lo, n);
    for (i64 i = 0; i < n; i++) d[i] *= -(f32)c->gamma;
    for (i32 i = 0; i < r->n; i++)
        if (c->cs[i] != 0) k->add(d, -(f32)c->cs[i], r->S[i] + lo, n);
    for (i64 i = 0; r->s->l1 > 0 && i < n; i++)
        if (d[i] * r->q[lo + i] >= 0) d[i] = 0;
}

/* w = w0 + t d; OWL-QN: 0 where that leaves the orthant of w0, or of the descent where w0 is 0. */
static void step(const struct crf_run *r, i64 lo, i64 n) {
    memcpy(r->w + lo, r->w0 + lo, sizeof *r->w * (size_t)n);
    r->kern->add(r->w + lo, r->t, r->d + lo, n);
    for (i64 i = lo; r->s->l1 > 0 && i < lo + n; i++) {
        const f32 side = r->w0[i] != 0 ? r->w0[i] : -r->q[i];
        if (r->w[i] * side <= 0) r->w[i] = 0;
    }
}

static void move(void *self, const struct kernel_call *c) {
    const struct crf_run *r = self;
    const i64 Lp = r->p->Lp;
    struct crf_direction *to = &r->direction[c->task->device];
    if (r->half == CRF_FROM_PASS) return;
    if (r->turn) {
        f64 sum[CRF_NDOT] = {0};
        const f64 *part = c->mem[BUF_DOTS];
        for (i32 k = 0; k < r->p->ngrain; k++)
            for (i32 i = 0; i < CRF_NDOT; i++) sum[i] += part[(i64)k * CRF_NDOT + i];
        crf_direction(r, sum, to);
    }
    const i64 end = r->p->row[c->task->box.b1] * Lp;
    for (i64 at = r->p->row[c->task->box.b0] * Lp; at < end; at += BLOCK) {
        if (r->turn) turn(r, to, at, lmin(BLOCK, end - at));
        step(r, at, lmin(BLOCK, end - at));
    }
}

/* ------------------------------------------------------------------ pass ---------------------------------------------------- */

static struct crf_pass pass_of(const struct crf_run *r) {
    const struct crf_problem *p = r->p;
    return (struct crf_pass){.L = p->L, .Lp = p->Lp, .w = r->w, .scale = 1, .A = r->w + p->nattr * p->Lp,
                             .at = p->f.at, .attribute = p->f.attribute, .gold = p->gold};
}

static i64 part_size(const struct crf_problem *p) { return 1 + (i64)p->Lp * p->Lp; }

static void pass(void *self, const struct kernel_call *c) {
    const struct crf_run *r = self;
    const struct crf_problem *p = r->p;
    if (r->half != CRF_WHOLE) return;
    struct crf_scratch *mine = &r->scratch[c->task->device];
    const struct crf_pass data = pass_of(r), x = crf_scratch_pass(mine, &data);
    for (i32 k = c->task->box.b0; k < c->task->box.b1; k++) {
        f64 *part = (f64 *)c->mem[BUF_PART] + k * part_size(p);
        memset(part, 0, sizeof *part * (size_t)part_size(p));
        for (i32 j = p->sentence[k]; j < p->sentence[k + 1]; j++) {
            f32 *d = (f32 *)c->mem[BUF_D] + p->first[j] * p->Lp;
            part[0] += r->kern->sentence(&x, p->first[j], (i32)(p->first[j + 1] - p->first[j]), d, mine->pair);
            if (j % CRF_TOGETHER != CRF_TOGETHER - 1 && j + 1 != p->sentence[k + 1]) continue;
            crf_add_pairs(p->L, p->Lp, mine->pair, mine->E, part + 1);
            memset(mine->pair, 0, sizeof *mine->pair * (size_t)p->Lp * (size_t)p->Lp);
        }
    }
}

/* ------------------------------------------------------------------ columns ------------------------------------------------- */

/* Gradient of the transitions in rows [lo, hi) from the pairs of all grains. */
static void transitions(const struct crf_run *r, const f64 *part, i64 lo, i64 hi) {
    const struct crf_problem *p = r->p;
    const f64 decay = r->s->c > 0 ? 1 / r->s->c : 0;
    for (i64 row = lmax(lo, p->nattr); row < hi; row++)
        for (i32 j = 0; j < p->L; j++) {
            const i64 pair = (row - p->nattr) * p->Lp + j, at = row * p->Lp + j;
            f64 sum = 0;
            for (i32 k = 0; k < p->npass; k++) sum += part[k * part_size(p) + 1 + pair];
            r->g[at] = p->bigram ? (f32)(sum - p->pair[pair] + decay * (f64)r->w[at]) : 0;
        }
}

static struct crf_sums sum_up(const struct crf_run *r, i64 lo, i64 n) {
    const struct crf_kern *k = r->kern;
    const f32 *w = r->w + lo, *g = r->g + lo;
    struct crf_sums s = {.slope = k->dot(g, r->d + lo, n), .slope0 = k->dot(r->q + lo, r->d + lo, n), .norm = k->dot(g, g, n),
                         .squares = k->dot(w, w, n)};
    for (i64 i = 0; r->s->l1 > 0 && i < n; i++) {
        s.ones += (f64)fabsf(w[i]);
        s.moved += (f64)r->q[lo + i] * (f64)(w[i] - r->w0[lo + i]);
    }
    return s;
}

static void columns(void *self, const struct kernel_call *c) {
    const struct crf_run *r = self;
    const struct crf_problem *p = r->p;
    const struct crf_columns x = {.Lp = p->Lp, .at = p->column_at, .token = p->column_token, .d = c->mem[BUF_D], .w = r->w,
                                  .decay = r->s->c > 0 ? (f32)(1 / r->s->c) : 0, .g = r->g};
    if (r->half == CRF_TO_PASS) return;
    for (i32 k = c->task->box.b0; k < c->task->box.b1; k++) {
        struct crf_sums *to = (struct crf_sums *)c->mem[BUF_SUMS] + k;
        const i64 lo = p->row[k], hi = p->row[k + 1];
        r->kern->columns(&x, lo, lmin(hi, p->nattr));
        if (hi > p->nattr) transitions(r, c->mem[BUF_PART], lo, hi);
        *to = sum_up(r, lo * p->Lp, (hi - lo) * p->Lp);
        for (i32 g = 0; k == p->ngrain - 1 && g < p->npass; g++) to->nll += ((f64 *)c->mem[BUF_PART])[g * part_size(p)];
    }
}

/* ------------------------------------------------------------------ the plan ------------------------------------------------ */

static err buffers(const struct crf_problem *p, struct builder *b) {
    const struct pbuf buf[NBUF] = {
        [BUF_W] = {.lent = true, .home = HOME_WRITER, /* and at every rank, whose pass reads it */
                   .bytes = p->nrow * p->Lp * 4, .extent = p->nrow},
        [BUF_D] = {.home = HOME_WRITER, .sent = true, .bytes = p->ntoken * p->Lp * 4, .extent = p->ntoken},
        [BUF_PART] = {.element = ELEMENT_F64, .home = HOME_WRITER, .bytes = p->npass * part_size(p) * 8, .extent = p->npass},
        [BUF_DOTS] = {.element = ELEMENT_F64, .home = HOME_WRITER, .bytes = p->ngrain * CRF_NDOT * 8, .extent = p->ngrain},
        [BUF_SUMS] = {.element = ELEMENT_F64, .home = HOME_ALL, .bytes = p->ngrain * CRF_NSUM * 8, .extent = p->ngrain}};
    for (i32 i = 0; i < NBUF; i++) {
        struct pbuf one = buf[i];
        u32 at;
        one.kind = (u8)i;
        TRY(build_buffer(b, one, &at));
    }
    return 0;
}

static err use(struct builder *b, u32 buf, enum use_mode mode, i64 lo, i64 hi) {
    return build_use(b, (struct use){.buf = buf, .mode = (u8)mode, .lo = lo, .hi = hi});
}

/* Share [lo, hi) of n grains for device d. */
static struct slice share(const struct builder *b, i32 n, i32 d) {
    const i64 m = b->plan->ndevice;
    return (struct slice){(i32)(n * (i64)d / m), (i32)(n * (i64)(d + 1) / m), 0, 1};
}

struct slice crf_rows_of(const struct crf_run *r, i32 device) {
    const i64 m = r->ndevice, n = r->p->ngrain;
    return (struct slice){.b0 = r->p->row[n * device / m], .b1 = r->p->row[n * (device + 1) / m]};
}

static err task(struct builder *b, u8 kind, i32 device, struct slice box) {
    return build_task(b, (struct task){.kind = kind, .device = (u32)device, .box = box});
}

static err tasks(const struct crf_problem *p, struct builder *b) {
    const i32 m = b->plan->ndevice;
    for (i32 d = 0; d < m; d++) {
        const struct slice r = share(b, p->ngrain, d);
        TRY(task(b, DOTS, d, r));
        TRY(use(b, BUF_DOTS, USE_W, r.b0, r.b1));
    }
    for (i32 d = 0; d < m; d++) {
        const struct slice r = share(b, p->ngrain, d);
        TRY(task(b, MOVE, d, r));
        TRY(use(b, BUF_DOTS, USE_R, 0, p->ngrain));
        TRY(use(b, BUF_W, USE_RW, p->row[r.b0], p->row[r.b1]));
    }
    for (i32 d = 0; d < m; d++) {
        const struct slice r = share(b, p->npass, d);
        TRY(task(b, PASS, d, r));
        TRY(use(b, BUF_W, USE_R, 0, p->nrow));
        TRY(use(b, BUF_D, USE_W, p->first[p->sentence[r.b0]], p->first[p->sentence[r.b1]]));
        TRY(use(b, BUF_PART, USE_W, r.b0, r.b1));
    }
    for (i32 d = 0; d < m; d++) {
        const struct slice r = share(b, p->ngrain, d);
        TRY(task(b, COLUMNS, d, r));
        TRY(use(b, BUF_D, USE_R, 0, p->ntoken));
        if (r.b1 == p->ngrain) TRY(use(b, BUF_PART, USE_R, 0, p->npass));
        TRY(use(b, BUF_SUMS, USE_W, r.b0, r.b1));
    }
    return 0;
}

static err make_plan(const struct crf_problem *p, const struct machine *m, struct plan **out) {
    struct builder b = {0};
    err e = build_begin(&b, "crf", m, imin(m->ndevice, imin(p->ngrain, p->npass)));
    if (e >= 0) {
        b.plan->exact = true;
        b.plan->B = p->nsentence;
        b.plan->grain = imax(1, p->nsentence / p->npass);
        b.plan->ngrain = p->npass;
        e = buffers(p, &b);
    }
    if (e >= 0) e = tasks(p, &b);
    if (e >= 0) e = build_end(&b);
    if (e < 0) {
        build_drop(&b);
        return e;
    }
    b.plan->predicted = plan_schedule(b.plan, NULL);
    *out = b.plan;
    return 0;
}

/* ------------------------------------------------------------------ runs ---------------------------------------------------- */

static struct exec_result result(void *self, void *const *mem) {
    (void)self, (void)mem;
    return (struct exec_result){.finite = true};
}

static const struct kernel kernels[NKERNEL] = {
    [DOTS] = {.name = "dots", .run = dots},
    [MOVE] = {.name = "move", .run = move},
    [PASS] = {.name = "pass", .run = pass},
    [COLUMNS] = {.name = "columns", .run = columns},
};

static err allocate(struct crf_run *r) {
    const i64 n = r->p->nrow * r->p->Lp;
    f32 **vector[] = {&r->w, &r->w0, &r->g, &r->g0, &r->d};
    for (size_t i = 0; i < COUNT(vector); i++) NEW(*vector[i], n);
    r->q = r->g0;
    if (r->s->l1 > 0) NEW(r->q, n);
    for (i32 i = 0; i < r->s->history; i++) {
        NEW(r->S[i], n);
        NEW(r->Y[i], n);
    }
    NEW(r->table, (i64)r->p->ngrain * CRF_NDOT);
    NEW(r->direction, r->ndevice);
    NEW(r->scratch, r->ndevice);
    for (i32 d = 0; d < r->ndevice; d++) TRY(crf_scratch_new(r->p->L, r->p->Lp, r->p->longest, &r->scratch[d]));
    return 0;
}

err crf_run_open(const struct crf_problem *p, const struct crf_settings *s, const struct resources *use, struct crf_run *out) {
    const struct client client = {.kernel = kernels, .nkernel = NKERNEL, .self = out, .result = result};
    struct plan *plan;
    *out = (struct crf_run){.p = p, .s = s, .kern = crf_kern_for((i32)use->kern->arch)};
    TRY(make_plan(p, map_run_machine(use), &plan));
    out->ndevice = plan->ndevice;
    const err e = allocate(out);
    if (e < 0) {
        plan_free(plan);
        return e;
    }
    void *lent[NBUF] = {[BUF_W] = out->w};
    TRY(plan_run_open(plan, &client, use, lent, &out->run));
    const struct shared_sentences q = {.pass = pass_of(out), .nrow = p->nrow, .first = p->first, .cut = p->sentence,
                                       .ncut = p->npass};
    return offload_wanted(use) ? shared_crf_open(&q, use, &out->shared) : 0;
}

void crf_run_close(struct crf_run *r) {
    map_run_close(&r->run);
    shared_crf_close(r->shared);
    for (i32 d = 0; r->scratch && d < r->ndevice; d++) crf_scratch_free(&r->scratch[d]);
    mem_free(r->scratch);
    mem_free(r->direction);
    mem_free(r->table);
    if (r->q != r->g0) mem_free(r->q);
    f32 *vector[] = {r->w, r->w0, r->g, r->g0, r->d};
    for (size_t i = 0; i < COUNT(vector); i++) mem_free(vector[i]);
    for (i32 i = 0; i < CRF_HISTORY; i++) {
        mem_free(r->S[i]);
        mem_free(r->Y[i]);
    }
    *r = (struct crf_run){0};
}

/* A step of the plan, whose pass devices compute between its first two kinds of tasks and the last one. */
static err evaluate(struct crf_run *r) {
    if (!r->shared) return map_run_step(&r->run, NULL);
    r->half = CRF_TO_PASS;
    TRY(map_run_step(&r->run, NULL));
    TRY(exec_quiet(r->run.exec));
    void *const *mem = exec_mem(r->run.exec);
    TRY(shared_crf_pass(r->shared, mem[BUF_D], mem[BUF_PART]));
    r->half = CRF_FROM_PASS;
    return map_run_step(&r->run, NULL);
}

err crf_evaluate(struct crf_run *r, struct crf_sums *sums, f64 *value) {
    const i32 pair = r->turn && r->learn;
    *sums = (struct crf_sums){0};
    if (pair) r->n = imin(r->n + 1, r->s->history);
    TRY(evaluate(r));
    if (pair) r->slot = (r->slot + 1) % r->s->history;
    TRY(exec_quiet(r->run.exec));
    const struct crf_sums *part = exec_mem(r->run.exec)[BUF_SUMS];
    for (i32 k = 0; k < r->p->ngrain; k++) {
        sums->nll += part[k].nll;
        sums->slope += part[k].slope;
        sums->slope0 += part[k].slope0;
        sums->norm += part[k].norm;
        sums->squares += part[k].squares;
        sums->ones += part[k].ones;
        sums->moved += part[k].moved;
    }
    *value = sums->nll + (r->s->c > 0 ? sums->squares / (2 * r->s->c) : 0) + r->s->l1 * sums->ones;
    return 0;
}

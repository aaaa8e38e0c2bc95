/* rig_cell.c - stacked recurrent layers on bare kernels: forward, backward and dW of a batch, including the packing of
 * transposed weights.
 *
 *     rows     thread k runs rows [cut[k], cut[k+1]) through all layers: one wait, before dW is merged
 *     team     all threads split every row by units (struct cell_team); one wait per layer
 *
 * A unit is one layer and direction. With two directions the second reads its input in reversed time, and the outputs are
 * concatenated; these copies are timed, as PyTorch's are. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/mem.h"
#include "kern/pack.h"
#include "rig.h"

struct unit {
    struct cell_args box;
    f32 *w, *bias, *wt, *dy; /* dy: gradient of y, written from above */
    f32 *dx;                 /* [T][B] rows of dx_ld, or NULL */
    f32 *below, *x_own;      /* below: input of the layer; x_own: reversed copy for the reverse direction */
    f32 *dw[RIG_THREADS], *dbias[RIG_THREADS];
    i64 dw_n, db_n;
};

struct cell_rig {
    struct rig rig; /* first */
    struct pool *pool;
    const struct cell_kern *cell;
    struct arena arena;
    struct unit unit[RIG_LAYERS * 2];
    i32 cut[RIG_THREADS + 1], layer; /* layer: of the running team job */
    i32 *live, *length;
    i64 rows; /* live rows over all steps */
    f32 *x, *dy;
    f32 *join[RIG_LAYERS], *djoin[RIG_LAYERS]; /* two directions: concatenated outputs [T][B][ld] and their gradient */
    i64 ld;
    char *flag[2];
    u64 base;
};

static f64 cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (f64)t.tv_sec + 1e-9 * (f64)t.tv_nsec;
}

static struct unit *unit_at(struct cell_rig *c, i32 layer, i32 dir) { return &c->unit[layer * c->rig.spec.dirs + dir]; }

/* ------------------------------------------------------------------ two directions ------------------------------------------ */

struct rows { /* [T][B] rows, ld floats apart */
    f32 *p;
    i64 ld;
};

/* Copies n floats of rows b0..b1 for every step, with reversed steps if `turn`. */
static void copy_rows(const struct spec *s, i32 b0, i32 b1, i32 n, bool turn, struct rows from, struct rows to) {
    for (i32 t = 0; t < s->T; t++) {
        const f32 *src = from.p + (i64)(turn ? s->T - 1 - t : t) * s->B * from.ld;
        for (i32 b = b0; b < b1; b++) memcpy(to.p + ((i64)t * s->B + b) * to.ld, src + b * from.ld, (size_t)n * sizeof(f32));
    }
}

static void join(struct cell_rig *c, i32 l, i32 b0, i32 b1) {
    const struct spec *s = &c->rig.spec;
    const i64 Hp = round_up(s->H, LANES);
    for (i32 d = 0; d < 2; d++)
        copy_rows(s, b0, b1, s->H, d, (struct rows){unit_at(c, l, d)->box.y, Hp}, (struct rows){c->join[l] + d * s->H, c->ld});
}

/* Splits the gradient of the concatenated outputs to the two directions. */
static void split(struct cell_rig *c, i32 l, i32 b0, i32 b1) {
    const struct spec *s = &c->rig.spec;
    const i64 Hp = round_up(s->H, LANES);
    f32 *dy = l == s->layers - 1 ? c->dy : c->djoin[l];
    for (i32 d = 0; d < 2; d++)
        copy_rows(s, b0, b1, s->H, d, (struct rows){dy + d * s->H, c->ld}, (struct rows){unit_at(c, l, d)->dy, Hp});
}

/* Adds the two input gradients of a layer: the gradient of the concatenated outputs below. */
static void add_dx(struct cell_rig *c, i32 l, i32 b0, i32 b1) {
    const struct spec *s = &c->rig.spec;
    const struct unit *u = unit_at(c, l, 0), *v = unit_at(c, l, 1);
    const i64 ld = u->box.dx_ld;
    if (!u->dx) return;
    for (i32 t = 0; t < s->T; t++)
        for (i32 b = b0; b < b1; b++)
            c->rig.spec.kern->add(u->box.I, u->dx + ((i64)t * s->B + b) * ld, v->dx + ((i64)(s->T - 1 - t) * s->B + b) * ld);
}

/* ------------------------------------------------------------------ one step ------------------------------------------------ */

static void zero_grad(struct unit *u, i32 k) {
    memset(u->dw[k], 0, (size_t)u->dw_n * sizeof(f32));
    memset(u->dbias[k], 0, (size_t)u->db_n * sizeof(f32));
}

static void prep(void *arg, i32 id) {
    struct cell_rig *c = arg;
    const struct spec *s = &c->rig.spec;
    for (i32 i = id; i < s->layers * s->dirs; i += s->threads) {
        struct unit *u = &c->unit[i];
        c->cell->prep(u->box.I, s->H, u->w, u->wt);
        if (s->team) zero_grad(u, 0);
    }
}

/* Kernel arguments of a thread, and its rows. */
static struct cell_args box_of(struct cell_rig *c, const struct unit *u, i32 id, bool back, struct cell_team *team, i32 *b0,
                              i32 *b1) {
    const struct spec *s = &c->rig.spec;
    struct cell_args box = u->box;
    *b0 = s->team ? 0 : c->cut[id], *b1 = s->team ? s->B : c->cut[id + 1];
    if (!s->team) return box;
    *team = (struct cell_team){.me = id, .n = s->threads, .base = c->base, .flag = c->flag[back]};
    box.team = team;
    return box;
}

static void fwd_layer(struct cell_rig *c, i32 id, i32 l) {
    const struct spec *s = &c->rig.spec;
    struct cell_team team = {0};
    i32 b0, b1;
    for (i32 d = 0; d < s->dirs; d++) {
        struct unit *u = unit_at(c, l, d);
        const struct cell_args box = box_of(c, u, id, false, &team, &b0, &b1);
        if (d) copy_rows(s, b0, b1, box.I, true, (struct rows){u->below, box.x_ld}, (struct rows){u->x_own, box.x_ld});
        for (i32 t = 0; t < (s->stepped ? s->T : 0); t++, team.base += (u64)s->T + 2) c->cell->fwd(&box, b0, b1, t, t + 1);
        if (!s->stepped) c->cell->fwd(&box, b0, b1, 0, s->T);
    }
    if (s->dirs == 2) join(c, l, b0, b1);
}

/* First step of a range of about spec.slice rows that ends at `end`. */
static i32 slice_begin(const struct cell_rig *c, i32 b0, i32 b1, i32 end) {
    i32 begin = end;
    for (i64 rows = 0; begin > 0 && rows < c->rig.spec.slice; begin--)
        rows += imin(b1, c->live ? c->live[begin - 1] : b1) - imin(b0, c->live ? c->live[begin - 1] : b0);
    return begin;
}

/* Backward and dW alternate on ranges of steps, so that dz is in cache for dW. */
static void bwd_layer(struct cell_rig *c, i32 id, i32 l) {
    const struct spec *s = &c->rig.spec;
    struct cell_team team = {0};
    i32 b0 = 0, b1 = 0;
    for (i32 d = 0; d < s->dirs; d++) {
        struct unit *u = unit_at(c, l, d);
        const struct cell_args box = box_of(c, u, id, true, &team, &b0, &b1);
        if (s->dirs == 2 && d == 0) split(c, l, b0, b1);
        const i32 mine = s->team ? 0 : id; /* a team writes one dW, each member its panels; prep has zeroed it */
        if (!s->team) zero_grad(u, id);
        for (i32 end = s->T, begin; end > 0; end = begin, team.base += (u64)s->T + 2) {
            begin = slice_begin(c, b0, b1, end);
            const f64 t0 = s->phases ? cpu() : 0;
            c->cell->bwd(&box, b0, b1, begin, end);
            const f64 t1 = s->phases ? cpu() : 0;
            c->cell->dw(&box, b0, b1, begin, end, u->dw[mine], u->dbias[mine]);
            if (s->phases && id == 0) c->rig.phase[2] += t1 - t0, c->rig.phase[3] += cpu() - t1;
        }
    }
    if (s->dirs == 2) add_dx(c, l, b0, b1);
}

static void fwd_all(struct cell_rig *c, i32 id) {
    const f64 t = c->rig.spec.phases ? cpu() : 0;
    for (i32 l = 0; l < c->rig.spec.layers; l++) fwd_layer(c, id, l);
    if (c->rig.spec.phases && id == 0) c->rig.phase[1] = cpu() - t;
}

static void work(void *arg, i32 id) {
    struct cell_rig *c = arg;
    if (c->cut[id] == c->cut[id + 1]) return;
    fwd_all(c, id);
    for (i32 l = c->rig.spec.layers - 1; l >= 0; l--) bwd_layer(c, id, l);
}

static void merge(void *arg, i32 id) {
    struct cell_rig *c = arg;
    const struct spec *s = &c->rig.spec;
    for (i32 i = 0; i < s->layers * s->dirs; i++) {
        struct unit *u = &c->unit[i];
        const i64 part = round_up64(u->dw_n / s->threads, LANES), lo = lmin(u->dw_n, id * part);
        const i64 hi = id == s->threads - 1 ? u->dw_n : lmin(u->dw_n, lo + part);
        for (i32 k = 1; k < s->threads; k++)
            if (c->cut[k] < c->cut[k + 1]) s->kern->add(hi - lo, u->dw[0] + lo, u->dw[k] + lo);
        for (i32 k = 1; k < s->threads && id == 0; k++)
            if (c->cut[k] < c->cut[k + 1]) s->kern->add(u->db_n, u->dbias[0], u->dbias[k]);
    }
}

static void team_fwd(void *arg, i32 id) { fwd_layer(arg, id, ((struct cell_rig *)arg)->layer); }
static void team_bwd(void *arg, i32 id) { bwd_layer(arg, id, ((struct cell_rig *)arg)->layer); }

static void step(struct rig *r) {
    struct cell_rig *c = (struct cell_rig *)(void *)r;
    memset(r->phase, 0, sizeof r->phase);
    const f64 t = r->spec.phases ? cpu() : 0;
    pool_run(c->pool, prep, c);
    if (r->spec.phases) r->phase[0] = cpu() - t;
    if (!r->spec.team) {
        pool_run(c->pool, work, c);
        if (r->spec.threads > 1) pool_run(c->pool, merge, c);
        return;
    }
    const u64 more = ((u64)r->spec.T + 2) * ((u64)r->spec.T + 2); /* more than any number of slices uses */
    for (c->layer = 0; c->layer < r->spec.layers; c->layer++, c->base += more) pool_run(c->pool, team_fwd, c);
    for (c->layer = r->spec.layers - 1; c->layer >= 0; c->layer--, c->base += more) pool_run(c->pool, team_bwd, c);
}

/* ------------------------------------------------------------------ files --------------------------------------------------- */

/* PyTorch's names: weight_ih_l0, and with _reverse for the second direction. */
static void tensor_name(char out[48], const char *what, i32 l, i32 d) {
    snprintf(out, 48, "%s_l%d%s", what, (int)l, d ? "_reverse" : "");
}

struct canon {
    f32 *v[4];
    i64 n[4];
};
static const char *const tensor[4] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};

static err canon_new(const struct spec *s, i32 I, struct canon *c) {
    const i64 rows = (i64)cell_gates(s->cell) * s->H;
    *c = (struct canon){.n = {rows * I, rows * s->H, rows, rows}};
    for (i32 i = 0; i < 4; i++) NEW(c->v[i], c->n[i]);
    return 0;
}

static void canon_free(struct canon *c) {
    for (i32 i = 0; i < 4; i++) mem_free(c->v[i]);
}

static err load_unit(struct cell_rig *c, const char *dir, i32 l, i32 d) {
    const struct spec *s = &c->rig.spec;
    struct unit *u = unit_at(c, l, d);
    struct canon w;
    char name[48];
    err e = canon_new(s, u->box.I, &w);
    for (i32 i = 0; i < 4 && e >= 0; i++) {
        tensor_name(name, tensor[i], l, d);
        if (dir)
            e = raw_read(dir, name, w.n[i], w.v[i]);
        else
            raw_draw(w.n[i], 2 / sqrtf((f32)s->H), w.v[i]);
    }
    if (e >= 0) cell_pack(s->cell, u->box.I, s->H, &(struct cell_canon){w.v[0], w.v[1], w.v[2], w.v[3]}, u->w, u->bias);
    canon_free(&w);
    return e;
}

/* dy of the top layer comes as [T][B][dirs*H]; ours has padded rows. */
static err load_dy(struct cell_rig *c, const char *dir) {
    const struct spec *s = &c->rig.spec;
    const i64 TB = (i64)s->T * s->B, F = (i64)s->dirs * s->H;
    f32 *v = mem_alloc((size_t)(TB * F) * sizeof *v), *to = s->dirs == 2 ? c->dy : unit_at(c, s->layers - 1, 0)->dy;
    if (!v) return -E601;
    err e = 0;
    if (dir)
        e = raw_read(dir, "dy", TB * F, v);
    else
        raw_draw(TB * F, 2, v);
    for (i64 row = 0; row < TB; row++) memcpy(to + row * c->ld, v + row * F, (size_t)F * sizeof *v);
    mem_free(v);
    return e;
}

static err load(struct rig *r, const char *dir) {
    struct cell_rig *c = (struct cell_rig *)(void *)r;
    const i64 nx = (i64)r->spec.T * r->spec.B * r->spec.I;
    for (i32 l = 0; l < r->spec.layers; l++)
        for (i32 d = 0; d < r->spec.dirs; d++) TRY(load_unit(c, dir, l, d));
    if (dir)
        TRY(raw_read(dir, "x", nx, c->x));
    else
        raw_draw(nx, 2, c->x);
    return load_dy(c, dir);
}

static err dump_unit(struct cell_rig *c, const char *dir, i32 l, i32 d) {
    const struct spec *s = &c->rig.spec;
    struct unit *u = unit_at(c, l, d);
    struct canon g;
    char name[48], out[64];
    err e = canon_new(s, u->box.I, &g);
    if (e >= 0)
        cell_unpack(s->cell, u->box.I, s->H, u->dw[0], u->dbias[0], &(struct cell_canon){g.v[0], g.v[1], g.v[2], g.v[3]});
    for (i32 i = 0; i < 4 && e >= 0; i++) {
        tensor_name(name, tensor[i], l, d);
        snprintf(out, sizeof out, "ours.%s", name);
        e = raw_write(dir, out, g.n[i], g.v[i]);
    }
    canon_free(&g);
    return e;
}

static err dump(struct rig *r, const char *dir) {
    struct cell_rig *c = (struct cell_rig *)(void *)r;
    const struct spec *s = &r->spec;
    const i64 TB = (i64)s->T * s->B, F = (i64)s->dirs * s->H;
    const f32 *y = s->dirs == 2 ? c->join[s->layers - 1] : unit_at(c, s->layers - 1, 0)->box.y;
    f32 *v = mem_alloc((size_t)(TB * F) * sizeof *v);
    if (!v) return -E601;
    for (i64 row = 0; row < TB; row++) memcpy(v + row * F, y + row * c->ld, (size_t)F * sizeof *v);
    err e = raw_write(dir, "ours.y", TB * F, v);
    mem_free(v);
    for (i32 l = 0; l < s->layers; l++)
        for (i32 d = 0; d < s->dirs && e >= 0; d++) e = dump_unit(c, dir, l, d);
    return e;
}

/* ------------------------------------------------------------------ making -------------------------------------------------- */

/* Page-aligns large buffers, as the executor does: rows of two threads then do not share a prefetcher. */
static err floats(struct cell_rig *c, i64 n, f32 **out) {
    enum { PAGE = 4096, LARGE = 1 << 18 };
    const size_t bytes = (size_t)lmax(n, 1) * sizeof(f32), page = bytes >= LARGE ? PAGE : 64;
    char *p = arena_new(&c->arena, bytes + page - 64);
    *out = p ? (f32 *)(void *)(p + (-(uintptr_t)p & (page - 1))) : NULL;
    return p ? 0 : -E601;
}

/* Lengths uniform over 1..T, longest first; threads get equal sums. */
static err lengths(struct cell_rig *c) {
    const struct spec *s = &c->rig.spec;
    c->length = arena_new(&c->arena, (size_t)s->B * sizeof(i32));
    c->live = arena_new(&c->arena, (size_t)s->T * sizeof(i32));
    if (!c->length || !c->live) return -E601;
    c->rows = 0;
    for (i32 b = 0; b < s->B; b++) {
        c->length[b] = !s->ragged ? s->T : s->B == 1 ? s->T : s->T - (i32)((i64)(s->T - 1) * b / (s->B - 1));
        c->rows += c->length[b];
        for (i32 t = 0; t < c->length[b]; t++) c->live[t]++;
    }
    i64 sum = 0;
    for (i32 b = 0, k = 1; b < s->B; b++) {
        sum += c->length[b];
        while (k < s->threads && sum * s->threads >= c->rows * k) c->cut[k++] = b + 1;
    }
    c->cut[s->threads] = s->B;
    if (!s->ragged) c->live = NULL;
    return 0;
}

static err unit_new(struct cell_rig *c, i32 l, i32 d) {
    const struct spec *s = &c->rig.spec;
    struct unit *u = unit_at(c, l, d);
    const i64 TB = (i64)s->T * s->B, Hp = round_up(s->H, LANES);
    const i32 I = l == 0 ? s->I : s->dirs * s->H;
    const i64 x_ld = l == 0 ? s->I : c->ld;
    u->dw_n = cell_w_floats(s->cell, I, s->H), u->db_n = cell_bias_floats(s->cell, s->H);
    TRY(floats(c, u->dw_n, &u->w));
    TRY(floats(c, u->db_n, &u->bias));
    TRY(floats(c, c->cell->wt_floats(I, s->H), &u->wt));
    TRY(floats(c, TB * Hp, &u->dy));
    if (d) TRY(floats(c, TB * x_ld, &u->x_own));
    for (i32 k = 0; k < s->threads; k++) {
        TRY(floats(c, u->dw_n, &u->dw[k]));
        TRY(floats(c, u->db_n, &u->dbias[k]));
    }
    u->box =
        (struct cell_args){.T = s->T, .B = s->B, .I = I, .H = s->H, .x_ld = x_ld, .dx_ld = x_ld, .live = c->live, .how = s->how};
    if (!s->ragged) u->box.slice = imin(s->T, ceil_div(s->slice, imax(1, s->B / s->threads))); /* as slice_begin cuts */
    TRY(floats(c, TB * Hp, &u->box.y));
    TRY(floats(c, c->cell->act_floats(s->T, s->B, I, s->H), &u->box.act));
    TRY(floats(c, 2 * (i64)s->B * Hp, &u->box.carry));
    u->box.w = u->w, u->box.bias = u->bias, u->box.wt = u->wt, u->box.dy = u->dy;
    u->below = l == 0 ? c->x : s->dirs == 2 ? c->join[l - 1] : unit_at(c, l - 1, 0)->box.y;
    u->box.x = d ? u->x_own : u->below;
    if (l == 0 && s->dx) TRY(floats(c, TB * x_ld, &u->dx));
    if (l > 0 && s->dirs == 1) u->dx = unit_at(c, l - 1, 0)->dy;
    if (l > 0 && s->dirs == 2 && d == 0) u->dx = c->djoin[l - 1];
    if (l > 0 && s->dirs == 2 && d == 1) TRY(floats(c, TB * x_ld, &u->dx));
    u->box.dx = u->dx;
    c->rig.flop += 2.0 * (f64)c->rows * cell_gates(s->cell) * s->H * (2.0 * (I + s->H) + s->H + (u->dx ? I : 0));
    return 0;
}

static err build(struct cell_rig *c) {
    const struct spec *s = &c->rig.spec;
    const i64 TB = (i64)s->T * s->B;
    c->ld = round_up(s->dirs * s->H, LANES);
    TRY(lengths(c));
    TRY(floats(c, TB * s->I, &c->x));
    TRY(floats(c, s->dirs == 2 ? TB * c->ld : 0, &c->dy));
    for (i32 l = 0; l < s->layers && s->dirs == 2; l++) {
        TRY(floats(c, TB * c->ld, &c->join[l]));
        TRY(floats(c, TB * c->ld, &c->djoin[l]));
    }
    for (i32 l = 0; l < s->layers; l++)
        for (i32 d = 0; d < s->dirs; d++) TRY(unit_new(c, l, d));
    for (i32 k = 0; k < 2; k++)
        if (!(c->flag[k] = arena_new(&c->arena, (size_t)TEAM_MAX * TEAM_LINE))) return -E601;
    return 0;
}

static const char *cannot(const struct spec *s, const struct cell_kern *k) {
    if (!k) return "no kernels of this cell and precision here";
    if (s->ragged && s->dirs == 2) return "lengths with two directions are not measured";
    if (s->team && (s->dirs == 2 || s->ragged)) return "a team with lengths or two directions is not measured";
    return "";
}

static void cell_rig_free(struct rig *r) {
    struct cell_rig *c = (struct cell_rig *)(void *)r;
    arena_free(&c->arena);
    mem_free(c);
}

err cell_rig_new(const struct spec *s, struct pool *pool, struct rig **out) {
    struct cell_rig *c = mem_alloc(sizeof *c);
    if (!c) return -E601;
    c->rig = (struct rig){.spec = *s, .step = step, .load = load, .dump = dump, .free = cell_rig_free};
    c->pool = pool;
    c->cell = cell_at(s->kern, s->cell, s->prec);
    c->base = 1;
    c->rig.why = cannot(s, c->cell);
    const err e = *c->rig.why ? 0 : build(c);
    if (e < 0)
        cell_rig_free(&c->rig);
    else
        *out = &c->rig;
    return e;
}

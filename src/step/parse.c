/* parse.c - reads the text of print.c back: the same plan, on the same net and machine.
 *
 * A text may be edited (another place, another order): its uses and edges are derived anew, and plan_check then says whether
 * it still is a step with the bits of the serial plan.  Written uses are compared with the derived ones and may be left out.
 * Peak, exchange and predicted time are recomputed.  Every complaint is E402 with line:column. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/layer.h"
#include "step/planner.h"

struct token {
    const char *s;
    size_t n; /* length; 0 = end of the text */
    i32 line, col;
};

struct reader {
    const char *path, *at;
    i32 line, col;
    struct token t; /* the current token */
    struct planner *p;
    struct token *where; /* [ntask] first token of each task */
    i64 cap;
    u32 last; /* device of the task before */
};

static void advance(struct reader *r) {
    if (*r->at == '\n') r->line++, r->col = 0;
    r->at++;
    r->col++;
}

static bool space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* '(' and ')' are tokens, "b[0,32)" is one word. A line that starts with # is a comment. */
static void next(struct reader *r) {
    while (space(*r->at) || (*r->at == '#' && r->col == 1)) {
        const bool comment = *r->at == '#';
        while (comment && *r->at && *r->at != '\n') advance(r);
        if (*r->at) advance(r);
    }
    r->t = (struct token){r->at, 0, r->line, r->col};
    bool range = false;
    while (*r->at && !space(*r->at)) {
        char c = *r->at;
        if (c == '(' && !range && r->t.n > 0) return;
        if (c == ')' && !range && r->t.n > 0) return;
        advance(r);
        r->t.n++;
        if ((c == '(' || c == ')') && !range) return;
        if (c == '[') range = true;
        if (c == ')' || c == ']') range = false;
    }
}

static err complain(const struct reader *r, const struct token *t, const char *what) {
    char where[256], found[48];
    snprintf(where, sizeof where, "%.200s:%d:%d", r->path, t->line, t->col);
    snprintf(found, sizeof found, "%.*s", (int)(t->n < 40 ? t->n : 40), t->s);
    return FAIL_AT(E402, where, "stretto plan --save FILE   (writes a plan that fits)", "%s%s%s", what, t->n ? ", found " : "",
                   t->n ? found : "");
}

static bool is(const struct token *t, const char *word) { return t->n == strlen(word) && memcmp(t->s, word, t->n) == 0; }
static bool begins(const struct token *t, const char *by) { return t->n > strlen(by) && memcmp(t->s, by, strlen(by)) == 0; }

/* E401: the plan was made for a machine with other devices. */
static err other_machine(const struct reader *r, const struct token *t, const char *what) {
    const struct machine *m = r->p->machine;
    char where[256], last[DEVICE_NAME];
    snprintf(where, sizeof where, "%.200s:%d:%d", r->path, t->line, t->col);
    machine_device_name(m, m->ndevice - 1, last);
    return FAIL_AT(E401, where, "the --threads and --ranks that the plan was made for   or   stretto plan DATA --save FILE",
                   "this plan is for another machine: %s%.*s; this run has %d device%s on %d rank%s, the last one %s", what,
                   (int)(t->n < 40 ? t->n : 40), t->s, m->ndevice, m->ndevice > 1 ? "s" : "", m->nrank, m->nrank > 1 ? "s" : "",
                   last);
}

static err want(struct reader *r, const char *word) {
    char what[64];
    snprintf(what, sizeof what, "\"%s\" is expected here", word);
    if (!is(&r->t, word)) return complain(r, &r->t, what);
    next(r);
    return 0;
}

static err wide_number(struct reader *r, i64 lo, i64 hi, i64 *out) {
    char what[96];
    snprintf(what, sizeof what, "a number from %lld to %lld is expected here", (long long)lo, (long long)hi);
    if (r->t.n == 0 || r->t.n > 18 || !str_to_i64(r->t.s, r->t.n, out) || *out < lo || *out > hi) return complain(r, &r->t, what);
    next(r);
    return 0;
}

static err number(struct reader *r, i32 lo, i32 hi, i32 *out) {
    i64 v;
    TRY(wide_number(r, lo, hi, &v));
    *out = (i32)v;
    return 0;
}

/* Checks a number of the heading: "b 64" must equal the value of this run. */
static err given(struct reader *r, const char *word, i64 value) {
    i64 v;
    char what[96];
    TRY(want(r, word));
    struct token t = r->t;
    TRY(wide_number(r, 0, INT64_MAX / 16, &v));
    snprintf(what, sizeof what, "this run has %s %lld", word, (long long)value);
    return v == value ? 0 : complain(r, &t, what);
}

/* Reads "name[lo,hi)" inside [0,end); bounds are multiples of `step`, or the end. */
static err range(struct reader *r, const char *name, i64 end, i64 step, i64 *lo, i64 *hi) {
    size_t n = strlen(name), len = r->t.n;
    const char *s = r->t.s, *comma = len > n + 3 ? memchr(s, ',', len) : NULL;
    char what[128];
    snprintf(what, sizeof what, "a range %s[from,to) inside [0,%lld) with borders at multiples of %lld is expected here", name,
             (long long)end, (long long)step);
    if (!comma || memcmp(s, name, n) != 0 || s[n] != '[' || s[len - 1] != ')' || comma < s + n + 1)
        return complain(r, &r->t, what);
    if (!str_to_i64(s + n + 1, (size_t)(comma - s) - n - 1, lo)) return complain(r, &r->t, what);
    if (!str_to_i64(comma + 1, len - (size_t)(comma - s) - 2, hi)) return complain(r, &r->t, what);
    bool good = *lo >= 0 && *hi > *lo && *hi <= end && *lo % step == 0 && (*hi % step == 0 || *hi == end);
    if (!good) return complain(r, &r->t, what);
    next(r);
    return 0;
}

/* Reads "1/2"; `what`: message for other input. */
static err fraction(struct reader *r, i32 most, const char *what, i32 *k, i32 *n) {
    i64 a, b;
    const char *slash = memchr(r->t.s, '/', r->t.n);
    const size_t len = slash ? (size_t)(slash - r->t.s) : 0;
    if (!slash || r->t.n > 8 || !str_to_i64(r->t.s, len, &a) || !str_to_i64(slash + 1, r->t.n - len - 1, &b) || b < 2 ||
        b > most || a < 0 || a >= b)
        return complain(r, &r->t, what);
    *k = (i32)a;
    *n = (i32)b;
    next(r);
    return 0;
}

/* Reads "unit 1/2", "chain 1/2" or "split 1/2" of a member; without it the task is single. */
static err unit(struct reader *r, const struct op *op, struct task *t) {
    char what[64];
    i32 member, members;
    if (!is(&r->t, "unit") && !is(&r->t, "chain") && !is(&r->t, "split")) return 0;
    t->split = is(&r->t, "split");
    if (t->split && !planner_splits(r->p, t->op))
        return complain(r, &r->t, "ranks of this plan do not share the units of this op");
    if (is(&r->t, "chain") && !op_is_chain(op)) return complain(r, &r->t, "the rows of this op are not time slices");
    if (is(&r->t, "unit") && (!op->layer->team || op_is_chain(op)))
        return complain(r, &r->t, "this op does not support tensor parallelism");
    const i32 most = is(&r->t, "chain") ? MACHINE_DEVICES : TEAM_MAX;
    next(r);
    snprintf(what, sizeof what, "a member as 0/2, of 2 to %d, is expected here", most);
    TRY(fraction(r, most, what, &member, &members));
    t->member = (u16)member;
    t->members = (u16)members;
    return 0;
}

/* Reads "part 1/4" of an op whose weight gradient is computed in four parts. */
static err part(struct reader *r, i32 op, i32 *k) {
    const struct plan *g = r->p->plan;
    char what[64];
    i32 n;
    if (netplan(g)->parted.n == 0 || netplan(g)->parted.op != op)
        return complain(r, &r->t, "the weight gradient of this op is not made in parts");
    TRY(want(r, "part"));
    snprintf(what, sizeof what, "a part as 0/%d is expected here", netplan(g)->parted.n);
    const struct token t = r->t;
    TRY(fraction(r, PLAN_PARTS, what, k, &n));
    return n == netplan(g)->parted.n ? 0 : complain(r, &t, what);
}

/* Reads "how ahead" of a forward task; without it the kernels choose. */
static err how(struct reader *r, const struct op *op, struct task *t) {
    if (!is(&r->t, "how")) return 0;
    if (t->kind != TASK_FWD || !op_has_how(op)) return complain(r, &r->t, "this task can be done in one way only");
    next(r);
    for (u8 k = 1; k < TEXT_HOWS; k++)
        if (is(&r->t, text_hows[k])) t->how = k;
    if (t->how == 0) return complain(r, &r->t, "fold or ahead, newton or scan is expected here");
    next(r);
    return 0;
}

static err op_name(struct reader *r, u16 *op) {
    const struct net *n = r->p->net;
    for (i32 l = 0; l < n->nop; l++)
        if (is(&r->t, n->op[l].spec.name)) {
            *op = (u16)l;
            next(r);
            return 0;
        }
    return complain(r, &r->t, "the name of an op of this model is expected here");
}

/* Searches from the device of the task before: a plan may have thousands. */
static err place(struct reader *r, u32 *device) {
    const struct plan *g = r->p->plan;
    for (i32 k = 0; k < g->ndevice; k++) {
        const u32 d = (r->last + (u32)k) % (u32)g->ndevice;
        const char *name = g->place[d].name;
        if (r->t.n == strlen(name) + 1 && r->t.s[0] == '@' && memcmp(r->t.s + 1, name, r->t.n - 1) == 0) {
            *device = r->last = d;
            next(r);
            return 0;
        }
    }
    if (begins(&r->t, "@r")) return other_machine(r, &r->t, "it has a task ");
    return complain(r, &r->t, "a device of the plan (\"@r0.cpu0\") is expected here");
}

/* Compares the written uses with the derived ones, word by word. */
static err uses(struct reader *r) {
    struct str text = {0};
    char what[160];
    err e = 0;
    if (!is(&r->t, "uses")) return 0;
    text_uses(r->p->plan, r->p->net, r->p->plan->ntask - 1, &text);
    e = str_ok(&text);
    const char *s = str_text(&text);
    while (e == 0) {
        s += strspn(s, " ");
        size_t n = strcspn(s, " ");
        if (n == 0) break;
        if (r->t.n != n || memcmp(r->t.s, s, n) != 0) {
            snprintf(what, sizeof what, "\"%.*s\" is expected here", (int)(n < 100 ? n : 100), s);
            e = complain(r, &r->t, what);
            break;
        }
        s += n;
        next(r);
    }
    str_free(&text);
    return e;
}

static err remember(struct reader *r, struct token t) {
    const u32 i = r->p->plan->ntask - 1;
    GROW(r->where, i, r->cap);
    r->where[i] = t;
    return 0;
}

static err kind_of(struct reader *r, u8 *kind) {
    for (u8 k = 0; k < TASK_NKIND; k++)
        if (is(&r->t, task_forms[k].name)) {
            const bool forward = k == TASK_FWD || k == TASK_PREP || k == TASK_GATHER;
            if (!forward && !netplan(r->p->plan)->train)
                return complain(r, &r->t, "a forward plan has fwd, gather and prep only");
            *kind = k;
            next(r);
            return 0;
        }
    return complain(r, &r->t,
                    "a kind of task (prep, fwd, gather, zero, bwd, dgather, dx, dw, merge, norm, update) is expected here");
}

/* The steps of a forward or backward task, its member, and how it runs. */
static err steps(struct reader *r, struct task *t) {
    const struct op *op = &r->p->net->op[t->op];
    i64 t0, t1;
    TRY(unit(r, op, t));
    TRY(range(r, "t", op->T, op->layer->steps && !op_is_chain(op) ? 1 : op->T, &t0, &t1));
    t->box.t0 = (i32)t0;
    t->box.t1 = (i32)t1;
    return how(r, op, t);
}

static err task(struct reader *r) {
    const struct plan *g = r->p->plan;
    const struct token first = r->t;
    struct task t = {0};
    i64 b0, b1;
    TRY(want(r, "("));
    TRY(kind_of(r, &t.kind));
    const struct task_form *f = &task_forms[t.kind];
    const struct token named = r->t;
    if (f->op) TRY(op_name(r, &t.op));
    if (t.kind >= TASK_GATHER && !planner_splits(r->p, t.op))
        return complain(r, &named, "ranks of this plan do not share the units of this op");
    if (f->pair) TRY(number(r, 0, g->ngrain - 1, &t.node_a));
    if (f->pair) TRY(number(r, 0, g->ngrain - 1, &t.node_b));
    if (f->rows) {
        TRY(range(r, "b", g->B, g->grain, &b0, &b1));
        t.box.b0 = (i32)b0;
        t.box.b1 = (i32)b1;
    }
    if (f->part && is(&r->t, "split")) TRY(unit(r, &r->p->net->op[t.op], &t));
    else if (f->part) TRY(part(r, t.op, &t.node_a));
    if (f->steps) TRY(steps(r, &t));
    const bool ranges = f->range || (f->some && begins(&r->t, "theta["));
    if (ranges) TRY(range(r, "theta", netplan(g)->ntheta, t.kind == TASK_NORM ? netplan(g)->norm_block : LANES, &t.lo, &t.hi));
    TRY(place(r, &t.device));
    TRY(planner_task(r->p, t));
    TRY(remember(r, first));
    TRY(uses(r));
    return want(r, ")");
}

static i32 later(const struct plan_turn *a, const struct plan_turn *b) {
    if (a->refit != b->refit) return a->refit - b->refit;
    return a->member != b->member ? a->member - b->member : (a->step > b->step) - (a->step < b->step);
}

/* "slices 8". */
static err figure(struct reader *r, const char *word, i32 lo, i32 hi, i32 *out) {
    TRY(want(r, word));
    return number(r, lo, hi, out);
}

/* Reads "(turn train member 0 step 40 slices 8 rank 0)" after the tasks. */
static err turn(struct reader *r) {
    struct plan_turns *list = &netplan(r->p->plan)->turns;
    struct plan_turn t = {0};
    TRY(want(r, "("));
    if (!r->p->sliced) return complain(r, &r->t, "the rows of this plan are not time slices");
    if (list->n == TURNS_MOST) return complain(r, &r->t, "no more turns are possible");
    TRY(want(r, "turn"));
    t.refit = is(&r->t, "refit");
    TRY(want(r, t.refit ? "refit" : "train"));
    TRY(figure(r, "member", 0, INT32_MAX, &t.member));
    TRY(want(r, "step"));
    TRY(wide_number(r, 0, INT64_MAX / 16, &t.step));
    TRY(figure(r, "slices", 1, SLICES_MAX, &t.slices));
    TRY(figure(r, "rank", 0, SLICE_RANKS, &t.rank));
    if (list->n > 0 && later(&t, &list->at[list->n - 1]) <= 0)
        return complain(r, &r->t, "turns must be in the order of training");
    list->at[list->n++] = t;
    return want(r, ")");
}

/* True if the list at this token is a turn. */
static bool is_turn(const struct reader *r) {
    struct reader ahead = *r;
    next(&ahead);
    return is(&ahead.t, "turn");
}

static err tolerance(struct reader *r, const char *word, f32 *out) {
    char text[32];
    f64 tol;
    TRY(want(r, word));
    snprintf(text, sizeof text, "%.*s", (int)(r->t.n < 31 ? r->t.n : 31), r->t.s);
    if (!str_to_f64(text, strlen(text), '.', &tol) || !(tol >= 0 && tol < 1))
        return complain(r, &r->t, "a tolerance from 0 to below 1 is expected here");
    *out = (f32)tol;
    next(r);
    return 0;
}

/* Reads the parameters of the rounds in the heading; missing ones come from the request. */
static err course(struct reader *r, struct chain_course *c, bool *written) {
    *written = r->p->sliced && is(&r->t, "slices");
    if (!*written) return 0;
    TRY(given(r, "slices", r->p->q->slices));
    TRY(tolerance(r, "tol", &c->slice_tol));
    c->fine = 0;
    if (is(&r->t, "fine")) TRY(tolerance(r, "fine", &c->fine));
    TRY(figure(r, "rounds", 0, SLICES_MAX, &c->rounds));
    TRY(given(r, "rank", net_rank(r->p->net)));
    TRY(figure(r, "stale", 0, SLICES_MAX, &c->slice_rounds));
    i32 back; /* rounds of backward */
    TRY(number(r, 0, c->slice_rounds, &back));
    c->exact_back = back < c->slice_rounds;
    return 0;
}

/* Reads "(plan data:2*unit:2"; accepts older names of cuts. */
static err title(struct reader *r, struct product *cuts) {
    char name[PRODUCT_TEXT];
    TRY(want(r, "("));
    TRY(want(r, "plan"));
    snprintf(name, sizeof name, "%.*s", (int)(r->t.n < sizeof name ? r->t.n : 0), r->t.s);
    if (product_parse(name, cuts) < 0 || cuts->n == 0) return complain(r, &r->t, "the name of a strategy is expected here");
    next(r);
    return 0;
}

err plan_glance(const char *text, const char *path) {
    struct reader r = {.path = path, .at = text, .line = 1, .col = 1};
    struct product cuts;
    next(&r);
    return title(&r, &cuts);
}

/* Reads the title and "train B 64 ..." up to the first task. */
static err head(struct reader *r) {
    struct planner *p = r->p;
    i32 devices;
    TRY(title(r, &p->product));
    TRY(want(r, p->q->train ? "train" : "forward"));
    TRY(given(r, "B", p->q->B));
    TRY(given(r, "grain", p->grain));
    TRY(given(r, "grains", p->ngrain));
    TRY(want(r, "devices"));
    const struct token count = r->t;
    TRY(number(r, 1, MACHINE_DEVICES, &devices));
    if (devices > p->machine->ndevice) return other_machine(r, &count, "its number of devices is ");
    TRY(want(r, "exact"));
    TRY(want(r, product_exact(&p->product) && !p->sliced ? "yes" : "no"));
    p->split = is(&r->t, "split") && !p->sliced;
    if (p->split) next(r);
    struct chain_course c = p->q->course;
    bool written;
    TRY(course(r, &c, &written));
    static const char *const informative[] = {"peak", "exchange", "predicted"};
    for (size_t i = 0; i < COUNT(informative); i++) {
        TRY(want(r, informative[i]));
        if (r->t.n == 0 || is(&r->t, "(") || is(&r->t, ")")) return complain(r, &r->t, "a figure is expected here");
        next(r);
    }
    TRY(planner_begin(p, devices));
    if (written) netplan(p->plan)->course = c;
    return 0;
}

static err check(struct reader *r, const struct plan *g) {
    u32 bad = 0;
    const char *what = plan_check(g, r->p->net, &bad);
    if (!what) return 0;
    struct token whole = {"", 0, 1, 1};
    struct token t = bad < g->ntask ? r->where[bad] : whole;
    t.n = 0;
    return complain(r, &t, what);
}

static err read_all(struct reader *r, const struct plan_request *q, struct plan **out) {
    TRY(planner_init(r->p, q));
    next(r);
    TRY(head(r));
    while (is(&r->t, "(") && !is_turn(r)) TRY(task(r));
    while (is(&r->t, "(")) TRY(turn(r));
    TRY(want(r, ")"));
    if (r->t.n > 0) return complain(r, &r->t, "the text must end after the plan");
    TRY(planner_finish(r->p, out));
    return check(r, *out);
}

err plan_parse(const char *text, const char *path, const struct plan_request *q, struct plan **out) {
    struct reader r = {.path = path, .at = text, .line = 1, .col = 1};
    *out = NULL;
    r.p = mem_alloc(sizeof *r.p);
    if (!r.p) return -E601;
    err e = read_all(&r, q, out);
    if (e < 0) {
        planner_drop(r.p);
        *out = NULL;
    }
    mem_free(r.where);
    mem_free(r.p);
    return e;
}

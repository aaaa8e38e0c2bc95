/* balance.c - decides when micro-batches move between ranks, and reports it. */
#include "learn/forecast/balance.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "learn/store/run.h"
#include "step/balance.h"

#define WORTH 0.03 /* least gain of all moves together, as a share of a step */
#define PLAIN 0.2  /* a gain of this share of a step needs half as many checks */
#define COARSE 0.95
/* Moves at most a tenth of the micro-batches at a time, so that a wrong measurement does little harm. Several checks in a
 * row must show a gain, and twice as many after each move that reverses an earlier one: the balance does not follow
 * oscillating speeds. */
enum { PART = 10, LOOKS = 2, LOOKS_MOST = 32, SHOWN = 16 };

struct balance {
    struct machine machine; /* machine of all ranks; the weight of a device is its number of micro-batches */
    char parallel[64];
    i32 n, all, moves; /* devices; grains */
    i32 looks, agreed; /* checks in a row that a small move needs, and that agreed so far */
    i32 grains[MACHINE_DEVICES], wanted[MACHINE_DEVICES], before[MACHINE_DEVICES];
    f64 seconds[MACHINE_DEVICES]; /* seconds per row of each device, last report; 0 = none yet */
    f64 gain;
};

err balance_new(struct fit *t) {
    const struct resources *use = &t->job->use;
    struct balance *b;
    balance_free(t);
    const struct slice_spec *cut = &t->f->spec.cut;
    if (cut->slices > 1 && cut->course.slice_rounds > 0) return 0; /* the rank that ran a slice stores its final state */
    if (!use->balance || !use->ranks || comm_size(use->comm) < 2) return 0;
    if (policy_delay(use->policy) > 0 || t->job->use.plan_text || store_used(use)) return 0;
    NEW(b, 1);
    t->balance = b;
    machine_copy(&b->machine, use->ranks);
    b->looks = LOOKS;
    b->n = t->step.engine.plan->ndevice;
    snprintf(b->parallel, sizeof b->parallel, "%s", t->step.engine.plan->strategy);
    if (!plan_grains(t->step.engine.plan, b->grains)) balance_free(t);
    else b->all = t->step.engine.plan->ngrain;
    return 0;
}

void balance_free(struct fit *t) {
    mem_free(t->balance);
    t->balance = NULL;
}

bool balance_moved(const struct fit *t) { return t->balance && t->balance->moves > 0; }

bool balance_uneven(void *fit, const f64 *row_seconds) {
    struct fit *t = fit;
    struct balance *b = t->balance;
    if (!b) return false;
    for (i32 d = 0; d < b->n; d++)
        if (row_seconds[b->machine.device[d].rank] <= 0) return false; /* wait for a new measurement after each move */
    for (i32 d = 0; d < b->n; d++) b->seconds[d] = row_seconds[b->machine.device[d].rank];
    memcpy(b->wanted, b->grains, sizeof b->wanted);
    const i32 moved = balance_move(b->n, b->wanted, b->seconds, ceil_div(b->all, PART), WORTH);
    b->gain = 1 - balance_end(b->n, b->wanted, b->seconds) / balance_end(b->n, b->grains, b->seconds);
    b->agreed = moved > 0 ? b->agreed + 1 : 0;
    return moved > 0 && b->agreed >= (b->gain > PLAIN ? b->looks / LOOKS : b->looks);
}

static bool takes_back(const struct balance *b) {
    for (i32 d = 0; b->moves > 0 && d < b->n; d++)
        if ((b->grains[d] - b->before[d]) * (b->wanted[d] - b->grains[d]) < 0) return true;
    return false;
}

/* "11 5": micro-batches of each rank; with many ranks the least and the most. */
static void list(const struct balance *b, const i32 *grains, char *out, size_t size) {
    i32 of[COMM_RANKS] = {0}, ranks = 0, least = b->all, most = 0;
    size_t len = 0;
    for (i32 d = 0; d < b->n; d++) {
        const i32 r = b->machine.device[d].rank;
        of[r] += grains[d];
        ranks = imax(ranks, r + 1);
    }
    out[0] = 0;
    for (i32 r = 0; r < ranks; r++) {
        least = imin(least, of[r]);
        most = imax(most, of[r]);
        if (ranks <= SHOWN && len < size) len += (size_t)snprintf(out + len, size - len, "%s%d", r ? " " : "", of[r]);
    }
    if (ranks > SHOWN) snprintf(out, size, "%d to %d", least, most);
}

static f64 fastest(const struct balance *b) {
    f64 fast = b->seconds[0];
    for (i32 d = 1; d < b->n; d++) fast = dmin(fast, b->seconds[d]);
    return fast;
}

static f64 unlike(const struct balance *b) {
    f64 slow = b->seconds[0];
    for (i32 d = 1; d < b->n; d++) slow = dmax(slow, b->seconds[d]);
    return slow / fastest(b);
}

/* Sets the shares of the ranks by micro-batches and their rates by measurement, for the predicted time of the plan. */
static void describe(struct balance *b, const struct machine *first) {
    for (i32 d = 0; d < b->n; d++) {
        const f64 speed = fastest(b) / b->seconds[d];
        b->machine.device[d].weight = b->grains[d];
        b->machine.device[d].gflops = speed * first->device[d].gflops;
        b->machine.device[d].gbytes = speed * first->device[d].gbytes;
    }
}

err balance_recut(void *fit, struct step **exec) {
    struct fit *t = fit;
    struct balance *b = t->balance;
    struct resources use = resources_sliced(&t->job->use, b->parallel, t->f->spec.cut.slices, t->f->spec.cut.course);
    char before[96], after[96];
    list(b, b->grains, before, sizeof before);
    list(b, b->wanted, after, sizeof after);
    if (takes_back(b)) b->looks = imin(2 * b->looks, LOOKS_MOST);
    b->agreed = 0;
    memcpy(b->before, b->grains, sizeof b->before);
    memcpy(b->grains, b->wanted, sizeof b->grains);
    describe(b, use.ranks);
    use.ranks = &b->machine;
    TRY(engine_recut(&t->step.engine, &use));
    exec_rows(step_exec(t->step.engine.exec), &t->step.batch.row0, &t->step.batch.row1);
    *exec = t->step.engine.exec;
    b->moves++;
    event_note(use.events, EVENT_DETAIL,
               "balance: ranks have %s of %d micro-batches, had %s: "
               "the slowest takes %.2f times as long per sample as the fastest; "
               "steps %.0f%% shorter", after, b->all, before, unlike(b), 100 * b->gain);
    return 0;
}

/* True if twice as many micro-batches would give a better balance. */
static bool too_coarse(const struct fit *t, f64 reached) {
    const struct balance *b = t->balance;
    const i32 B = t->step.engine.plan->B;
    i32 fine[MACHINE_DEVICES];
    if (reached >= COARSE || ceil_div(B, plan_grain(B, 2 * b->all)) < 2 * b->all) return false;
    for (i32 d = 0; d < b->n; d++) fine[d] = 2 * b->grains[d];
    balance_move(b->n, fine, b->seconds, 2 * b->all, 0);
    return balance_reached(b->n, fine, b->seconds) > reached + WORTH;
}

void balance_end_note(const struct fit *t) {
    const struct balance *b = t->balance;
    char now[96], more[96] = "";
    if (!b || b->seconds[0] <= 0 || (b->moves == 0 && unlike(b) < 1 + 2 * WORTH)) return;
    list(b, b->grains, now, sizeof now);
    const f64 reached = balance_reached(b->n, b->grains, b->seconds);
    if (too_coarse(t, reached))
        snprintf(more, sizeof more, " (--grains %d allows finer shares, and changes the last bits of the model)", 2 * b->all);
    event_note(t->job->use.events, EVENT_DETAIL,
               "balance: micro-batches moved %d time%s; ranks have %s of %d, which is %.0f%% of what their speeds allow%s",
               b->moves,
               b->moves == 1 ? "" : "s", now, b->all, 100 * reached, more);
}

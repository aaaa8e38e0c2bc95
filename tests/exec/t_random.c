/* t_random.c - products of two and three cuts, nets, batches, ranks and workers, all drawn at random: every product that applies
 * has the bits of the serial plan.  On a device: the bits of the serial plan there, on any number of lanes and ranks, and and
 * losses, norms and weights of the host's kernels to 1e-5.  Half of them take the rows of a device in passes.
 *
 * STRETTO_TEST_DRAWS=N draws N products, STRETTO_TEST_DRAW=K only number K, which a failure names. */
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "gpu/gpu.h"
#include "exec/rig.h"

enum { DRAWS = 200, FEW = 16, DEVICE_DRAWS = 48, DEVICE_FEW = 8 };

/* The numbers of a draw: pick() counts them. */
struct draw {
    u32 number, at;
};

static i32 pick(struct draw *d, i32 n) {
    u32 word[4];
    rng_words(11, RNG_TEST, d->number, d->at++, word);
    return (i32)(word[0] % (u32)n);
}

static bool chance(struct draw *d, i32 in) { return pick(d, in) == 0; }

/* A layer in both directions, under one in a single direction. */
static void both_ways(struct net *n, struct shape s, enum cell_kind cell) {
    net_init(n);
    const i32 x = nets_input(n, "x", s.T, s.I, false);
    struct op_spec turn = net_spec("reverse", "turn", x), c = net_spec("recurrent", "there", x);
    c.cell = cell;
    c.hidden = s.H;
    struct op_spec both = net_spec("concat", "both", n->op[nets_add(n, &c)].out);
    snprintf(c.name, sizeof c.name, "back");
    c.in[0] = n->op[nets_add(n, &turn)].out;
    struct op_spec again = net_spec("reverse", "again", n->op[nets_add(n, &c)].out);
    both.in[1] = n->op[nets_add(n, &again)].out;
    snprintf(c.name, sizeof c.name, "top");
    c.in[0] = n->op[nets_add(n, &both)].out;
    nets_loss(n, "loss_mse", nets_dense(n, "head", n->op[nets_add(n, &c)].out, s.w, ACT_NONE), s.T, s.w, false);
    T_OK(net_check(n));
}

/* Stacks of cells; nets with shared weights (decode), quantiles, a large embedding in lines, small ones, an initial state, two
 * directions. */
static const char *draw_net(struct draw *d, struct net *n) {
    const enum cell_kind any = (enum cell_kind)pick(d, cell_count()), walked = (enum cell_kind)pick(d, CELL_NKIND);
    const i32 layers = 1 + pick(d, 4), steps = 3 + pick(d, 22), hidden = 6 + pick(d, 45);
    struct shape s = {.T = steps, .I = 3, .H = hidden, .steps = 2 + pick(d, 4), .w = 2};
    switch (pick(d, 8)) {
    case 0: s.vocab = 4; nets_long(n, s, walked, "loss_mae", 0.1f); return "decoder";
    case 1: nets_short(n, s, walked, "loss_quantile"); return "quantiles";
    case 2: s.vocab = 5000; nets_table(n, s, 8 + pick(d, 14)); return "table";
    case 3: nets_mixed(n, s, walked); return "mixed";
    case 4: both_ways(n, s, walked); return "two directions";
    default: real_stack(n, any, layers, steps, hidden, chance(d, 4)); return "stack";
    }
}

/* Two or three different cuts in any order, with two or three parts. */
static i32 draw_product(struct draw *d, char text[96]) {
    static const char *const cuts[] = {"data", "unit", "wave", "pipeline"};
    const i32 count = 2 + chance(d, 3);
    bool taken[COUNT(cuts)] = {0};
    i32 devices = 1, at = 0;
    for (i32 k = 0; k < count; k++) {
        i32 c = pick(d, COUNT(cuts));
        while (taken[c]) c = (c + 1) % (i32)COUNT(cuts);
        taken[c] = true;
        const i32 parts = 2 + chance(d, 3);
        devices *= parts;
        at += snprintf(text + at, (size_t)(96 - at), "%s%s:%d", k ? "*" : "", cuts[c], parts);
    }
    return devices;
}

/* A machine with at least so many devices, on one to four ranks. */
static i32 draw_machine(struct draw *d, const char *kind, i32 devices, char text[96]) {
    const i32 ranks = 1 + pick(d, RIG_RANKS), each = (devices + ranks - 1) / ranks;
    const char *speed = chance(d, 2) ? " gflops=0.001" : "";
    if (ranks == 1) snprintf(text, 96, "%s*%d%s", kind, devices, speed);
    else snprintf(text, 96, "host*%d(%s*%d)%s", ranks, kind, each, speed);
    return ranks;
}

static void draw_rest(struct draw *d, const char *parallel, struct rig *r) {
    static const char *const optims[] = {"adam", "sgd", "rmsprop", "adamw"};
    static const char *const methods[] = {"heft", "cyclic", "hybrid", "random:5"};
    r->B = 2 + pick(d, 40);
    r->optim = optims[pick(d, COUNT(optims))];
    r->accumulate = chance(d, 4);
    r->unclipped = chance(d, 4);
    r->grains = chance(d, 3) ? 1 + pick(d, 12) : 0;
    r->microbatches = chance(d, 3) ? 2 + pick(d, 3) : 0;
    r->all_forward = chance(d, 2);
    if (strstr(parallel, "pipeline") && chance(d, 3)) r->place = methods[pick(d, COUNT(methods))];
    if (chance(d, 4)) r->policy = "linear";
    if (chance(d, 2)) r->passes = 2 + pick(d, 7);
}

#define MOST_APART 1e-5 /* of a weight after RIG_STEPS steps of sgd; other rules follow the sign of gradients near 0 at first */
static f64 apart;
static i32 nsplit; /* plans so far in which ranks share the units of a layer */

/* Does the planner make this plan?  What it refuses, it refuses with E401. */
static bool applies(const struct rig *r) {
    struct machine m;
    struct plan *p = NULL;
    T_OK(machine_parse(r->machine, &m));
    struct plan_request q = {.net = r->net, .machine = &m, .B = r->B, .train = true, .nstate = optim_find(r->optim)->nstate};
    q.parallel = r->parallel;
    q.microbatches = r->microbatches;
    q.all_forward = r->all_forward;
    q.place = r->place;
    q.grains = r->grains;
    q.passes = r->passes;
    const err e = plan_make(&q, &p);
    if (e < 0 && e != -E401) fail_msg("%s: %s", r->parallel, err_last()->text);
    bool split = false;
    for (u32 i = 0; p && i < p->ntask; i++) split = split || p->task[i].split;
    plan_free(p);
    if (split && strncmp(r->machine, "cpu", 3) != 0 && !strstr(r->machine, "(cpu")) return false; /* such ops run on the host */
    nsplit += split;
    return e >= 0;
}

/* Weights and losses of a device against those of the host. */
static void close_to_host(const struct rig *device) {
    struct rig host = {.net = device->net, .machine = "cpu", .parallel = "serial", .threads = 1, .B = device->B,
                       .optim = device->optim, .accumulate = device->accumulate, .unclipped = device->unclipped,
                       .grains = device->grains};
    f64 worst = 0;
    rig_live(&host);
    if (host.e < 0) fail_msg("%s", host.why.text);
    const bool sgd = strcmp(host.optim, "sgd") == 0;
    for (i32 s = 0; s < (sgd ? RIG_STEPS : 1); s++)
        if (!(fabs(device->loss[s] - host.loss[s]) <= 1e-5 * fabs(host.loss[s])))
            fail_msg("%s: loss %.9g of step %d, on the host %.9g", device->draw, device->loss[s], s, host.loss[s]);
    if (!(fabs(device->norm[0] - host.norm[0]) <= 1e-5 * host.norm[0]))
        fail_msg("%s: norm %.9g, on the host %.9g", device->draw, device->norm[0], host.norm[0]);
    for (i64 k = 0; k < host.net->ntheta && sgd; k++)
        worst = dmax(worst, fabs((f64)device->store.theta[k] - (f64)host.store.theta[k]));
    if (!(worst <= MOST_APART)) fail_msg("%s: a weight differs by %.3g from that of the host", device->draw, worst);
    apart = dmax(apart, worst);
    rig_free(&host);
}

/* True if the product of this draw applies; its bits are then compared. */
static bool one(u32 number, const char *kind) {
    static struct net n;
    struct draw d = {.number = number};
    char parallel[96], machine[96], name[64];
    struct rig s = {.net = &n, .machine = kind, .parallel = "serial", .threads = 1}, r = s;
    const char *what = draw_net(&d, &n);
    const i32 ranks = draw_machine(&d, kind, draw_product(&d, parallel), machine);
    r.machine = machine;
    r.parallel = parallel;
    r.threads = 1 + pick(&d, 4);
    draw_rest(&d, parallel, &r);
    if (!applies(&r)) return false;
    s.B = r.B;
    s.optim = r.optim;
    s.accumulate = r.accumulate;
    s.unclipped = r.unclipped;
    s.grains = r.grains;
    snprintf(name, sizeof name, "STRETTO_TEST_DRAW=%u (%s)", number, what);
    r.draw = s.draw = name;
    print_message("%s: %s on %s, batch %d, %d passes, %s%s%s\n", name, parallel, machine, r.B, r.passes, r.optim,
                  r.place ? ", placed by " : "", r.place ? r.place : "");
    rig_live(&s);
    if (s.e < 0) fail_msg("serial: %s", s.why.text);
    if (strcmp(kind, "cpu") != 0) close_to_host(&s);
    rig_on_ranks(&s, &r, ranks);
    rig_free(&s);
    return true;
}

TEST(random_products_have_the_bits_of_serial) {
    const char *only = getenv("STRETTO_TEST_DRAW"), *count = getenv("STRETTO_TEST_DRAWS");
    const i32 want = count ? atoi(count) : t_few() ? FEW : DRAWS;
    i32 ran = 0;
    u32 number = 0;
    if (only) {
        one((u32)atoi(only), "cpu");
        return;
    }
    for (; ran < want; number++) ran += one(number, "cpu");
    print_message("%d products had the bits of serial, in %d ranks share units; %u did not apply\n", ran, nsplit,
                  number - (u32)ran);
    assert_true(nsplit >= want / 20);
    assert_true(number < 20 * (u32)want);
}

TEST(random_products_on_devices_have_the_bits_of_one_lane) {
    const char *count = getenv("STRETTO_TEST_DRAWS"), *only = getenv("STRETTO_TEST_DRAW"), *wish = getenv("STRETTO_TEST_DEVICE");
    const char *kind = wish ? wish : "opencl";
    const i32 want = count ? atoi(count) : t_few() ? DEVICE_FEW : DEVICE_DRAWS;
    struct gpu_card card[1];
    char why[GPU_WHY] = "";
    i32 ran = 0;
    u32 number = 0;
    if (gpu_driver_find(kind)->cards(card, 1, why) == 0) {
        print_message("skipped: no %s device: %s\n", kind, why);
        skip();
    }
    if (only) {
        assert_true(one((u32)atoi(only), kind));
        return;
    }
    for (; ran < want; number++) ran += one(number, kind);
    print_message("%d products on %s had the bits of one lane, weights within %.2g of the host's\n", ran, card->name, apart);
}

T_MAIN(cmocka_unit_test(random_products_have_the_bits_of_serial),
       cmocka_unit_test(random_products_on_devices_have_the_bits_of_one_lane))

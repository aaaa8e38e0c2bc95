/* t_exchange.c - messages between ranks, as they follow from uses: everything that is read has come, nothing twice, as much as a
 * ring would send, and gradients of upper layers before the lower ones are done. */
#include "t.h"

#include <stdio.h>

#include "model/nets.h"
#include "step/sent.h"
#include "plan/texts.h"

static struct machine machine;
static struct net net;

struct rig {
    struct plan *plan;
    struct arena arena;
    struct plan_message *m;
    u32 n;
};

static void rig_new(struct rig *r, i32 ranks, i32 threads, i32 B, const char *parallel) {
    char text[48];
    *r = (struct rig){0};
    nets_short(&net, (struct shape){.T = 5, .I = 3, .H = 40, .w = 5}, CELL_LSTM, "loss_mse");
    snprintf(text, sizeof text, "host*%d(cpu*%d)", ranks, threads);
    T_OK(machine_parse(text, &machine));
    struct plan_request q = {.net = &net, .machine = &machine, .B = B, .train = true, .nstate = 1, .parallel = parallel};
    T_OK(plan_make(&q, &r->plan));
    T_OK(plan_exchange(r->plan, &r->arena, &r->m, &r->n));
}

static void rig_free(struct rig *r) {
    plan_free(r->plan);
    arena_free(&r->arena);
}

static i64 floats(const struct rig *r, u8 kind, i32 from, i32 to) {
    i64 sum = 0;
    for (u32 i = 0; i < r->n; i++) {
        const struct plan_message *m = &r->m[i];
        bool meant = (from < 0 || m->from == from) && (to < 0 || m->to == to);
        if (r->plan->buf[m->buf].kind == kind && m->when == MESSAGE_STEP && meant) sum += m->hi - m->lo;
    }
    return sum;
}

static i64 blocks(const struct rig *r, i64 n) { return (n + netplan(r->plan)->norm_block - 1) / netplan(r->plan)->norm_block; }

/* Aligned runs of grains: what a ring sends, 2 S (n - 1) / n a rank. */
TEST(exchange_sends_no_more_than_a_ring) {
    for (i32 ranks = 2; ranks <= 8; ranks *= 2) {
        struct rig r;
        rig_new(&r, ranks, 1, 64, "data_sync");
        const i64 S = netplan(r.plan)->ntheta;
        assert_int_equal(floats(&r, PBUF_GRAD, -1, -1), S * (ranks - 1));
        assert_int_equal(floats(&r, PBUF_THETA, -1, -1), S * (ranks - 1));
        for (i32 k = 0; k < ranks; k++) {
            i64 out = floats(&r, PBUF_GRAD, k, -1), ring = S * (ranks - 1) / ranks;
            assert_in_range(out, ring - 2 * netplan(r.plan)->norm_block,
                            ring + 2 * netplan(r.plan)->norm_block); /* a block is one rank's */
        }
        rig_free(&r);
    }
}

/* Threads of a rank sum among themselves: no message for that. */
TEST(exchange_is_between_ranks_alone) {
    struct rig r;
    rig_new(&r, 2, 4, 64, "data_sync");
    assert_int_equal(floats(&r, PBUF_GRAD, -1, -1), netplan(r.plan)->ntheta);
    for (u32 i = 0; i < r.n; i++) assert_int_not_equal(r.m[i].from, r.m[i].to);
    rig_free(&r);
    rig_new(&r, 1, 8, 64, "data_sync");
    assert_int_equal(r.n, 0);
    rig_free(&r);
}

/* Every rank has all weights and norms after the step, once; also one that has nothing to do, and when one does it all. */
TEST(exchange_brings_weights_to_all) {
    static const struct {
        i32 ranks, B;
        const char *parallel;
    } cases[] = {{3, 64, "data_sync"}, {5, 37, "data_sync"}, {8, 8, "data_sync"}, {3, 2, "serial"}, {2, 2, "unit_split"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rig r;
        rig_new(&r, cases[i].ranks, 2, cases[i].B, cases[i].parallel);
        for (i32 k = 0; k < cases[i].ranks; k++) {
            i64 own = 0, norms = 0;
            for (u32 t = 0; t < r.plan->ntask; t++) {
                const struct task *task = &r.plan->task[t];
                if (r.plan->place[task->device].rank != k) continue;
                own += task->kind == TASK_UPDATE ? task->hi - task->lo : 0;
                norms += task->kind == TASK_NORM ? blocks(&r, task->hi - task->lo) : 0;
            }
            assert_int_equal(own + floats(&r, PBUF_THETA, -1, k), netplan(r.plan)->ntheta);
            assert_int_equal(norms + floats(&r, PBUF_NORM, -1, k), blocks(&r, netplan(r.plan)->ntheta));
        }
        rig_free(&r);
    }
}

/* The gradient of the head is on its way before the bottom layer begins its backward pass. */
TEST(exchange_begins_with_the_upper_layers) {
    struct rig r;
    rig_new(&r, 2, 1, 64, "data_sync");
    const i32 head = net_find_op(&net, "head");
    u32 bottom = 0, sent = 0;
    for (u32 t = 0; t < r.plan->ntask; t++)
        if (r.plan->task[t].kind == TASK_BWD && r.plan->task[t].op == 0 && r.plan->task[t].device == 0) bottom = t;
    for (u32 i = 0; i < r.n; i++) {
        const struct plan_message *m = &r.m[i];
        bool of_head = m->lo < net.op[head].theta0 + net.op[head].ntheta && m->hi > net.op[head].theta0;
        if (r.plan->buf[m->buf].kind != PBUF_GRAD || m->from != 0 || !of_head) continue;
        assert_true(m->after < bottom);
        sent++;
    }
    assert_true(sent > 0);
    rig_free(&r);
}

/* Each rank sends its share of every layer, and those of upper layers before the bottom one begins its backward pass: also where
 * threads of a rank have something to sum before. */
TEST(exchange_of_a_layer_is_everybodys) {
    for (i32 threads = 1; threads <= 2; threads++) {
        struct rig r;
        rig_new(&r, 2, threads, 64, "data_sync");
        const struct op *low = &net.op[0], *high = &net.op[net_find_op(&net, "lstm.1")];
        u32 bottom = r.plan->ntask;
        i64 sent[2][2] = {{0}};
        for (u32 t = r.plan->ntask; t-- > 0;)
            if (r.plan->task[t].kind == TASK_BWD && r.plan->task[t].op == 0) bottom = t;
        for (u32 i = 0; i < r.n; i++) {
            const struct plan_message *m = &r.m[i];
            if (r.plan->buf[m->buf].kind != PBUF_GRAD || m->when != MESSAGE_STEP) continue;
            const bool is_low = m->lo < low->theta0 + low->ntheta;
            const bool is_high = m->lo >= high->theta0 && m->lo < high->theta0 + high->ntheta;
            if (is_high) assert_true(m->after < bottom);
            if (is_low || is_high) sent[m->from][is_high] += m->hi - m->lo;
        }
        const i64 slack = 2 * netplan(r.plan)->norm_block;
        for (i32 k = 0; k < 2; k++) {
            assert_in_range(sent[k][0], low->ntheta / 2 - slack, low->ntheta / 2 + slack);
            assert_in_range(sent[k][1], high->ntheta / 2 - slack, high->ntheta / 2 + slack);
        }
        rig_free(&r);
    }
}

enum { WIDE = 96 }; /* units: large enough for a bottom layer in parts */

static struct plan_request wide(const char *host, const char *parallel) {
    nets_short(&net, (struct shape){.T = 5, .I = 3, .H = WIDE, .w = 5}, CELL_LSTM, "loss_mse");
    T_OK(machine_parse(host, &machine));
    return (struct plan_request){.net = &net, .machine = &machine, .B = 64, .train = true, .nstate = 1, .parallel = parallel};
}

/* Nothing is left to compute when the last gradient is made: all but its last part is under way by then, a share of each rank. */
TEST(exchange_of_the_bottom_layer_goes_in_parts) {
    for (i32 threads = 1; threads <= 2; threads++) {
        struct rig r = {0};
        struct plan_request q = wide(threads == 1 ? "host*2(cpu)" : "host*2(cpu*2)", "data_sync");
        T_OK(plan_make(&q, &r.plan));
        T_OK(plan_exchange(r.plan, &r.arena, &r.m, &r.n));
        const struct op *low = &net.op[0];
        const i32 parts = netplan(r.plan)->parted.n;
        assert_int_equal(netplan(r.plan)->parted.op, 0);
        assert_int_equal(parts, threads == 1 ? 4 : 2);
        u32 last = r.plan->ntask;
        for (u32 t = r.plan->ntask; t-- > 0;)
            if (r.plan->task[t].kind == TASK_DW && r.plan->task[t].node_a == parts - 1) last = t;
        i64 sent[2][2] = {{0}};
        for (u32 i = 0; i < r.n; i++) {
            const struct plan_message *m = &r.m[i];
            const bool below = m->lo < low->theta0 + low->ntheta;
            if (r.plan->buf[m->buf].kind != PBUF_GRAD || m->when != MESSAGE_STEP || !below) continue;
            sent[m->from][m->after >= last] += m->hi - m->lo;
        }
        const i64 slack = 2 * netplan(r.plan)->norm_block, largest = low->ntheta * ceil_div(WIDE / LANES, parts) / (WIDE / LANES);
        for (i32 k = 0; k < 2; k++) {
            assert_in_range(sent[k][0] + sent[k][1], low->ntheta / 2 - slack, low->ntheta / 2 + slack);
            assert_in_range(sent[k][1], 1, largest / 2 + slack);
        }
        rig_free(&r);
    }
}

TEST(a_gradient_is_made_in_parts_where_that_pays) {
    static const struct {
        const char *host, *parallel;
        i32 n;
    } cases[] = {{"host*2(cpu)", "data_sync", 4}, {"host*3(cpu)", "data_sync", 3}, {"host*8(cpu)", "data_sync", 0},
                 {"cpu*2", "data_sync", 0},       {"host*2(cpu)", "serial", 0},    {"host*2(cpu*2)", "unit_split", 0}};
    struct plan *p;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct plan_request q = wide(cases[i].host, cases[i].parallel);
        T_OK(plan_make(&q, &p));
        assert_int_equal(netplan(p)->parted.n, cases[i].n);
        plan_free(p);
    }
    struct plan_request q = wide("host*2(cpu)", "data_sync");
    net.op[0].spec.precision = PREC_BF16; /* its kernels leave all to the first of a team */
    T_OK(plan_make(&q, &p));
    assert_int_equal(netplan(p)->parted.n, 0);
    plan_free(p);
}

TEST(parts_of_a_gradient_come_back_from_text) {
    static const struct {
        const char *old, *now;
    } bad[] = {{"part 1/4", "part 4/4"}, {"part 1/4", "part 1/3"},   {"part 1/4", "part 0/4"},
               {"part 1/4", "unit 1/4"}, {"dw lstm.0", "dw lstm.1"}, {"(dw lstm.0 b[0,32)", "(dw lstm.0 b[0,16)"},
               {"(dw ", "(bwd "}};
    struct plan_request q = wide("host*2(cpu)", "data_sync");
    struct plan *p, *back;
    struct str a = {0}, b = {0};
    T_OK(plan_make(&q, &p));
    plan_print(p, &net, &a);
    T_OK(plan_parse(str_text(&a), "a.plan", &q, &back));
    plan_print(back, &net, &b);
    assert_string_equal(str_text(&a), str_text(&b));
    assert_int_equal(p->ndep, back->ndep);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct str t = {0};
        struct plan *none;
        str_add(&t, str_text(&a));
        replace(&t, bad[i].old, bad[i].now);
        T_FAILS(plan_parse(str_text(&t), "x.plan", &q, &none), E402);
        str_free(&t);
    }
    plan_free(p);
    plan_free(back);
    str_free(&a);
    str_free(&b);
}

/* A text may place tasks anywhere.  Activations are sent, but what an op keeps for backward is not. */
TEST(exchange_leaves_what_an_op_keeps_on_its_rank) {
    static const char *const ops[] = {"lstm.1", "lstm.0"};
    for (size_t i = 0; i < COUNT(ops); i++) {
        struct rig r;
        u32 bad;
        rig_new(&r, 2, 1, 64, "data_sync");
        assert_null(plan_check(r.plan, &net, &bad));
        for (u32 t = 0; t < r.plan->ntask; t++) {
            struct task *task = &r.plan->task[t];
            if (task->kind == TASK_FWD && task->device == 1 && task->op == net_find_op(&net, ops[i])) task->device = 0;
        }
        const char *what = plan_check(r.plan, &net, &bad);
        if (!what || !strstr(what, "belong to one rank")) fail_msg("%s moved: %s", ops[i], what ? what : "nothing is said");
        rig_free(&r);
    }
}

/* An op that runs on another rank than its neighbours reads their activations, and gradients of them. */
TEST(exchange_of_activations_follows_from_uses) {
    struct rig r;
    struct plan_message *m;
    u32 n, bad, act = 0, dact = 0;
    rig_new(&r, 2, 1, 64, "data_sync");
    for (u32 i = 0; i < r.n; i++) assert_true(r.plan->buf[r.m[i].buf].kind != PBUF_ACT);
    for (u32 t = 0; t < r.plan->ntask; t++) {
        struct task *task = &r.plan->task[t];
        const bool works = task->kind == TASK_FWD || task->kind == TASK_BWD;
        if (works && task->op == net_find_op(&net, "head")) task->device = 0;
    }
    assert_null(plan_check(r.plan, &net, &bad));
    T_OK(plan_exchange(r.plan, &r.arena, &m, &n));
    for (u32 i = 0; i < n; i++) {
        const u8 kind = r.plan->buf[m[i].buf].kind;
        if (kind != PBUF_ACT && kind != PBUF_DACT) continue;
        assert_true(m[i].lo >= 32 && m[i].hi <= 64); /* rows of rank 1 */
        assert_int_equal(m[i].from + m[i].to, 1);
        act += kind == PBUF_ACT;
        dact += kind == PBUF_DACT;
    }
    assert_true(act >= 2 && dact >= 2); /* to the head and back */
    rig_free(&r);
}

/* Gradients of a large embedding are messages of their own, which may be as long as rows and steps make them. */
TEST(exchange_of_a_table_goes_by_lines) {
    enum { VOCAB = 4000, STEPS = 5, ROWS = 64 };
    for (i32 ranks = 2; ranks <= 4; ranks++) {
        struct plan_sent sent, whole;
        struct plan *p[2];
        struct plan_message *m;
        struct arena a = {0};
        char text[48];
        u32 n;
        i64 lines = 0;
        nets_table(&net, (struct shape){.T = STEPS, .I = 3, .H = 16, .w = 4, .vocab = VOCAB}, 20);
        snprintf(text, sizeof text, "host*%d(cpu)", ranks);
        T_OK(machine_parse(text, &machine));
        struct plan_request q = {.net = &net, .machine = &machine, .B = ROWS, .train = true, .nstate = 2};
        q.parallel = "data_sync";
        for (i32 k = 0; k < 2; k++, q.dense = true) T_OK(plan_make(&q, &p[k]));
        assert_true(p[0]->ntable == 1 && p[1]->ntable == 0);
        T_OK(plan_sent(p[0], 1, &sent));
        T_OK(plan_sent(p[1], 1, &whole));
        struct plan_sent thrice;
        T_OK(plan_sent(p[0], 3, &thrice)); /* the gradient is kept twice, and what is kept touches more lines */
        assert_true(thrice.messages > 3 * sent.messages && thrice.lines_most > 3 * sent.lines_most);
        assert_true(thrice.lines_most <= thrice.lines_whole + 4 * thrice.messages);
        assert_true(whole.most == whole.whole && whole.lines_whole == 0 && sent.whole == whole.whole);
        assert_true(sent.whole - sent.lines_whole == sent.most - sent.lines_most);
        assert_true(sent.lines_whole >= (ranks - 1) * (i64)VOCAB * 128); /* 20 units are 32 floats */
        assert_in_range(sent.lines_most, 1, sent.lines_whole / 2);
        T_OK(plan_exchange(p[0], &a, &m, &n));
        for (u32 i = 0; i < n; i++) {
            const struct op *e = &net.op[p[0]->table[0].op];
            const i64 end = e->theta0 + e->ntheta;
            const bool grad = p[0]->buf[m[i].buf].kind == PBUF_GRAD, inside = m[i].lo >= e->theta0 && m[i].hi <= end;
            assert_true(m[i].sparse == (grad && inside));
            assert_true(!grad || inside || m[i].hi <= e->theta0 || m[i].lo >= end);
            lines += m[i].sparse && m[i].when == MESSAGE_STEP ? 4 * (m[i].hi - m[i].lo) : 0;
        }
        assert_int_equal(lines, sent.lines_whole);
        assert_true(p[0]->exchange_bytes < p[1]->exchange_bytes && p[0]->predicted < p[1]->predicted);
        for (i32 k = 0; k < 2; k++) plan_free(p[k]);
        arena_free(&a);
    }
}

T_MAIN(cmocka_unit_test(exchange_of_the_bottom_layer_goes_in_parts),
       cmocka_unit_test(a_gradient_is_made_in_parts_where_that_pays), cmocka_unit_test(parts_of_a_gradient_come_back_from_text),
       cmocka_unit_test(exchange_of_a_table_goes_by_lines), cmocka_unit_test(exchange_of_a_layer_is_everybodys),
       cmocka_unit_test(exchange_leaves_what_an_op_keeps_on_its_rank),
       cmocka_unit_test(exchange_of_activations_follows_from_uses), cmocka_unit_test(exchange_sends_no_more_than_a_ring),
       cmocka_unit_test(exchange_is_between_ranks_alone), cmocka_unit_test(exchange_brings_weights_to_all),
       cmocka_unit_test(exchange_begins_with_the_upper_layers))

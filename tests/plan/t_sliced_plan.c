/* t_sliced_plan.c - plans of nets whose rows are slices of time: who runs what together, text there and back, what is refused. */
#include "t.h"

#include "model/layer.h"
#include "step/planner.h"

static struct net net;
static struct machine machine;

static void sliced_net(i32 rank) {
    net_init(&net);
    i32 x, after, op;
    T_OK(net_input(&net, "x", 50, 3, false, &x));
    T_OK(net_input(&net, "after", 1, 1, true, &after));
    for (i32 k = 0; k < 2; k++) {
        struct op_spec s = net_spec("recurrent", k ? "lstm.1" : "lstm.0", x);
        s.hidden = 20, s.in[3] = after, s.slice_rank = rank;
        T_OK(net_op(&net, &s, &op));
        x = net.op[op].out;
    }
    struct op_spec head = net_spec("dense", "head", x), loss;
    head.units = 1;
    T_OK(net_op(&net, &head, &op));
    loss = net_spec("loss_mse", "loss", net.op[op].out);
    T_OK(net_input(&net, "target", 50, 1, false, &loss.in[1]));
    T_OK(net_op(&net, &loss, NULL));
    T_OK(net_check(&net));
}

static struct plan_request request(const char *text, i32 P, const char *parallel) {
    T_OK(machine_parse(text, &machine));
    return (struct plan_request){
        .net = &net, .machine = &machine, .B = 2 * P, .train = true, .nstate = 1, .parallel = parallel, .slices = P};
}

/* Tasks of the chain of an op in one direction follow each other, each with rows of its own. */
static void those_who_run_a_chain_are_together(void **state) {
    (void)state;
    sliced_net(0);
    struct plan_request q = request("cpu*4", 32, "time:32");
    struct plan *p;
    T_OK(plan_make(&q, &p));
    assert_int_equal(netplan(p)->slices, 32);
    assert_false(p->exact);
    i32 chains = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if ((t->kind != TASK_FWD && t->kind != TASK_BWD) || !op_is_chain(&net.op[t->op])) continue;
        assert_int_equal(t->members, 4);
        assert_int_equal(t->box.b1 - t->box.b0, 16);
        if (t->member > 0) assert_int_equal(t->box.b0, t[-1].box.b1);
        for (u32 d = t->dep0; d < t->dep0 + t->ndep; d++)
            assert_true(p->task[p->dep[d]].op != t->op || p->task[p->dep[d]].kind != t->kind);
        chains += t->member == 0;
    }
    assert_int_equal(chains, 4);
    plan_free(p);
}

/* Both ways, the loss behind the end: what the second way left in other rows is read, and its gradient given back, by tasks that
 * have rows of their own: they wait for those who wrote the rest. */
static void crossing_net(void) {
    i32 x, after, before, first, op, last[2];
    net_init(&net);
    T_OK(net_input(&net, "x", 50, 3, false, &x));
    T_OK(net_input(&net, "after", 1, 1, true, &after));
    T_OK(net_input(&net, "before", 1, 1, true, &before));
    T_OK(net_input(&net, "first_slice", 1, 1, true, &first));
    for (i32 k = 0; k < 2; k++) {
        struct op_spec s = net_spec("recurrent", k ? "lstm.0.reverse" : "lstm.0", x), end;
        s.hidden = 20, s.in[3] = k ? before : after;
        if (k) {
            struct op_spec turn = net_spec("reverse", "turn", x);
            T_OK(net_op(&net, &turn, &op));
            s.in[0] = net.op[op].out;
        }
        T_OK(net_op(&net, &s, &op));
        end = net_spec("last", k ? "last.reverse" : "last", net.op[op].end);
        end.in[1] = k ? first : -1;
        T_OK(net_op(&net, &end, &op));
        last[k] = net.op[op].out;
    }
    struct op_spec both = net_spec("concat", "ends", last[0]), loss;
    both.in[1] = last[1];
    T_OK(net_op(&net, &both, &op));
    loss = net_spec("loss_mse", "loss", net.op[op].out);
    T_OK(net_input(&net, "target", 1, 40, false, &loss.in[1]));
    T_OK(net_op(&net, &loss, NULL));
    T_OK(net_check(&net));
}

static bool waits_for(const struct plan *p, const struct task *t, const struct task *other) {
    for (u32 d = t->dep0; d < t->dep0 + t->ndep; d++)
        if (&p->task[p->dep[d]] == other) return true;
    return false;
}

static void rows_made_of_others_wait_for_all_of_them(void **state) {
    (void)state;
    struct plan *p, *back;
    struct str text = {0};
    crossing_net();
    struct plan_request q = request("cpu*4", 32, "time:32");
    T_OK(plan_make(&q, &p));
    const i32 last = net_find_op(&net, "last.reverse"), ends = net_find_op(&net, "ends");
    i32 gathers = 0;
    for (u32 i = 0; i < p->ntask; i++) {
        const struct task *t = &p->task[i];
        if (t->op != last || t->kind != TASK_BWD) continue;
        assert_int_equal(t->box.b1 - t->box.b0, 16);
        for (u32 k = 0; k < p->ntask; k++)
            if (p->task[k].op == ends && p->task[k].kind == TASK_BWD) gathers += waits_for(p, t, &p->task[k]);
        for (u32 u = t->use0; u < t->use0 + t->nuse; u++) /* rows are written where they are its own alone */
            if (p->buf[p->use[u].buf].kind == PBUF_DACT && p->use[u].mode != USE_R)
                assert_true(p->use[u].lo == t->box.b0 && p->use[u].hi == t->box.b1);
    }
    assert_int_equal(gathers, 16); /* each of four for each of four */
    plan_print(p, &net, &text);
    T_OK(plan_parse(str_text(&text), "a.plan", &q, &back));
    plan_free(p), plan_free(back);
    str_free(&text);
}

static void a_plan_of_slices_is_read_back(void **state) {
    (void)state;
    sliced_net(2);
    struct plan_request q = request("cpu*2", 16, "auto");
    q.course = (struct chain_course){.slice_tol = 1e-5f, .rounds = 9, .slice_rounds = 2, .exact_back = true};
    struct plan *p, *back;
    struct str a = {0}, b = {0};
    T_OK(plan_make(&q, &p));
    plan_print(p, &net, &a);
    assert_non_null(strstr(str_text(&a), "(plan time:16 train B 32 grain 2 grains 16 devices 2 exact no slices 16"));
    assert_non_null(strstr(str_text(&a), "fwd lstm.0 b[16,32) chain 1/2 t[0,50)"));
    q.course = (struct chain_course){0};
    T_OK(plan_parse(str_text(&a), "a.plan", &q, &back));
    plan_print(back, &net, &b);
    assert_string_equal(str_text(&a), str_text(&b));
    assert_int_equal(netplan(back)->course.rounds, 9);
    assert_int_equal(netplan(back)->course.slice_rounds, 2);
    assert_true(netplan(back)->course.exact_back);
    plan_free(p), plan_free(back);
    str_free(&a), str_free(&b);
}

static void replaced(struct str *out, const char *text, const char *what, const char *with) {
    const char *at = strstr(text, what);
    assert_non_null(at);
    str_addn(out, text, (size_t)(at - text));
    str_add(out, with);
    str_add(out, at + strlen(what));
}

/* Turns stand after the tasks, in the order of training. */
static void turns_are_read_back(void **state) {
    (void)state;
    static const struct {
        const char *what, *with, *says;
    } cases[] = {
        {"step 40", "step 4", "in the order of training"},
        {"turn train member 1", "turn train member x", "a number from 0"},
        {"slices 8 rank 1", "slices 0 rank 1", "a number from 1 to 65536"},
        {"slices 8 rank 1", "slices 8 rank 9", "a number from 0 to 4"},
        {"turn refit", "turn again", "\"train\" is expected here"},
        {"(turn train member 0 step 12", "(update theta[0,16) @r0.cpu0) (turn train member 0 step 12", ""},
    };
    sliced_net(0);
    struct plan_request q = request("cpu*2", 16, "time");
    struct plan *p, *back;
    struct str a = {0}, c = {0};
    T_OK(plan_make(&q, &p));
    netplan(p)->turns = (struct plan_turns){
        .n = 4, .at = {{12, 0, 0, 16, 0}, {40, 0, 0, 8, 1}, {3, 0, 1, 1, 0}, {6, 1, 0, 2, 0}}};
    plan_print(p, &net, &a);
    T_OK(plan_parse(str_text(&a), "a.plan", &q, &back));
    assert_memory_equal(&netplan(back)->turns, &netplan(p)->turns, sizeof netplan(p)->turns);
    plan_print(back, &net, &c);
    assert_string_equal(str_text(&a), str_text(&c));
    plan_free(back);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str b = {0};
        replaced(&b, str_text(&a), cases[i].what, cases[i].with);
        T_FAILS(plan_parse(str_text(&b), "a.plan", &q, &back), E402);
        if (!strstr(err_last()->text, cases[i].says)) fail_msg("%s: \"%s\"", cases[i].with, err_last()->text);
        str_free(&b);
    }
    plan_free(p);
    str_free(&a), str_free(&c);
}

/* Predicted time of the chains of net, one way. */
static f64 expected_ms(i32 P, i32 w, const char *on, enum task_kind kind) {
    struct plan *p;
    struct plan_request q = request(on, P, "time");
    q.forgets = w;
    T_OK(plan_make(&q, &p));
    f64 sum = 0;
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].kind == kind && op_is_chain(&net.op[p->task[i].op]) && p->task[i].member == 0) sum += p->task[i].cost;
    plan_free(p);
    return 1e3 * sum;
}

/* Slices that are met by what others forget run again, the others sleep. */
static void what_sleeps_costs_nothing(void **state) {
    (void)state;
    sliced_net(0); /* slices of 50 steps, two sequences */
    const f64 once = expected_ms(16, 1, "cpu*1", TASK_FWD), twice = expected_ms(16, 50, "cpu*1", TASK_FWD);
    const f64 four = expected_ms(16, 150, "cpu*1", TASK_FWD);
    assert_true(twice / once > 1.8 && twice / once < 2); /* 30 of 32 rows again */
    assert_true(four / once > 3.4 && four / once < 3.9); /* 30, 28, 26 rows */
    assert_true(expected_ms(4, 150, "cpu*1", TASK_FWD) / expected_ms(4, 1, "cpu*1", TASK_FWD) < 3.0); /* 6, 4, 2 of 8 rows */
    assert_true(expected_ms(16, 50, "cpu*2", TASK_FWD) < 0.7 * twice); /* each the half, and two share the memory */
    const f64 every = expected_ms(16, 100, "cpu*1", TASK_BWD);
    crossing_net(); /* a loss behind the end: two slices of 16 are walked, of one layer in place of two */
    assert_true(expected_ms(16, 100, "cpu*1", TASK_BWD) < 0.35 * every);
}

static void what_is_no_chain_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *what, *with, *says;
    } cases[] = {
        {"fwd lstm.0 b[0,16) chain 0/2", "fwd lstm.0 b[0,16)", "time slices must run together"},
        {"chain 1/2", "chain 0/2", "members of this team or chain are missing"},
        {"chain 0/2 t", "unit 0/2 t", "does not support tensor parallelism"},
        {"fwd head b[0,16)", "fwd head b[0,16) chain 0/2", "are not time slices"},
        {"slices 16", "slices 8", "this run has slices 16"},
        {"rank 0", "rank 1", "this run has rank 0"},
        {"tol 1e-06", "tol x", "a tolerance"},
    };
    sliced_net(0);
    struct plan_request q = request("cpu*2", 16, "time");
    q.course.slice_tol = 1e-6f;
    struct plan *p, *back;
    struct str a = {0};
    T_OK(plan_make(&q, &p));
    plan_print(p, &net, &a);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str b = {0};
        const char *text = str_text(&a), *from = strstr(text, "tol 9.99999997e-07");
        struct str c = {0};
        if (from) replaced(&c, text, "tol 9.99999997e-07", "tol 1e-06"), text = str_text(&c);
        replaced(&b, text, cases[i].what, cases[i].with);
        T_FAILS(plan_parse(str_text(&b), "a.plan", &q, &back), E402);
        if (!strstr(err_last()->text, cases[i].says)) fail_msg("%s: \"%s\"", cases[i].with, err_last()->text);
        str_free(&b), str_free(&c);
    }
    plan_free(p);
    str_free(&a);
}

static void wishes_of_slices(void **state) {
    (void)state;
    i32 n;
    T_OK(plan_slices("time:16", &n));
    assert_int_equal(n, 16);
    T_OK(plan_slices("time_slice", &n));
    assert_int_equal(n, -1);
    T_OK(plan_slices("data_sync:2", &n));
    assert_int_equal(n, 0);
    static const char *const bad[] = {"time:0", "time:x", "time:", "time:-3", "time:99999999"};
    for (size_t i = 0; i < COUNT(bad); i++) T_FAILS(plan_slices(bad[i], &n), E401);
    sliced_net(0);
    struct plan *p;
    static const char *const wrong[] = {"time:8", "data_sync:2", "unit_split"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct plan_request q = request("cpu*2", 16, wrong[i]);
        T_FAILS(plan_make(&q, &p), E401);
    }
    struct plan_request q = request("cpu*2", 16, "serial");
    T_OK(plan_make(&q, &p));
    assert_int_equal(p->ndevice, 1);
    plan_free(p);
}

/* Tolerances follow the precision: in bf16 h has 8 bits. */
static void tolerance_follows_precision(void **state) {
    (void)state;
    sliced_net(0);
    struct plan *p;
    struct plan_request q = request("cpu*2", 16, "time");
    T_OK(plan_make(&q, &p));
    const f32 fine = netplan(p)->course.slice_tol;
    plan_free(p);
    net.op[1].spec.precision = PREC_BF16;
    T_OK(plan_make(&q, &p));
    assert_true(netplan(p)->course.slice_tol > 100 * fine);
    plan_free(p);
}

T_MAIN(cmocka_unit_test(those_who_run_a_chain_are_together), cmocka_unit_test(rows_made_of_others_wait_for_all_of_them),
       cmocka_unit_test(a_plan_of_slices_is_read_back), cmocka_unit_test(turns_are_read_back),
       cmocka_unit_test(what_sleeps_costs_nothing),
       cmocka_unit_test(what_is_no_chain_is_refused), cmocka_unit_test(wishes_of_slices),
       cmocka_unit_test(tolerance_follows_precision))

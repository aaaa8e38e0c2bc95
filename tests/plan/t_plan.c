/* t_plan.c - plans of a toy net: goldens, edges, what plan_check refuses, the wish of --parallel, costs.
 *
 * STRETTO_UPDATE=1 writes the goldens anew: look at the difference before it is committed. */
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "step/planner.h"
#include "plan/texts.h"
#include "plan/toy.h"

static struct machine machine;
static struct net net;

static struct plan_request request(const char *text, i32 B, bool train, const char *parallel) {
    toy_net(&net);
    T_OK(machine_parse(text, &machine));
    return (struct plan_request){.net = &net, .machine = &machine, .B = B, .train = train, .nstate = 1, .parallel = parallel};
}

static struct plan *make(const char *text, i32 B, bool train, const char *parallel) {
    struct plan *p;
    struct plan_request q = request(text, B, train, parallel);
    T_OK(plan_make(&q, &p));
    return p;
}

TEST(plan_prints_as_recorded) {
    static const struct {
        const char *name, *machine, *parallel;
        i32 B;
        bool train;
    } cases[] = {
        {"serial_b5.plan", "cpu", "serial", 5, true},
        {"data_sync2_b32.plan", "cpu*2", "data_sync", 32, true},
        {"data_sync3_b64.plan", "cpu*4", "data_sync:3", 64, true},
        {"data_sync4_two_hosts_b64.plan", "host*2(cpu*2)", "data_sync", 64, true},
        {"forward2_b33.plan", "cpu*2", "data_sync:2", 33, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str s = {0};
        struct plan *p = make(cases[i].machine, cases[i].B, cases[i].train, cases[i].parallel);
        plan_print(p, &net, &s);
        golden(cases[i].name, &s);
        str_free(&s);
        plan_free(p);
    }
}

TEST(plan_tables_and_drawings_are_as_recorded) {
    struct str s = {0};
    struct plan_request q = request("host*2(cpu*4)", 64, true, "auto");
    T_OK(plan_compare(&q, &s));
    q = request("cpu", 64, true, "auto");
    T_OK(plan_compare(&q, &s));
    q = request("cpu*4", 1, true, "auto");
    T_OK(plan_compare(&q, &s));
    golden("compare.txt", &s);
    str_free(&s);
    struct plan *p = make("cpu*3 gflops=1", 64, true, "data_sync");
    plan_draw_text(p, 100, &s);
    golden("draw.txt", &s);
    str_free(&s);
    plan_free(p);
}

TEST(plan_text_comes_back_the_same) {
    static const i32 sizes[] = {1, 2, 7, 32, 33, 64, 100};
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (i32 train = 0; train < 2; train++) {
            struct str a = {0}, b = {0};
            struct plan *p = make("host*2(cpu*2)", sizes[i], train, "auto"), *back;
            plan_print(p, &net, &a);
            struct plan_request q = request("host*2(cpu*2)", sizes[i], train, "auto");
            T_OK(plan_parse(str_text(&a), "a.plan", &q, &back));
            plan_print(back, &net, &b);
            assert_string_equal(str_text(&a), str_text(&b));
            assert_int_equal(p->ndep, back->ndep);
            plan_free(p);
            plan_free(back);
            str_free(&a);
            str_free(&b);
        }
}

TEST(plan_parse_says_where_it_stopped) {
    static const struct {
        const char *old, *now, *where;
    } cases[] = {
        {"(plan", "(plane", "x.plan:1:2"},
        {"data:2", "dota:2", "x.plan:1:7"},
        {"train", "forward", "x.plan:1:14"},
        {"B 32", "B 33", "x.plan:1:22"},
        {"devices 2", "devices 3", "x.plan:1:50"},
        {"(fwd a", "(fwd aa", "x.plan:4:8"},
        {"fwd a b[0,16)", "fwd a b[0,17)", "x.plan:4:10"},
        {"fwd a b[0,16)", "fwd a b[0,99999999999)", "x.plan:4:10"},
        {"fwd a b[0,16)", "fwd a b[-8,16)", "x.plan:4:10"},
        {"@r0.cpu0", "@r0.cpu7", "x.plan:2:11"},
        {"x[0,16):r", "x[0,16):rw", "x.plan:4:71"},
        {"merge 0 1", "merge 0 9", "x.plan:22:12"},
        {"merge 0 1", "merge 1 0", "x.plan:22:41"},
        {"(fwd b ", "(fwd a ", "x.plan:5:71"},
        {"\n  (zero b[0,16)", "\n  (zap b[0,16)", "x.plan:12:4"},
        {"rw))", "rw)) more", "x.plan:26:114"},
        {"rw))", "rw)", ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str s = {0};
        struct plan *p = make("cpu*2", 32, true, "data_sync:2"), *back;
        plan_print(p, &net, &s);
        replace(&s, cases[i].old, cases[i].now);
        struct plan_request q = request("cpu*2", 32, true, "auto");
        const bool other = strchr(cases[i].now, '@') || strstr(cases[i].now, "devices"); /* machine */
        T_FAILS(plan_parse(str_text(&s), "x.plan", &q, &back), other ? E401 : E402);
        assert_true(other == (strstr(err_last()->text, "another machine") != NULL));
        if (cases[i].where[0] && strcmp(err_last()->where, cases[i].where) != 0)
            fail_msg("\"%s\": stopped at %s (%s), expected %s", cases[i].now, err_last()->where, err_last()->text,
                     cases[i].where);
        assert_null(back);
        plan_free(p);
        str_free(&s);
    }
}

/* Leave out, double or exchange whole lines: none of it may pass, since it would not be the step any more. */
TEST(plan_check_refuses_what_is_not_a_step) {
    struct str s = {0};
    struct plan *p = make("cpu*2", 32, true, "data_sync:2"), *back;
    struct plan_request q = request("cpu*2", 32, true, "auto");
    plan_print(p, &net, &s);
    const char *line[64];
    size_t len[64];
    i32 n = 0;
    for (const char *at = str_text(&s); *at; at += len[n++]) {
        line[n] = at;
        len[n] = strcspn(at, "\n") + 1;
    }
    i32 moved = 0;
    for (i32 kill = 1; kill < n - 1; kill++)
        for (i32 mode = 0; mode < 3; mode++) { /* 0 leave out, 1 twice, 2 as the last but one */
            struct str t = {0};
            for (i32 i = 0; i < n; i++) {
                if (mode == 2 && i == n - 1) str_addn(&t, line[kill], len[kill]);
                if (i != kill || mode == 1) str_addn(&t, line[i], len[i]);
                if (i == kill && mode == 1) str_addn(&t, line[i], len[i]);
            }
            err e = plan_parse(str_text(&t), "x", &q, &back);
            if (mode == 2 && e == 0)
                moved++;
            else
                assert_int_equal(e, -E402);
            if (e == 0) plan_free(back);
            str_free(&t);
        }
    assert_int_equal(moved, 3); /* the two losses are read by the update only, and the norm was the last but one before */
    str_free(&s);
    plan_free(p);
}

/* A plan by hand: three tasks on one buffer. */
TEST(deps_follow_from_uses_and_ranges) {
    struct pbuf buf[1] = {{.kind = PBUF_ACT, .bytes = 400, .extent = 100}};
    struct use use[6] = {
        {.mode = USE_W, .lo = 0, .hi = 50},   /* 0 */
        {.mode = USE_W, .lo = 50, .hi = 100}, /* 1 */
        {.mode = USE_R, .lo = 40, .hi = 60},  /* 2: after 0 and 1 */
        {.mode = USE_R, .lo = 0, .hi = 10},   /* 3: after 0 */
        {.mode = USE_RW, .lo = 0, .hi = 50},  /* 4: after 2 and 3 (they read), and 0 */
        {.mode = USE_R, .lo = 60, .hi = 99}   /* 5: after 1 */
    };
    struct task task[6] = {0};
    for (u32 i = 0; i < 6; i++) task[i].use0 = i, task[i].nuse = 1;
    struct plan p = {.ntask = 6, .nuse = 6, .nbuf = 1, .task = task, .use = use, .buf = buf};
    T_OK(plan_deps(&p));
    static const u32 want[6] = {0, 0, 2, 1, 3, 1};
    for (u32 i = 0; i < 6; i++) assert_int_equal(task[i].ndep, want[i]);
    assert_int_equal(p.dep[task[3].dep0], 0);
    arena_free(&p.arena);
}

TEST(deps_hide_what_was_overwritten) {
    struct pbuf buf[1] = {{.kind = PBUF_GRAD, .bytes = 400, .extent = 100}};
    struct use use[4] = {{.mode = USE_W, .lo = 0, .hi = 100},
                         {.mode = USE_SUM, .lo = 20, .hi = 30},
                         {.mode = USE_SUM, .lo = 20, .hi = 30}, /* same vector: keeps its order */
                         {.mode = USE_R, .lo = 25, .hi = 26}};
    struct task task[4] = {0};
    for (u32 i = 0; i < 4; i++) task[i].use0 = i, task[i].nuse = 1;
    struct plan p = {.ntask = 4, .nuse = 4, .nbuf = 1, .task = task, .use = use, .buf = buf};
    T_OK(plan_deps(&p));
    assert_int_equal(p.ndep, 3);
    assert_int_equal(p.dep[task[3].dep0], 2);
    arena_free(&p.arena);
}

TEST(plan_wish_is_understood_or_refused) {
    static const char *const bad[] = {"dat_sync", "data_sync:0", "data_sync:x", "data_sync:9", "serial:2", "auto:2",
                                      "",         "data_sync:5"};
    struct plan *p;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct plan_request q = request("cpu*8", 32, true, bad[i]);
        T_FAILS(plan_make(&q, &p), E401);
        assert_null(p);
    }
    struct plan_request q = request("cpu*8", 32, true, "data_sink");
    T_FAILS(plan_make(&q, &p), E401);
    assert_non_null(strstr(err_last()->text, "did you mean \"data\""));
    q = request("cpu*8", 32, true, "data_sync:5");
    T_FAILS(plan_make(&q, &p), E401);
    assert_non_null(strstr(err_last()->text, "at most 4 devices"));
    q.B = 0;
    q.parallel = "serial";
    T_FAILS(plan_make(&q, &p), E401);
    p = make("cpu*8", 32, true, "data_sync");
    assert_string_equal(p->strategy, "data:4");
    plan_free(p);
    p = make("cpu*8", 3, false, "data_sync:8"); /* forward: as many as have a row */
    assert_int_equal(p->ndevice, 3);
    plan_free(p);
    p = make("cpu*1", 32, true, "data_sync:1");
    assert_int_equal(p->ndevice, 1);
    plan_free(p);
}

TEST(plan_auto_takes_the_cheapest) {
    struct plan *p = make("cpu*4", 1, true, "auto");
    assert_string_equal(p->strategy, "serial");
    plan_free(p);
    p = make("cpu*4 gflops=0.05", 64, true, "auto"); /* slow devices: sharing pays */
    assert_string_equal(p->strategy, "data:4");
    plan_free(p);
    p = make("cpu*4 gflops=100000", 2, true, "auto"); /* so fast that waking a worker costs more than the step */
    assert_string_equal(p->strategy, "serial");
    plan_free(p);
}

TEST(plan_cost_grows_with_work_and_falls_with_devices) {
    f64 last = 0;
    for (i32 B = 32; B <= 512; B *= 2) {
        struct plan *p = make("cpu gflops=1", B, true, "serial");
        assert_true(p->predicted > last);
        last = p->predicted;
        plan_free(p);
    }
    for (i32 n = 1; n <= 8; n *= 2) {
        char wish[32];
        snprintf(wish, sizeof wish, "data_sync:%d", n);
        struct plan *p = make("cpu*8 gflops=1", 512, true, wish);
        assert_true(p->predicted < last * 1.01);
        assert_true(n == 1 ? p->exchange_bytes == 0 : p->exchange_bytes > 0);
        last = p->predicted;
        plan_free(p);
    }
    struct plan *near = make("cpu*4", 64, true, "data_sync:4"), *far = make("host*4(cpu) link_us=50", 64, true, "data_sync:4");
    assert_true(far->predicted > near->predicted + 90e-6);
    plan_free(near);
    plan_free(far);
}

TEST(plan_schedule_respects_edges_and_devices) {
    struct plan *p = make("cpu*3", 64, true, "data_sync");
    struct plan_span span[200];
    f64 end = plan_schedule(p, span);
    assert_true(end == p->predicted);
    for (u32 i = 0; i < p->ntask; i++) {
        for (u32 k = 0; k < p->task[i].ndep; k++) assert_true(span[p->dep[p->task[i].dep0 + k]].t1 <= span[i].t0);
        for (u32 j = 0; j < i; j++)
            if (p->task[j].device == p->task[i].device) assert_true(span[j].t1 <= span[i].t0);
    }
    plan_free(p);
}

/* Slower devices get fewer rows. */
TEST(data_sync_cuts_by_weight) {
    struct plan_request q = request("cpu*2", 64, true, "data_sync");
    machine.device[1].weight = 0.34;
    struct plan *p;
    T_OK(plan_make(&q, &p));
    i32 rows[2] = {0};
    for (u32 i = 0; i < p->ntask; i++)
        if (p->task[i].kind == TASK_FWD && p->task[i].op == 0) rows[p->task[i].device] += p->task[i].box.b1 - p->task[i].box.b0;
    assert_int_equal(rows[0], 48);
    assert_int_equal(rows[1], 16);
    plan_free(p);
}

/* Sizes that would wrap are refused before anything is multiplied or asked for. */
TEST(plan_refuses_sizes_that_cannot_be) {
    static const struct {
        i32 B, T, F;
        const char *why; /* NULL = planned, however large */
    } cases[] = {
        {INT32_MAX, 1, 1, "at most 1073741824"},
        {(1 << 30) + 1, 1, 1, "at most 1073741824"},
        {1 << 30, 3, 1, "2147483647 together"},
        {1 << 20, 1 << 20, 1, "2147483647 together"},
        {1 << 20, 1 << 10, 1 << 20, "would hold"},
        {INT32_MAX / (1 << 20), 1 << 20, 1 << 20, "would hold"},
        {1 << 20, 1 << 10, 16, NULL},
        {1 << 30, 1, 32, NULL},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct plan *p = NULL;
        struct plan_request q = request("cpu*2", cases[i].B, true, "auto");
        for (i32 k = 0; k < net.nbuf; k++) net.buf[k].T = cases[i].T, net.buf[k].F = cases[i].F;
        err e = plan_make(&q, &p);
        if (!cases[i].why) {
            T_OK(e);
            assert_true(p->peak_bytes > (i64)cases[i].B * cases[i].T * cases[i].F * 4);
        } else {
            assert_int_equal(e, -E601);
            if (!strstr(err_last()->text, cases[i].why)) fail_msg("%s", err_last()->text);
        }
        plan_free(p);
    }
    struct plan *p = NULL;
    struct plan_request q = request("cpu*2", 1, true, "auto");
    net.ntheta = ((i64)1 << 42) + 1;
    T_FAILS(plan_make(&q, &p), E601);
    assert_null(p);
}

TEST(plan_survives_every_refused_allocation) {
    i64 live = mem_stats().live;
    struct str s = {0};
    struct plan *p = make("cpu*2", 32, true, "data_sync:2");
    plan_print(p, &net, &s);
    plan_free(p);
    struct plan_request q = request("cpu*2", 32, true, "auto");
    for (i64 nth = 1;; nth++) {
        mem_fail_nth(nth);
        err e = plan_parse(str_text(&s), "x", &q, &p);
        mem_fail_nth(0);
        if (e == 0) break;
        assert_int_equal(e, -E601);
        assert_true(nth < 500);
    }
    plan_free(p);
    str_free(&s);
    assert_int_equal(mem_stats().live, live);
}

T_MAIN(cmocka_unit_test(plan_prints_as_recorded), cmocka_unit_test(plan_tables_and_drawings_are_as_recorded),
       cmocka_unit_test(plan_text_comes_back_the_same), cmocka_unit_test(plan_parse_says_where_it_stopped),
       cmocka_unit_test(plan_check_refuses_what_is_not_a_step), cmocka_unit_test(deps_follow_from_uses_and_ranges),
       cmocka_unit_test(deps_hide_what_was_overwritten), cmocka_unit_test(plan_wish_is_understood_or_refused),
       cmocka_unit_test(plan_auto_takes_the_cheapest), cmocka_unit_test(plan_cost_grows_with_work_and_falls_with_devices),
       cmocka_unit_test(plan_schedule_respects_edges_and_devices), cmocka_unit_test(data_sync_cuts_by_weight),
       cmocka_unit_test(plan_refuses_sizes_that_cannot_be), cmocka_unit_test(plan_survives_every_refused_allocation))

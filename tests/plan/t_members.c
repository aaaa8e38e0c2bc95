/* t_members.c - plans with teams: their text, edges, what plan_check refuses, when auto takes one.
 *
 * STRETTO_UPDATE=1 writes the goldens anew: look at the difference before it is committed. */
#define _GNU_SOURCE
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
    toy_team_net(&net);
    T_OK(machine_parse(text, &machine));
    return (struct plan_request){.net = &net, .machine = &machine, .B = B, .train = train, .nstate = 1, .parallel = parallel};
}

static struct plan *make(const char *text, i32 B, bool train, const char *parallel) {
    struct plan *p;
    struct plan_request q = request(text, B, train, parallel);
    T_OK(plan_make(&q, &p));
    return p;
}

TEST(team_prints_compares_and_draws_as_recorded) {
    struct str s = {0};
    struct plan *p = make("cpu*2", 1, true, "unit:2");
    plan_print(p, &net, &s);
    golden("unit_split2_b1.plan", &s);
    str_free(&s);
    plan_draw_text(p, 100, &s);
    struct plan_request q = request("host*2(cpu*3) gflops=0.05", 1, true, "auto");
    T_OK(plan_compare(&q, &s));
    q.B = 64;
    T_OK(plan_compare(&q, &s));
    golden("unit_split.txt", &s);
    str_free(&s);
    plan_free(p);
}

TEST(team_text_comes_back_the_same) {
    static const struct {
        i32 B;
        bool train;
        const char *wish;
    } cases[] = {{1, true, "unit_split:3"}, {1, false, "unit_split:2"}, {5, true, "unit_split"}, {64, true, "unit_split:2"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str a = {0}, b = {0};
        struct plan *p = make("cpu*3", cases[i].B, cases[i].train, cases[i].wish), *back;
        if (i & 1) plan_set_how(p, &net, 0, CELL_AHEAD);
        plan_set_how(p, &net, 1, CELL_FOLD);
        plan_set_how(p, &net, 2, CELL_FOLD); /* a layer that has one way only */
        plan_print(p, &net, &a);
        assert_true((strstr(str_text(&a), "t[0,3) how ahead @r0.cpu0 ") != NULL) == (i & 1));
        assert_null(strstr(str_text(&a), "(bwd b b[0,1) t[0,3) how"));
        struct plan_request q = request("cpu*3", cases[i].B, cases[i].train, "auto");
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

TEST(team_texts_that_are_wrong_are_refused) {
    static const struct {
        const char *old, *now, *what;
    } cases[] = {
        {"unit 0/2", "unit 2/2", "a member as 0/2"},
        {"unit 0/2", "unit 0/1", "a member as 0/2"},
        {"unit 0/2", "unit -1/2", "a member as 0/2"},
        {"unit 0/2", "unit 0/99", "a member as 0/2"},
        {"unit 0/2", "unit 0", "a member as 0/2"},
        {"unit 0/2", "unit /", "a member as 0/2"},
        {"unit 0/2", "unit 0/3", "missing"},
        {"unit 1/2", "unit 0/2", "missing"},
        {"unit 0/2 ", "", "must follow each other"},
        {"unit 1/2 t[0,3) @r0.cpu1", "unit 1/2 t[0,3) @r0.cpu0", "on one device"},
        {"t[0,3) @", "t[0,3) how @", "fold or ahead"},
        {"t[0,3) @", "t[0,3) how sideways @", "fold or ahead"},
        {"(fwd c b[0,1) t[0,3)", "(fwd c b[0,1) t[0,3) how fold", "in one way only"},
        {"(bwd a b[0,1) unit 0/2 t[0,3)", "(bwd a b[0,1) unit 0/2 t[0,3) how fold", "in one way only"},
        {"fwd c b[0,1)", "fwd c b[0,1) unit 0/2", "does not support tensor parallelism"},
        {"fwd b b[0,1) unit 1/2", "fwd a b[0,1) unit 1/2", "is expected here"}, /* the uses of the text are b's */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str s = {0};
        struct plan *p = make("cpu*2", 1, true, "unit_split:2"), *back;
        plan_print(p, &net, &s);
        replace(&s, cases[i].old, cases[i].now);
        struct plan_request q = request("cpu*2", 1, true, "auto");
        T_FAILS(plan_parse(str_text(&s), "x.plan", &q, &back), E402);
        if (!strstr(err_last()->text, cases[i].what)) fail_msg("\"%s\": the message is %s", cases[i].now, err_last()->text);
        plan_free(p);
        str_free(&s);
    }
}

/* Leave out, double or move whole lines of a plan of teams: only what keeps the step passes. */
TEST(team_check_refuses_what_is_not_a_step) {
    struct str s = {0};
    struct plan *p = make("cpu*3", 2, true, "unit_split:3"), *back;
    struct plan_request q = request("cpu*3", 2, true, "auto");
    plan_print(p, &net, &s);
    const char *line[64];
    size_t len[64];
    i32 n = 0, moved = 0;
    for (const char *at = str_text(&s); *at; at += len[n++]) {
        line[n] = at;
        len[n] = strcspn(at, "\n") + 1;
    }
    for (i32 kill = 1; kill < n - 1; kill++)
        for (i32 mode = 0; mode < 3; mode++) { /* 0 leave out, 1 twice, 2 as the last but one */
            struct str t = {0};
            for (i32 i = 0; i < n; i++) {
                if (mode == 2 && i == n - 1) str_addn(&t, line[kill], len[kill]);
                if (i != kill || mode == 1) str_addn(&t, line[i], len[i]);
                if (i == kill && mode == 1) str_addn(&t, line[i], len[i]);
            }
            err e = plan_parse(str_text(&t), "x", &q, &back);
            bool member = memmem(line[kill], len[kill], " unit ", 6) != NULL;
            if (mode == 2 && e == 0 && !member)
                moved++;
            else
                assert_int_equal(e, -E402);
            if (e == 0) plan_free(back);
            str_free(&t);
        }
    assert_int_equal(moved, 2); /* updates of different ranges, which commute */
    str_free(&s);
    plan_free(p);
}

/* A plan by hand: a team of two between a writer and a reader of one buffer. */
TEST(deps_leave_a_team_alone_and_wait_for_all_of_it) {
    struct pbuf buf[1] = {{.kind = PBUF_ACT, .bytes = 400, .extent = 100}};
    struct use use[6] = {
        {.mode = USE_W, .hi = 100},  /* 0 */
        {.mode = USE_R, .hi = 100},  /* 1 reads 0 */
        {.mode = USE_RW, .hi = 100}, /* 2 member 0: after 0 and 1 */
        {.mode = USE_RW, .hi = 100}, /* 3 member 1: the same, not after 2 */
        {.mode = USE_RW, .hi = 100}, /* 4 member 0 of another team: after 2 and 3 */
        {.mode = USE_RW, .hi = 100}, /* 5 */
    };
    struct task task[7] = {0};
    for (u32 i = 0; i < 6; i++) task[i].use0 = i, task[i].nuse = 1;
    for (u32 i = 2; i < 6; i++) task[i].member = (u16)(i % 2), task[i].members = 2;
    struct plan p = {.ntask = 6, .nuse = 6, .nbuf = 1, .task = task, .use = use, .buf = buf};
    T_OK(plan_deps(&p));
    static const u32 want[6] = {0, 1, 2, 2, 2, 2};
    for (u32 i = 0; i < 6; i++) assert_int_equal(task[i].ndep, want[i]);
    for (u32 i = 4; i < 6; i++)
        for (u32 k = 0; k < 2; k++) assert_in_range(p.dep[task[i].dep0 + k], 2, 3);
    assert_int_equal(p.dep[task[3].dep0] + p.dep[task[3].dep0 + 1], 1);
    arena_free(&p.arena);
}

TEST(team_wish_is_understood_or_refused) {
    static const struct {
        const char *machine, *wish, *why;
        i32 B;
    } cases[] = {
        {"cpu*8", "unit_split:4", "3 panels of 16 hidden units, so at most 3 devices", 1},
        {"cpu*2", "unit_split:3", "3 devices are needed, the machine has 2", 1},
        {"cpu", "unit_split", "the machine has one device", 1},
        {"host*2(cpu)", "unit_split", "no two devices share memory", 1},
        {"host*2(cpu*2)", "unit_split:3", "3 devices with shared memory are needed, a rank has at most 2", 1},
        {"cpu*32", "unit_split:17", "a layer is divided among at most 16 devices", 1},
    };
    struct plan *p;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct plan_request q = request(cases[i].machine, cases[i].B, true, cases[i].wish);
        T_FAILS(plan_make(&q, &p), E401);
        if (!strstr(err_last()->text, cases[i].why)) fail_msg("%s: %s", cases[i].wish, err_last()->text);
    }
    p = make("cpu*8", 1, true, "unit_split"); /* as many as have a panel */
    assert_string_equal(p->strategy, "unit:3");
    plan_free(p);
    p = make("cpu*8", 1, false, "unit_split:8"); /* forward: the wish was about training */
    assert_int_equal(p->ndevice, 3);
    plan_free(p);
    p = make("cpu*8", 1, true, "unit_split:1");
    assert_int_equal(p->ndevice, 1);
    plan_free(p);
}

TEST(team_is_not_for_bf16) {
    struct plan *p;
    struct plan_request q = request("cpu*2", 1, true, "unit_split");
    net.op[0].spec.precision = PREC_BF16;
    T_OK(plan_make(&q, &p)); /* the other layer still is shared */
    for (u32 i = 0; i < p->ntask; i++) assert_true(p->task[i].members == 1 || p->task[i].op == 1);
    plan_free(p);
    net.op[1].spec.precision = PREC_BF16;
    T_FAILS(plan_make(&q, &p), E401);
    assert_non_null(strstr(err_last()->text, "no layer"));
}

TEST(team_is_taken_by_auto_when_it_pays) {
    struct plan *p = make("cpu*4 gflops=0.05", 1, true, "auto"); /* slow devices: an exchange costs little against a step */
    assert_string_equal(p->strategy, "unit:3");
    plan_free(p);
    p = make("cpu*4 gflops=100000", 1, true, "auto"); /* a step is over sooner than flags are seen */
    assert_string_equal(p->strategy, "serial");
    plan_free(p);
    p = make("cpu*4 gflops=0.05", 64, true, "auto"); /* rows are shared out where there are enough */
    assert_string_equal(p->strategy, "data:4");
    plan_free(p);
    struct plan_request q = request("cpu*3 gflops=1", 1, true, "auto");
    machine.ncore = 2; /* three workers on two cores take turns */
    T_OK(plan_make(&q, &p));
    assert_string_equal(p->strategy, "unit:2");
    plan_free(p);
}

TEST(team_schedule_runs_members_together) {
    struct plan *p = make("cpu*3 gflops=0.05", 1, true, "unit_split");
    struct plan_span span[200];
    f64 end = plan_schedule(p, span);
    i32 members = 0;
    assert_true(end == p->predicted && p->exchange_bytes > 0);
    for (u32 i = 0; i < p->ntask; i++) {
        members += p->task[i].members > 1;
        if (p->task[i].member > 0) assert_true(span[i].t0 == span[i - 1].t0 && span[i].t1 == span[i - 1].t1);
        for (u32 k = 0; k < p->task[i].ndep; k++) assert_true(span[p->dep[p->task[i].dep0 + k]].t1 <= span[i].t0);
    }
    assert_int_equal(members, 12);
    plan_free(p);
}

T_MAIN(cmocka_unit_test(team_prints_compares_and_draws_as_recorded), cmocka_unit_test(team_text_comes_back_the_same),
       cmocka_unit_test(team_texts_that_are_wrong_are_refused), cmocka_unit_test(team_check_refuses_what_is_not_a_step),
       cmocka_unit_test(deps_leave_a_team_alone_and_wait_for_all_of_it), cmocka_unit_test(team_wish_is_understood_or_refused),
       cmocka_unit_test(team_is_not_for_bf16), cmocka_unit_test(team_is_taken_by_auto_when_it_pays),
       cmocka_unit_test(team_schedule_runs_members_together))

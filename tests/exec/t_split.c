/* t_split.c - texts of plans whose ranks share the units of a layer, edited: what is no step is refused, and what is accepted has
 * the bits of serial. */
#define _GNU_SOURCE
#include "t.h"

#include <stdlib.h>

#include "exec/rig.h"
#include "plan/texts.h"

enum { B = 3, T = 3 };
static const char text_of_machine[] = "host*2(cpu)";
static struct net net;
static struct machine machine;

static struct plan_request request(const char *parallel) {
    T_OK(machine_parse(text_of_machine, &machine));
    return (struct plan_request){.net = &net, .machine = &machine, .B = B, .train = true, .nstate = 2, .parallel = parallel};
}

/* Some steps in one process, which has the devices of both ranks; plan: by which, and freed with the rig. */
static void train(struct rig *r, struct plan *plan) {
    *r = (struct rig){.net = &net, .machine = text_of_machine, .parallel = plan ? "unit:2" : "serial", .B = B, .threads = 2,
                      .plan = plan};
    rig_live(r);
    if (r->e < 0) fail_msg("%s: %s", r->parallel, r->why.text);
}

static void split_text(struct str *out) {
    struct plan *p;
    struct plan_request q = request("unit:2");
    T_OK(plan_make(&q, &p));
    plan_print(p, &net, out);
    plan_free(p);
}

TEST(split_texts_that_are_wrong_are_refused) {
    static const struct {
        const char *old, *now, *what;
    } cases[] = {
        {"exact yes split", "exact yes", "do not share the units"},
        {"split 0/2 t[0,1)", "split 2/2 t[0,1)", "a member as 0/2"},
        {"split 0/2 t[0,1)", "split 0/3 t[0,1)", "missing"},
        {"split 0/2 t[0,1)", "unit 0/2 t[0,1)", "is expected here"},
        {"split 0/2 t[0,1)", "split 0/2 t[0,2)", "is expected here"},
        {"split 1/2 t[0,1) @r1.cpu0", "split 1/2 t[0,1) @r0.cpu0", "on one device"},
        {"gather lstm.0 b[0,3) t[0,1)", "gather lstm.0 b[0,3) t[0,2)", "is expected here"},
        {"gather lstm.0", "gather head", "do not share the units of this op"},
        {"\n  (prep", "\n  (gather head b[0,3) t[0,3) @r0.cpu0)\n  (prep", "do not share the units of this op"},
        {"\n  (prep", "\n  (gather lstm.0 b[0,3) t[0,1) @r0.cpu0)\n  (prep", "is done twice"},
        {"\n  (prep", "\n  (fwd lstm.0 b[0,3) split 1/2 t[0,1) @r1.cpu0)\n  (prep", "must follow each other"},
        {"\n  (prep", "\n  (dx head b[0,3) t[0,3) @r0.cpu0)\n  (prep", "do not share the units of this op"},
        {"(dw lstm.1 b[0,3) split 0/2", "(dw lstm.1 b[0,3)", "not made in parts"},
        {"(dw lstm.1 b[0,3) split 0/2", "(dw lstm.1 b[0,3) split 1/2", "is expected here"},
        {"(dx lstm.1 b[0,3) split 0/2 t[0,3)", "(dx lstm.1 b[0,3) t[0,3)", "is expected here"},
    };
    real_stack(&net, CELL_LSTM, 2, T, 34, true);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str s = {0};
        struct plan *back;
        struct plan_request q = request("auto");
        split_text(&s);
        replace(&s, cases[i].old, cases[i].now);
        const err e = plan_parse(str_text(&s), "x.plan", &q, &back);
        if (e != -E402) fail_msg("\"%s\" gives %d", cases[i].now, e);
        if (!strstr(err_last()->text, cases[i].what)) fail_msg("\"%s\": the message is %s", cases[i].now, err_last()->text);
        str_free(&s);
    }
}

/* Members that change places in one task only: each would look for what the other one keeps. */
TEST(members_of_a_split_op_stay_where_they_are) {
    struct str s = {0};
    struct plan *back;
    real_stack(&net, CELL_GRU, 2, T, 34, false);
    struct plan_request q = request("auto");
    split_text(&s);
    replace(&s, "(bwd lstm.0 b[0,3) split 0/2 t[2,3) @r0.cpu0", "(bwd lstm.0 b[0,3) split 0/2 t[2,3) @r1.cpu0");
    replace(&s, "(bwd lstm.0 b[0,3) split 1/2 t[2,3) @r1.cpu0", "(bwd lstm.0 b[0,3) split 1/2 t[2,3) @r0.cpu0");
    T_FAILS(plan_parse(str_text(&s), "x.plan", &q, &back), E402);
    assert_non_null(strstr(err_last()->text, "members of an op must be on the same devices in all its tasks"));
    str_free(&s);
}

/* Leave out, double or move whole lines. */
TEST(split_plans_are_steps_or_are_refused) {
    struct str s = {0};
    struct plan *back;
    const char *line[256];
    char name[96];
    size_t len[256];
    i32 n = 0, moved = 0;
    static struct rig serial, r;
    real_stack(&net, CELL_LSTM, 2, T, 34, true);
    train(&serial, NULL);
    struct plan_request q = request("auto");
    split_text(&s);
    for (const char *at = str_text(&s); *at; at += len[n++]) {
        assert_true(n < (i32)COUNT(line));
        line[n] = at;
        len[n] = strcspn(at, "\n") + 1;
    }
    for (i32 k = 1; k < n - 1; k++)
        for (i32 mode = 0; mode < 4; mode++) { /* 0 leave out, 1 twice, 2 as the last but one, 3 after the next */
            struct str t = {0};
            for (i32 i = 0; i < n; i++) {
                if (mode == 2 && i == n - 1) str_addn(&t, line[k], len[k]);
                if (i != k || mode == 1) str_addn(&t, line[i], len[i]);
                if ((i == k && mode == 1) || (i == k + 1 && mode == 3)) str_addn(&t, line[k], len[k]);
            }
            const err e = plan_parse(str_text(&t), "x", &q, &back);
            if (e != 0 && e != -E402) fail_msg("mode %d of line %d gives %d", mode, k, e);
            if (e == 0 && mode < 2) fail_msg("mode %d of line %d is accepted: %.80s", mode, k, line[k]);
            if (e == 0) {
                snprintf(name, sizeof name, "mode %d of line %d, %.60s", mode, k, line[k]);
                train(&r, back);
                r.draw = name;
                rig_compare(&r, &serial);
                rig_free(&r);
                moved++;
            }
            str_free(&t);
        }
    assert_true(moved > 5);
    rig_free(&serial);
    str_free(&s);
}

T_MAIN(cmocka_unit_test(split_texts_that_are_wrong_are_refused), cmocka_unit_test(members_of_a_split_op_stay_where_they_are),
       cmocka_unit_test(split_plans_are_steps_or_are_refused))

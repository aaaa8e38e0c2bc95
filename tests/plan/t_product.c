/* t_product.c - expressions of cuts: what is understood, what is refused with which part and which way out, texts of their plans,
 * which devices get what, when auto and compare take one. */
#define _GNU_SOURCE
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/nets.h"
#include "plan/request.h"
#include "plan/texts.h"
#include "step/planner.h"

/* Three cells of 41 units on top of each other: three panels, three layers for a wave. */
static void stack_of(i32 T, enum cell_kind cell) {
    net_init(&net);
    i32 x = nets_input(&net, "x", T, 3, false);
    for (i32 k = 0; k < 3; k++) {
        char name[24];
        snprintf(name, sizeof name, "lstm.%d", k);
        struct op_spec c = net_spec("recurrent", name, x);
        c.hidden = 41;
        c.cell = cell;
        x = net.op[nets_add(&net, &c)].out;
    }
    nets_loss(&net, "loss_mse", nets_dense(&net, "head", x, 2, ACT_NONE), T, 2, false);
    T_OK(net_check(&net));
}

static void stack(i32 T) { stack_of(T, CELL_LSTM); }

TEST(product_that_does_not_fit_names_its_part_and_the_nearest_that_does) {
    static const struct {
        const char *machine, *parallel, *what, *fix;
        i32 B;
    } cases[] = {
        {"cpu*8", "data:4*unit:2", "data:4*unit:2 does not fit: data:4: a batch of 3 gives 3 micro-batches", "data:3*unit:2", 3},
        {"cpu*4", "data:4*unit:2", "data:4*unit:2 does not fit: unit:2: 8 devices are needed, the machine has 4", "data:4", 8},
        {"cpu*8", "data:2*unit:4", "unit:4: the widest layer has 3 panels of 16 hidden units", "data:2*unit:3", 4},
        {"cpu*8", "wave:4*data:2", "wave:4: the model has 3 consecutive layers", "wave:3*data:2", 4},
        {"cpu*8", "data:2*time:8", "time:8: this network has no time slices", "data:2", 4},
        {"cpu*8", "time:8*unit:2", "time:8: this network has no time slices", "unit:2", 4},
        {"host*2(cpu*3)", "data:3*unit:2", "unit:2: 3 groups of 2 devices with shared memory are needed, the machine has 2",
         "data:3", 4},
        {"cpu*8", "pipeline:5", "pipeline:5 does not fit: the model has 4 layers with weights", "pipeline:4", 8},
        {"host*2(cpu)", "pipeline:4", "4 devices are needed, the machine has 2", "pipeline:2", 8},
        {"cpu*4", "pipeline:2", "a batch of 1 gives one micro-batch", "auto", 1},
        {"cpu*8", "wave:2*pipeline:2", "pipeline:2: the cut wave divides the layers already", "wave:2", 8},
        {"cpu*8", "pipeline:2*wave:2", "wave:2: the cut pipeline divides the layers already", "pipeline:2", 8},
        {"cpu*2", "data*unit", "unit: the other cuts use all 2 devices", "data", 8},
        {"cpu*8", "data:9", "data:9 does not fit: 9 devices are needed, the machine has 8", "data:4", 4},
        {"cpu*8", "data:2*data:2", "the cut data is used twice", "data", 8},
        {"cpu*8", "data:2*unit:2*data_sync:3", "the cut data is used twice", "data*unit:2", 8},
        {"cpu*8", "data:2*dat:2", "\"data:2*dat:2\": unknown strategy \"dat\"", "data:2*data:2", 8},
        {"cpu*8", "data:2*ring:2", "unknown strategy \"ring\" (known: auto, serial, data", "auto", 8},
        {"cpu*8", "data:2*", "a cut is missing after a *", "auto", 8},
        {"cpu*8", "*data:2", "a cut is missing before the first *", "auto", 8},
        {"cpu*8", "data:2**unit:2", "a cut is missing after a *", "auto", 8},
        {"cpu*8", "data:2*unit:x", "\"unit:x\": a number of devices from 1 to 16384", "data:2*unit", 8},
        {"cpu*8", "data:2*time:0", "\"time:0\": a number of time slices from 1 to 65536", "data:2*time", 8},
        {"cpu*8", "serial*data:2", "serial cannot be combined with a cut", "serial", 8},
        {"cpu*8", "data:2*auto", "auto cannot be combined with a cut", "auto", 8},
    };
    stack(40);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char fix[96];
        struct plan *p;
        struct plan_request q = request(cases[i].machine, cases[i].B, cases[i].parallel);
        T_FAILS(plan_make(&q, &p), E401);
        snprintf(fix, sizeof fix, "--parallel %s", cases[i].fix);
        if (!strstr(err_last()->text, cases[i].what)) fail_msg("%s: the message is %s", cases[i].parallel, err_last()->text);
        if (strcmp(err_last()->fix, fix) != 0) fail_msg("%s: the way out is %s", cases[i].parallel, err_last()->fix);
    }
}

/* Where ranks can share the units of a layer, a team may be of several; in other cells a team is of one rank. */
TEST(team_is_of_several_ranks_only_where_its_layers_can_be_split) {
    static const struct {
        const char *machine, *parallel, *what;
        i32 B;
    } cases[] = {{"host*4(cpu*1)", "data:2*unit:2", "unit:2: no two devices share memory", 4},
                 {"host*4(cpu*3)", "unit:2*data:4", "data:4: 8 devices with shared memory are needed, a rank has at most 3", 4}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct plan_request q = request(cases[i].machine, cases[i].B, cases[i].parallel);
        struct plan *p;
        stack(40);
        T_OK(plan_make(&q, &p));
        assert_string_equal(p->strategy, cases[i].parallel);
        assert_true(p->exact);
        plan_free(p);
        stack_of(40, (enum cell_kind)CELL_AT_minlstm);
        T_FAILS(plan_make(&q, &p), E401);
        if (!strstr(err_last()->text, cases[i].what)) fail_msg("%s: the message is %s", cases[i].parallel, err_last()->text);
    }
}

/* A decoder multiplies by the weights of its encoder, so one stage has both: no device of a stage without work. */
TEST(pipeline_counts_layers_that_share_weights_once) {
    const struct shape s = {.T = 8, .I = 16, .H = 16, .steps = 2, .w = 3};
    struct plan *p;
    bool works[8] = {0};
    nets_long(&net, s, CELL_LSTM, "loss_mse", 0);
    struct plan_request q = request("cpu*8", 64, "pipeline:4");
    T_FAILS(plan_make(&q, &p), E401);
    assert_non_null(strstr(err_last()->text, "the model has 3 layers with weights of their own, so at most 3 stages have work"));
    assert_string_equal(err_last()->fix, "--parallel pipeline:3");
    p = make("cpu*8", 64, "pipeline");
    assert_string_equal(p->strategy, "pipeline:3");
    assert_int_equal(p->ndevice, 3);
    for (u32 i = 0; i < p->ntask; i++) works[p->task[i].device] |= p->task[i].kind == TASK_FWD;
    assert_true(works[0] && works[1] && works[2]);
    plan_free(p);
}

TEST(too_many_micro_batches_name_the_most_that_there_are) {
    struct plan *p;
    stack(40);
    struct plan_request q = request("cpu*4", 64, "pipeline:2");
    q.microbatches = 100;
    T_FAILS(plan_make(&q, &p), E401);
    assert_string_equal(err_last()->fix, "--micro-batches 8   or   a larger --grains");
    q.microbatches = 8;
    T_OK(plan_make(&q, &p));
    plan_free(p);
}

TEST(stage_that_does_not_fit_is_named_with_what_is_short) {
    struct plan *p;
    stack(40);
    struct plan_request q = request("cpu*4 memory=300000", 64, "pipeline:2");
    T_FAILS(plan_make(&q, &p), E601);
    assert_non_null(strstr(err_last()->text, "pipeline:2 does not fit: device r0.cpu0 (lstm.0 .. "));
    assert_non_null(strstr(err_last()->text, "MiB too little"));
}

/* Numbers of plans and tasks bound the time of the search, which bench/placement measures: about a second here. */
TEST(auto_plans_for_ten_thousand_devices) {
    stack(40);
    struct plan *p = make("host*1250(cpu*8)", 1024, "auto");
    assert_true(netplan(p)->tried > 50 && netplan(p)->tried < 1000 && netplan(p)->nchoice == PLAN_CHOICES);
    assert_true(p->ndevice >= 16 && p->ntask < 20000);
    plan_free(p);
}

/* What is proposed is a plan. */
TEST(the_nearest_product_is_one_that_fits) {
    static const char *const parallel[] = {"data:9*unit:5", "wave:7*unit:7*data:7", "unit:16*wave:2", "data:1000*wave:3",
                                           "unit:9*data"};
    static const char *const machines[] = {"cpu*8", "cpu*3", "host*2(cpu*3)", "host*3(cpu*1)", "cpu"};
    stack(40);
    for (size_t i = 0; i < COUNT(parallel); i++)
        for (size_t k = 0; k < COUNT(machines); k++) {
            struct plan *p;
            char fix[96];
            struct plan_request q = request(machines[k], 5, parallel[i]);
            T_FAILS(plan_make(&q, &p), E401);
            snprintf(fix, sizeof fix, "%s", err_last()->fix + strlen("--parallel "));
            q.parallel = fix;
            if (plan_make(&q, &p) < 0) fail_msg("%s on %s: %s does not fit either", parallel[i], machines[k], fix);
            plan_free(p);
        }
}

TEST(product_that_a_device_has_no_memory_for_names_one_that_has) {
    struct plan *p;
    stack(40);
    struct plan_request q = request("cpu*8 memory=400000", 16, "data:2*unit:2");
    T_FAILS(plan_make(&q, &p), E601);
    assert_non_null(strstr(err_last()->text, "data:2*unit:2 does not fit: unit:2: device r0.cpu0 would hold"));
    q.machine = &machine;
    for (i32 d = 0; d < machine.ndevice; d++) machine.device[d].memory = 100;
    T_FAILS(plan_make(&q, &p), E601);
    assert_non_null(strstr(err_last()->fix, "a smaller --batch"));
}

TEST(single_cut_that_a_device_has_no_memory_for_names_one_that_has) {
    struct plan *p;
    stack(40);
    struct plan_request q = request("cpu*8 memory=2000000", 16, "data:2");
    T_FAILS(plan_make(&q, &p), E601);
    assert_non_null(strstr(err_last()->text, "data:2 does not fit: device r0.cpu0 would hold"));
    assert_string_equal(err_last()->fix, "--parallel data:4");
}

TEST(product_texts_come_back_the_same) {
    static const struct {
        const char *machine, *parallel;
    } cases[] = {{"cpu*4", "data:2*unit:2"}, {"cpu*4 gflops=0.001", "data:2*wave:2"}, {"cpu*4 gflops=0.001", "wave:2*unit:2"},
                 {"host*2(cpu*2)", "data:2*unit:2"}, {"host*4(cpu)", "data:2*unit:2"}, {"host*4(cpu)", "pipeline:2*unit:2"},
                 {"host*4(cpu) gflops=0.001", "unit:2*wave:2"}, {"cpu*8 gflops=0.001", "unit:2*data:2*wave:2"}};
    stack(40);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct str a = {0}, b = {0};
        struct plan *p = make(cases[i].machine, 8, cases[i].parallel), *back;
        assert_string_equal(p->strategy, cases[i].parallel);
        assert_true(p->exact);
        plan_print(p, &net, &a);
        struct plan_request q = request(cases[i].machine, 8, "auto");
        T_OK(plan_parse(str_text(&a), "a.plan", &q, &back));
        plan_print(back, &net, &b);
        assert_string_equal(str_text(&a), str_text(&b));
        assert_int_equal(p->ndep, back->ndep);
        assert_true(p->predicted == back->predicted);
        plan_free(p);
        plan_free(back);
        str_free(&a);
        str_free(&b);
    }
}

/* Plans that were saved under the older names, and words that say the same. */
TEST(older_names_are_read) {
    static const char *const names[][2] = {{"data:2", "data_sync:2"}, {"unit:2", "unit_split:2"}, {"wave:2", "wavefront:2"},
                                           {"data:2*unit:2", "data_sync:2 * unit_split:2"}, {"data:2", " data:2 "}};
    stack(40);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct str a = {0};
        struct plan *p = make("cpu*4 gflops=0.001", 8, names[i][1]), *back;
        assert_string_equal(p->strategy, names[i][0]);
        plan_print(p, &net, &a);
        if (!strchr(names[i][1], ' ')) replace(&a, names[i][0], names[i][1]);
        struct plan_request q = request("cpu*4 gflops=0.001", 8, "auto");
        T_OK(plan_parse(str_text(&a), "old.plan", &q, &back));
        assert_string_equal(back->strategy, names[i][0]);
        plan_free(p);
        plan_free(back);
        str_free(&a);
    }
}

/* The devices of the members of the first team of an op, piece by piece. */
TEST(devices_of_a_group_follow_the_order_of_the_cuts) {
    static const struct {
        const char *machine, *parallel, *devices;
    } cases[] = {{"cpu*4", "data:2*unit:2", "01 23 "}, {"cpu*4", "unit:2*data:2", "02 13 "},
                 {"cpu*6", "data:2*unit:3", "012 345 "}, {"host*2(cpu*3)", "data:2*unit:2", "01 34 "},
                 {"host*2(cpu*2)", "data:2*unit:2", "01 23 "}};
    stack(40);
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[32] = "";
        struct plan *p = make(cases[i].machine, 8, cases[i].parallel);
        for (u32 k = 0; k < p->ntask; k++) {
            const struct task *t = &p->task[k];
            if (t->kind != TASK_FWD || t->op != 0) continue;
            const size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, "%u%s", t->device, t->member + 1 == t->members ? " " : "");
        }
        assert_string_equal(text, cases[i].devices);
        plan_free(p);
    }
}

/* Two micro-batches for eight devices: rows alone leave six of them idle. */
TEST(product_is_taken_where_there_are_more_devices_than_micro_batches) {
    struct str s = {0};
    stack(40);
    struct plan *p = make("cpu*8 gflops=0.05", 2, "auto");
    assert_non_null(strchr(p->strategy, '*'));
    struct plan *data = make("cpu*8 gflops=0.05", 2, "data:2"), *open = make("cpu*8 gflops=0.05", 2, "data*unit");
    assert_true(p->predicted < data->predicted);
    assert_string_equal(open->strategy, "data:2*unit:3");
    struct plan_request q = request("cpu*8 gflops=0.05", 2, "auto");
    T_OK(plan_compare(&q, &s));
    assert_non_null(strstr(str_text(&s), "\ndata:2*unit:3 "));
    assert_non_null(strstr(str_text(&s), "\ndata:2*wave:3 "));
    str_free(&s);
    q.B = 64;
    T_OK(plan_compare(&q, &s));
    assert_null(strchr(str_text(&s), '*'));
    str_free(&s);
    plan_free(p);
    plan_free(data);
    plan_free(open);
}

TEST(forward_plans_take_what_they_can_use) {
    static const char *const parallel[] = {"data:4*unit:2", "data:8*wave:3*unit:4", "unit:16*data"};
    stack(40);
    for (size_t i = 0; i < COUNT(parallel); i++)
        for (i32 B = 1; B < 4; B++) {
            struct plan *p;
            struct plan_request q = request(i == 1 ? "cpu*2" : "cpu*8", B, parallel[i]);
            q.train = false;
            T_OK(plan_make(&q, &p));
            plan_free(p);
        }
}

T_MAIN(cmocka_unit_test(product_that_does_not_fit_names_its_part_and_the_nearest_that_does),
       cmocka_unit_test(team_is_of_several_ranks_only_where_its_layers_can_be_split),
       cmocka_unit_test(auto_plans_for_ten_thousand_devices),
       cmocka_unit_test(too_many_micro_batches_name_the_most_that_there_are),
       cmocka_unit_test(stage_that_does_not_fit_is_named_with_what_is_short),
       cmocka_unit_test(pipeline_counts_layers_that_share_weights_once), cmocka_unit_test(the_nearest_product_is_one_that_fits),
       cmocka_unit_test(product_that_a_device_has_no_memory_for_names_one_that_has),
       cmocka_unit_test(single_cut_that_a_device_has_no_memory_for_names_one_that_has),
       cmocka_unit_test(product_texts_come_back_the_same), cmocka_unit_test(older_names_are_read),
       cmocka_unit_test(devices_of_a_group_follow_the_order_of_the_cuts),
       cmocka_unit_test(product_is_taken_where_there_are_more_devices_than_micro_batches),
       cmocka_unit_test(forward_plans_take_what_they_can_use))

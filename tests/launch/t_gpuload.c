/* t_gpuload.c - smoothing, hysteresis, what is kept from call to call, and loads that were written down. */
#include "t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "launch/gpuload.h"

static const struct gpuload_rule rule = {.smooth = 60, .band = 0.05, .refresh = 600, .weight = 1, .span = 100};

static struct gpuload_sample sample(f64 time, f64 busy, f64 memory) {
    return (struct gpuload_sample){.time = time, .n = 1, .gpu = {{busy, memory}}};
}

/* Takes a sample of NVML; true when the note says that all was begun anew. */
static bool take(struct gpuload_state *s, const struct gpuload_rule *r, struct gpuload_sample x) {
    struct str note = {0};
    gpuload_smooth(s, r, &x, GPULOAD_NVML, &note);
    bool anew = strstr(str_text(&note), "smoothing restarted") != NULL;
    str_free(&note);
    return anew;
}

TEST(occupancy_is_the_larger_part) {
    assert_true(gpuload_occupancy(&(struct gpu_load){0.2, 0.7}) == 0.7);
    assert_true(gpuload_occupancy(&(struct gpu_load){0.9, 0.1}) == 0.9);
    assert_true(gpuload_occupancy(&(struct gpu_load){-1, 0.3}) == 0.3); /* utilisation is not said */
}

TEST(smoothing_does_not_depend_on_how_often_it_is_called) {
    struct gpuload_state often = {0}, seldom = {0};
    assert_false(take(&often, &rule, sample(1000, 0, 0)));
    assert_false(take(&seldom, &rule, sample(1000, 0, 0)));
    for (i32 i = 1; i <= 30; i++) take(&often, &rule, sample(1000 + 2 * i, 1, 0));
    take(&seldom, &rule, sample(1060, 1, 0));
    assert_true(fabs(often.level[0] - (1 - exp(-1))) < 1e-12);
    assert_true(fabs(often.level[0] - seldom.level[0]) < 1e-12);
}

TEST(a_first_sample_and_no_smoothing_count_at_once) {
    struct gpuload_state s = {0};
    struct gpuload_rule r = rule;
    take(&s, &rule, sample(0, 0.8, 0));
    assert_true(s.level[0] == 0.8);
    r.smooth = 0;
    take(&s, &r, sample(1, 0.1, 0));
    assert_true(fabs(s.level[0] - 0.1) < 1e-12);
}

TEST(the_level_of_a_node_is_the_mean_of_its_gpus) {
    struct gpuload_state s = {.n = 4, .level = {1, 0, 0.5, 0.1}};
    assert_true(fabs(gpuload_level(&s) - 0.4) < 1e-12);
    assert_int_equal(gpuload_weight(&rule, gpuload_level(&s)), 41);
    assert_true(gpuload_share(0.4) == 0.6 && gpuload_share(1) == 0.05);
}

TEST(what_does_not_go_on_begins_anew) {
    struct gpuload_state s = {0};
    struct str note = {0};
    struct gpuload_sample two = {.time = 70, .n = 2, .gpu = {{1, 0}, {0.5, 0}}};
    take(&s, &rule, sample(50, 0, 0));
    gpuload_sent(&s, 1);
    assert_true(take(&s, &rule, two));
    assert_true(s.n == 2 && s.level[0] == 1 && s.level[1] == 0.5 && !s.sent);
    gpuload_sent(&s, 76);
    two.time = 60;
    assert_true(take(&s, &rule, two)); /* the clock was set back */
    assert_false(s.sent);
    gpuload_sent(&s, 76);
    gpuload_smooth(&s, &rule, &two, "day.csv", &note);
    assert_non_null(strstr(str_text(&note), "loads came from NVML before, and come from day.csv now"));
    assert_false(s.sent);
    str_free(&note);
}

/* The weights that a scheduler hears of when the level goes through these values, a second apart and unsmoothed. */
static i32 told(const f64 *level, i32 n, const struct gpuload_rule *r, i32 *weight) {
    struct gpuload_state s = {0};
    struct gpuload_rule now = *r;
    i32 count = 0;
    now.smooth = 0;
    for (i32 i = 0; i < n; i++) {
        take(&s, &now, sample(i, level[i], 0));
        if (gpuload_decide(&s, &now) == GPULOAD_STAYS) continue;
        weight[count] = gpuload_weight(&now, gpuload_level(&s));
        gpuload_sent(&s, weight[count++]);
    }
    return count;
}

TEST(inside_the_band_nothing_is_told) {
    static const f64 wobble[] = {0.50, 0.54, 0.46, 0.53, 0.47, 0.549, 0.451};
    static const f64 climb[] = {0.10, 0.14, 0.15, 0.19, 0.21, 0.24, 0.26};
    i32 weight[8];
    assert_int_equal(told(wobble, COUNT(wobble), &rule, weight), 1);
    assert_int_equal(weight[0], 51);
    assert_int_equal(told(climb, COUNT(climb), &rule, weight), 4); /* 11, 16, 22, 27: of each the next is 5 points away or more */
    assert_true(weight[1] == 16 && weight[2] == 22 && weight[3] == 27);
    struct gpuload_rule none = rule;
    none.band = 0;
    assert_int_equal(told(wobble, COUNT(wobble), &none, weight), 7);
}

TEST(the_same_is_told_again_after_a_while) {
    struct gpuload_state s = {0};
    struct gpuload_rule r = rule;
    take(&s, &r, sample(0, 0.3, 0));
    assert_int_equal(gpuload_decide(&s, &r), GPULOAD_FIRST);
    gpuload_sent(&s, 31);
    take(&s, &r, sample(599, 0.3, 0));
    assert_int_equal(gpuload_decide(&s, &r), GPULOAD_STAYS);
    take(&s, &r, sample(600, 0.3, 0));
    assert_int_equal(gpuload_decide(&s, &r), GPULOAD_AGAIN);
    r.refresh = 0;
    assert_int_equal(gpuload_decide(&s, &r), GPULOAD_STAYS);
    r.weight = 50; /* another rule is another weight, however still the node */
    assert_int_equal(gpuload_decide(&s, &r), GPULOAD_RULE);
    assert_string_equal(gpuload_word(GPULOAD_RULE), "rule");
}

/* ------------------------------------------------------------------ the state ----------------------------------------------- */

static err load(const char *path, const char *node, struct gpuload_state *out, char note[200]) {
    struct str said = {0};
    err e = gpuload_load(path, node, out, &said);
    snprintf(note, 200, "%s", str_text(&said));
    str_free(&said);
    return e;
}

TEST(a_state_comes_back_as_it_was) {
    struct gpuload_state s = {.node = "node1", .source = GPULOAD_NVML, .time = 1763800000.25, .n = 3}, t;
    s.level[0] = 0.1, s.level[1] = 1.0 / 3, s.level[2] = 1;
    struct str path = {0};
    char note[200];
    str_addf(&path, "%s/deep/folder/%%n.state", t_dir());
    struct str full = {0};
    T_OK(gpuload_path(str_text(&path), "node1", &full));
    assert_non_null(strstr(str_text(&full), "/deep/folder/node1.state"));
    T_OK(load(str_text(&full), "node1", &t, note)); /* there is none: the first call */
    assert_true(t.n == 0 && !t.sent && *note == 0);
    assert_string_equal(t.node, "node1");
    T_OK(gpuload_save(str_text(&full), &s));
    T_OK(load(str_text(&full), "node1", &t, note));
    assert_memory_equal(&s, &t, sizeof s);
    gpuload_sent(&s, 49);
    T_OK(gpuload_save(str_text(&full), &s));
    T_OK(load(str_text(&full), "node1", &t, note));
    assert_memory_equal(&s, &t, sizeof s);
    str_addf(&full, ".tmp");
    assert_false(file_exists(str_text(&full)));
    str_free(&full);
    str_free(&path);
}

/* A file cut at any byte begins anew, or is whole; it never gives another state. */
TEST(a_torn_state_begins_anew) {
    struct gpuload_state s = {.node = "node1", .source = GPULOAD_NVML, .time = 5, .n = 2, .level = {0.25, 0.75}}, t;
    char note[200];
    gpuload_sent(&s, 51);
    char *text = NULL;
    i64 n = 0;
    const char *path = t_file("torn.state", "");
    T_OK(gpuload_save(path, &s));
    T_OK(file_load(path, 1 << 16, &text, &n));
    for (i64 i = 0; i < n; i++) {
        struct str said = {0};
        const char kept = text[i];
        text[i] = 0;
        T_OK(gpuload_parse(path, "node1", text, i, &t, &said));
        text[i] = kept;
        if (i < n - 1) { /* without its last newline it is whole */
            assert_int_equal(t.n, 0);
            assert_non_null(strstr(str_text(&said), "is damaged: smoothing restarted"));
        }
        str_free(&said);
    }
    mem_free(text);
    static const char *const values[] = {
        "{\"stretto_gpuload\": 1}",
        "{\"stretto_gpuload\": 1, \"node\": \"node1\", \"source\": \"NVML\", \"time\": 5, \"level\": [7]}",
        "{\"stretto_gpuload\": 1, \"node\": \"node1\", \"source\": \"NVML\", \"time\": 5, \"level\": [\"NaN\"]}",
        "{\"stretto_gpuload\": 1, \"node\": \"node1\", \"source\": \"NVML\", \"time\": 5, \"level\": [0.5], \"weight\": -4}"};
    for (size_t i = 0; i < COUNT(values); i++) {
        T_OK(load(t_file("values.state", values[i]), "node1", &t, note));
        assert_int_equal(t.n, 0);
        assert_non_null(strstr(note, "is damaged"));
    }
    T_OK(load(t_file("newer.state", "{\"stretto_gpuload\": 2, \"other\": 1}"), "node1", &t, note));
    assert_non_null(strstr(note, "of another version"));
}

TEST(a_foreign_state_is_refused_and_left_alone) {
    static const char *const foreign[] = {"time,gpu\n", "{\"weight\": 3}", "[]", "{\"stretto_gpuloads\": 1}", "\x7f" "ELF"};
    struct gpuload_state t;
    char note[200];
    for (size_t i = 0; i < COUNT(foreign); i++) {
        const char *path = t_file("foreign.state", foreign[i]);
        T_FAILS(load(path, "node1", &t, note), E821);
        assert_string_equal(err_last()->where, path);
    }
    struct gpuload_state s = {.node = "node2", .source = GPULOAD_NVML, .n = 1};
    const char *path = t_file("other.state", "");
    T_OK(gpuload_save(path, &s));
    T_FAILS(load(path, "node1", &t, note), E821);
    assert_non_null(strstr(err_last()->text, "node2"));
    assert_non_null(strstr(err_last()->fix, "%n"));
}

TEST(shares_need_a_state) {
    struct gpuload_state t;
    struct str path = {0};
    str_addf(&path, "%s/absent.state", t_dir());
    T_FAILS(gpuload_need(str_text(&path), "node1", &t), E701);
    T_FAILS(gpuload_need(t_file("empty.state", ""), "node1", &t), E701);
    assert_non_null(strstr(err_last()->text, "damaged"));
    str_free(&path);
}

TEST(the_node_is_named_as_slurm_does) {
    char node[GPULOAD_NODE];
    setenv("SLURMD_NODENAME", "node7", 1);
    gpuload_node(node);
    assert_string_equal(node, "node7");
    unsetenv("SLURMD_NODENAME");
    gpuload_node(node);
    assert_true(*node && !strchr(node, '.'));
}

/* ------------------------------------------------------------------ records ------------------------------------------------- */

TEST(a_record_is_played_a_time_a_call) {
    struct gpuload_record r;
    struct gpuload_state s = {0};
    bool over;
    T_OK(gpuload_record_load(
        t_file("day.csv", "time,gpu,utilisation,memory\r\n0,1,10,20\r\n0,0,30,40\r\n\r\n2.5,0,50,60\n2.5,1,70,80"), &r));
    assert_int_equal(r.n, 2);
    assert_int_equal(r.sample[0].n, 2);
    assert_true(r.sample[0].gpu[1].busy == 0.1 && r.sample[0].gpu[0].memory == 0.4 && r.sample[1].gpu[1].memory == 0.8);
    struct str note = {0};
    for (i32 i = 0; i < 3; i++) {
        const struct gpuload_sample *x = gpuload_record_next(&r, &s, &over);
        assert_ptr_equal(x, &r.sample[imin(i, 1)]);
        assert_int_equal(over, i == 2);
        gpuload_smooth(&s, &rule, x, r.source, &note);
    }
    const f64 level = s.level[0];
    gpuload_smooth(&s, &rule, gpuload_record_next(&r, &s, &over), r.source, &note); /* its end changes nothing any more */
    assert_true(s.level[0] == level && *str_text(&note) == 0);
    take(&s, &rule, (struct gpuload_sample){.time = 1e9, .n = 2});
    assert_ptr_equal(gpuload_record_next(&r, &s, &over), &r.sample[0]); /* after NVML it begins at its beginning */
    gpuload_record_free(&r);
    str_free(&note);
}

TEST(a_record_is_refused_with_line_and_column) {
#define HEAD "time,gpu,utilisation,memory\n"
    static const struct {
        const char *text, *where, *what;
    } bad[] = {{"", "", "holds no loads"},
               {HEAD, "", "holds no loads"},
               {"gpu,time,utilisation,memory\n0,0,1,1\n", ":1", "\"gpu,time,utilisation,memory\" is not the line"},
               {HEAD "0,0,1\n", ":2", "\"0,0,1\" does not have four fields"},
               {HEAD "0,0,1,2,3\n", ":2", "does not have four fields"},
               {HEAD "0,0,95%,40\n", ":2:utilisation", "\"95%\" is not a number"},
               {HEAD "0,0,nan,40\n", ":2:utilisation", "\"nan\" is not a number"},
               {HEAD "0,0,95,140\n", ":2:memory", "\"140\" lies outside 0 to 100"},
               {HEAD "0,0,-1,40\n", ":2:utilisation", "\"-1\" lies outside"},
               {HEAD "-3,0,1,40\n", ":2:time", "\"-3\" lies below 0"},
               {HEAD "0,64,1,40\n", ":2:gpu", "\"64\" is no number of a GPU"},
               {HEAD "0,0.5,1,40\n", ":2:gpu", "\"0.5\" is no number of a GPU"},
               {HEAD "5,0,1,1\n4,0,1,1\n", ":3:time", "\"4\" is before the time of the line above"},
               {HEAD "5,0,1,1\n5,0,1,1\n", ":3:gpu", "\"0\" is there twice"},
               {HEAD "5,0,1,1\n5,1,1,1\n6,0,1,1\n7,0,1,1\n7,1,1,1\n", ":4", "\"6\" is a time that lacks"},
               {HEAD "5,1,1,1\n", ":2", "\"5\" is a time that lacks"},
               {HEAD "5,0,1,1\n6,0,1,1\n6,1,1,1\n", ":4", "\"6\" is a time with more GPUs"}};
    struct gpuload_record r;
    for (size_t i = 0; i < COUNT(bad); i++) {
        const char *path = t_file("bad.csv", bad[i].text);
        T_FAILS(gpuload_record_load(path, &r), E822);
        const struct err_record *e = err_last();
        if (!strstr(e->text, bad[i].what)) print_error("%s: %s\n", e->where, e->text);
        assert_string_equal(e->where + strlen(path), bad[i].where);
        assert_non_null(strstr(e->text, bad[i].what));
        assert_true(strlen(e->fix) > 0);
    }
    T_FAILS(gpuload_record_load("/absent/day.csv", &r), E701);
}

T_MAIN(cmocka_unit_test(occupancy_is_the_larger_part), cmocka_unit_test(smoothing_does_not_depend_on_how_often_it_is_called),
       cmocka_unit_test(a_first_sample_and_no_smoothing_count_at_once),
       cmocka_unit_test(the_level_of_a_node_is_the_mean_of_its_gpus),
       cmocka_unit_test(what_does_not_go_on_begins_anew), cmocka_unit_test(inside_the_band_nothing_is_told),
       cmocka_unit_test(the_same_is_told_again_after_a_while), cmocka_unit_test(a_state_comes_back_as_it_was),
       cmocka_unit_test(a_torn_state_begins_anew), cmocka_unit_test(a_foreign_state_is_refused_and_left_alone),
       cmocka_unit_test(shares_need_a_state), cmocka_unit_test(the_node_is_named_as_slurm_does),
       cmocka_unit_test(a_record_is_played_a_time_a_call), cmocka_unit_test(a_record_is_refused_with_line_and_column))

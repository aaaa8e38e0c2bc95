/* t_lines.c - scores of series and groups: values from sums, sums over folds, ranks, CSV and JSON. */
#include "t.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/table.h"

enum { MANY = 9 };

/* Series k: 4 cells of absolute error k + 1, MASE (k + 1) / 2. */
static void make(struct score_line line[MANY], struct score_lines *l, i32 n) {
    static const char *const name[MANY] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "a,b"};
    for (i32 k = 0; k < n; k++) {
        const f64 e = k + 1.0;
        line[k] = (struct score_line){.name = name[k], .n = 4, .ae = 4 * e, .ee = 4 * e * e, .ay = 40, .pin = e, .inside = 3};
        line[k].mase = 4 * e / 2, line[k].nmase = 4;
        line[k].naive[0] = 8 * e, line[k].naive[1] = 16;
    }
    *l = (struct score_lines){.by = "series", .n = n, .line = line, .nnaive = 2, .naive = {"naive", "snaive (7)"}, .band = true};
}

TEST(values_follow_from_sums) {
    struct score_line line[MANY];
    struct score_lines l;
    struct line_values v;
    make(line, &l, MANY);
    lines_values(&l, 2, &v);
    assert_true(v.mae == 3 && v.rmse == 3 && v.mase == 1.5 && v.wql == 2 * 3. / 40 && v.coverage == .75);
    assert_true(v.best == 1 && v.naive == 4 && v.skill == .25);
    lines_values(&l, 0, &v);
    assert_true(v.best == 0 && v.naive == 2 && v.skill == .5);
}

TEST(a_line_without_cells_has_no_values) {
    struct score_line line[1] = {{.name = "empty"}};
    struct score_lines l = {.by = "series", .n = 1, .line = line, .nnaive = 1, .naive = {"naive"}};
    struct line_values v;
    struct str b = {0};
    lines_values(&l, 0, &v);
    assert_true(isnan(v.mae) && isnan(v.mase) && isnan(v.coverage) && v.best == -1 && isnan(v.skill));
    lines_csv(&b, &l);
    assert_string_equal(str_text(&b), "series,n,MAE,RMSE,MASE,wQL,coverage,best_naive,naive_MAE,skill\nempty,0,,,,,,,,\n");
    str_free(&b);
}

TEST(folds_add_up_and_an_empty_fold_changes_nothing) {
    struct score_line line[2][MANY];
    struct score_lines a, b, *sum;
    struct arena room = {0};
    struct line_values v;
    make(line[0], &a, MANY);
    make(line[1], &b, MANY);
    line[1][2] = (struct score_line){.name = "s2", .n = 12, .ae = 60, .mase = 12, .nmase = 12};
    line[1][3] = (struct score_line){.name = "s3", .ae = (f64)NAN};
    assert_int_equal(lines_copy(&room, &a, &sum), 0);
    lines_add(sum, &b);
    lines_values(sum, 2, &v);
    assert_true(sum->line[2].n == 16 && v.mae == 72. / 16 && v.mase == 18. / 16);
    lines_values(sum, 3, &v);
    assert_true(v.mae == 4);
    assert_true(line[0][2].n == 4);
    arena_free(&room);
}

TEST(the_worst_median_and_best_are_picked_by_mase) {
    struct score_line line[MANY];
    struct score_lines l;
    struct lines_shown s;
    make(line, &l, MANY);
    line[4].nmase = 0; /* no MASE: not ranked */
    assert_int_equal(lines_pick(&l, &s), 0);
    assert_int_equal(s.n, 5);
    const i32 want[] = {8, 7, 6, 3, 0};
    for (i32 i = 0; i < 5; i++) assert_int_equal(s.line[i], want[i]);
    assert_string_equal(s.rank[0], "worst ");
    assert_string_equal(s.rank[3], "median ");
    make(line, &l, 4);
    line[3].nmase = 0; /* shown last where all lines are */
    assert_int_equal(lines_pick(&l, &s), 0);
    assert_int_equal(s.n, 4);
    assert_int_equal(s.line[0], 2);
    assert_int_equal(s.line[3], 3);
    assert_string_equal(s.rank[0], "");
    l.groups = true, l.n = 0;
    assert_int_equal(lines_pick(&l, &s), 0);
    assert_int_equal(s.n, 0);
}

TEST(json_and_csv_have_every_line) {
    struct score_line line[MANY];
    struct score_lines l;
    struct score_row row = {"model", ROLE_MODEL, {1}, (f64)NAN};
    const struct score_table t = {
        .title = "t", .nmetric = 1, .metric = {"MAE"}, .nrow = 1, .row = &row, .best_naive = -1, .lines = &l};
    struct str b = {0};
    struct js *js = NULL;
    make(line, &l, MANY);
    table_json(&b, &t);
    assert_int_equal(js_parse(str_text(&b), b.len, "t", &js), 0);
    assert_non_null(strstr(str_text(&b), "\"series\":[{\"name\":\"s0\",\"n\":4,\"MAE\":1,"));
    assert_non_null(strstr(str_text(&b), "{\"name\":\"a,b\","));
    js_free(js);
    str_free(&b);
    lines_csv(&b, &l);
    assert_non_null(strstr(str_text(&b), "\ns1,4,2,2,1,0.1,0.75,"));
    assert_non_null(strstr(str_text(&b), "\n\"a,b\",4,9,9,4.5,"));
    str_free(&b);
    l.groups = true, l.by = "region";
    table_json(&b, &t);
    assert_non_null(strstr(str_text(&b), "\"by\":\"region\",\"groups\":["));
    str_free(&b);
}

T_MAIN(cmocka_unit_test(values_follow_from_sums), cmocka_unit_test(a_line_without_cells_has_no_values),
       cmocka_unit_test(folds_add_up_and_an_empty_fold_changes_nothing),
       cmocka_unit_test(the_worst_median_and_best_are_picked_by_mase), cmocka_unit_test(json_and_csv_have_every_line))

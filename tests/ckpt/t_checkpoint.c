/* t_checkpoint.c - every bit comes back, two are kept, a damaged one is passed over, and nothing is half filled. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "ckpt/checkpoint.h"
#include "t.h"

struct things {
    f32 theta[100];
    f64 best;
    i64 counter[2];
    u8 raw[5];
};

static void items(struct things *t, struct ckpt_item out[4]) {
    out[0] = (struct ckpt_item){"theta", CKPT_F32, t->theta, 100};
    out[1] = (struct ckpt_item){"best", CKPT_F64, &t->best, 1};
    out[2] = (struct ckpt_item){"counter", CKPT_I64, t->counter, 2};
    out[3] = (struct ckpt_item){"raw", CKPT_BYTES, t->raw, 5};
}

static struct things make(i32 k) {
    struct things t;
    memset(&t, 0, sizeof t);
    for (i32 i = 0; i < 100; i++) t.theta[i] = (f32)(i + k) / 7;
    t.theta[3] = -0.0f;
    t.best = 1.0 / (3 + k);
    t.counter[0] = INT64_MIN;
    t.counter[1] = k;
    memcpy(t.raw, "\0\1\2\377\4", 5);
    return t;
}

static const char *dir_in(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s/checkpoints", t_dir(), name);
    return path;
}

static err put(const char *dir, i32 k) {
    struct things t = make(k);
    struct ckpt_item item[4];
    items(&t, item);
    return ckpt_write(dir, k, item, 4, "{\"k\": 1}", 2);
}

static void cut_file(const char *dir, i64 number) {
    char path[4200];
    snprintf(path, sizeof path, "%s/%012lld.ckpt", dir, (long long)number);
    assert_int_equal(truncate(path, 200), 0);
}

TEST(write_then_resume_gives_every_bit_and_the_note) {
    struct things want = make(300), got = make(0);
    struct ckpt_item item[4];
    struct str note = {0};
    i64 number;
    T_OK(put(dir_in("bits"), 300));
    items(&got, item);
    T_OK(ckpt_resume(dir_in("bits"), item, 4, &note, &number));
    assert_int_equal(number, 300);
    assert_memory_equal(&got, &want, sizeof want);
    assert_string_equal(note.s, "{\"k\": 1}");
    str_free(&note);
    T_OK(ckpt_note(dir_in("bits"), &note));
    assert_string_equal(note.s, "{\"k\": 1}");
    str_free(&note);
}

TEST(write_keeps_two_and_removes_numbers_above) {
    char path[4096];
    i64 number;
    const char *dir = dir_in("keep");
    for (i32 k = 0; k < 50; k += 10) T_OK(put(dir, k));
    T_OK(ckpt_find(dir, 0, path, &number));
    assert_int_equal(number, 40);
    T_OK(ckpt_find(dir, 1, path, &number));
    assert_int_equal(number, 30);
    T_FAILS(ckpt_find(dir, 2, path, &number), E705);
    T_OK(put(dir, 35)); /* gone back: what lies after it was given up */
    T_OK(ckpt_find(dir, 0, path, &number));
    assert_int_equal(number, 35);
    T_OK(ckpt_clear(dir));
    T_FAILS(ckpt_find(dir, 0, path, &number), E705);
}

TEST(resume_passes_over_a_damaged_newest) {
    struct things want = make(1), got;
    struct ckpt_item item[4];
    i64 number;
    const char *dir = dir_in("damaged");
    T_OK(put(dir, 1));
    T_OK(put(dir, 2));
    cut_file(dir, 2);
    items(&got, item);
    memset(&got, 0, sizeof got);
    T_OK(ckpt_resume(dir, item, 4, NULL, &number));
    assert_int_equal(number, 1);
    assert_memory_equal(&got, &want, sizeof want);
    cut_file(dir, 1);
    T_FAILS(ckpt_resume(dir, item, 4, NULL, &number), E901);
    assert_non_null(strstr(err_last()->where, "000000000002.ckpt"));
}

TEST(resume_without_checkpoint_fails) {
    i64 number;
    T_FAILS(ckpt_resume(dir_in("nowhere"), NULL, 0, NULL, &number), E705);
    T_OK(file_make_dir(dir_in("empty")));
    T_FAILS(ckpt_resume(dir_in("empty"), NULL, 0, NULL, &number), E705);
}

TEST(read_of_another_run_touches_nothing) {
    struct things got = make(7), same = make(7);
    struct ckpt_item item[4];
    i64 number;
    T_OK(put(dir_in("other"), 5));
    items(&got, item);
    item[2].n = 1;
    T_FAILS(ckpt_resume(dir_in("other"), item, 4, NULL, &number), E901);
    items(&got, item);
    item[3].name = "absent";
    T_FAILS(ckpt_resume(dir_in("other"), item, 4, NULL, &number), E901);
    assert_memory_equal(&got, &same, sizeof got);
}

TEST(read_refuses_models_and_newer_checkpoints) {
    char path[4096];
    struct meta newer = {"stretto.checkpoint", "9"}, model = {"stretto.schema", "1"};
    snprintf(path, sizeof path, "%s/x.ckpt", t_dir());
    T_OK(st_write(path, NULL, 0, &newer, 1));
    T_FAILS(ckpt_read(path, NULL, 0, NULL), E902);
    T_OK(st_write(path, NULL, 0, &model, 1));
    T_FAILS(ckpt_read(path, NULL, 0, NULL), E901);
}

TEST(every_refused_allocation_ends_in_e601_without_leak) {
    struct things got;
    struct ckpt_item item[4];
    i64 live = mem_stats().live, number;
    items(&got, item);
    err e = -E601;
    for (i64 n = 1; e == -E601; n++) {
        struct str note = {0};
        mem_fail_nth(n);
        e = put(dir_in("memory"), 3);
        if (e == 0) e = ckpt_resume(dir_in("memory"), item, 4, &note, &number);
        mem_fail_nth(0);
        str_free(&note);
        assert_true(e == 0 || e == -E601);
        assert_int_equal(mem_stats().live, live);
    }
}

T_MAIN(cmocka_unit_test(write_then_resume_gives_every_bit_and_the_note),
       cmocka_unit_test(write_keeps_two_and_removes_numbers_above), cmocka_unit_test(resume_passes_over_a_damaged_newest),
       cmocka_unit_test(resume_without_checkpoint_fails), cmocka_unit_test(read_of_another_run_touches_nothing),
       cmocka_unit_test(read_refuses_models_and_newer_checkpoints),
       cmocka_unit_test(every_refused_allocation_ends_in_e601_without_leak))

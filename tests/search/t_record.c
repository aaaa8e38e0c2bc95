/* t_record.c - trials.jsonl: what was written is read again; damage and other searches are refused. */
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "search/record.h"
#include "search/simulated.h"
#include "t.h"

static const char about[] = "{\"data\":\"9f\",\"seed\":1}";
static struct options o;
static struct search s;

static const char *path_of(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", t_dir(), name);
    return path;
}

static void write_some(const char *path, i32 lines) {
    struct record r;
    T_OK(record_open(path, about, &s, &r));
    for (i32 k = 0; k < lines; k++) {
        struct record_line l = {.trial = k / 2, .fit = k % 2, .at = point_origin(), .seconds = 0.5};
        l.at.v[0] = s.space.dim[0].least;
        l.failed = k == 3;
        if (l.failed) snprintf(l.why, sizeof l.why, "E501: \"diverged\"");
        for (i32 p = 0; p < s.ladder.nparts; p++) l.error[p] = p == 1 ? (f64)NAN : 0.1 * k;
        T_OK(record_add(&r, &s, &l, k));
    }
    record_close(&r);
}

TEST(fits_are_read_as_they_were_written) {
    struct record r;
    const char *path = path_of("a.jsonl");
    write_some(path, 5);
    T_OK(record_open(path, about, &s, &r));
    assert_int_equal(r.n, 5);
    assert_true(r.elapsed == 4);
    const struct record_line *l = record_find(&r, 1, 0);
    assert_non_null(l);
    assert_true(l->error[0] == 0.2 && isnan(l->error[1]) && l->at.v[0] == s.space.dim[0].least);
    assert_true(record_find(&r, 1, 1)->failed);
    assert_null(record_find(&r, 9, 0));
    record_close(&r);
}

TEST(a_line_that_was_cut_off_is_dropped) {
    struct record r;
    char *text;
    i64 n;
    const char *path = path_of("b.jsonl");
    write_some(path, 4);
    T_OK(file_load(path, 1 << 20, &text, &n));
    for (i64 cut = n; cut >= 0; cut--) {
        i32 whole = -1; /* the first line is the head */
        for (i64 i = 0; i < cut; i++) whole += text[i] == '\n';
        T_OK(file_write_all(path, text, cut));
        T_OK(record_open(path, about, &s, &r));
        assert_int_equal(r.n, imax(0, whole));
        record_close(&r);
        write_some(path, 1); /* appending after it leaves no damaged line */
        T_OK(record_open(path, about, &s, &r));
        assert_int_equal(r.n, imax(0, whole) + 1);
        record_close(&r);
    }
    mem_free(text);
}

TEST(another_search_is_refused) {
    struct record r;
    const char *path = path_of("c.jsonl");
    write_some(path, 2);
    T_FAILS(record_open(path, "{\"data\":\"9e\",\"seed\":1}", &s, &r), E705);
    record_close(&r);
}

TEST(a_damaged_line_is_named) {
    static const char *const bad[] = {"{\"trial\":1", "[]", "{\"trial\":-1,\"fit\":0,\"set\":{},\"error\":[1]}",
                                      "{\"trial\":1,\"fit\":9,\"set\":{},\"error\":[1]}", "{\"trial\":1,\"fit\":0,\"set\":{}}",
                                      "{\"trial\":1,\"fit\":0,\"set\":{\"nose\":\"1\"},\"failed\":\"x\"}",
                                      "{\"trial\":1,\"fit\":0,\"set\":{\"lr\":\"77\"},\"failed\":\"x\"}"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct record r = {.fd = -1};
        struct str text = {0};
        str_addf(&text, "{\"search\":1,\"about\":%s}\n%s\n", about, bad[i]);
        T_FAILS(record_read(text.s, text.len, "x", about, &s, &r), E104);
        assert_string_equal(err_last()->where, "x:2");
        record_close(&r);
        str_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(fits_are_read_as_they_were_written),
                                       cmocka_unit_test(a_line_that_was_cut_off_is_dropped),
                                       cmocka_unit_test(another_search_is_refused), cmocka_unit_test(a_damaged_line_is_named)};
    t_begin();
    sim_search(&o, &s, 4, 1, 8);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    opt_free(&o);
    return failed ? 1 : 0;
}

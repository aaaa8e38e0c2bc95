/* t_ts.c - .ts files as tables: header, channels, labels, lengths, missing values; what is refused, with its place. */
#include <math.h>
#include <string.h>

#include "data/table.h"
#include "t.h"

static struct table *read(const char *text) {
    struct table *t = NULL;
    const struct read_options o = READ_OPTIONS_DEFAULT;
    T_OK(table_read(t_file("a.ts", text), &o, &t));
    return t;
}

static void refused(const char *text, i32 code, const char *place) {
    struct table *t = NULL;
    const struct read_options o = READ_OPTIONS_DEFAULT;
    T_FAILS(table_read(t_file("bad.ts", text), &o, &t), code);
    assert_null(t);
    assert_non_null(strstr(err_last()->where, place));
    assert_true(err_last()->fix[0] != 0);
}

#define HEAD "#note\n@problemName P\n@timeStamps false\n@dimensions 2\n@classLabel true run walk\n@data\n"

TEST(classes_become_rows_of_a_table) {
    struct table *t = read(HEAD "0.5,-1e2:5,6:run\n\n# a note\n 7 : ?:walk\r\n");
    assert_int_equal(t->nrow, 3);
    assert_int_equal(t->ncol, 4);
    assert_string_equal(t->id, "sequence");
    assert_string_equal(t->target, "class");
    assert_string_equal(t->col[1].name, "channel1");
    assert_true(t->col[1].number[1] == -100 && t->col[2].number[0] == 5 && t->col[1].number[2] == 7);
    assert_true(isnan(t->col[2].number[2]) && t->col[2].missing == 1);
    assert_string_equal(t->col[0].word[t->col[0].code[2]], "2");
    assert_string_equal(t->col[3].word[t->col[3].code[0]], "run");
    assert_string_equal(t->col[3].word[t->col[3].code[2]], "walk");
    assert_int_equal(table_line(t, 0), 7);
    assert_int_equal(table_line(t, 2), 10);
    table_free(t);
}

TEST(numbers_and_files_without_labels_are_read) {
    struct table *t = read("@TARGETLABEL TRUE\n@data\n1,2:4.5\n3:?\n");
    assert_string_equal(t->target, "target");
    assert_true(t->nrow == 3 && t->col[2].number[1] == 4.5 && isnan(t->col[2].number[2]) && t->col[2].missing == 1);
    table_free(t);
    t = read("@univariate true\n@data\n1,2\n3\n");
    assert_null(t->target);
    assert_int_equal(t->ncol, 2);
    table_free(t);
}

TEST(bad_lines_are_refused_with_their_place) {
    refused(HEAD, 201, "bad.ts");
    refused(HEAD "1:2:swim\n", 204, "bad.ts:7:3");
    refused(HEAD "1:2:run\n1,x:2,3:run\n", 204, "bad.ts:8:1");
    refused(HEAD "1,2:2:run\n", 203, "bad.ts:7:2");
    refused(HEAD "1,2:run\n", 203, "bad.ts:7");
    refused(HEAD ":2:run\n", 203, "bad.ts:7:1");
    refused(HEAD "(0,1),(1,2):1,2:run\n", 202, "bad.ts:7:1");
    refused(HEAD "inf:2:run\n", 208, "bad.ts:7:1");
    refused("@timeStamps true\n@data\n1:a\n", 202, "bad.ts:1");
    refused("@problemName P\n@dimensions many\n@data\n1\n", 103, "bad.ts:2");
    refused("@classLabel true a b\n@data\na\n", 203, "bad.ts:3");
}

T_MAIN(cmocka_unit_test(classes_become_rows_of_a_table), cmocka_unit_test(numbers_and_files_without_labels_are_read),
       cmocka_unit_test(bad_lines_are_refused_with_their_place))

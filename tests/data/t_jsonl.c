/* t_jsonl.c - JSON lines: the table of the same rows as CSV text, whatever order and absence of names; what is refused, where. */
#include "tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "data/check.h"
#include "data/table.h"

static struct table *read_as(const char *name, const char *text, const struct read_options *o) {
    struct table *t;
    T_OK(table_read(t_file(name, text), o, &t));
    return t;
}

TEST(jsonl_is_the_csv_table) {
    static const char csv[] = "ds,y,w,b,late\n2024-01-01 00:00+01:00,1.5,a,1,\n"
                              "2024-01-01 01:00+01:00,,b,0,\n"
                              "2024-01-01 02:00+01:00,-2e3,\"x\"\"\xC3\xA9\xF0\x9F\x98\x80\",,7\n"
                              "2024-01-01 03:00+01:00,,NA,1,8\n";
    static const char lines[] = "{\"ds\":\"2024-01-01 00:00+01:00\",\"y\":1.5,\"w\":\"a\",\"b\":true}\n"
                                " { \"b\" : false , \"ds\" : \"2024-01-01 01:00+01:00\", \"w\":\"b\",\"y\":null}\r\n"
                                "{\"ds\":\"2024-01-01 02:00+01:00\",\"y\":-2e3,\"w\":\"x\\\"\\u00e9\\ud83d\\uDE00\",\"late\":7}\n"
                                "{\"ds\":\"2024-01-01 03:00+01:00\",\"y\":\"NA\",\"w\":\"NA\",\"b\":true,\"late\":8}";
    struct read_options o = READ_OPTIONS_DEFAULT;
    const i64 before = mem_stats().live;
    struct table *a = read_as("a.csv", csv, &o), *b = read_as("a.jsonl", lines, &o);
    same_tables(b, a);
    assert_true(b->col[0].zoned);
    table_free(a);
    table_free(b);
    assert_int_equal(mem_stats().live, before);
}

TEST(jsonl_numbers_among_texts_are_words_and_texts_among_numbers_are_errors) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t = read_as("a.jsonl", "{\"a\":\"x\",\"k\":\"01\"}\n{\"a\":1.50,\"k\":\"02\"}\n", &o);
    assert_int_equal(t->col[0].type, COL_CATEGORY);
    assert_string_equal(t->col[0].word[1], "1.50");
    assert_int_equal(t->col[1].type, COL_CATEGORY);
    table_free(t);
    static const char lines[] = "{\"a\":1}\n\n{\"a\":\"x\"}\n{\"a\":\"3\"}\n{\"a\":4}\n{\"a\":5}\n";
    T_FAILS(table_read(t_file("b.jsonl", lines), &o, &t), 204);
    assert_non_null(strstr(err_last()->where, "b.jsonl:3:"));
    struct findings f = {0};
    o.found = &f;
    t = read_as("b.jsonl", lines, &o);
    assert_int_equal(f.n, 1);
    assert_int_equal(t->col[0].missing, 1);
    assert_int_equal(t->col[0].first_missing_line, 3);
    assert_true(t->col[0].number[2] == 3);
    table_free(t);
    o.found = NULL;
    o.more_na = "x";
    t = read_as("b.jsonl", lines, &o);
    assert_int_equal(t->col[0].missing, 1);
    table_free(t);
    o.cat = "a";
    t = read_as("b.jsonl", lines, &o);
    assert_int_equal(t->col[0].nword, 4);
    table_free(t);
}

TEST(jsonl_nested_values_are_left_out_by_ignore_alone) {
    static const char lines[] = "{\"y\":1,\"a\":{\"b\":[1,\"}\"]}}\n{\"a\":[],\"y\":2}\n";
    struct read_options o = READ_OPTIONS_DEFAULT;
    struct table *t;
    T_FAILS(table_read(t_file("n.jsonl", lines), &o, &t), 214);
    assert_non_null(strstr(err_last()->where, "n.jsonl:1:"));
    assert_non_null(strstr(err_last()->text, "\"a\" is a nested object"));
    o.ignore = "a";
    t = read_as("n.jsonl", lines, &o);
    assert_int_equal(t->ncol, 1);
    assert_true(t->col[0].number[1] == 2);
    table_free(t);
}

TEST(jsonl_mistakes_have_a_place) {
    static const struct {
        const char *line, *where, *text;
    } bad[] = {{"{\"a\":1,}", ":2:8", "a name in quotes"},
               {"{\"a\":1", ":2:7", "ends within the object"},
               {"{\"a\" 1}", ":2:6", "a colon"},
               {"{\"a\":1 \"b\":2}", ":2:8", "a comma or }"},
               {"{\"a\":1} x", ":2:9", "one object a line"},
               {"{\"a\":\"x", ":2:8", "does not end"},
               {"{\"a\":\"\\x\"}", ":2:9", "backslash"},
               {"{\"a\":\"\\ud800\"}", ":2:13", "backslash"},
               {"{\"a\":\"\\u0000\"}", ":2:13", "backslash"},
               {"{\"a\":\"\xFF\"}", ":2:7", "not UTF-8"},
               {"{\"a\":tru}", ":2:6", "no value of JSON"},
               {"{\"a\":1,\"a\":2}", ":2:13", "comes twice"},
               {"{\"a\":1.2.3}", ":2:11", "no number of JSON"},
               {"[1]", ":2:1", "begins with {"}};
    struct read_options o = READ_OPTIONS_DEFAULT;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct table *t;
        char text[100];
        const i64 before = mem_stats().live;
        snprintf(text, sizeof text, "{\"a\":1}\n%s\n{\"a\":3}\n", bad[i].line);
        T_FAILS(table_read(t_file("bad.jsonl", text), &o, &t), 202);
        if (!strstr(err_last()->where, bad[i].where) || !strstr(err_last()->text, bad[i].text))
            fail_msg("%s: %s: %s", bad[i].line, err_last()->where, err_last()->text);
        assert_int_equal(mem_stats().live, before);
    }
}

/* Lines longer than a piece of the file, and lines that end at its border. */
TEST(jsonl_lines_of_any_length) {
    enum { LONG = (1 << 20) + 77, LINES = 5 };
    struct read_options o = READ_OPTIONS_DEFAULT;
    char *text = mem_alloc(LINES * (LONG + 64)), *p = text;
    assert_non_null(text);
    for (i32 i = 0; i < LINES; i++) {
        p += sprintf(p, "{\"y\":%d,\"w\":\"", i);
        memset(p, 'a' + i, (size_t)(LONG >> i));
        p += LONG >> i;
        p += sprintf(p, "\"}\n");
    }
    struct table *t = read_as("long.jsonl", text, &o);
    assert_int_equal(t->nrow, LINES);
    for (i32 i = 0; i < LINES; i++) {
        assert_true(t->col[0].number[i] == i);
        assert_int_equal(strlen(t->col[1].word[t->col[1].code[i]]), LONG >> i);
    }
    table_free(t);
    mem_free(text);
}

TEST(jsonl_files_of_a_folder_are_one_table) {
    struct read_options o = READ_OPTIONS_DEFAULT;
    char dir[300], path[340], where[256];
    snprintf(dir, sizeof dir, "%s/lines", t_dir());
    assert_int_equal(mkdir(dir, 0700), 0);
    t_file("lines/part-1.json", "\n{\"y\":2,\"w\":\"b\"}\n{\"y\":3}\n");
    t_file("lines/part-0.json", "{\"y\":1}\n");
    t_file("lines/part-2.json", "");
    t_file("lines/_SUCCESS", "");
    struct table *t;
    T_OK(table_read(dir, &o, &t));
    assert_int_equal(t->nrow, 3);
    assert_true(t->col[0].number[2] == 3);
    assert_int_equal(t->col[1].missing, 2);
    table_where(t, 2, NULL, where);
    snprintf(path, sizeof path, "%s/part-1.json:3", dir);
    assert_string_equal(where, path);
    table_free(t);
}

T_MAIN(cmocka_unit_test(jsonl_is_the_csv_table),
       cmocka_unit_test(jsonl_numbers_among_texts_are_words_and_texts_among_numbers_are_errors),
       cmocka_unit_test(jsonl_nested_values_are_left_out_by_ignore_alone), cmocka_unit_test(jsonl_mistakes_have_a_place),
       cmocka_unit_test(jsonl_lines_of_any_length), cmocka_unit_test(jsonl_files_of_a_folder_are_one_table))

/* t_config.c - config files: values keep their origin text; every mistake is reported with file:line:column and a fix. */
#include "t.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/config.h"
#include "base/mem.h"

static struct options o;

static int fresh(void **state) {
    (void)state;
    return opt_defaults(&o, NULL) < 0;
}
static int done(void **state) {
    (void)state;
    opt_free(&o);
    return 0;
}

static err parse(const char *text) { return config_parse(text, strlen(text), "load.yaml", &o); }

TEST(config_sets_values_with_their_lines) {
    T_OK(parse("time: timestamp\ntarget: [a, \"b,c\", d e]   # three\nhorizon: 24\n\nquantiles:\n  - 0.1\n  - .5\n"));
    assert_string_equal(o.time, "timestamp");
    assert_string_equal(o.target, "a,b\\,c,d e");
    assert_int_equal(o.horizon, 24);
    assert_string_equal(o.quantiles, "0.1,0.5");
    assert_string_equal(o.meta[OPT_horizon].origin, "load.yaml:3");
    assert_string_equal(o.meta[OPT_quantiles].origin, "load.yaml:6");
}

TEST(config_mark_of_the_encoding_is_no_column) {
    T_OK(parse("\xef\xbb\xbftarget: a\r\nhorizon: 24\r\n"));
    assert_string_equal(o.target, "a");
    assert_int_equal(o.horizon, 24);
}

TEST(config_types_come_from_the_table_not_from_yaml) {
    T_OK(parse("header: no\ntarget: on\ntime: 012\nna: [1e3, ~, null, 12:30]\n"
               "since: 2016-07-01\nuntil: 2016-07-01 12:30\nguard: off\n"));
    assert_string_equal(o.header, "no");
    assert_string_equal(o.target, "on");
    assert_string_equal(o.time, "012");
    assert_string_equal(o.na, "1e3,~,null,12:30");
    assert_string_equal(o.since, "2016-07-01");
    assert_string_equal(o.until, "2016-07-01 12:30");
    assert_false(o.guard);
}

TEST(config_loads_json) {
    T_OK(parse("{\"horizon\": 24,\n\t\"target\": [\"a\", \"\\u00e4\"], \"guard\": false, "
               "\"lr\":1e-2, \"na\":\"\", \"time\": []}\n"));
    assert_int_equal(o.horizon, 24);
    assert_string_equal(o.target, "a,\xc3\xa4");
    assert_float_equal(o.lr, 0.01, 0);
    assert_null(o.na);
    assert_null(o.time);
}

TEST(config_flags_win_in_any_order) {
    T_OK(opt_set(&o, "hidden", "64", &OPT_FLAG));
    T_OK(parse("hidden: 48\nlayers: 2\n"));
    T_OK(opt_set(&o, "layers", "3", &OPT_FLAG));
    assert_int_equal(o.hidden, 64);
    assert_int_equal(o.layers, 3);
}

TEST(config_dump_loads_again) {
    struct options p;
    struct str a = {0}, j = {0};
    T_OK(parse("target: [x y, \"null\", \"a,b\", '#']\ntime-format: \"%Y: 'q'\"\nsep: \",\"\nmemory: 8G\n"
               "time-limit: 1h30m\nna: [\"-\", \"?\", \"NA\"]\n"));
    opt_dump(&o, ~0u, &a);
    T_OK(opt_defaults(&p, NULL));
    if (config_parse(str_text(&a), a.len, "again.yaml", &p) < 0) fail_msg("%s: %s\n%s", err_last()->where, err_last()->text, a.s);
    for (i32 i = 0; i < OPT_COUNT; i++) assert_string_equal(o.meta[i].text, p.meta[i].text);
    opt_free(&p);
    opt_dump_json(&o, ~0u, &j);
    T_OK(opt_defaults(&p, NULL));
    T_OK(config_parse(j.s, j.len, "config.json", &p));
    for (i32 i = 0; i < OPT_COUNT; i++) assert_string_equal(o.meta[i].text, p.meta[i].text);
    opt_free(&p);
    str_free(&a);
    str_free(&j);
}

TEST(config_paths_count_from_its_folder) {
    char want[300];
    const char *path = t_file("c.yaml", "out: m.model\nlog: /tmp/x.csv\n");
    T_OK(config_load(path, &o));
    snprintf(want, sizeof want, "%s/m.model", t_dir());
    assert_string_equal(o.out, want);
    assert_string_equal(o.log, "/tmp/x.csv");
    T_FAILS(config_load("/nonexistent/c.yaml", &o), E701);
}

TEST(config_mistakes_are_named) {
    static const struct {
        const char *text;
        i32 code;
        const char *where, *says, *fix;
    } cases[] = {
        {"horzion: 24\n", E101, "1:1", "there is no option \"horzion\"", "horizon   (did you mean this?)"},
        {"a: {b: 1}\n", E104, "1:4", "a config file is flat", "name: value"},
        {"target: y\nmodel:\n  hidden: 3\n", E104, "3:3", "names within a value: a config file is flat", "name: value"},
        {"horzion: [1, 2]\n", E101, "1:1", "there is no option \"horzion\"", "horizon   (did you mean this?)"},
        {"--horizon: 3\n", E101, "1:1", "there is no option \"--horizon\"", "horizon "},
        {"config: x\n", E101, "1:1", "config is for the command line only", "remove"},
        {"horizon: many\n", E103, "1:10", "horizon \"many\" is not a whole number", "horizon: auto   (1 to 100000 steps)"},
        {"lr: 1\ndropout: 2\n", E103, "2:10", "dropout \"2\" is out of range: 0 to 0.95", "dropout: 0"},
        {"gaps: maks\n", E103, "1:7", "gaps \"maks\" is not one of", "gaps: mask"},
        {"horizon:\n", E103, "1:9", "horizon has no value", "horizon: auto   or remove the line"},
        {"\"horizon\": null\n", E103, "1:12", "\"null\" is not a whole number", "horizon: auto"},
        {"target: |\n  a\n  b\n", E103, "1:9", "holds a control character", "target:"},
        {"# x\n\thorizon: 2\n", E104, "2:1", "a tab in front of a line", "spaces"},
        {"horizon: 24\n  hidden: 3\n", E104, "1:10", "runs on into the next line", "first column"},
        {"  horizon: 24\nhidden: 3\n", E104, "2:1", "further in or out", "first column"},
        {"horizon: 2\nhidden: 3\nhorizon: 4\n", E104, "3:1", "horizon was set before, in line 1", "remove one"},
        {"{\"horizon\": 2, \"horizon\": 2}\n", E104, "1:16", "horizon was set before, in line 1", "remove one"},
        {"horizon 24\n", E104, "1:1", "\"horizon 24\" is not of the form", "horizon: 24"},
        {"hidden: 3\nhorizon 24\nbatch: 3\n", E104, "2:1", "without \": \"", "name: value"},
        {"horizon:24\n", E104, "1:1", "not of the form", "a colon and a space"},
        {"target: \"abc\nhidden: 3\n", E104, "1:9", "a quote that is never closed", "close the quote"},
        {"target: [a, b\nhidden: 3\n", E104, "1:13", "a list that is never closed", "[a, b]"},
        {"target: [a, {\nhidden: 3\n", E104, "1:13", "names within a list", "[a, "},
        {"target: [a b, \n", E104, "2:1", "a list that is never closed", "[a, b]"},
        {"", E104, "1:1", "holds no options", "horizon: 24"},
        {"# nothing\n", E104, "2:1", "holds no options", "horizon: 24"},
        {"hidden: &a 3\n", E104, "1:9", "anchors", "write the value out"},
        {"hidden: *a\n", E104, "1:9", "anchors", "write the value out"},
        {"hidden: !!int 3\n", E104, "1:9", "tags", "quotes"},
        {"hidden: {b: 1}\n", E104, "1:9", "names within a value", "name: value"},
        {"[a]: 3\n", E104, "1:1", "a list within a name", "name: value"},
        {"hidden: [1]\n", E104, "1:9", "hidden takes one value, not a list", "hidden: 32"},
        {"target: [a, [b]]\n", E104, "1:13", "a list within a list", "name: value"},
        {"- a\n", E104, "1:1", "the file is a list", "horizon: 24"},
        {"horizon: 1\n---\nhorizon: 2\n", E104, "2:1", "a second document", "one file for each"},
        {"target: a: b\n", E104, "1:10", "a second \": \"", "with colon"},
        {"target: @x\n", E104, "1:9", "a sign of YAML", "in quotes"},
        {"out: \"C:\\data\"\n", E104, "1:9", "a backslash", "single quotes"},
        {"target: \xe4hre\n", E104, "1:9", "not UTF-8", "UTF-8"},
        {"target: \xed\xa0\x80\n", E104, "1:9", "not UTF-8", "UTF-8"},
        {"\xff\xfe" "h", E104, "1:1", "not UTF-8", "UTF-8"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char where[64];
        const struct err_record *r = err_last();
        snprintf(where, sizeof where, "load.yaml:%s", cases[i].where);
        err e = parse(cases[i].text);
        bool told = strstr(r->text, cases[i].says) && strstr(r->fix, cases[i].fix);
        if (e != -cases[i].code || strcmp(r->where, where) != 0 || !told)
            fail_msg("case %zu:\n%s\ngot  E%d %s: %s | %s\nwant E%d %s: %s | %s", i, cases[i].text, -e, r->where, r->text, r->fix,
                     cases[i].code, where, cases[i].says, cases[i].fix);
    }
}

TEST(config_zero_byte_and_size_are_bounded) {
    T_FAILS(config_parse("na: a\0b\n", 8, "x", &o), E104);
    T_FAILS(config_parse("na: \"a\\0b\"\n", 11, "x", &o), E104);
    static char deep[20001];
    memset(deep, '[', 20000);
    assert_true(parse(deep) < 0);
}

TEST(config_every_allocation_may_fail) {
    i64 live = mem_stats().live;
    err e = -1;
    for (i64 n = 1; e < 0 && n < 2000; n++) {
        struct options p;
        mem_fail_nth(n);
        e = opt_defaults(&p, NULL);
        if (e >= 0) e = config_parse("target: [a, b]\nhorizon: 3\n", 26, "x", &p);
        mem_fail_nth(0);
        opt_free(&p);
        assert_true(e >= 0 || e == -E601);
        assert_int_equal(mem_stats().live, live);
    }
    T_OK(e);
}

T_MAIN(cmocka_unit_test_setup_teardown(config_sets_values_with_their_lines, fresh, done),
       cmocka_unit_test_setup_teardown(config_mark_of_the_encoding_is_no_column, fresh, done),
       cmocka_unit_test_setup_teardown(config_types_come_from_the_table_not_from_yaml, fresh, done),
       cmocka_unit_test_setup_teardown(config_loads_json, fresh, done),
       cmocka_unit_test_setup_teardown(config_flags_win_in_any_order, fresh, done),
       cmocka_unit_test_setup_teardown(config_dump_loads_again, fresh, done),
       cmocka_unit_test_setup_teardown(config_paths_count_from_its_folder, fresh, done),
       cmocka_unit_test_setup_teardown(config_mistakes_are_named, fresh, done),
       cmocka_unit_test_setup_teardown(config_zero_byte_and_size_are_bounded, fresh, done),
       cmocka_unit_test(config_every_allocation_may_fail))

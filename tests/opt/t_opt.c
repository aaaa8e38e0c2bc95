/* t_opt.c - the option table: values, messages, precedence, presets, dumps. */
#include "t.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "opt/opt.h"

static const struct opt_list lists[] = {
    {"cells", " lstm gru rnn"}, {"learners", "forecast"},
                                       {"heads", "direct parallel autoregressive"},
                                       {"losses", "mse mae quantile"}, {"optims", "sgd adam"}, {0}};

static struct options o;
static const struct opt_from file3 = {.rank = OPT_RANK_FILE, .origin = "load.yaml:3", .where = "load.yaml:3:9"};

static int fresh(void **state) {
    (void)state;
    return opt_defaults(&o, lists) < 0;
}
static int done(void **state) {
    (void)state;
    opt_free(&o);
    return 0;
}

#define SET(name, text) opt_set(&o, name, text, &OPT_FLAG)

/* The last error says all of these. */
static void says(const char *text, const char *fix) {
    const struct err_record *r = err_last();
    if (strcmp(r->text, text) != 0) fail_msg("text: got  %s\n      want %s", r->text, text);
    if (strcmp(r->fix, fix) != 0) fail_msg("fix: got  %s\n     want %s", r->fix, fix);
}

TEST(table_has_names_that_match_fields_and_defaults_that_load) {
    static const char *const field[] = {
#define OPT(TYPE, f, ...) #f,
#include "base/options.def"
#undef OPT
    };
    for (i32 i = 0; i < OPT_COUNT; i++) {
        const struct opt_info *info = opt_info((enum opt_id)i);
        const size_t n = strlen(info->name);
        const bool keyword = strcmp(field[i], "static_") == 0; /* of C */
        assert_int_equal(strlen(field[i]), n + keyword);
        for (size_t k = 0; k < n; k++) assert_int_equal(field[i][k] == '_' ? '-' : field[i][k], info->name[k]);
        assert_true(info->verbs != 0);
        assert_true(strlen(info->help) > 3 && strlen(info->help) <= 72);
        assert_int_equal(opt_find(info->name), i);
        if (!keyword) assert_int_equal(opt_find(field[i]), i);
        assert_int_equal(o.meta[i].rank, OPT_RANK_DEFAULT);
    }
}

TEST(defaults_fill_the_struct) {
    assert_int_equal(o.hidden, 32);
    assert_true(o.context == OPT_AUTO_INT && opt_is_auto(&o, OPT_context));
    assert_true(isnan(o.epochs));
    assert_float_equal(o.lr, 0.003, 0);
    assert_float_equal(o.checkpoint_every, 600, 0);
    assert_null(o.target);
    assert_true(o.guard && !o.json);
    assert_string_equal(o.gaps, "error");
    assert_false(opt_given(&o, OPT_lr));
}

TEST(set_takes_every_type) {
    T_OK(SET("context", "1e3"));
    assert_int_equal(o.context, 1000);
    T_OK(SET("lr", "5e-3"));
    assert_string_equal(opt_get_text(&o, "lr"), "0.005");
    T_OK(SET("time_limit", "1h30m"));
    assert_float_equal(o.time_limit, 5400, 0);
    T_OK(SET("memory", "1.5G"));
    assert_int_equal(o.memory, 3ll << 29);
    T_OK(SET("guard", "off"));
    assert_false(o.guard);
    T_OK(SET("sep", "\t"));
    assert_string_equal(o.sep, "tab");
    T_OK(SET("sep", ","));
    assert_string_equal(o.sep, "comma");
    T_OK(SET("quantiles", ".1, .5 ,0.90"));
    assert_string_equal(o.quantiles, "0.1,0.5,0.9");
    T_OK(SET("cell", "gru"));
    T_OK(SET("optim", "adam"));
    T_OK(SET("preset", "long"));
    T_OK(SET("target", "a b, c\\,d"));
    char item[16];
    const char *p = o.target;
    assert_true(str_list_next(&p, item, sizeof item));
    assert_string_equal(item, "a b");
    assert_true(str_list_next(&p, item, sizeof item));
    assert_string_equal(item, "c,d");
    assert_false(str_list_next(&p, item, sizeof item));
}

TEST(set_refuses_with_value_reason_and_fix) {
    T_FAILS(SET("horzion", "3"), E101);
    says("there is no option \"horzion\"", "--horizon   (did you mean this?)");
    T_FAILS(SET("context", "many"), E103);
    says("--context \"many\" is not a whole number", "--context auto   (1 to 1000000 steps)");
    T_FAILS(SET("context", "2.5"), E103);
    T_FAILS(SET("context", ""), E103);
    T_FAILS(SET("context", "0"), E103);
    says("--context \"0\" is out of range: 1 to 1000000", "--context auto   (1 to 1000000 steps)");
    T_FAILS(SET("lr", "nan"), E103);
    T_FAILS(SET("lr", "0x1p3"), E103);
    T_FAILS(SET("dropout", "1"), E103);
    says("--dropout \"1\" is out of range: 0 to 0.95", "--dropout 0   (0 to 0.95 share)");
    T_FAILS(SET("gaps", "maks"), E103);
    says("--gaps \"maks\" is not one of error, mask, interpolate, zero", "--gaps mask");
    T_FAILS(SET("cell", "lstn"), E103);
    says("--cell \"lstn\" is not one of lstm, gru, rnn", "--cell lstm");
    T_FAILS(SET("preset", "shrt"), E103);
    assert_string_equal(err_last()->fix, "--preset short");
    T_FAILS(SET("guard", "maybe"), E103);
    T_FAILS(SET("quantiles", "0.1,x"), E103);
    says("--quantiles \"x\" is not a number", "--quantiles 0.1,0.5,0.9   (0.001 to 0.999)");
    T_FAILS(SET("quantiles", "0.1,1.5"), E103);
    T_FAILS(SET("quantiles", ""), E103);
    T_FAILS(SET("target", "a,,b"), E103);
    T_FAILS(SET("time-limit", "10 minutes"), E103);
    T_FAILS(SET("memory", "8X"), E103);
    T_FAILS(SET("out", "a\nb"), E103);
    T_FAILS(opt_set(&o, "lr", "fast", &file3), E103);
    says("lr \"fast\" is not a number", "lr: 0.003   (0 to 10)");
    assert_string_equal(err_last()->where, "load.yaml:3:9");
    assert_int_equal(o.context, OPT_AUTO_INT); /* nothing was stored */
}

TEST(lower_rank_never_overrides_a_higher_one) {
    T_OK(SET("hidden", "64"));
    T_OK(opt_set(&o, "hidden", "48", &file3));
    T_OK(opt_set(&o, "lr", "0.01", &file3));
    T_OK(opt_preset(&o, "short"));
    assert_int_equal(o.hidden, 64);
    assert_string_equal(o.meta[OPT_hidden].origin, "flag");
    assert_string_equal(o.meta[OPT_hidden].preset, "32");
    assert_float_equal(o.lr, 0.01, 0);
    assert_string_equal(o.base, "mix");
    assert_string_equal(o.meta[OPT_base].origin, "preset short");
    T_OK(SET("hidden", "65")); /* the later one of the same rank */
    assert_int_equal(o.hidden, 65);
    T_OK(opt_set(&o, "hidden", "66", &OPT_API));
    T_OK(SET("hidden", "67"));
    assert_int_equal(o.hidden, 66);
    T_FAILS(opt_preset(&o, "panel"), E103);
}

TEST(presets_hold_values_that_load) {
    assert_true(preset_count() >= 2);
    for (i32 i = 0; i < preset_count(); i++) {
        struct options p;
        enum opt_id id;
        const char *text;
        T_OK(opt_defaults(&p, lists));
        T_OK(opt_preset(&p, preset_at(i)->name));
        i32 n = 0;
        while (preset_value(preset_at(i)->name, n, &id, &text)) n++;
        assert_true(n > 5);
        opt_free(&p);
    }
}

TEST(resolve_answers_auto_only) {
    T_OK(opt_resolve(&o, OPT_context, "72", "3 x horizon"));
    assert_int_equal(o.context, 72);
    assert_string_equal(o.meta[OPT_context].origin, "auto: 3 x horizon");
    assert_false(opt_is_auto(&o, OPT_context));
    T_OK(SET("horizon", "24"));
    T_OK(opt_resolve(&o, OPT_horizon, "12", "one season"));
    assert_int_equal(o.horizon, 24);
    T_OK(SET("segment", "auto"));
    T_OK(opt_resolve(&o, OPT_segment, "48", "horizon 96"));
    assert_int_equal(o.segment, 48);
}

TEST(dump_shows_origins_and_the_given_first) {
    struct str out = {0};
    T_OK(opt_set(&o, "time", "timestamp", &(struct opt_from){OPT_RANK_FILE, "load.yaml:1", NULL}));
    T_OK(opt_set(&o, "target", "value", &(struct opt_from){OPT_RANK_FILE, "load.yaml:3", NULL}));
    T_OK(opt_set(&o, "quantiles", "0.1,0.5", &(struct opt_from){OPT_RANK_FILE, "load.yaml:6", NULL}));
    T_OK(SET("hidden", "64"));
    T_OK(opt_preset(&o, "short"));
    T_OK(opt_resolve(&o, OPT_context, "72", "3 x horizon"));
    opt_dump(&o, 1u << VERB_train, &out);
    const char *want = "time: timestamp               # load.yaml:1\n"
                       "target: value                 # load.yaml:3\n"
                       "quantiles: [0.1, 0.5]         # load.yaml:6\n"
                       "hidden: 64                    # flag (preset short: 32)\n"
                       "context: 72                   # auto: 3 x horizon\n"
                       "segment: auto                 # preset short\n";
    if (strncmp(str_text(&out), want, strlen(want)) != 0) fail_msg("got\n%.400s", str_text(&out));
    assert_non_null(strstr(str_text(&out), "\ntask: forecast                # default\n"));
    assert_null(strstr(str_text(&out), "folds:"));
    str_free(&out);
}

TEST(dump_json_has_typed_values) {
    struct str out = {0};
    T_OK(SET("target", "a\"b,c"));
    opt_dump_json(&o, 1u << VERB_train, &out);
    assert_non_null(strstr(str_text(&out), "\"target\": [\"a\\\"b\", \"c\"]"));
    assert_non_null(strstr(str_text(&out), "\"hidden\": 32,"));
    assert_non_null(strstr(str_text(&out), "\"context\": \"auto\","));
    assert_non_null(strstr(str_text(&out), "\"guard\": true,"));
    str_free(&out);
    opt_dump_origins(&o, 1u << VERB_train, &out);
    assert_non_null(strstr(str_text(&out), "\"target\": \"flag\""));
    str_free(&out);
}

TEST(copy_keeps_values_and_origins) {
    struct options c;
    struct str a = {0}, b = {0};
    T_OK(SET("hidden", "64"));
    T_OK(opt_set(&o, "target", "x,y", &file3));
    T_OK(opt_preset(&o, "long"));
    T_OK(opt_resolve(&o, OPT_context, "336", "enough rows"));
    T_OK(opt_copy(&c, &o));
    opt_dump(&o, ~0u, &a);
    opt_dump(&c, ~0u, &b);
    assert_string_equal(str_text(&a), str_text(&b));
    assert_true(c.target != o.target);
    str_free(&a);
    str_free(&b);
    opt_free(&c);
}

TEST(check_refuses_contradictions) {
    T_OK(opt_check(&o));
    T_OK(SET("steps", "10"));
    T_OK(opt_check(&o));
    T_OK(SET("epochs", "3"));
    T_FAILS(opt_check(&o), E106);
    says("--steps (flag) and --epochs (flag) say the same thing twice", "leave out --steps 10   or   leave out --epochs 3");
}

TEST(times_and_sizes_parse) {
    f64 s;
    i64 b;
    assert_true(str_time("90", &s) && s == 90);
    assert_true(str_time("1h30m", &s) && s == 5400);
    assert_true(str_time("1d2.5s", &s) && s == 86402.5);
    assert_true(str_time("200ms", &s) && s == 0.2);
    assert_false(str_time("", &s) || str_time("h", &s) || str_time("1x", &s) || str_time("1h 2m", &s) || str_time("-", &s));
    assert_true(str_size("4096", &b) && b == 4096);
    assert_true(str_size("512M", &b) && b == 512ll << 20);
    assert_true(str_size("8GiB", &b) && b == 8ll << 30);
    assert_true(str_size("2kB", &b) && b == 2048);
    assert_false(str_size("", &b) || str_size("M", &b) || str_size("8Gx", &b) || str_size("-1", &b) || str_size("99999999T", &b));
}

/* Every allocation of a short life refused in turn: an error each time, no leak. */
TEST(every_allocation_may_fail) {
    i64 live = mem_stats().live;
    err e = -1;
    for (i64 n = 1; e < 0 && n < 2000; n++) {
        struct options p, q = {0};
        struct str s = {0};
        mem_fail_nth(n);
        e = opt_defaults(&p, lists);
        if (e >= 0) e = opt_set(&p, "target", "a,b", &OPT_FLAG);
        if (e >= 0) e = opt_preset(&p, "long");
        if (e >= 0) e = opt_copy(&q, &p);
        if (e >= 0) opt_dump(&p, ~0u, &s), e = str_ok(&s);
        mem_fail_nth(0);
        str_free(&s);
        opt_free(&q);
        opt_free(&p);
        assert_true(e >= 0 || e == -E601);
        assert_int_equal(mem_stats().live, live);
    }
    T_OK(e);
}

T_MAIN(cmocka_unit_test_setup_teardown(table_has_names_that_match_fields_and_defaults_that_load, fresh, done),
       cmocka_unit_test_setup_teardown(defaults_fill_the_struct, fresh, done),
       cmocka_unit_test_setup_teardown(set_takes_every_type, fresh, done),
       cmocka_unit_test_setup_teardown(set_refuses_with_value_reason_and_fix, fresh, done),
       cmocka_unit_test_setup_teardown(lower_rank_never_overrides_a_higher_one, fresh, done),
       cmocka_unit_test_setup_teardown(presets_hold_values_that_load, fresh, done),
       cmocka_unit_test_setup_teardown(resolve_answers_auto_only, fresh, done),
       cmocka_unit_test_setup_teardown(dump_shows_origins_and_the_given_first, fresh, done),
       cmocka_unit_test_setup_teardown(dump_json_has_typed_values, fresh, done),
       cmocka_unit_test_setup_teardown(copy_keeps_values_and_origins, fresh, done),
       cmocka_unit_test_setup_teardown(check_refuses_contradictions, fresh, done),
       cmocka_unit_test(times_and_sizes_parse), cmocka_unit_test(every_allocation_may_fail))

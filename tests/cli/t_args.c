/* t_args.c - the command line: forms of options, arguments, and what is said about mistakes. */
#include "t.h"

#include <stdio.h>
#include <string.h>

#include "args.h"
#include "remedy.h"

static struct options o;
static struct args a;

static int fresh(void **state) {
    (void)state;
    return opt_defaults(&o, NULL) < 0;
}
static int done(void **state) {
    (void)state;
    opt_free(&o);
    return 0;
}

/* Parse a line of words separated by spaces. */
static err line(const char *text) {
    static char buf[512];
    char *argv[32];
    i32 argc = 0;
    snprintf(buf, sizeof buf, "%s", text);
    for (char *s = buf; *s;) {
        argv[argc++] = s;
        s += strcspn(s, " ");
        if (*s) *s++ = 0;
    }
    return args_parse(argc, argv, &o, &a);
}

static void says(const char *text, const char *fix) {
    const struct err_record *r = err_last();
    if (strcmp(r->text, text) != 0) fail_msg("text: got  %s\n      want %s", r->text, text);
    if (strcmp(r->fix, fix) != 0) fail_msg("fix: got  %s\n     want %s", r->fix, fix);
}

TEST(args_takes_every_form) {
    T_OK(line("stretto train a.csv --target ot --horizon=96 -o m.model --no-guard -q --json=no --lr 1e-2"));
    assert_int_equal(a.verb, VERB_train);
    assert_int_equal(a.narg, 1);
    assert_string_equal(a.arg[0], "a.csv");
    assert_string_equal(o.target, "ot");
    assert_int_equal(o.horizon, 96);
    assert_string_equal(o.out, "m.model");
    assert_true(!o.guard && o.quiet && !o.json);
    assert_float_equal(o.lr, 0.01, 0);
    assert_string_equal(o.meta[OPT_lr].origin, "flag");
    assert_false(a.help);
    T_OK(line("stretto predict -om.csv m -- --odd=name.csv"));
    assert_string_equal(o.out, "m.csv");
    assert_string_equal(a.arg[1], "--odd=name.csv");
    T_OK(line("stretto train x=y.csv --na -"));
    assert_string_equal(a.arg[0], "x=y.csv");
    assert_string_equal(o.na, "-");
}

TEST(args_list_given_again_goes_on) {
    T_OK(line("stretto train x.csv --na A --na B,C --ignore u --horizon 3 --horizon 4"));
    assert_string_equal(o.na, "A,B,C");
    assert_string_equal(o.ignore, "u");
    assert_int_equal(o.horizon, 4); /* of one value the last holds */
    const struct opt_from file = {.rank = OPT_RANK_FILE};
    T_OK(opt_set_id(&o, OPT_past, "p", &file));
    T_OK(line("stretto train x.csv --past q")); /* a flag takes the place of the file's list */
    assert_string_equal(o.past, "q");
}

TEST(args_alone_asks_for_help) {
    T_OK(line("stretto"));
    assert_true(a.help && a.verb == -1);
    T_OK(line("stretto --help"));
    assert_true(a.help && a.verb == -1);
    T_OK(line("stretto train"));
    assert_true(a.help && a.missing && a.verb == VERB_train);
    T_FAILS(args_missing(&a), E105);
    says("train needs an argument, 0 given", "stretto train DATA [-o MODEL]");
    T_OK(line("stretto predict"));
    T_FAILS(args_missing(&a), E105);
    says("predict needs two arguments, 0 given", "stretto predict MODEL DATA -o OUT");
    T_OK(line("stretto submit"));
    T_FAILS(args_missing(&a), E105);
    says("submit needs a command line after --", "stretto submit -- train DATA .. | resume RUN");
    T_OK(line("stretto train -h"));
    assert_true(a.help && !a.missing);
    T_OK(line("stretto plan"));
    assert_true(a.help && !a.missing);
    T_OK(line("stretto bench"));
    assert_false(a.help);
    T_OK(line("stretto --version --json"));
    assert_true(a.version && o.json);
}

TEST(args_refuse_with_the_nearest_name) {
    T_FAILS(line("stretto trian a.csv"), E101);
    says("there is no verb \"trian\"", "stretto train   (did you mean this? stretto alone lists the verbs)");
    T_FAILS(line("stretto --quiet train a.csv"), E101);
    T_FAILS(line("stretto train a.csv --horzion 3"), E101);
    says("there is no option \"--horzion\"", "--horizon   (did you mean this?)");
    T_FAILS(line("stretto train a.csv --hor=3"), E101);
    T_FAILS(line("stretto train a.csv -z"), E101);
    T_FAILS(line("stretto train a.csv hidden=64"), E101);
    says("\"hidden=64\": options are written with two dashes", "--hidden 64");
    T_FAILS(line("stretto train a.csv b.csv"), E101);
    says("unexpected argument \"b.csv\"", "stretto train DATA [-o MODEL]");
    T_FAILS(line("stretto predict m.model a.csv --target ot"), E101);
    says("predict takes no --target; it is an option of check, train, backtest, tune, cache, plan",
         "leave out --target   (the model file knows its columns and settings)");
    T_FAILS(line("stretto backtest a.csv --no-horizon"), E101);
    T_FAILS(line("stretto backtest a.csv -qj"), E101);
}

TEST(args_refuse_bad_and_missing_values) {
    T_FAILS(line("stretto train a.csv --target --horizon 3"), E103);
    says("--target needs a value, and what follows is --horizon", "--target COL,..");
    T_FAILS(line("stretto train a.csv --gaps"), E103);
    says("--gaps needs a value", "--gaps error|mask|interpolate|zero");
    T_FAILS(line("stretto train a.csv --no-guard=yes"), E103);
    T_FAILS(line("stretto train a.csv --hidden x"), E103);
    T_FAILS(line("stretto predict m.model -o x.csv"), E105);
    says("predict needs two arguments, 1 given", "stretto predict MODEL DATA -o OUT");
    T_FAILS(line("stretto train -o m"), E105);
    says("train needs an argument, 0 given", "stretto train DATA [-o MODEL]");
}

static void fits(enum verb verb, const char *fix, const char *want) {
    struct str out = {0};
    cli_fit_remedy(verb, fix, &out);
    if (strcmp(str_text(&out), want) != 0) fail_msg("\"%s\" becomes\n     \"%s\"\nwant \"%s\"", fix, str_text(&out), want);
    str_free(&out);
}

TEST(remedies_name_options_that_the_verb_takes) {
    fits(VERB_train, "--least-rows 2   (leave such series out)", "--least-rows 2   (leave such series out)");
    fits(VERB_resume, "--least-rows 2   (leave such series out)", "a new run with --least-rows 2   (leave such series out)");
    fits(VERB_resume, "--ranks 2   or   --cat x   or   repair the line", "--ranks 2   or   repair the line");
    fits(VERB_predict, "--na '#'   (it means missing)   or   --cat x   or   --ignore x", "--na '#'   (it means missing)");
    fits(VERB_eval, "--time-format '%d.%m.%y'   or   --time-format row", "a model trained with --time-format '%d.%m.%y'");
    fits(VERB_resume, "make room, or another place: --run-dir OTHER/NAME", "make room");
    fits(VERB_resume, "stretto train DATA (--horizon N)", "stretto train DATA (--horizon N)");
    fits(VERB_predict, "--gaps mask\n--header yes   or   --dups mean", "--gaps mask\n--dups mean");
    fits(VERB_predict, "leave out --target", "leave out --target");
    fits(VERB_predict, "", "");
}

T_MAIN(cmocka_unit_test(remedies_name_options_that_the_verb_takes),
       cmocka_unit_test_setup_teardown(args_takes_every_form, fresh, done),
       cmocka_unit_test_setup_teardown(args_list_given_again_goes_on, fresh, done),
       cmocka_unit_test_setup_teardown(args_alone_asks_for_help, fresh, done),
       cmocka_unit_test_setup_teardown(args_refuse_with_the_nearest_name, fresh, done),
       cmocka_unit_test_setup_teardown(args_refuse_bad_and_missing_values, fresh, done))

/* t_spec.c - options reach the structs of modules under their names, and a model file gives the spec back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/lists.h"
#include "base/mem.h"
#include "learn/forecast/resolve.h"
#include "model/cell/cell.h"
#include "stretto/stretto.h"
#include "t.h"

static struct options o;

static void set(const char *name, const char *text) { T_OK(opt_set(&o, name, text, &OPT_FLAG)); }

/* Each word of an ENUM option has the value of its enumerator. */
TEST(words_are_enumerators) {
    static const struct {
        const char *name, *word;
        u32 value;
    } words[] = {{"schedule", "constant", SCHEDULE_CONSTANT}, {"schedule", "cosine", SCHEDULE_COSINE},
                 {"schedule", "linear", SCHEDULE_LINEAR},     {"schedule", "step", SCHEDULE_STEP},
                 {"precision", "fp32", PREC_F32},             {"precision", "bf16", PREC_BF16},
                 {"scale", "none", WSCALE_NONE},              {"scale", "series", WSCALE_SERIES},
                 {"scale", "window", WSCALE_WINDOW},          {"scale", "last", WSCALE_LAST},
                 {"scale", "mean", WSCALE_MEAN},              {"calendar", "yes", CALENDAR_YES},
#define CELL(name) {"cell", #name, CELL_AT_##name},
#include "model/cell/cells.def"
#undef CELL
    };
    T_OK(opt_defaults(&o, api_lists()));
    for (size_t i = 0; i < COUNT(words); i++) {
        struct forecast_spec spec;
        set(words[i].name, words[i].word);
        T_OK(spec_of(&o, &spec));
        const u32 of[] = {spec.schedule, spec.precision, spec.cell, spec.scale, spec.calendar};
        static const char *const name[] = {"schedule", "precision", "cell", "scale", "calendar"};
        for (size_t k = 0; k < COUNT(of); k++)
            if (strcmp(words[i].name, name[k]) == 0) assert_int_equal(of[k], words[i].value);
    }
    opt_free(&o);
}

TEST(values_reach_the_spec_under_their_names) {
    struct forecast_spec spec;
    T_OK(opt_defaults(&o, api_lists()));
    set("hidden", "7"), set("dropout", "0.3"), set("lr", "0.1"), set("seed", "4294967295"), set("weight-decay", "0.01");
    set("members", "3"), set("refit-all", "yes"), set("time-limit", "2m"), set("loss", "mae"), set("head", "quantile");
    T_OK(spec_of(&o, &spec));
    assert_int_equal(spec.hidden, 7);
    assert_true(spec.dropout == 0.3f && spec.weight_decay == 0.01f && spec.lr == 0.1);
    assert_true(spec.seed == 4294967295 && spec.time_limit == 120);
    assert_true(spec.members == 3 && spec.refit_all && strcmp(spec.loss, "mae") == 0 && spec.nquantile == 3);
    assert_true(spec.steps == 0 && spec.epochs == 0 && spec.horizon == 0); /* auto without an answer */
    assert_true(spec.for_net.hidden == 7 && spec.for_loop.lr == 0.1 && spec.for_optim.weight_decay == 0.01f);
    opt_free(&o);
}

/* A file of the first versions: the fields of the spec stand in its description too; bands are in units of the divisor. */
TEST(a_model_of_the_first_versions_forecasts_the_same) {
    static const char *const want[] = {"1961-01,1,417.23862,420.808,465.00485,482.9013\n",
                                       "1961-02,2,391.23856,394.80966,439.00192,456.90372\n",
                                       "1961-03,3,419.23862,422.80493,467.0026,484.90256\n"};
    char path[600], data[600], *text = NULL;
    const char *source = getenv("STRETTO_SOURCE");
    stretto_model *m;
    stretto_data *d;
    if (!source) skip();
    snprintf(path, sizeof path, "%s/tests/learn/spec_in_forecast.model", source);
    snprintf(data, sizeof data, "%s/examples/airline-passengers.csv", source);
    T_OK(stretto_model_load(path, &m));
    assert_true(stretto_model_horizon(m) == 3 && stretto_model_context(m) == 4 && stretto_model_quantiles(m) == 3);
    T_OK(stretto_model_open(m, data, &d));
    T_OK(stretto_predict_file(m, d, "-", 0, &text));
    for (size_t i = 0; i < COUNT(want); i++)
        if (!strstr(text, want[i])) fail_msg("no %s in\n%s", want[i], text);
    stretto_text_free(text);
    stretto_data_free(d);
    stretto_model_free(m);
}

T_MAIN(cmocka_unit_test(words_are_enumerators), cmocka_unit_test(values_reach_the_spec_under_their_names),
       cmocka_unit_test(a_model_of_the_first_versions_forecasts_the_same))

/* t_onnx.c - models that leave as ONNX and come in from it, through the public interface. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stretto/stretto.h"
#include "t.h"

static const char *in_dir(const char *name, char out[512]) {
    snprintf(out, 512, "%.400s/%s", t_dir(), name);
    return out;
}

/* A forecaster of a short series. */
static stretto_trainer *trained(stretto_config *c, stretto_data **d) {
    static double y[160];
    static const char *const names[] = {"y"};
    stretto_trainer *t;
    for (int i = 0; i < 160; i++) y[i] = 50 + i % 8 + 0.1 * (i % 3);
    static const char *const set[][2] = {{"target", "y"},  {"horizon", "4"}, {"preset", "none"},
                                         {"context", "8"}, {"steps", "5"},   {"base", "ridge"},
                                         {"hidden", "8"},  {"threads", "1"}, {"quantiles", "0.1,0.9"}};
    for (size_t i = 0; i < COUNT(set); i++) T_OK(stretto_config_set(c, set[i][0], set[i][1]));
    T_OK(stretto_data_wrap(c, y, 160, 1, names, 0, 0, d));
    T_OK(stretto_trainer_new(c, *d, &t));
    assert_true(stretto_trainer_run(t) >= 0);
    return t;
}

TEST(a_forecaster_exports_and_the_file_is_checked_where_there_is_a_runtime) {
    char path[512], *said = NULL;
    double worst = 0;
    stretto_data *d;
    stretto_config *c = stretto_config_new();
    stretto_trainer *t = trained(c, &d);
    stretto_model *m = stretto_trainer_model(t);
    T_OK(stretto_model_export_onnx(m, in_dir("m.onnx", path), 0));
    T_OK(stretto_model_check_onnx(m, NULL, path, 0, &worst, &said)); /* the file alone */
    assert_true(isnan(worst) && strstr(said, "ONNX Runtime"));
    const bool here = !strstr(said, "not checked");
    stretto_text_free(said);
    if (here) T_OK(stretto_model_check_onnx(m, d, path, 0, &worst, &said));
    else T_FAILS(stretto_model_check_onnx(m, d, path, 0, &worst, &said), 907);
    assert_true(here ? worst < 1e-5 : isnan(worst));
    stretto_text_free(said);
    T_FAILS(stretto_model_export_onnx(m, "/no/such/folder/m.onnx", 0), 702);
    T_FAILS(stretto_network_run(m, NULL, 1, 1, NULL), 106);
    stretto_trainer_free(t);
    stretto_data_free(d);
    stretto_config_free(c);
}

TEST(the_node_test_of_onnx_passes_and_batches_run) {
    char data[4600], model[4600], path[512], *said = NULL;
    int inputs, outputs, every;
    stretto_model *m, *again;
    const char *folder = t_shared("onnx_node_tests/test_lstm_defaults");
    snprintf(model, sizeof model, "%.4000s/model.onnx", folder);
    snprintf(data, sizeof data, "%.4000s/test_data_set_0", folder);
    T_OK(stretto_import_onnx(model, data, &m, &said));
    assert_non_null(strstr(said, "largest difference"));
    stretto_text_free(said);
    T_OK(stretto_network_shape(m, &inputs, &outputs, &every));
    assert_true(inputs == 2 && outputs == 3 && every == 0);
    T_OK(stretto_model_save(m, in_dir("n.model", path)));
    T_OK(stretto_model_load(path, &again));
    /* one step of three sequences, together and one by one, from the file and from memory */
    const float x[] = {1, 2, 3, 4, 5, 6};
    float y[9], one[3];
    T_OK(stretto_network_run(m, x, 1, 3, y));
    for (int b = 0; b < 3; b++) {
        T_OK(stretto_network_run(again, x + 2 * b, 1, 1, one));
        for (int j = 0; j < 3; j++) assert_true(fabsf(one[j] - y[3 * b + j]) < 1e-6F);
    }
    T_FAILS(stretto_network_run(m, x, 0, 1, y), 103);
    stretto_model_free(again);
    stretto_model_free(m);
}

TEST(a_file_that_is_no_graph_is_refused) {
    stretto_model *m;
    T_FAILS(stretto_import_onnx(t_file("a.onnx", "no graph"), NULL, &m, NULL), 905);
    assert_null(m);
}

T_MAIN(cmocka_unit_test(a_forecaster_exports_and_the_file_is_checked_where_there_is_a_runtime),
       cmocka_unit_test(the_node_test_of_onnx_passes_and_batches_run), cmocka_unit_test(a_file_that_is_no_graph_is_refused))

/* train_and_predict.c - the shortest way from a file to a forecast: read, train, score, save, load, predict.
 *
 *     cc train_and_predict.c $(pkg-config --cflags --libs stretto) \
 *         -Wl,-rpath,$(pkg-config --variable=libdir stretto) -o train_and_predict
 *     ./train_and_predict airline-passengers.csv Passengers 12
 */
#include <stdio.h>
#include <stdlib.h>

#include "stretto/stretto.h"

/* What failed, where and how to mend it; the exit status that the program `stretto` would give. */
static int failed(stretto_err e) {
    fprintf(stderr, "error[E%03d] %s%s%s\n", stretto_errcode(), stretto_errwhere(), *stretto_errwhere() ? ": " : "",
            stretto_errmsg());
    if (*stretto_errfix()) fprintf(stderr, "  fix: %s\n", stretto_errfix());
    return stretto_exit_status(e);
}

static stretto_err train(stretto_config *config, stretto_data *data, const char *model_path) {
    stretto_trainer *t = NULL;
    stretto_err e = stretto_trainer_new(config, data, &t);
    if (e >= 0) e = stretto_trainer_run(t); /* > 0: why it stopped, for example STRETTO_STOP_STEPS */
    if (e > 0) printf("stopped: %s\n", stretto_stop_text(e));
    if (e >= 0) e = stretto_trainer_save(t, model_path);
    if (e >= 0)
        printf("%sskill %+.1f%% against the best naive forecast\n", stretto_trainer_scores(t, 0), 100 * stretto_trainer_skill(t));
    stretto_trainer_free(t);
    return e;
}

/* A model knows the columns it was trained on: no options are needed to read new rows. */
static stretto_err predict(const char *model_path, const char *data_path) {
    stretto_model *m = NULL;
    stretto_data *d = NULL;
    double *mean = NULL;
    stretto_err e = stretto_model_load(model_path, &m);
    if (e >= 0) e = stretto_model_open(m, data_path, &d);
    int horizon = e >= 0 ? stretto_model_horizon(m) : 0, targets = e >= 0 ? stretto_model_targets(m) : 0;
    if (e >= 0) {
        mean = malloc(sizeof *mean * (size_t)horizon * (size_t)targets); /* [horizon][targets] */
        e = mean ? stretto_predict(m, d, mean, NULL) : -1;
    }
    for (int k = 0; e >= 0 && k < horizon; k++)
        for (int c = 0; c < targets; c++) printf("%s step %d: %.1f\n", stretto_model_target(m, c), k + 1, mean[k * targets + c]);
    free(mean);
    stretto_data_free(d);
    stretto_model_free(m);
    return e;
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s DATA TARGET HORIZON\n", argv[0]);
        return 2;
    }
    const char *model_path = "example.model";
    stretto_data *data = NULL;
    stretto_config *config = stretto_config_new(); /* every option of `stretto help`, by name */
    stretto_err e = config ? 0 : -601;
    if (e >= 0) e = stretto_config_set(config, "target", argv[2]);
    if (e >= 0) e = stretto_config_set(config, "horizon", argv[3]);
    if (e >= 0) e = stretto_data_open(config, argv[1], &data);
    if (e >= 0) puts(stretto_data_summary(data));
    if (e >= 0) e = train(config, data, model_path);
    if (e >= 0) e = predict(model_path, argv[1]);
    stretto_data_free(data);
    stretto_config_free(config);
    return e < 0 ? failed(e) : 0;
}

/* forecast_from_memory.c - no files: rows from memory, two columns, quantiles beside the mean.
 *
 *     columns [2][ROWS] --stretto_data_wrap--> data --trainer--> model --stretto_predict--> mean [h][2], quantiles [h][2][q]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stretto/stretto.h"

enum { ROWS = 600, COLUMNS = 2, HORIZON = 24 };

/* A day and a week of an hourly load, and its neighbour. */
static void make(double *v) {
    unsigned noise = 1;
    for (int i = 0; i < ROWS; i++) {
        noise = noise * 1664525u + 1013904223u;
        double day = sin(6.283185307 * i / 24), week = sin(6.283185307 * i / 168), n = noise / 4294967296.0 - 0.5;
        v[i] = 100 + 30 * day + 10 * week + 4 * n;
        v[ROWS + i] = 40 + 8 * day * day + 2 * n;
    }
    v[17] = (double)NAN; /* a missing value */
}

static stretto_err show(stretto_trainer *t, stretto_data *data) {
    stretto_model *m = stretto_trainer_model(t); /* borrowed from the trainer */
    int nq = stretto_model_quantiles(m);
    double mean[HORIZON * COLUMNS], *q = malloc(sizeof(double) * HORIZON * COLUMNS * (size_t)(nq > 0 ? nq : 1));
    stretto_err e = q ? stretto_predict(m, data, mean, q) : -601;
    for (int k = 0; e >= 0 && k < HORIZON; k += 6)
        for (int c = 0; c < COLUMNS; c++) {
            int at = k * COLUMNS + c;
            printf("%-6s +%2dh  %7.2f", stretto_model_target(m, c), k + 1, mean[at]);
            for (int i = 0; i < nq; i++) printf("  q%g %7.2f", stretto_model_quantile(m, i), q[at * nq + i]);
            putchar('\n');
        }
    free(q);
    return e;
}

int main(void) {
    static double values[COLUMNS * ROWS];
    static const char *const names[COLUMNS] = {"load", "losses"};
    static const char *const options[][2] = {
        {"horizon", "24"}, {"context", "48"}, {"gaps", "mask"}, {"steps", "60"}, {"hidden", "16"}};
    stretto_config *config = stretto_config_new();
    stretto_data *data = NULL;
    stretto_trainer *t = NULL;
    stretto_err e = config ? 0 : -601;
    make(values);
    for (size_t i = 0; e >= 0 && i < sizeof options / sizeof *options; i++)
        e = stretto_config_set(config, options[i][0], options[i][1]);
    if (e >= 0) e = stretto_data_wrap(config, values, ROWS, COLUMNS, names, 1577836800 /* 2020-01-01 */, 3600, &data);
    if (e >= 0) e = stretto_trainer_new(config, data, &t);
    if (e >= 0) e = stretto_trainer_run(t);
    if (e >= 0) fputs(stretto_trainer_scores(t, 0), stdout);
    if (e >= 0) e = show(t, data);
    if (e < 0) fprintf(stderr, "error[E%03d] %s\n", stretto_errcode(), stretto_errmsg());
    stretto_trainer_free(t);
    stretto_data_free(data);
    stretto_config_free(config);
    return stretto_exit_status(e < 0 ? e : 0);
}

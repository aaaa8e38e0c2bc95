/* api_data.c - data handles: turns files and arrays into the data set of the learner of --task. */
#include <math.h>

#include "api/host_data.h"
#include "data/sample.h"
#include "learn/series_set.h"

err data_handle(struct dataset *set, stretto_data **out) {
    stretto_data *d = mem_alloc(sizeof *d);
    if (!d) {
        dataset_free(set);
        return -E601;
    }
    d->set = set;
    *out = d;
    return 0;
}

stretto_err stretto_data_open(stretto_config *config, const char *path, stretto_data **out) {
    const struct learner *learner;
    struct dataset *set = NULL;
    *out = NULL;
    TRY(learner_of(&config->o, &learner));
    TRY(opt_check(&config->o));
    mem_set_limit(config->o.memory);
    TRY(host_data_read(&config->o, config->comm, learner->data, path, &set));
    return data_handle(set, out);
}

stretto_err stretto_data_wrap(stretto_config *config, const double *values, int64_t nrow, int ncol, const char *const *names,
                              int64_t first_time, int64_t step_seconds, stretto_data **out) {
    const struct memory_columns from = {values, nrow, ncol, names, first_time, step_seconds};
    const struct learner *learner;
    struct dataset *set = NULL;
    *out = NULL;
    TRY(learner_of(&config->o, &learner));
    if (!learner->data->wrap)
        return FAIL_AT(E106, "--task", "stretto_data_open", "data of the kind %s come from files alone", learner->data->name);
    TRY(learner->data->wrap(&config->o, &from, &set));
    return data_handle(set, out);
}

void stretto_data_free(stretto_data *self) {
    if (!self) return;
    dataset_free(self->set);
    mem_free(self);
}

int64_t stretto_data_rows(const stretto_data *self) { return self->set->nrow; }
int stretto_data_columns(const stretto_data *self) { return self->set->ncol; }
int stretto_data_targets(const stretto_data *self) { return self->set->ntarget; }
const char *stretto_data_summary(stretto_data *self) { return self->set->summary; }

const char *stretto_data_column(const stretto_data *self, int i) {
    return i >= 0 && i < self->set->ncol ? self->set->kind->column(self->set, i) : NULL;
}

double stretto_data_value(const stretto_data *self, int column, int64_t row) {
    const struct dataset *d = self->set;
    return column >= 0 && column < d->ncol && row >= 0 && row < d->nrow ? d->kind->value(d, column, row) : (f64)NAN;
}

stretto_err stretto_cache(stretto_config *config, const char *path, const char *out_path) {
    struct read_options r = read_options_of(&config->o);
    struct table *t = NULL;
    err e = table_read(path, &r, &t);
    if (e >= 0) e = table_write_cache(t, out_path);
    table_free(t);
    return e;
}

stretto_err stretto_sample(const char *name, int64_t rows, uint64_t seed, char **csv_out) {
    struct str text = {0};
    err e = sample_write(name, rows, seed, &text);
    return text_end(e, &text, csv_out);
}

const char *stretto_samples(void) { return sample_list(); }

/* watch_events.c - a progress bar of one's own, and a run that is stopped and resumed with the bits of an unbroken one.
 *
 *     first run   ####......  stretto_trainer_stop at step 40  -> STRETTO_STOP_SIGNAL, a checkpoint in the run folder
 *     second run      ######  resume = 1                       -> the rest, and the model
 */
#include <math.h>
#include <stdio.h>

#include "stretto/stretto.h"

struct watcher {
    stretto_trainer *trainer;
    long long stop_at; /* 0 = never */
    int validations;
};

/* Called on the thread that called stretto_trainer_run; kind: 0 note, 1 warning, 2 begin, 3 step, 4 validation, 5 saved, 6 end.
 */
static void on_event(void *user, const stretto_event *e) {
    struct watcher *w = user;
    if (e->kind <= 1) printf("%s %s\n", e->kind ? "!" : "-", e->text);
    if (e->kind == 4) {
        w->validations++;
        printf("  step %4lld of %lld  train %.4f  valid %.4f%s\n", (long long)e->step, (long long)e->steps,
               isnan(e->train) ? 0 : e->train, e->valid, e->best ? "  best" : "");
    }
    if (w->stop_at && e->step >= w->stop_at)
        stretto_trainer_stop(w->trainer); /* a signal handler or another thread may do this too */
}

static stretto_err run(stretto_config *config, const char *path, int resume, long long stop_at) {
    struct watcher w = {.stop_at = stop_at};
    stretto_data *data = NULL; /* one for each run: a trainer borrows it until it is freed */
    stretto_err e = stretto_data_open(config, path, &data);
    if (e >= 0) e = stretto_trainer_new(config, data, &w.trainer);
    if (e >= 0) {
        stretto_trainer_on_event(w.trainer, on_event, &w);
        e = stretto_trainer_run_dir(w.trainer, "example.run", resume);
    }
    if (e >= 0) e = stretto_trainer_run(w.trainer);
    if (e > 0 && e != STRETTO_STOP_SIGNAL) {
        stretto_err saved = stretto_trainer_report(w.trainer, "example.run/report.html");
        if (saved < 0) e = saved;
    }
    if (e > 0) printf("%s after %d validations\n", stretto_stop_text(e), w.validations);
    stretto_trainer_free(w.trainer);
    stretto_data_free(data);
    return e;
}

int main(int argc, char **argv) {
    static const char *const options[][2] = {{"target", "Passengers"}, {"horizon", "12"}, {"members", "1"}, {"steps", "100"}};
    stretto_config *config = stretto_config_new();
    stretto_err e = config ? 0 : -601;
    if (argc != 2) {
        fprintf(stderr, "usage: %s airline-passengers.csv\n", argv[0]);
        stretto_config_free(config);
        return 2;
    }
    for (size_t i = 0; e >= 0 && i < sizeof options / sizeof *options; i++)
        e = stretto_config_set(config, options[i][0], options[i][1]);
    if (e >= 0) e = run(config, argv[1], 0, 40);
    if (e == STRETTO_STOP_SIGNAL) e = run(config, argv[1], 1, 0);
    if (e < 0) fprintf(stderr, "error[E%03d] %s\n  fix: %s\n", stretto_errcode(), stretto_errmsg(), stretto_errfix());
    stretto_config_free(config);
    return stretto_exit_status(e < 0 ? e : 0);
}

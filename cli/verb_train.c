/* verb_train.c - `train` and `resume`: fit, score, save, report. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/mirror.h"
#include "base/file.h"
#include "base/input.h"
#include "signals.h"

/* Read by the signal handler only. */
static stretto_trainer *volatile running;
static volatile bool among, trained; /* among: as in struct cli; trained: only scores and outputs remain */
static char stop_text[CLI_PATH + 200]; /* message on the first signal; "" = none */
static const char too_early[] = "asked to stop before the training has begun: continue with the same command\n";
static const char too_late[] = "\nthe training is over and its results are being written; Ctrl-C again stops at once\n";

static void on_stop(bool first) {
    if (first && stop_text[0]) cli_say_stop(trained ? too_late : running || !among ? stop_text : too_early);
    if (running) stretto_trainer_stop(running);
}

/* What a command that reads the data again begins with: standard input has to come again. */
static const char *feed_of(const char *data_path) { return input_is(data_path) ? "cat DATA | " : ""; }

/* A launcher may end its ranks a second later, so the message says at once how to continue. */
static void catch_signals(const struct cli *c, const char *run_dir) {
    among = c->among;
    if (c->among)
        snprintf(stop_text, sizeof stop_text, "asked to stop: a checkpoint is written, if the launcher waits for it; "
                 "continue with\n  stretto resume %s\n", run_dir);
    else if (isatty(STDERR_FILENO))
        snprintf(stop_text, sizeof stop_text, "\nstopping after this step; Ctrl-C again stops at once\n");
    cli_catch_signals(c, on_stop);
}

void cli_train_files(const struct args *a, const struct options *o, char model[CLI_PATH], char run_dir[CLI_PATH]) {
    char data[CLI_PATH];
    const int n = snprintf(data, sizeof data, "%.4300s", a->arg[0]);
    for (int i = n - 1; i > 0 && data[i] == '/'; i--) data[i] = 0; /* a folder of parts */
    const char *slash = strrchr(data, '/'), *name = input_is(data) ? "input" : slash ? slash + 1 : data;
    if (o->out && *o->out) snprintf(model, CLI_PATH, "%.4300s", o->out);
    else snprintf(model, CLI_PATH, "%.*s.model", (int)strcspn(name, "."), name);
    if (o->run_dir && *o->run_dir) snprintf(run_dir, CLI_PATH, "%.4300s", o->run_dir);
    else if (file_is_remote(model)) mirror_folder(model, ".run", run_dir, CLI_PATH);
    else snprintf(run_dir, CLI_PATH, "%.4300s.run", model);
}

/* Writes the model last, because it marks the run as finished: a run that is killed earlier resumes and writes again.
 * Continues after failed outputs and returns the first error. */
static stretto_err write_results(struct cli *c, stretto_trainer *t, const char *model, const char *run_dir) {
    char report[4200];
    snprintf(report, sizeof report, "%s/report.html", run_dir);
    stretto_trainer_report(t, report);
    if (c->o.plot && *c->o.plot) stretto_trainer_plot(t, c->o.plot);
    if (c->o.trace && *c->o.trace) stretto_trainer_trace(t, c->o.trace);
    const stretto_err saved = stretto_trainer_save(t, model);
    const struct err_record why = *err_last();
    const char *scores = stretto_trainer_scores(t, c->o.json);
    const char *end = c->o.json && !c->silent ? "\n" : "";
    const bool shown = fputs(scores, stdout) != EOF && fputs(end, stdout) != EOF && fflush(stdout) == 0;
    if (saved < 0) err_put(&why);
    TRY(saved);
    if (!shown) return FAIL(E703, "cannot write to standard output; the model is %s", model);
    if (!c->o.quiet) fprintf(stderr, "model %s\nreport %s\n", model, report);
    return 0;
}

/* E807 after a time limit: the model contains what was learned so far. */
static stretto_err need_end(const struct cli *c, stretto_err reason, const char *feed, const char *model, const char *run_dir) {
    char fix[CLI_PATH + 64], time[32];
    if (reason != STRETTO_STOP_TIME) return 0;
    snprintf(time, sizeof time, "%.31s", stretto_config_get(c->config, "time-limit"));
    snprintf(fix, sizeof fix, "%sstretto resume %.4300s --time-limit 0   (to the end; without it: for as long again)", feed,
             run_dir);
    return FAIL_AT(E807, NULL, fix, "unfinished: --time-limit %s ended the training; %.400s holds the best weights so far", time,
                   model);
}

static stretto_err need_skill(const struct cli *c, const stretto_trainer *t) {
    double skill = stretto_trainer_skill(t);
    if (!c->o.require_skill || skill > 0) return 0;
    return FAIL_AT(E1001, NULL, "stretto explain E1001", "skill %+.1f%% against the best naive forecast", 100 * skill);
}

static stretto_err fit(struct cli *c, stretto_trainer *t, const char *feed, const char *model, const char *run_dir,
                       int resume) {
    stretto_trainer_on_event(t, cli_on_event, c);
    TRY(stretto_trainer_target(t, model));
    TRY(stretto_trainer_run_dir(t, run_dir, resume));
    running = t;
    if (cli_stop_requested()) stretto_trainer_stop(t);
    stretto_err reason = stretto_trainer_run(t);
    running = NULL;
    trained = reason >= 0 && reason != STRETTO_STOP_SIGNAL;
    console_close(&c->console);
    if (reason == STRETTO_STOP_SIGNAL) {
        char fix[2 * CLI_PATH + 64];
        snprintf(fix, sizeof fix, "%sstretto resume %s", feed, run_dir);
        if (file_is_remote(model))
            snprintf(fix, sizeof fix, "%sstretto resume %s   or, on any host, %s.run", feed, run_dir, model);
        const stretto_err e = FAIL_AT(E802, NULL, fix, "stopped as asked; a checkpoint is in %s", run_dir);
        c->shown = c->silent;
        cli_show_error(c); /* show it before ranks exit: the first to exit may end all */
        return e;
    }
    TRY(reason);
    TRY(write_results(c, t, model, run_dir));
    TRY(need_end(c, reason, feed, model, run_dir));
    return need_skill(c, t);
}

/* Drops the reader's remedy: the run has read this file before, and resume takes no reader options. */
static stretto_err unlike_before(stretto_err e, const char *data_path) {
    const struct err_record r = *err_last();
    if (r.code != E102 && (r.code < E201 || r.code > E214 || r.code == E213)) return e;
    if (input_is(data_path) && r.code == E201)
        return FAIL_AT(E201, r.where, "cat DATA | stretto resume RUN   (the rows that the run began with)", "%s", r.text);
    static const char fix[] = "the file as it was when the run began   or   a new run with stretto train";
    return FAIL_AT((enum err_code)r.code, r.where, fix, "%s", r.text);
}

/* An error of the data is that of all ranks, and rank 0 shows it; one of the ranks themselves may be known to this one alone. */
static bool is_of_data(stretto_err e) { return stretto_exit_status(e) != stretto_exit_status(-E801); }

static stretto_err train(struct cli *c, const char *data_path, const char *model, const char *run_dir, int resume) {
    stretto_data *data = NULL;
    stretto_trainer *t = NULL;
    catch_signals(c, run_dir);
    stretto_err e = stretto_config_check(c->config);
    if (e >= 0) e = stretto_config_join(c->config);
    if (e >= 0) {
        e = stretto_data_open(c->config, data_path, &data);
        if (e < 0 && resume) e = unlike_before(e, data_path);
        if (e < 0 && is_of_data(e)) c->shown = c->silent;
    }
    if (e >= 0 && !c->o.quiet) fprintf(stderr, "%s\n", stretto_data_summary(data));
    if (e >= 0) e = stretto_trainer_new(c->config, data, &t);
    if (e >= 0) e = fit(c, t, feed_of(data_path), model, run_dir, resume);
    stretto_trainer_free(t);
    stretto_data_free(data);
    return e;
}

/* --print-config: prints the config with every `auto` resolved for this data. */
static stretto_err print_config(struct cli *c, const char *data_path) {
    stretto_data *data = NULL;
    stretto_trainer *t = NULL;
    char *text = NULL;
    stretto_err e = stretto_data_open(c->config, data_path, &data);
    if (e >= 0) e = stretto_trainer_new(c->config, data, &t);
    if (e >= 0) e = stretto_trainer_config(t, &text);
    stretto_trainer_free(t);
    stretto_data_free(data);
    if (e >= 0 && !c->silent) return cli_print(text);
    stretto_text_free(text);
    return e;
}

stretto_err cmd_train(struct cli *c) {
    char model[CLI_PATH], run_dir[CLI_PATH];
    if (c->o.print_config) return print_config(c, c->args.arg[0]);
    cli_train_files(&c->args, &c->o, model, run_dir);
    const bool named = c->o.out && *c->o.out;
    if (!named && !c->o.quiet && !c->silent && access(model, F_OK) == 0)
        fprintf(stderr, "%s is there and will be replaced when this run is done (-o OTHER.model keeps it)\n", model);
    return train(c, c->args.arg[0], model, run_dir, 0);
}

stretto_err cmd_resume(struct cli *c) {
    /* set when the run began, used at its end */
    static const enum opt_id later[] = {OPT_plot, OPT_trace, OPT_scores, OPT_by, OPT_require_skill};
    char config[4200], *data = NULL, *model = NULL, *run_dir;
    TRY(stretto_run_fetch(c->args.arg[0], &run_dir));
    snprintf(config, sizeof config, "%s/config.json", run_dir);
    stretto_err e = stretto_run_paths(run_dir, &data, &model);
    if (e >= 0) e = stretto_config_load(c->config, config);
    for (size_t i = 0; e >= 0 && i < COUNT(later); i++) e = cli_take(c, later[i]);
    if (e >= 0) e = train(c, data, cli_out(c, model), run_dir, 1);
    stretto_text_free(data);
    stretto_text_free(model);
    stretto_text_free(run_dir);
    return e;
}

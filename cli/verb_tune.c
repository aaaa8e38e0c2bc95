/* verb_tune.c - `tune`: a search for better options, whose result is a config for `train`. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "signals.h"

static void on_stop(bool first) {
    static const char text[] = "\nstopping the trials; Ctrl-C again stops at once\n";
    if (first && isatty(STDERR_FILENO)) cli_say_stop(text);
    stretto_tune_stop();
}

/* `--time 10m` names a column of time, as with every verb; E102 then means the budget. */
static stretto_err mean_budget(const struct cli *c, stretto_err e) {
    char fix[96];
    f64 seconds;
    if (e != -E102 || !c->o.time || !str_time(c->o.time, &seconds)) return e;
    snprintf(fix, sizeof fix, "no --time, and --time-limit %.40s", c->o.time);
    return FAIL_AT(E102, "--time", fix, "--time names the column of time, and the data have no column \"%.40s\"; the time of the "
                   "search is --time-limit", c->o.time);
}

static stretto_err write_best(struct cli *c, const char *path, const char *yaml) {
    if (c->silent) return 0;
    TRY(file_option(file_write_all(path, yaml, (i64)strlen(yaml)), "--out"));
    if (!c->o.quiet) fprintf(stderr, "config %s   (stretto train %s -c %s)\n", path, c->args.arg[0], path);
    return 0;
}

static stretto_err show(struct cli *c, const char *path, char *table, const char *yaml) {
    if (c->silent) {
        stretto_text_free(table);
        return 0;
    }
    TRY(cli_print(table));
    if (c->o.json) fputc('\n', stdout);
    return write_best(c, path, yaml);
}

/* Without -o: DATA without folder and extension, plus ".best.yaml"; the run folder stands beside it. */
static void files(const struct cli *c, char best[CLI_PATH], char run_dir[CLI_PATH]) {
    const char *slash = strrchr(c->args.arg[0], '/'), *name = slash && slash[1] ? slash + 1 : c->args.arg[0];
    if (c->o.out && *c->o.out) snprintf(best, CLI_PATH, "%.4300s", c->o.out);
    else snprintf(best, CLI_PATH, "%.*s.best.yaml", (int)strcspn(name, "."), name);
    snprintf(run_dir, CLI_PATH, "%.4300s.run", best);
}

static stretto_err search(struct cli *c, stretto_data *d, const char *best, const char *run_dir) {
    char *table = NULL, *yaml = NULL;
    if (!c->o.run_dir || !*c->o.run_dir) TRY(stretto_config_flag(c->config, "run-dir", run_dir));
    const stretto_err e = stretto_tune(c->config, d, cli_on_event, c, c->o.json, &table, &yaml);
    console_close(&c->console);
    TRY(e);
    const stretto_err shown = show(c, best, table, yaml);
    stretto_text_free(yaml);
    TRY(shown);
    if (e != STRETTO_STOP_SIGNAL) return 0;
    return FAIL_AT(E802, NULL, "the same command again", "stopped as asked; %.400s holds the best so far, %.400s every fit", best,
                   run_dir);
}

stretto_err cmd_tune(struct cli *c) {
    char best[CLI_PATH], run_dir[CLI_PATH];
    stretto_data *d = NULL;
    files(c, best, run_dir);
    cli_catch_signals(c, on_stop);
    stretto_err e = stretto_config_check(c->config);
    if (e >= 0) e = mean_budget(c, stretto_data_open(c->config, c->args.arg[0], &d));
    if (e >= 0 && !c->o.quiet) fprintf(stderr, "%s\n", stretto_data_summary(d));
    if (e >= 0) e = search(c, d, best, run_dir);
    stretto_data_free(d);
    return e;
}

/* verb_predict.c - `predict` and `eval`: a saved model on new rows. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "cli.h"

static void show_note(const struct cli *c, const stretto_model *m) {
    if (!c->o.quiet && *stretto_model_note(m)) fprintf(stderr, "%s\n", stretto_model_note(m));
}

static stretto_err predict(struct cli *c, stretto_model *m, stretto_data *d) {
    const char *out = cli_out(c, "-");
    char *text = NULL;
    if (c->o.samples > 0 && c->o.wide_output)
        return FAIL_AT(E106, NULL, "no --wide-output",
                       "--samples has a column for each sample, and --wide-output one for each target");
    if (c->o.samples > 0 && c->o.marginals)
        return FAIL_AT(E106, NULL, "no --samples", "--samples is for forecasts, --marginals for tags");
    const stretto_err e = c->o.marginals ? stretto_marginals_file(m, d, out, &text)
                          : c->o.samples > 0 ? stretto_sample_file(m, d, out, (int)c->o.samples, c->o.seed, &text)
                                           : stretto_predict_file(m, d, out, c->o.wide_output, &text);
    TRY(file_option(e, "--out"));
    show_note(c, m);
    TRY(cli_print(text));
    if (c->o.plot && *c->o.plot) TRY(file_option(stretto_model_plot(m, d, c->o.plot), "--plot"));
    if (strcmp(out, "-") == 0 || c->o.quiet) return 0;
    if (stretto_model_horizon(m) > 0)
        fprintf(stderr, "%d forecasts for %d series in %s\n", stretto_model_horizon(m), stretto_data_targets(d), out);
    else fprintf(stderr, "predictions in %s\n", out);
    return 0;
}

static stretto_err eval(struct cli *c, stretto_model *m, stretto_data *d) {
    char *text = NULL;
    double skill = (double)NAN;
    TRY(stretto_eval(m, d, c->config, c->o.json, &text, &skill));
    show_note(c, m);
    TRY(cli_print(text));
    if (c->o.json) fputc('\n', stdout);
    if (c->o.plot && *c->o.plot) TRY(file_option(stretto_model_plot(m, d, c->o.plot), "--plot"));
    if (c->o.require_skill && !(skill > 0))
        return FAIL_AT(E1001, NULL, "stretto explain E1001", "skill %+.1f%% against the best naive forecast", 100 * skill);
    return 0;
}

static void show_warnings(const struct cli *c, const char *lines) {
    for (size_t n; *lines; lines += n + (lines[n] == '\n')) {
        n = strcspn(lines, "\n");
        cli_warn(c, "%.*s", (int)n, lines);
    }
}

/* Flags for machine and data override the options that the model was trained with. */
static stretto_err with_model(struct cli *c, stretto_err (*then)(struct cli *, stretto_model *, stretto_data *)) {
    static const enum opt_id own[] = {OPT_threads, OPT_device, OPT_kernel, OPT_memory, OPT_until, OPT_gaps,
                                         OPT_dups,   OPT_na,     OPT_sep,   OPT_decimal};
    stretto_model *m = NULL;
    stretto_data *d = NULL;
    stretto_err e = stretto_model_load(c->args.arg[0], &m);
    for (size_t i = 0; e >= 0 && i < COUNT(own); i++)
        if (c->o.meta[own[i]].rank == OPT_RANK_FLAG)
            e = stretto_config_flag(stretto_model_config(m), opt_info(own[i])->name, c->o.meta[own[i]].text);
    if (e >= 0) e = stretto_model_open(m, c->args.arg[1], &d);
    if (e >= 0) show_warnings(c, stretto_model_warnings(m));
    if (e >= 0) e = then(c, m, d);
    stretto_data_free(d);
    stretto_model_free(m);
    return e;
}

stretto_err cmd_predict(struct cli *c) { return with_model(c, predict); }
stretto_err cmd_eval(struct cli *c) { return with_model(c, eval); }

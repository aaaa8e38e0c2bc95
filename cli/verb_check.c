/* verb_check.c - `check`, `info`, `cache` and `sample`: verbs that read or write data and models without training. */
#include <string.h>

#include "base/file.h"
#include "base/input.h"
#include "cli.h"

stretto_err cmd_check(struct cli *c) {
    char *text = NULL, *config = NULL;
    stretto_err e = stretto_check(c->config, c->args.arg[0], c->o.json, &text, &config);
    c->shown = text != NULL;
    stretto_err shown = cli_print(text);
    if (shown >= 0 && config && c->o.write_config && *c->o.write_config)
        shown = file_option(file_write_all(c->o.write_config, config, (i64)strlen(config)), "--write-config");
    stretto_text_free(config);
    if (shown < 0) {
        c->shown = false;
        return shown;
    }
    return e;
}

/* A model starts with the 8-byte length of its header and '{'; everything else is data. */
static bool looks_like_model(const char *path) {
    unsigned char head[9];
    struct file_in f;
    const struct err_record before = *err_last();
    const bool opened = file_open(path, &f) >= 0;
    const bool read = opened && f.size >= (i64)sizeof head && file_read_at(&f, 0, head, sizeof head) >= 0;
    if (opened) file_close(&f);
    err_put(&before); /* reading it as data reports the failure */
    return read && head[8] == '{' && head[5] == 0 && head[6] == 0 && head[7] == 0;
}

stretto_err cmd_info(struct cli *c) {
    char *text = NULL;
    if (c->o.probe || c->args.narg == 0) {
        TRY(stretto_machine_info(c->o.json, &text));
        return cli_print(text);
    }
    if (!looks_like_model(c->args.arg[0])) {
        stretto_err found = stretto_data_info(c->config, c->args.arg[0], c->o.json, &text);
        c->shown = text != NULL;
        stretto_err shown = cli_print(text);
        c->shown = c->shown && shown >= 0;
        return shown < 0 ? shown : found;
    }
    stretto_model *m = NULL;
    TRY(stretto_model_load(c->args.arg[0], &m));
    stretto_err e = stretto_model_info(m, c->o.json, &text);
    stretto_model_free(m);
    return e < 0 ? e : cli_print(text);
}

stretto_err cmd_cache(struct cli *c) {
    char out[4096];
    snprintf(out, sizeof out, "%s.bin", input_is(c->args.arg[0]) ? "input" : c->args.arg[0]);
    TRY(file_option(stretto_cache(c->config, c->args.arg[0], cli_out(c, out)), "--out"));
    if (!c->o.quiet) fprintf(stderr, "parsed copy in %s\n", cli_out(c, out));
    return 0;
}

stretto_err cmd_sample(struct cli *c) {
    char *text = NULL;
    if (c->args.narg == 0) {
        fputs(stretto_samples(), stdout);
        return 0;
    }
    i64 rows = opt_is_auto(&c->o, OPT_rows) ? 0 : c->o.rows;
    TRY(stretto_sample(c->args.arg[0], rows, (uint64_t)c->o.seed, &text));
    return cli_print_out(c, text);
}

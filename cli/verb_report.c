/* verb_report.c - `report`: the report of a run or a model, written again, opened, printed. */
#include <stdio.h>

#include "base/kind.h"
#include "browser.h"

static stretto_err show(const struct cli *c, const char *path) {
    if (!c->o.quiet) fprintf(stderr, "report %s\n", path);
    if (c->o.pdf && *c->o.pdf) {
        TRY(browser_print(path, c->o.pdf));
        if (!c->o.quiet) fprintf(stderr, "pdf %s\n", c->o.pdf);
    }
    return c->o.open ? browser_open(path) : 0;
}

stretto_err cmd_report(struct cli *c) {
    char *run = NULL, *path = NULL;
    if (c->o.pdf && *c->o.pdf) TRY(kind_replaces(c->o.pdf, "--pdf", "%PDF", "a PDF file"));
    stretto_err e = stretto_run_fetch(c->args.arg[0], &run);
    if (e >= 0) e = stretto_report(run, c->args.narg > 1 ? c->args.arg[1] : NULL, c->config, cli_out(c, NULL), &path);
    if (e >= 0) e = show(c, path);
    stretto_text_free(run);
    stretto_text_free(path);
    return e;
}

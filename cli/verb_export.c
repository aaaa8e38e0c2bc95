/* verb_export.c - `export`: a model as an ONNX file, checked in ONNX Runtime where there is one. */
#include "base/file.h"
#include "cli.h"

/* The line that says what ONNX Runtime makes of the file. */
static stretto_err check(struct cli *c, stretto_model *m) {
    stretto_data *d = NULL;
    char *text = NULL;
    stretto_err e = c->o.check && *c->o.check ? stretto_model_open(m, c->o.check, &d) : 0;
    if (e >= 0) e = stretto_model_check_onnx(m, d, c->o.onnx, c->o.mean_only, NULL, &text);
    if (e >= 0 && !c->o.quiet) fprintf(stderr, "%s\n", text);
    stretto_text_free(text);
    stretto_data_free(d);
    return e;
}

stretto_err cmd_export(struct cli *c) {
    stretto_model *m = NULL;
    if (!c->o.onnx || !*c->o.onnx)
        return FAIL_AT(E105, "--onnx", "stretto export MODEL --onnx FILE.onnx", "export needs the file to write");
    stretto_err e = stretto_model_load(c->args.arg[0], &m);
    if (e >= 0) e = file_option(stretto_model_export_onnx(m, c->o.onnx, c->o.mean_only), "--onnx");
    if (e >= 0 && !c->o.quiet) fprintf(stderr, "graph in %s\n", c->o.onnx);
    if (e >= 0) e = check(c, m);
    stretto_model_free(m);
    return e;
}

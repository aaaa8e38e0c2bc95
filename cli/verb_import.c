/* verb_import.c - `import`: an ONNX file as a model of the kind `network`. */
#include "base/file.h"
#include "cli.h"

stretto_err cmd_import(struct cli *c) {
    const char *folder = c->o.check && *c->o.check ? c->o.check : NULL, *out = cli_out(c, "");
    stretto_model *m = NULL;
    char *text = NULL;
    if (!*out && !folder)
        return FAIL_AT(E105, "--out", "stretto import FILE.onnx -o MODEL", "import needs the model to write, or --check");
    stretto_err e = stretto_import_onnx(c->args.arg[0], folder, &m, &text);
    if (e >= 0 && *out) e = file_option(stretto_model_save(m, out), "--out");
    if (e >= 0 && folder && !c->o.quiet) fprintf(stderr, "%s\n", text);
    if (e >= 0 && *out && !c->o.quiet)
        fprintf(stderr, "network of %lld parameters in %s\n", (long long)stretto_model_parameters(m), out);
    stretto_text_free(text);
    stretto_model_free(m);
    return e;
}

/* verb_decode.c - `decode`: the most likely labels of one long sequence. */
#include <string.h>

#include "base/file.h"
#include "cli.h"

static stretto_err decode(struct cli *c, stretto_model *m) {
    const char *out = cli_out(c, "-");
    char *text = NULL;
    cli_open_console(c);
    const stretto_err e = stretto_decode_file(m, c->args.arg[1], out, cli_on_event, c, &text);
    console_close(&c->console);
    TRY(file_option(e, "--out"));
    TRY(cli_print(text));
    if (strcmp(out, "-") != 0 && !c->o.quiet) fprintf(stderr, "labels in %s\n", out);
    return 0;
}

/* Flags for the machine override the options that the model was trained with. */
stretto_err cmd_decode(struct cli *c) {
    static const enum opt_id own[] = {OPT_threads, OPT_kernel, OPT_memory, OPT_device, OPT_slices};
    stretto_model *m = NULL;
    stretto_err e = stretto_model_load(c->args.arg[0], &m);
    for (size_t i = 0; e >= 0 && i < COUNT(own); i++)
        if (c->o.meta[own[i]].rank == OPT_RANK_FLAG)
            e = stretto_config_flag(stretto_model_config(m), opt_info(own[i])->name, c->o.meta[own[i]].text);
    if (e >= 0) e = decode(c, m);
    stretto_model_free(m);
    return e;
}

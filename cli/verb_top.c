/* verb_top.c - `top`: shows what each rank of a run is doing, from the records in RUN/status. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli.h"
#include "report/status.h"

enum { PERIOD_NS = 500000000 };

static stretto_err is_finished(const char *run_dir, bool *finished, struct str *model) {
    char path[4200];
    struct js *o = NULL;
    *finished = false;
    snprintf(path, sizeof path, "%s/run.json", run_dir);
    if (!file_exists(path))
        return FAIL_AT(E705, NULL, "the folder of a run (MODEL.run)", "%s is no run folder: it has no run.json", run_dir);
    TRY(js_load(path, &o));
    *finished = js_bool(js_get(o, "finished"), false);
    model->len = 0;
    str_add(model, js_str(js_get(o, "model"), ""));
    js_free(o);
    return 0;
}

static stretto_err picture(const struct cli *c, struct status_record *r, struct str *out, bool *over) {
    const char *run_dir = c->args.arg[0];
    struct str model = {0};
    bool finished;
    i32 n, ended = 0;
    stretto_err e = is_finished(run_dir, &finished, &model);
    if (e < 0) {
        str_free(&model);
        return e;
    }
    status_read_all(run_dir, r, &n);
    for (i32 i = 0; i < n; i++) ended += r[i].exit >= 0;
    *over = finished || (n > 0 && ended == n);
    if (c->o.json) {
        status_json(r, n, clock_wall(), finished, out);
        str_add(out, "\n");
    } else {
        if (n == 0) str_addf(out, "no rank has written a record in %s/status yet\n", run_dir);
        else status_table(r, n, clock_wall(), out);
        if (finished) str_addf(out, "finished: the model is %s\n", str_text(&model));
        else if (*over) str_addf(out, "not running; stretto resume %s continues where there is a checkpoint\n", run_dir);
    }
    str_free(&model);
    return str_ok(out);
}

stretto_err cmd_top(struct cli *c) {
    const bool live = isatty(1) && !c->o.once && !c->o.json;
    struct status_record *r;
    bool over = false;
    stretto_err e = 0;
    NEW(r, STATUS_MOST);
    while (e >= 0 && !over) {
        struct str text = {0};
        if (live) str_add(&text, "\033[H\033[J");
        e = picture(c, r, &text, &over);
        if (e >= 0) fputs(str_text(&text), stdout);
        fflush(stdout);
        str_free(&text);
        if (!live) break;
        if (!over) nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
    }
    mem_free(r);
    return e;
}

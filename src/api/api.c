/* api.c - version, errors, options: the small handles of stretto.h. */
#include "api/api.h"

#include <stdio.h>
#include <string.h>

#include "api/config.h"
#include "base/file.h"
#include "base/json.h"

const char *stretto_version(void) { return STRETTO_VERSION; }
int stretto_abi(void) { return 1; }

err text_give(struct str *s, char **out) {
    err e = str_ok(s);
    *out = NULL;
    if (e >= 0 && !(*out = s->s ? s->s : mem_strdup(""))) e = -E601;
    if (e < 0) str_free(s);
    *s = (struct str){0};
    return e;
}

err text_end(err e, struct str *s, char **out) {
    if (e >= 0) return text_give(s, out);
    str_free(s);
    return e;
}

void stretto_text_free(char *text) { mem_free(text); }

stretto_err stretto_build_info(char **json_out) {
    struct js *o = js_object();
    struct str text = {0};
    js_put_text(o, "version", STRETTO_VERSION);
    js_put_i64(o, "abi", stretto_abi());
    js_put_text(o, "compiler", __VERSION__);
    js_put_text(o, "kernel", kern_best()->name);
    struct js *isa = js_array();
    for (i32 a = 0; a < KERN_NARCH; a++)
        if (kern_get((enum kern_arch)a)) js_push(isa, js_new_text(kern_arch_name((enum kern_arch)a)));
    js_put(o, "kernels", isa);
    err e = js_text(o, &text, 2);
    js_free(o);
    return text_end(e, &text, json_out);
}

/* --- errors --- */
int stretto_errcode(void) { return err_last()->code; }
const char *stretto_errmsg(void) { return err_last()->text; }
const char *stretto_errwhere(void) { return err_last()->where; }
const char *stretto_errfix(void) { return err_last()->fix; }
int stretto_rank(void) { return comm_launched_rank(); }

int stretto_ranks(void) {
    i32 size;
    comm_launched(&size);
    return size;
}
int stretto_exit_status(stretto_err e) {
    return err_exit_status(e == STRETTO_STOP_SIGNAL ? -E802 : e == STRETTO_STOP_TIME ? -E807 : e);
}
const char *stretto_stop_text(stretto_err reason) { return stop_reason_text(reason); }

/* --- options --- */
stretto_config *stretto_config_new(void) {
    stretto_config *c = mem_alloc(sizeof *c);
    if (!c) return NULL;
    if (opt_defaults(&c->o, api_lists()) < 0) {
        stretto_config_free(c);
        return NULL;
    }
    return c;
}

void stretto_config_free(stretto_config *self) {
    if (!self) return;
    comm_free(self->comm);
    opt_free(&self->o);
    mem_free(self);
}

stretto_err stretto_config_set(stretto_config *self, const char *name, const char *value) {
    return opt_set(&self->o, name, value, &OPT_API);
}

stretto_err stretto_config_flag(stretto_config *self, const char *name, const char *value) {
    return opt_set(&self->o, name, value, &OPT_FLAG);
}

stretto_err stretto_config_load(stretto_config *self, const char *path) { return config_load(path, &self->o); }
const char *stretto_config_get(stretto_config *self, const char *name) { return opt_get_text(&self->o, name); }

stretto_err stretto_config_print(stretto_config *self, char **yaml_out) {
    struct str text = {0};
    opt_dump(&self->o, 1u << VERB_train, &text);
    return text_give(&text, yaml_out);
}

/* Checks that the plan file exists and starts like a plan; the rest is checked once the net is known. */
static err check_plan(const struct options *o) {
    char *text;
    i64 n;
    if (!o->plan || !*o->plan) return 0;
    TRY(file_load(o->plan, PLAN_BYTES, &text, &n));
    const err e = plan_glance(text, o->plan);
    mem_free(text);
    return e;
}

err need_forecaster(const struct options *o, const char *verb) {
    if (strcmp(o->task, "forecast") == 0) return 0;
    return FAIL_AT(E106, "--task", "--task forecast", "stretto %s knows the steps of forecasters, not those of --task %s", verb,
                   o->task);
}

stretto_err stretto_config_check(stretto_config *self) {
    const struct options *o = &self->o;
    const struct kern *k;
    u32 how;
    TRY(opt_check(o));
    TRY(pick_kernel(o, &k, &how));
    TRY(learner_check(o));
    return check_plan(o);
}

int stretto_option_count(void) { return OPT_COUNT; }

stretto_err stretto_option(int i, const char **name, const char **default_value, const char **help) {
    if (i < 0 || i >= OPT_COUNT) return FAIL(E103, "there is no option number %d, they are 0..%d", i, OPT_COUNT - 1);
    const struct opt_info *info = opt_info((enum opt_id)i);
    *name = info->name;
    *default_value = info->def;
    *help = info->help;
    return 0;
}

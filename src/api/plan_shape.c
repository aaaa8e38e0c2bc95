/* plan_shape.c - the last line of a saved plan: the options that shaped the model it is of.
 *
 *     # for --horizon 24 --context 72 --batch 64 ...
 *
 * A plan that does not fit fails at one of its tasks; if an option differs, the message names the option instead. */
#include "api/plan_shape.h"

#include <stdio.h>
#include <string.h>

static const enum opt_id shaping[] = {OPT_horizon, OPT_context,    OPT_batch,      OPT_segment,       OPT_cell,
                                      OPT_layers,  OPT_hidden,     OPT_projection, OPT_bidirectional, OPT_decoder,
                                      OPT_head,    OPT_loss_steps};
static const char opening[] = "# for ";

static void add_flag(enum opt_id id, const char *value, struct str *out) {
    const struct opt_info *info = opt_info(id);
    if (info->type == OPT_BOOL) str_addf(out, "--%s%s ", strcmp(value, "yes") == 0 ? "" : "no-", info->name);
    else str_addf(out, "--%s %s ", info->name, value);
}

void plan_shape_line(const struct options *o, struct str *out) {
    str_add(out, opening);
    for (size_t i = 0; i < COUNT(shaping); i++) add_flag(shaping[i], o->meta[shaping[i]].text, out);
    str_add(out, "\n");
}

/* The value of an option in the line. */
static bool shape_value(const char *line, enum opt_id id, char value[64]) {
    const struct opt_info *info = opt_info(id);
    char flag[64];
    if (info->type == OPT_BOOL) {
        snprintf(flag, sizeof flag, "--%s ", info->name);
        snprintf(value, 64, "%s", strstr(line, flag) ? "yes" : "no");
        return true;
    }
    const i32 n = snprintf(flag, sizeof flag, "--%s ", info->name);
    const char *at = strstr(line, flag);
    if (at) snprintf(value, 64, "%.*s", (int)imin(63, (i32)strcspn(at + n, " \n")), at + n);
    return at != NULL;
}

err plan_shape_explain(const struct options *o, const char *plan_text) {
    const struct err_record why = *err_last();
    struct str theirs = {0}, ours = {0}, again = {0}, fix = {0};
    const char *line = NULL;
    char value[64];
    for (const char *p = plan_text; (p = strstr(p, opening)) != NULL; p++) line = p;
    for (size_t i = 0; line && i < COUNT(shaping); i++) {
        const char *own = o->meta[shaping[i]].text;
        const bool differs = shape_value(line, shaping[i], value) && strcmp(value, own) != 0;
        if (differs || opt_given(o, shaping[i])) add_flag(shaping[i], own, &again);
        if (!differs) continue;
        add_flag(shaping[i], value, &theirs);
        add_flag(shaping[i], own, &ours);
    }
    err e = -why.code;
    if (theirs.len) {
        str_addf(&fix, "%s  or   stretto plan DATA %s--save %s", str_text(&theirs), str_text(&again), o->plan);
        theirs.s[theirs.len - 1] = ours.s[ours.len - 1] = 0; /* drop the trailing space */
        e = FAIL_AT(E401, o->plan, str_text(&fix), "this plan is for %s, this run has %s", str_text(&theirs), str_text(&ours));
    } else {
        err_put(&why);
    }
    str_free(&theirs);
    str_free(&ours);
    str_free(&again);
    str_free(&fix);
    return e;
}

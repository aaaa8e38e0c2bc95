/* resolve.c - turns options and data into a spec: presets, and a value with a reason for every `auto`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/time.h"
#include "learn/forecast/resolve.h"
#include "step/netplan.h"

enum { FEW_ROWS = 500, SHORT_ROWS = 5000, WIDE_ROWS = 10000, WIDE_HORIZONS = 40, BUDGET = 8 };
enum { WIDE_HORIZON = 24, LONG_HORIZON = 48, LONG_CONTEXT = 336, WIDE_CONTEXT = 720, LONG_SEASON = 672 };

/* ------------------------------------------------------------------ options alone ------------------------------------------- */

/* E106 for options that do not combine with --pipeline delay1. */
static err check_late(const struct options *o) {
    if (strcmp(o->pipeline, "delay1") != 0) return 0;
    if (o->accumulate > 1)
        return FAIL_AT(E106, NULL, "--accumulate 1   or   --pipeline overlap",
                       "--pipeline delay1 sends the sum of a step during the next one, but --accumulate %lld still "
                       "adds to it", (long long)o->accumulate);
    if (o->slice_rounds > 0)
        return FAIL_AT(E106, NULL, "--slice-rounds 0   or   --pipeline overlap",
                       "--slice-rounds %lld starts slices from states of earlier steps, and --pipeline delay1 updates weights "
                       "a step late: the combination is not supported", (long long)o->slice_rounds);
    return 0;
}

/* E106 for options that do not combine with --heal. */
static err check_heal(const struct options *o) {
    if (!o->heal) return 0;
    if (strcmp(o->pipeline, "delay1") == 0)
        return FAIL_AT(E106, NULL, "--pipeline overlap   or   no --heal",
                       "--pipeline delay1 splits a step in two halves, and a rank that dies loses one of them");
    if (o->slice_rounds > 0)
        return FAIL_AT(E106, NULL, "--slice-rounds 0   or   no --heal",
                       "--slice-rounds %lld starts slices from states that other ranks hold, and a rank that dies loses them"
                       ": the bits would change", (long long)o->slice_rounds);
    if (o->plan && *o->plan)
        return FAIL_AT(E106, NULL, "no --plan   or   no --heal",
                       "a plan file is for a fixed number of ranks, and --heal continues with fewer");
    return 0;
}

/* --deterministic rejects time slices, which agree within a tolerance. Other inexact strategies are rejected when the plan
 * is made. */
static err check_exact(const struct options *o) {
    char count[16] = "";
    i32 n;
    TRY(plan_slices(o->parallel, &n));
    if (!o->deterministic || n == 0) return 0;
    if (n > 0) snprintf(count, sizeof count, ":%d", n);
    return FAIL_AT(E401, NULL, "--parallel data",
                   "--deterministic: the strategy time%s does not give the bits of the serial run", count);
}

err resolve_check(const struct options *o) {
    TRY(store_spec_check(o));
    TRY(check_late(o));
    TRY(check_heal(o));
    return check_exact(o);
}

static err check_quantiles(const struct option_nums *q) {
    char text[32];
    if (q->n > OPTION_NUMS) return FAIL(E103, "--quantiles: at most %d quantiles", OPTION_NUMS);
    for (i32 i = 1; i < q->n; i++) {
        str_from_f64(text, q->v[i]);
        if (q->v[i] <= q->v[i - 1])
            return FAIL_AT(E103, "--quantiles", "--quantiles 0.1,0.5,0.9", "quantiles must rise, \"%s\" does not", text);
    }
    return 0;
}

err spec_of(const struct options *o, struct forecast_spec *spec) {
    const struct head *decoder = opt_is_auto(o, OPT_decoder) ? head_at(0) : head_find(o->decoder);
    *spec = (struct forecast_spec){.cut = {.slices = 1, .least = 1}};
    opt_give_learner(o, &spec->for_learner);
    opt_give_net(o, &spec->for_net);
    opt_give_optim(o, &spec->for_optim);
    opt_give_loop(o, &spec->for_loop);
    opt_give_chain(o, &spec->cut.course.for_chain);
    const bool all = strcmp(spec->loss_steps, "all") == 0;
    if (all && !decoder->all_steps)
        return FAIL_AT(E106, NULL, "--loss-steps last", "--decoder %s does not go with --loss-steps all", decoder->name);
    spec->decoder = all ? decoder->all_steps : decoder;
    spec->output = head_output_find(spec->head);
    spec->cut.rank_most = opt_is_auto(o, OPT_slice_rank) ? SLICE_RANKS : spec->slice_rank;
    if (spec->precision == PREC_N) spec->precision = PREC_F32; /* auto, not measured yet */
    TRY(check_quantiles(&spec->quantiles));
    spec->nband = spec->quantiles.n;
    if (spec->output->quantiles) spec->nquantile = spec->nband;
    spec->family = family_find(spec->output->loss);
    return 0;
}

/* ------------------------------------------------------------------ by the data --------------------------------------------- */

static err resolve_i(struct options *o, enum opt_id id, i64 value, const char *why) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return opt_resolve(o, id, text, why);
}

/* A wide network that learns the series by itself needs many windows, and validation several horizons to weigh it by. */
static bool has_wide(const struct options *o, const struct series *s) {
    const i64 least = s->ntarget > 1 ? WIDE_HORIZON : LONG_HORIZON;
    return o->horizon >= least && s->nrow >= lmax(WIDE_ROWS, WIDE_HORIZONS * o->horizon);
}

static err choose_preset(struct options *o, const struct series *s) {
    if (opt_is_auto(o, OPT_preset)) {
        char why[96];
        const char *name = resolve_wants_stream(o)             ? "stream"
                           : s->nrow < FEW_ROWS                      ? "short"
                           : has_wide(o, s)                        ? "wide"
                           : s->ntarget > 1                        ? "long"
                           : s->nrow < SHORT_ROWS                  ? "short"
                           : o->horizon >= LONG_HORIZON            ? "long"
                                                                   : "day";
        snprintf(why, sizeof why, "%d target column%s, %lld rows, horizon %lld", s->ntarget, s->ntarget > 1 ? "s" : "",
                 (long long)s->nrow, (long long)o->horizon);
        TRY(opt_resolve(o, OPT_preset, name, why));
    }
    return strcmp(o->preset, "none") == 0 ? 0 : opt_preset(o, o->preset);
}

static err choose_horizon(struct options *o, const struct series *s) {
    if (!opt_is_auto(o, OPT_horizon)) return 0;
    i64 h = s->freq.season > 1 ? s->freq.season : 10;
    if (h > s->nrow / 6) return resolve_i(o, OPT_horizon, lmax(1, s->nrow / 12), "a twelfth of the rows");
    return resolve_i(o, OPT_horizon, h, s->freq.season > 1 ? "one season" : "no season known");
}

static err choose_split(struct options *o, const struct series *s, struct split *out) {
    i64 h = o->horizon, rest;
    bool few = s->nrow < 500;
    i64 test = few ? h : lmax(h, s->nrow / 5);
    if (opt_is_auto(o, OPT_test) && test >= s->nrow) {
        char fix[48];
        snprintf(fix, sizeof fix, "--horizon %lld", (long long)lmax(1, s->nrow / 6));
        return FAIL_AT(E301, NULL, fix,
                       "the series is too short: a horizon of %lld rows, and as many to test it on, do not fit into %lld rows",
                       (long long)h, (long long)s->nrow);
    }
    if (opt_is_auto(o, OPT_test)) TRY(resolve_i(o, OPT_test, test, few ? "one horizon" : "a fifth of the rows"));
    struct split all;
    TRY(split_make(s, series_end(s), "0", o->test, &all));
    rest = all.validation;
    if (opt_is_auto(o, OPT_validation)) {
        i64 valid = lmax(h, rest / 5), half = (rest - valid) / 2;
        bool alone = rest - valid - half < h && strcmp(o->base, "none") != 0; /* no window to train on: only a base works */
        const char *why = alone ? "too few rows for more than the base" : "a fifth of the rows before the test part";
        TRY(resolve_i(o, OPT_validation, alone ? 0 : valid, why));
    }
    return split_make(s, series_end(s), o->validation, o->test, out);
}

/* The second season, as the week beside the day, is in the context where the training part shows it a few times. */
static err choose_context(struct options *o, const struct split *p, i32 ncol, i64 second) {
    if (!opt_is_auto(o, OPT_context)) return 0;
    i64 h = o->horizon, half = lmax(1, p->train / 2);
    if (second > LONG_SEASON || second > p->train / 4) second = 0;
    const bool wide = strcmp(o->preset, "wide") == 0;
    if (wide && h >= 2 * LONG_HORIZON && p->train - h - WIDE_CONTEXT >= p->train / 4)
        return resolve_i(o, OPT_context, WIDE_CONTEXT, "preset wide");
    if (wide || strcmp(o->preset, "long") == 0) {
        i64 room = p->train * ncol / 10 - h; /* all columns share the weights, so each counts */
        const bool fits = p->train - h - LONG_CONTEXT >= p->train / 4; /* more columns do not lengthen the rows */
        if (room >= LONG_CONTEXT && fits) return resolve_i(o, OPT_context, LONG_CONTEXT, "336 rows");
        if (room >= LONG_CONTEXT)
            return resolve_i(o, OPT_context, lmin(LONG_CONTEXT, half), "336 rows, half the training rows at most");
        room = lmin(LONG_CONTEXT, lmax(room, 2 * h));
        if (second > room && second <= LONG_CONTEXT) return resolve_i(o, OPT_context, second, "the second season");
        return resolve_i(o, OPT_context, lmax(24, lmin(room, half)), "a tenth of the training values less the horizon");
    }
    if (strcmp(o->preset, "day") == 0)
        return resolve_i(o, OPT_context, lmax(168, second), second > 168 ? "the second season" : "preset day");
    if (second > 3 * h) return resolve_i(o, OPT_context, second, "the second season");
    return resolve_i(o, OPT_context, lmin(lmax(24, 3 * h), half), "3 x horizon, 24 at least, half the training rows at most");
}

/* Chooses the decoder direct for --bidirectional and --projection: other decoders start from the final state of one plain layer.
 * E106 if such a decoder is given. */
static err choose_decoder(struct options *o) {
    const char *flag = o->bidirectional ? "--bidirectional" : o->projection > 0 ? "--projection" : NULL;
    if (!flag) return 0;
    char why[64], fix[96];
    snprintf(why, sizeof why, "%s is given", flag);
    if (opt_is_auto(o, OPT_decoder)) return opt_resolve(o, OPT_decoder, "direct", why);
    if (!head_find(o->decoder)->plain_state) return 0;
    if (!opt_given(o, OPT_decoder)) {
        char origin[80];
        snprintf(origin, sizeof origin, "auto: %s", why);
        return opt_set_id(o, OPT_decoder, "direct", &(struct opt_from){.rank = OPT_RANK_PRESET, .origin = origin});
    }
    snprintf(fix, sizeof fix, "--decoder direct   or   %s", o->bidirectional ? "--no-bidirectional" : "--projection 0");
    return FAIL_AT(E106, NULL, fix, "--decoder %s starts from the final state of a plain recurrent layer, %s has none",
                   o->decoder, flag);
}

static err choose_projection(struct options *o) {
    char fix[64];
    if (o->projection == 0) return 0;
    if (strcmp(o->cell, "lstm") != 0)
        return FAIL_AT(E106, NULL, "--cell lstm   or   --projection 0", "--projection is of an lstm, the cell is %s", o->cell);
    if (strcmp(o->precision, "bf16") == 0)
        return FAIL_AT(E106, NULL, "--precision fp32   or   --projection 0", "an lstm with --projection has no bf16 products");
    snprintf(fix, sizeof fix, "--projection %lld", (long long)lmax(0, o->hidden / 2));
    if (o->projection >= o->hidden)
        return FAIL_AT(E103, "--projection", fix, "%lld values out of --hidden %lld: a projection has fewer",
                       (long long)o->projection, (long long)o->hidden);
    return 0;
}

/* auto = bf16 if it was measured to be faster for this shape on this machine. */
static err choose_precision(struct options *o, const struct series *s, const struct split *split, const struct events *ev) {
    char why[120], origin[136];
    struct forecast_spec spec;
    enum precision p;
    if (strcmp(o->precision, "auto") != 0) return 0;
    if (o->deterministic)
        return FAIL_AT(E106, NULL, "--precision fp32   or   --precision bf16",
                       "--precision auto is decided by measuring, --deterministic allows no such choice");
    TRY(spec_of(o, &spec));
    TRY(measured_precision(o, &spec, s, split, &p, why, sizeof why));
    const char *name = p == PREC_BF16 ? "bf16" : "fp32";
    event_note(ev, EVENT_NOTE, "precision %s: %s", name, why);
    snprintf(origin, sizeof origin, "auto: %s", why);
    struct opt_from from = {.rank = o->meta[OPT_precision].rank, .origin = origin};
    return opt_set_id(o, OPT_precision, name, &from);
}

/* E106 for options that the decoder cannot use: teacher forcing and --norm depend on whether it contains the output layer. */
static err check_head(const struct options *o) {
    const struct head *head = head_find(o->decoder);
    if (!head->own_output && o->meta[OPT_teacher_forcing].rank >= OPT_RANK_FLAG) /* config files of finished runs contain
                                                                                  * every option */
        return FAIL_AT(E106, NULL, "--decoder autoregressive",
                       "--teacher-forcing is about the decoder autoregressive, this one is %s", o->decoder);
    if (head->own_output && head_counts(o->head))
        return FAIL_AT(E106, NULL, "--decoder direct   or   --head student-t",
                       "--decoder %s reads its own last values in units of the window, and --head %s has counts", head->name,
                       o->head);
    if (head->own_output && o->norm)
        return FAIL_AT(E106, NULL, "--no-norm",
                       "--norm stands before the head, --decoder %s has its head inside the loop", head->name);
    return 0;
}

static err choose_shape(struct options *o) {
    TRY(choose_projection(o));
    TRY(choose_decoder(o));
    if (opt_is_auto(o, OPT_decoder))
        TRY(opt_resolve(o, OPT_decoder, o->horizon >= LONG_HORIZON ? "parallel" : "direct", "by the horizon"));
    TRY(check_head(o));
    if (!opt_is_auto(o, OPT_segment)) return 0;
    const struct head *head = head_find(o->decoder);
    if (head->segments && (head->long_segment || o->horizon >= LONG_HORIZON)) {
        i64 w = o->horizon >= 96 ? 48 : 24;
        return resolve_i(o, OPT_segment, lmin(w, o->context), o->horizon >= 96 ? "horizon 96 or more" : "horizon below 96");
    }
    bool each = o->context <= 64;
    return resolve_i(o, OPT_segment, each ? 1 : (o->context + 31) / 32, each ? "context up to 64" : "32 segments");
}

/* A forecast at every step starts from the base at every row, and counts grow from it by a factor: there is no network on its own
 * to average with. */
static err choose_combine(struct options *o) {
    const bool every = strcmp(o->loss_steps, "all") == 0, counts = head_counts(o->head);
    const bool average = strcmp(o->combine, "average") == 0;
    static const struct opt_from by_other = {.rank = OPT_RANK_PRESET, .origin = "auto: by --loss-steps or --head"};
    if (opt_is_auto(o, OPT_combine)) return opt_resolve(o, OPT_combine, "residual", "no preset asks for another");
    if (!average || (!every && !counts)) return 0;
    if (!opt_given(o, OPT_combine)) return opt_set_id(o, OPT_combine, "residual", &by_other);
    if (counts)
        return FAIL_AT(E106, NULL, "--combine residual", "--combine average adds forecasts, --head %s makes the base larger or "
                       "smaller by a factor", o->head);
    return FAIL_AT(E106, NULL, "--loss-steps last   or   --combine residual",
                   "--combine average forecasts from whole windows, --loss-steps all from every step");
}

/* The head whose loss alone this is; NULL = none. */
static const char *owner_of(const char *loss) {
    static const char *const heads[] = {"quantile", "normal", "student-t", "negative-binomial", "poisson"};
    for (size_t i = 0; i < COUNT(heads); i++)
        if (strcmp(head_output_find(heads[i])->loss, loss) == 0) return heads[i];
    return NULL;
}

/* A head of quantiles or of a distribution has its own loss; a preset changes the loss of point forecasts only. */
static err choose_loss(struct options *o) {
    static const struct opt_from by_head = {.rank = OPT_RANK_PRESET, .origin = "auto: by the head"};
    const struct head_output *output = head_output_find(o->head);
    const char *owner = owner_of(o->loss);
    char fix[64];
    if (opt_is_auto(o, OPT_loss)) return opt_resolve(o, OPT_loss, output->loss, "by the head");
    if (head_owns_loss(output) && !opt_given(o, OPT_loss)) return opt_set_id(o, OPT_loss, output->loss, &by_head);
    if (head_owns_loss(output) ? strcmp(o->loss, output->loss) == 0 : !owner) return 0;
    snprintf(fix, sizeof fix, owner ? "--head %s" : "--head %s alone", owner ? owner : o->head);
    return FAIL_AT(E106, NULL, fix, "--head %s and --loss %s do not go together", o->head, o->loss);
}

/* Steps that nobody asked for follow from the data: rounds go on while validation falls. Slices with a fixed number of rounds
 * foresee their last steps. */
static err choose_budget(struct options *o, i64 valid) {
    if (!opt_is_auto(o, OPT_max_steps)) return 0;
    const bool asked = opt_given(o, OPT_steps) || !opt_is_auto(o, OPT_epochs) || o->slice_rounds > 0;
    if (asked || valid < 1) return resolve_i(o, OPT_max_steps, 0, asked ? "the steps are given" : "no validation part");
    return resolve_i(o, OPT_max_steps, BUDGET * o->steps, "8 x the steps of the preset");
}

/* Nobody asked for so many members: those that bring little are not trained. */
static err choose_gain(struct options *o, i64 valid) {
    if (!opt_is_auto(o, OPT_member_gain)) return 0;
    if (opt_given(o, OPT_members)) return resolve_i(o, OPT_member_gain, 0, "the members are given");
    if (valid < 1) return resolve_i(o, OPT_member_gain, 0, "no validation part");
    if (o->members == 1) return resolve_i(o, OPT_member_gain, 0, "one member");
    return resolve_i(o, OPT_member_gain, 1, "members of a preset");
}

static err check_parts(const struct options *o) {
    char fix[64];
    i64 most = o->accumulate;
    if (o->batch % most == 0) return 0;
    while (o->batch % most != 0) most--;
    snprintf(fix, sizeof fix, "--accumulate %lld   (divides --batch)", (long long)most);
    return FAIL_AT(E106, NULL, fix, "--batch %lld cannot be cut into --accumulate %lld equal parts", (long long)o->batch,
                   (long long)o->accumulate);
}

static err choose_rest(struct options *o, i64 valid) {
    static const struct opt_from by_epochs = {.rank = OPT_RANK_PRESET, .origin = "auto: --epochs is given"};
    if (opt_given(o, OPT_epochs) && !opt_given(o, OPT_steps)) TRY(opt_set_id(o, OPT_steps, "auto", &by_epochs));
    if (opt_is_auto(o, OPT_scale)) TRY(opt_resolve(o, OPT_scale, "last", "no preset"));
    if (opt_is_auto(o, OPT_calendar)) TRY(opt_resolve(o, OPT_calendar, "no", "no preset asks for it"));
    TRY(choose_loss(o));
    TRY(choose_combine(o));
    TRY(check_parts(o));
    TRY(resolve_check(o));
    if (opt_is_auto(o, OPT_epochs) && opt_is_auto(o, OPT_steps)) TRY(resolve_i(o, OPT_steps, 300, "no preset"));
    TRY(choose_budget(o, valid));
    TRY(choose_gain(o, valid));
    if (opt_is_auto(o, OPT_stride)) TRY(resolve_i(o, OPT_stride, 1, "every origin"));
    return 0;
}

void resolve_notes(const struct options *o, const struct series *s, const struct split *p, const struct events *ev) {
    char a[72], b[72], c[72];
    event_note(ev, EVENT_NOTE,
               "preset %s (%d target column%s, %lld rows): %s %lldx%lld, horizon %lld, context %lld, scale %s, %s head, base %s",
               o->preset, s->ntarget, s->ntarget > 1 ? "s" : "", (long long)s->nrow, o->cell, (long long)o->layers,
               (long long)o->hidden, (long long)o->horizon, (long long)o->context, o->scale, o->head, o->base);
    span_label(s, 0, p->train, a);
    span_label(s, p->train, p->validation, b);
    span_label(s, p->validation, p->test, c);
    if (o->correction && o->max_steps > o->steps && o->steps > 0)
        event_note(ev, EVENT_NOTE, "steps %lld, then twice as many and so on while validation falls; budget %lld (--max-steps)",
                   (long long)o->steps, (long long)o->max_steps);
    event_note(ev, EVENT_NOTE, "train %s (%lld rows) | validation %s (%lld) | test %s (%lld)", a, (long long)p->train, b,
               (long long)(p->validation - p->train), c, (long long)(p->test - p->validation));
}

err resolve_forecast(struct options *o, const struct series *s, const struct events *ev,
                     struct forecast_spec *spec, struct split *split) {
    TRY(choose_horizon(o, s));
    TRY(choose_preset(o, s));
    if (split->test == 0) TRY(choose_split(o, s, split));
    TRY(resolve_loss_steps(o, split));
    TRY(choose_context(o, split, s->ntarget, s->freq.season2));
    TRY(choose_shape(o));
    TRY(choose_rest(o, split->validation - split->train));
    TRY(choose_precision(o, s, split, ev));
    TRY(opt_check(o));
    TRY(spec_of(o, spec));
    i64 n = forecast_epoch(spec, s, split->train);
    TRY(resolve_slices(o, n, forecast_width(spec, s), NULL, spec)); /* reports errors before any note */
    resolve_notes(o, s, split, ev);
    if (spec->decoder->every_step)
        event_note(ev, EVENT_DETAIL,
                   "a loss at every time step: an epoch is %lld window%s of %d steps; "
                   "forecasts come from one pass over the series",
                   (long long)n, n == 1 ? "" : "s", spec->context);
    if (strcmp(o->pipeline, "delay1") == 0)
        event_note(ev, EVENT_NOTE,
                   "pipeline delay1: each update uses the gradient of the step before, so the model differs from that of "
                   "--pipeline overlap; it is the same for any number of ranks and threads");
    return resolve_slices(o, n, forecast_width(spec, s), ev, spec);
}

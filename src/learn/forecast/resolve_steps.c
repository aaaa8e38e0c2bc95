/* resolve_steps.c - resolves --loss-steps (forecasts from the end of the context, or from every row of it) and time slices.
 *
 *     last   thousands of windows, a forecast from the end of each         all   few long windows, a forecast from every row
 *
 * With horizon 1 and a long context, `last` would read each row `context` times; `all` reads it once. */
#include <stdio.h>
#include <string.h>

#include "learn/forecast/resolve.h"

enum { LONG_CONTEXT = 1024, MANY_HORIZONS = 64, USUAL_CONTEXT = 1024 };
/* Steps of a slice: least (below it rounds repeat most of the work), for `--parallel time`, for `auto`; rows of
 * a tile of the kernels. */
enum { SHORT_SLICE = 64, USUAL_SLICE = 256, LONG_SLICE = 1024, TILE_ROWS = 32 };

/* What --loss-steps all requires: (option, required value, another accepted value). */
static const struct need {
    enum opt_id id;
    const char *want, *also, *why;
} needs[] = {{OPT_decoder, "direct", "direct", "forecasts straight from each row"},
             {OPT_segment, "1", "1", "reads the rows one by one"},
             {OPT_scale, "series", "none", "carries one scale through, not one a window"},
             {OPT_base, "auto", NULL, "has a base at every row, and a mix looks back too far for that"}};

static const char *value_of(const struct options *o, const struct need *n, char text[32]) {
    snprintf(text, 32, "%lld", (long long)o->segment);
    return n->id == OPT_decoder ? o->decoder : n->id == OPT_scale ? o->scale : n->id == OPT_base ? o->base : text;
}

static bool suits(const struct options *o, const struct need *n) {
    char text[32];
    const char *value = value_of(o, n, text);
    if (n->id == OPT_base) return strcmp(value, "mix") != 0;
    return opt_is_auto(o, n->id) || strcmp(value, n->want) == 0 || strcmp(value, n->also) == 0;
}

static bool nothing_against(const struct options *o) {
    for (size_t i = 0; i < COUNT(needs); i++)
        if (opt_given(o, needs[i].id) && !suits(o, &needs[i])) return false;
    return !o->bidirectional && o->projection == 0 && !head_counts(o->head);
}

bool resolve_wants_stream(const struct options *o) {
    bool open = opt_is_auto(o, OPT_preset) || strcmp(o->preset, "stream") == 0 || strcmp(o->preset, "none") == 0;
    if (!opt_is_auto(o, OPT_loss_steps)) return strcmp(o->loss_steps, "all") == 0;
    return open && opt_given(o, OPT_context) && !opt_is_auto(o, OPT_context) && o->context >= LONG_CONTEXT &&
           o->context >= MANY_HORIZONS * o->horizon && nothing_against(o);
}

static err against(const struct options *o) {
    char fix[96], text[32];
    if (o->bidirectional || o->projection > 0)
        return FAIL_AT(E106, NULL, o->bidirectional ? "--no-bidirectional   or   --loss-steps last" :
                       "--projection 0   or   --loss-steps last",
                       "--loss-steps all carries one state forward through the series, which %s does not have",
                       o->bidirectional ? "--bidirectional" : "--projection");
    if (head_counts(o->head))
        return FAIL_AT(E106, NULL, "--loss-steps last",
                       "--loss-steps all has targets in units of the series, and --head %s has counts", o->head);
    for (size_t i = 0; i < COUNT(needs); i++) {
        const struct need *n = &needs[i];
        const char *name = opt_info(n->id)->name;
        if (!opt_given(o, n->id) || suits(o, n)) continue;
        snprintf(fix, sizeof fix, "--%s %s   or   --loss-steps last", name, n->want);
        return FAIL_AT(E106, NULL, fix, "--%s %s does not go with --loss-steps all, which %s", name, value_of(o, n, text),
                       n->why);
    }
    return 0;
}

err resolve_loss_steps(struct options *o, const struct split *p) {
    static const struct opt_from by_steps = {.rank = OPT_RANK_PRESET, .origin = "auto: --loss-steps all"};
    bool all = resolve_wants_stream(o);
    if (all && opt_is_auto(o, OPT_context)) {
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)lmax(1, lmin(USUAL_CONTEXT, p->train / 4)));
        TRY(opt_resolve(o, OPT_context, text, "1024 rows, a quarter of the training rows at most"));
    }
    if (opt_is_auto(o, OPT_loss_steps))
        TRY(opt_resolve(o, OPT_loss_steps, all ? "all" : "last", all ? "long context, few rows ahead" : "no long stream"));
    if (!all) return 0;
    TRY(against(o));
    for (size_t i = 0; i < COUNT(needs); i++) {
        const struct need *n = &needs[i];
        if (n->id != OPT_base && opt_is_auto(o, n->id)) TRY(opt_resolve(o, n->id, n->want, "a loss at every row"));
        else if (!suits(o, n)) TRY(opt_set_id(o, n->id, n->want, &by_steps));
    }
    return 0;
}

/* --- slices of time --- */

/* Time slices fill the rows of a kernel tile that the windows of the batch leave empty.  The number of threads does not enter:
 * the number of slices is part of the model, which must not depend on the machine. */
struct tile_fit {
    i32 rows;   /* of a step without slices */
    i32 full;   /* rows of a full kernel tile */
    i32 most;   /* slices that the context has room for */
    i32 slices; /* the choice */
};

static err count_slices(const struct forecast_spec *spec, i64 windows, i32 ntarget, i32 least, struct tile_fit *w) {
    struct forecast_spec whole = *spec;
    i32 nwin;
    whole.cut.slices = 1;
    TRY(forecast_rows(&whole, windows, ntarget, &nwin, &w->rows));
    w->full = TILE_ROWS;
    w->most = forecast_steps(spec) / least;
    w->slices = imin(w->full / w->rows, w->most);
    return 0;
}

/* Applies the choice of `auto` and reports it; says nothing where thousands of windows fill the kernels anyway. */
static void choose_slices(const struct options *o, const struct tile_fit *w, const struct events *ev,
                          struct forecast_spec *spec) {
    if (!spec->decoder->every_step && w->slices < 2) return;
    if (o->deterministic)
        event_note(ev, EVENT_DETAIL, "no time slices: --deterministic requires the bits of the serial run, slices agree within a "
                   "tolerance");
    else if (w->slices >= 2)
        event_note(ev, EVENT_DETAIL,
                   "%d time slices: %d sequence%s of %d steps would leave most of the %d rows empty that the kernels "
                   "take at once", spec->cut.slices = w->slices, w->rows, w->rows > 1 ? "s" : "", forecast_steps(spec),
                   w->full);
    else if (w->full / w->rows < 2)
        event_note(ev, EVENT_DETAIL, "no time slices: the %d sequences of a step fill the kernels", w->rows);
    else
        event_note(ev, EVENT_DETAIL, "no time slices: a context of %d steps is too short for slices of %d", spec->context,
                   LONG_SLICE);
}

static err given_slices(const char *parallel, const struct forecast_spec *spec, i32 usual, const struct events *ev) {
    char fix[96], of[64], name[64], part[128] = "";
    i32 steps = forecast_steps(spec);
    bool fewer = usual > 1 && usual < spec->cut.slices;
    TRY(plan_with_slices(parallel, fewer ? usual : 0, name, sizeof name));
    snprintf(fix, sizeof fix, "--parallel %s", name);
    if (strchr(parallel, '*')) snprintf(part, sizeof part, "%.64s does not fit: time:%d: ", parallel, spec->cut.slices);
    if (spec->segment > 1) snprintf(of, sizeof of, "%d segment%s of %d rows", steps, steps > 1 ? "s" : "", spec->segment);
    else snprintf(of, sizeof of, "%d row%s", steps, steps > 1 ? "s" : "");
    if (spec->cut.slices > steps)
        return FAIL_AT(E401, "--parallel", fix, "%s%d time slices out of a context of %s", part, spec->cut.slices, of);
    if (spec->cut.slices > 1 && steps / spec->cut.slices < SHORT_SLICE)
        event_note(ev, EVENT_WARNING, "slices of %d steps: longer memory needs more rounds, so most of "
                   "them run again (%s has %d)", steps / spec->cut.slices, fix, fewer ? steps / usual : steps);
    return 0;
}

/* E401 if --slice-rounds is set for windows that overlap. */
static err no_slices(const struct forecast_spec *spec) {
    if (spec->cut.course.slice_rounds > 0 && !spec->decoder->every_step)
        return FAIL_AT(E401, "--slice-rounds", "--slice-rounds 0   or   --loss-steps all",
                       "--slice-rounds starts slices from their states of the previous visit, and overlapping windows have none");
    return 0;
}

/* True if `auto` may choose time slices. */
static bool may_slice(const struct forecast_spec *spec) {
    return spec->correction && forecast_can_slice(spec) && (spec->decoder->every_step || forecast_steps(spec) >= 2 * LONG_SLICE);
}

err resolve_slices(const struct options *o, i64 windows, i32 ntarget, const struct events *ev, struct forecast_spec *spec) {
    i32 n;
    bool open = strcmp(o->parallel, "auto") == 0;
    struct tile_fit w;
    TRY(plan_slices(o->parallel, &n));
    if (n == 1)
        return FAIL_AT(E401, "--parallel", "--parallel serial   or   --parallel time:2", "one time slice is the whole window");
    if (o->plan && *o->plan && n <= 0) return 0; /* the saved plan sets the number */
    if (n == 0 && !(open && may_slice(spec))) return 0;
    TRY(no_slices(spec));
    TRY(count_slices(spec, windows, ntarget, open ? LONG_SLICE : USUAL_SLICE, &w));
    if (open) {
        choose_slices(o, &w, ev, spec);
        return 0;
    }
    i32 usual = imin(imax(2, w.slices), forecast_steps(spec));
    spec->cut.slices = n > 0 ? n : imax(2, usual);
    spec->cut.least = n > 0 ? n : 2;
    return given_slices(o->parallel, spec, usual, ev);
}

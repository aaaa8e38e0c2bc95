/* sample_report.h - artificial runs with every section of a report, for the tests of the page. */
#ifndef STRETTO_TESTS_REPORT_SAMPLE_REPORT_H
#define STRETTO_TESTS_REPORT_SAMPLE_REPORT_H

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "report/report.h"
#include "report/text.h"

enum { S_HISTORY = 48, S_HORIZON = 12, S_STEPS = 300, S_MEMBERS = 5, S_WINDOWS = 5, S_SPANS = 4 * 60 };

struct sample {
    f64 time[S_WINDOWS][S_HISTORY + S_HORIZON], past[S_WINDOWS][S_HISTORY];
    f64 actual[S_WINDOWS][S_HORIZON], model[S_WINDOWS][S_HORIZON], base[S_WINDOWS][S_HORIZON];
    f64 quantile[S_WINDOWS][3][S_HORIZON], by_step[5][S_HORIZON];
    f64 step[S_MEMBERS][S_STEPS], train[S_MEMBERS][S_STEPS], vstep[S_MEMBERS][30], valid[S_MEMBERS][30];
    char span_name[S_SPANS][32];
    struct span span[S_SPANS];
    struct report_forecast forecast[S_WINDOWS];
    struct report_curve curve[S_MEMBERS];
    i32 ran[3][16];
    struct report_slices slices;
    i64 stale[16];
    struct report_store store;
    struct report report;
};

static f64 sample_wave(i32 month) { return (120 + 2.7 * month) * (1 + .22 * sin(.5236 * month) + .07 * cos(1.0472 * month)); }

static const f64 sample_level[] = {.1, .5, .9}, sample_below[] = {.08, .53, .93};
static const f64 sample_hours[24] = {3, 2, 2, 1, 1, 2, 4, 7, 9, 8, 7, 6, 6, 6, 5, 6, 7, 9, 11, 9, 7, 6, 5, 4};
static const f64 sample_naive_hours[24] = {5, 5, 4, 4, 4, 5, 8, 12, 14, 12, 10, 9, 8, 8, 8, 9, 11, 14, 16, 13, 10, 8, 7, 6};
static const char *const sample_hour[24] = {"0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10", "11",
                                            "12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22", "23"};
static const char *const sample_day[7] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
static const struct report_calendar sample_calendar[] = {
    {"hour of the day", 24, sample_hour, sample_hours, sample_naive_hours},
    {"day of the week", 7, sample_day, sample_hours, NULL}};
static const struct report_column sample_column[] = {{"price <net>", .31, .28, .35}, {"calendar", .042, .03, .05},
                                                     {"a column with a very long name that no phone shows", -.01, -.02, .01}};
static const struct report_finding sample_finding[] = {
    {true, "W034", "", "columns a & b <sum> give the target: they leak it", "--past a,b   or   --ignore a,b"},
    {false, "E203", "load.csv:17", "two records of 2011-01-02 05:00", ""}};
static const struct report_fact sample_quality[] = {{"missing cells", "120 of 17,379 (0.7 %)"},
                                                    {"longest gap", "36 hours from 2011-01-02"}};

static void sample_forecasts(struct sample *s) {
    static const char *const title[S_WINDOWS] = {"Passengers, from 1959-12", "Passengers, from 1959-11",
                                                 "Passengers, from 1959-10", "Passengers, from 1959-09",
                                                 "Passengers, from 1959-08"};
    for (i32 w = 0; w < S_WINDOWS; w++) {
        for (i32 i = 0; i < S_HISTORY + S_HORIZON; i++) {
            i32 m = 132 - S_HISTORY - w + i, k = i - S_HISTORY;
            f64 v = sample_wave(m) + 6 * sin(1.7 * m);
            s->time[w][i] = 86400. * (f64)time_days(1949 + m / 12, m % 12 + 1, 1);
            if (k < 0) {
                s->past[w][i] = v;
                continue;
            }
            s->actual[w][k] = v;
            s->model[w][k] = sample_wave(m) + 2;
            s->base[w][k] = .94 * sample_wave(m);
            for (i32 q = 0; q < 3; q++) s->quantile[w][q][k] = s->model[w][k] + (q - 1) * (9 + 2.2 * k);
        }
        s->forecast[w] = (struct report_forecast){.title = title[w],
                                                  .nhistory = S_HISTORY,
                                                  .horizon = S_HORIZON,
                                                  .time = s->time[w],
                                                  .history = s->past[w],
                                                  .actual = s->actual[w],
                                                  .model = s->model[w],
                                                  .base = s->base[w],
                                                  .nlevel = 3,
                                                  .level = sample_level,
                                                  .quantile = s->quantile[w][0]};
    }
}

static void sample_curves(struct sample *s) {
    for (i32 m = 0; m < S_MEMBERS; m++) {
        i32 best = 0;
        for (i32 i = 0; i < S_STEPS; i++) {
            s->step[m][i] = i + 1;
            s->train[m][i] = .055 + .25 * exp(-i / 40.) + .012 * sin(i * 2.3 + m) + .004 * m;
        }
        for (i32 i = 0; i < 30; i++) {
            s->vstep[m][i] = 10 * i + 10;
            s->valid[m][i] = .09 + .2 * exp(-i / 4.) + .0004 * i * i / 3. + .006 * sin(i * 1.3 + m);
            if (s->valid[m][i] < s->valid[m][best]) best = i;
        }
        s->curve[m] = (struct report_curve){S_STEPS, 30, s->step[m], s->train[m], s->vstep[m], s->valid[m], best};
    }
}

static void sample_spans(struct sample *s) {
    static const char *const lane[] = {"thread 0", "thread 1", "thread 2", "thread 3"};
    static const char *const kind[] = {"fwd", "bwd", "merge", "update", "wait"};
    for (i32 l = 0; l < 4; l++) {
        f64 t = 1e-5 * l;
        for (i32 i = 0; i < S_SPANS / 4; i++) {
            i32 at = l * (S_SPANS / 4) + i, k = i % 12 < 5 ? 0 : i % 12 < 9 ? 1 : i % 12 == 9 ? 2 : i % 12 == 10 ? 3 : 4;
            f64 d = (k == 0 ? 9e-5 : k == 1 ? 1.6e-4 : 4e-5) * (1 + .2 * sin(at * 1.1));
            snprintf(s->span_name[at], sizeof s->span_name[at], "%s lstm.0 b[%d,%d)", kind[k], 8 * l, 8 * l + 8);
            s->span[at] = (struct span){lane[l], s->span_name[at], t, t + d, 0};
            t += d + 4e-6;
        }
    }
}

static const struct score_row sample_score[] = {
    {"model", ROLE_MODEL, {15.8, .52, .026}, .674},          {"base alone", ROLE_BASE, {17.1, .56, NAN}, .642},
    {"ridge", ROLE_RIDGE, {21.4, .70, NAN}, .552},           {"snaive (12)", ROLE_SNAIVE, {47.8, 1.57, .100}, NAN},
    {"naive", ROLE_NAIVE, {76.0, 2.50, .160}, NAN}};
static const struct score_table sample_scores = {"test 1960-01..12", 3, {"MAE", "MASE", "wQL"}, 5, sample_score, 0, 3, 1,
                                                 {.from = 0}, 0, 0, NULL};

static const struct score_row sample_fold_row[] = {{"theta", ROLE_A, {14.2}, NAN}, {"season + growth", ROLE_B, {15.9}, NAN},
                                                   {"season", ROLE_SNAIVE, {31.0}, NAN}, {"last", ROLE_NAIVE, {44.7}, NAN}};
static const struct score_table sample_fold = {
    "Candidates for the base, 80 rolling origins", 1, {"MAE"}, 4, sample_fold_row, 0, -1, 80, {.from = 0}, 0, 0, NULL};

static const struct report_fact sample_data[] = {
    {"file", "airline-passengers.csv, 144 rows, 1 series"}, {"time", "\"Month\", monthly, 1949-01 to 1960-12, no gaps"},
    {"target", "Passengers (least 104, mean 280.3, most 622)"}, {"scale", "window deviation, last value subtracted"}};
static const struct report_fact sample_decision[] = {{"step 40", "local:4: workers waited 12% of the time"}};
static const struct report_split sample_split[] = {{"train", 0, 120, "1949-01", "1958-12", 73},
                                                   {"validation", 120, 132, "1959-01", "1959-12", 1},
                                                   {"test", 132, 144, "1960-01", "1960-12", 1}};
static const struct report_fact sample_machine[] = {{"processor", "AMD EPYC 9xx5, 2 of 2 cores, AVX-512"},
                                                    {"memory", "7.6 GiB, peak of this run 11 MiB"},
                                                    {"system", "Linux 6.1, Debian 12"},
                                                    {"kernels", "avx512 (STRETTO_ISA not set)"}};
static const struct report_option sample_option[] = {{"target", "Passengers", "--target"},
                                                     {"horizon", "12", "--horizon"},
                                                     {"context", "36", "preset short"},
                                                     {"cell", "lstm", "preset short"},
                                                     {"hidden", "32", "preset short"},
                                                     {"layers", "1", "default"},
                                                     {"lr", "0.005", "load.yaml:3"},
                                                     {"steps", "200", "preset short"},
                                                     {"batch", "64", "default"},
                                                     {"dropout", "0", "default"},
                                                     {"clip", "1", "default"},
                                                     {"seed", "1", "default"},
                                                     {"threads", "2", "default"},
                                                     {"na", "NA,<none>,null", "default"},
                                                     {"guard", "on", "default"},
                                                     {"parallel", "auto", "default"}};
static const char *const sample_note[] = {
    "read airline-passengers.csv: 1 series, 144 rows, time \"Month\" monthly 1949-01..1960-12, no gaps",
    "preset short (1 series, 144 rows): lstm 1x32, context 36, scale last, quantile head"};
static const char *const sample_warning[] = {
    "W034 columns a & b <sum> reproduce the target in 17379 of 17379 rows: they leak it"};

static void sample_steps(struct sample *s, struct report_line line[5]) {
    static const char *const name[] = {"model", "base alone", "ridge", "snaive (12)", "naive"};
    static const enum role role[] = {ROLE_MODEL, ROLE_BASE, ROLE_RIDGE, ROLE_SNAIVE, ROLE_NAIVE};
    for (i32 k = 0; k < 5; k++) {
        static const f64 at[] = {8, 9, 11, 44, 26}, slope[] = {1.2, 1.3, 1.7, .6, 8};
        for (i32 i = 0; i < S_HORIZON; i++) s->by_step[k][i] = at[k] + slope[k] * i + 1.4 * sin(i + k);
        line[k] = (struct report_line){name[k], role[k], s->by_step[k]};
    }
}

static const struct report *sample_make(struct sample *s, struct report_line line[5]) {
    sample_forecasts(s);
    sample_curves(s);
    sample_spans(s);
    sample_steps(s, line);
    s->report = (struct report){
        .title = "Passengers: 12 months ahead",
        .created = "2026-11-21 20:36",
        .version = "0.1.0",
        .seconds = 4.6,
        .parameters = 5216,
        .command = "stretto train airline-passengers.csv --target Passengers --horizon 12 --lr '<.005 & \"more\">' -o air.model",
        .scores = &sample_scores,
        .loss = "pinball",
        .ncurve = S_MEMBERS,
        .curve = s->curve,
        .nforecast = S_WINDOWS,
        .forecast = s->forecast,
        .step_metric = "MAE",
        .horizon = S_HORIZON,
        .nline = 5,
        .line = line,
        .parts = {.base = "mix",
                  .base_detail = "theta 61 %, season + growth 39 %",
                  .fold = &sample_fold,
                  .correction = "lstm 1x32",
                  .correction_detail = "on what the base leaves, output layer from zero, mean of 5 seeds",
                  .guarded = true,
                  .t = 1.83,
                  .a = .77,
                  .blocks = 6,
                  .metric = "MAE on the test part",
                  .base_error = 17.1,
                  .full_error = 15.8},
        .nahead = 1,
        .ahead = s->forecast + 4,
        .nseries = 3,
        .series = s->forecast + 1,
        .series_lead = "of 300 series, by MASE",
        .calibration = {.n = 3, .level = sample_level, .below = sample_below, .cells = 1200, .nstep = 12,
                        .step = sample_hours + 6, .from = .1, .to = .9},
        .ncalendar = 2,
        .calendar = sample_calendar,
        .calendar_naive = "snaive (12)",
        .columns = {.how = "error on validation with the column of another time", .n = 3, .of = sample_column},
        .quality = {.how = "findings of stretto check", .nfact = 2, .fact = sample_quality, .nfinding = 2,
                    .finding = sample_finding},
        .nsplit = 3,
        .split = sample_split,
        .ndata = 4,
        .data = sample_data,
        .nspan = S_SPANS,
        .span = s->span,
        .plan =
            "(plan step ranks 1 peak 1.3MiB predicted 2.91ms\n  (fwd lstm.0 b[0,8) t[0,36) @r0.cpu0 uses W:r x:r h0:w)\n"
            "  (fwd lstm.0 b[8,16) t[0,36) @r0.cpu1 uses W:r x:r h0:w))",
        .nmachine = 4,
        .machine = sample_machine,
        .noption = (i32)COUNT(sample_option),
        .option = sample_option,
        .nnote = 2,
        .note = sample_note,
        .nwarning = 1,
        .warning = sample_warning};
    for (i32 k = 0; k < 16; k++) s->ran[0][k] = 64, s->ran[1][k] = k ? 8 + k : 0, s->ran[2][k] = k == 9 ? 8 : 0;
    s->slices = (struct report_slices){.layer = "lstm.0", .nslice = 16, .steps = 64, .rounds = {2.6, 1.2}, .again = {.31, .02},
                                       .forgets = 21.4, .useful = .86, .serial = 1, .trained = 300, .gap = {2e-6, 1e-7},
                                       .nround = {3, 1}, .ran = {s->ran[0], s->ran[0]}};
    s->report.nslices = 1;
    s->report.slices = &s->slices;
    s->report.slice_gap = 3e-7;
    s->stale[0] = 40, s->stale[1] = 160, s->stale[3] = 7, s->stale[15] = 1;
    s->store = (struct report_store){.policy = "ssp:3, 2 servers, codec <int8>", .servers = 2, .workers = 4, .pushes = 208,
                                     .refused = 3, .messages = 1248, .sent = 2500000, .whole = 9750000, .waited = .124,
                                     .nstale = 16, .stale = s->stale, .ndecision = 1, .decision = sample_decision};
    s->report.store = &s->store;
    return &s->report;
}

/* Another kind of run: hourly, long horizon, worse than naive, hostile and long names, many metrics, diverging loss. */
enum { H_HISTORY = 336, H_HORIZON = 96 };

struct sample_hourly {
    f64 time[H_HISTORY + H_HORIZON], v[H_HISTORY + H_HORIZON], model[H_HORIZON], step[400], loss[400];
    struct report_forecast forecast[3];
    struct report_curve curve;
    struct report report;
};

static const struct score_row sample_hourly_score[] = {
    {"model <b>&amp; a name that goes on and on</b>", ROLE_MODEL, {1.294e6, .713, 1.21, 23.4, .1, .0921, 812.4}, -.134},
    {"ridge", ROLE_RIDGE, {.383, .392, .66, 13.2, .05, .041, 401.1}, .2},
    {"snaive (168)", ROLE_SNAIVE, {.512, .433, .8, 15, .07, .05, 500}, NAN}};
static const struct score_table sample_hourly_scores = {"test 2017-10-24 00:00 .. 2018-02-20 23:00",
                                                        7,
                                                        {"MSE", "MAE", "MASE", "sMAPE", "ND", "wQL", "RMSE"},
                                                        3,
                                                        sample_hourly_score,
                                                        0,
                                                        2,
                                                        2785,
                                                        {.from = 0}, 0, 0, NULL};

static const struct report *sample_hourly_make(struct sample_hourly *s) {
    for (i32 i = 0; i < H_HISTORY + H_HORIZON; i++) {
        s->time[i] = 1508803200. + 3600. * i;
        s->v[i] = 1.23e6 * (1 + .4 * sin(i * .2618)) + 9e4 * sin(i * 12.9);
        if (i >= H_HISTORY) s->model[i - H_HISTORY] = 1.1e6 * (1 + .5 * sin(i * .2618));
    }
    for (i32 i = 0; i < 400; i++) {
        s->step[i] = 25 * i;
        s->loss[i] = 800 * exp(-i / 30.) + .4;
    }
    for (i32 k = 0; k < 3; k++)
        s->forecast[k] = (struct report_forecast){.title = "HUFL \"<svg onload=alert(1)>\"",
                                                  .nhistory = H_HISTORY,
                                                  .horizon = H_HORIZON,
                                                  .time = k == 2 ? NULL : s->time,
                                                  .history = s->v,
                                                  .actual = s->v + H_HISTORY,
                                                  .model = s->model,
                                                  .base = k ? s->v : NULL};
    s->curve = (struct report_curve){400, 400, s->step, s->loss, s->step, s->loss, 399};
    s->report = (struct report){
        .title = "ETTh1, 7 columns: 96 hours ahead",
        .seconds = 371,
        .parameters = 1234567,
        .scores = &sample_hourly_scores,
        .loss = "mse",
        .ncurve = 1,
        .curve = &s->curve,
        .nforecast = 3,
        .forecast = s->forecast,
        .nsplit = 3,
        .split = sample_split,
        .parts = {
            .base = "ridge", .correction = "lstm 1x32", .guarded = true, .a = 0, .t = -.4, .base_error = NAN, .full_error = NAN}};
    return &s->report;
}

#endif

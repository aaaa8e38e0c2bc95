/* t_window.c - windows as views: layout, scale from inputs only, missing cells, padding; and the prefetch thread. */
#include "t.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "data/prefetch.h"
#include "data/time.h"
#include "data/window.h"

enum { N = 40 };
static f32 value[2 * N];
static i64 when[N];
static f64 mean[2] = {10, 0}, dev[2] = {2, 1};

/* Column 0 (target) = i, column 1 (known) = 100 + i; hourly from a midnight. */
static struct series hours(void) {
    for (i32 i = 0; i < N; i++) {
        value[i] = (f32)i;
        value[N + i] = 100.f + (f32)i;
        when[i] = 1600000000 / 86400 * 86400 + 3600 * (i64)i;
    }
    return (struct series){.nrow = N, .ncol = 2, .ntarget = 1, .nknown = 1, .v = value, .time = when, .mean = mean, .dev = dev,
                           .freq = {.step = 3600, .season = 24}};
}

TEST(window_segments_hold_consecutive_rows_newest_last) {
    struct series s = hours();
    struct window_shape p = {.context = 6, .horizon = 5, .seg = 4, .nseg = 2, .out_seg = 2, .nout = 3};
    f32 x[2 * 2 * 16] = {0};
    assert_int_equal(window_features(&p, &s), 8);
    window_fill_x(&p, &s, 20, 0, 14.f, 2.f, (struct window_dst){.p = x, .ld = 16, .B = 2}, 1);
    f32 want0[] = {0, 0, 0, 0.5f, 0, 0, 114, 115}; /* two rows before the context are zero */
    f32 want1[] = {1, 1.5f, 2, 2.5f, 116, 117, 118, 119};
    t_near("segment 0", x + 16, want0, 8, 0);
    t_near("segment 1", x + 48, want1, 8, 0);
}

/* Values, masks, calendar and columns known ahead of some segments are those of the whole window. */
TEST(window_in_slices_is_the_window) {
    struct series s = hours();
    struct window_shape p = {.context = 14, .horizon = 5, .seg = 3, .nseg = 5, .out_seg = 2, .nout = 3, .mask = true};
    f32 whole[5 * 16] = {0}, cut[5 * 16];
    p.calendar = window_calendar_size(&s.freq);
    assert_true(window_features(&p, &s) <= 16 && p.calendar > 0);
    window_fill_x(&p, &s, 22, 0, 14.f, 2.f, (struct window_dst){.p = whole, .ld = 16, .B = 1}, 0);
    for (i32 from = 0; from < 5; from++)
        for (i32 steps = 1; from + steps <= 5; steps++) {
            memset(cut, 0, sizeof cut);
            window_fill_x(&p, &s, 22, 0, 14.f, 2.f,
                          (struct window_dst){.p = cut, .ld = 16, .B = 1, .from = from, .steps = steps}, 0);
            assert_memory_equal(cut, whole + from * 16, sizeof(f32) * 16 * (size_t)steps);
            for (i32 k = steps * 16; k < 5 * 16; k++) assert_true(cut[k] == 0);
        }
}

TEST(window_targets_past_the_horizon_or_the_end_are_missing) {
    struct series s = hours();
    struct window_shape p = {.context = 6, .horizon = 5, .seg = 4, .nseg = 2, .out_seg = 2, .nout = 3};
    f32 y[3 * 16] = {0};
    assert_int_equal(window_fill_y(&p, &s, 20, 0, 20.f, 1.f, (struct window_dst){.p = y, .ld = 16, .B = 1}, 0), 5);
    assert_true(y[0] == 0 && y[1] == 1 && y[16] == 2 && y[32] == 4 && isnan(y[33]));
    assert_int_equal(window_fill_y(&p, &s, 37, 0, 0.f, 1.f, (struct window_dst){.p = y, .ld = 16, .B = 1}, 0), 3);
}

TEST(window_scale_uses_the_window_only) {
    struct series s = hours();
    struct window_shape p = {.context = 4, .horizon = 2, .seg = 1, .nseg = 4, .out_seg = 2, .nout = 1};
    f32 shift, div, again, div2;
    for (i32 k = WSCALE_NONE; k <= WSCALE_MEAN; k++) {
        p.scale = (enum window_scale)k;
        window_scale_of(&p, &s, 10, 0, &shift, &div);
        for (i32 i = 0; i < N; i++)
            if (i < 6 || i >= 10) value[i] = 1e6f; /* what lies outside must not matter */
        window_scale_of(&p, &s, 10, 0, &again, &div2);
        assert_true(shift == again && div == div2);
        s = hours();
    }
    p.scale = WSCALE_WINDOW;
    window_scale_of(&p, &s, 10, 0, &shift, &div);
    assert_true(shift == 9.f && fabsf(div - sqrtf(1.25f)) < 1e-6f); /* 6 7 8 9 */
    value[6] = value[7] = (f32)NAN; /* two are enough for a scale, one is not */
    window_scale_of(&p, &s, 10, 0, &shift, &div);
    assert_true(shift == 9.f && fabsf(div - 0.5f) < 1e-6f);
    value[8] = (f32)NAN;
    window_scale_of(&p, &s, 10, 0, &shift, &div);
    assert_true(shift == 9.f && div == 1.f);
    s = hours();
    p.scale = WSCALE_MEAN; /* raw = 2 v + 10: mean of 22 24 26 28 is 25; in series units 12.5 above -5 */
    window_scale_of(&p, &s, 10, 0, &shift, &div);
    assert_true(shift == -5.f && fabsf(div - 12.5f) < 1e-5f);
}

TEST(window_last_observed_stands_in_for_missing_cells) {
    struct series s = hours();
    struct window_shape p = {
        .context = 4, .horizon = 1, .seg = 4, .nseg = 1, .out_seg = 1, .nout = 1, .scale = WSCALE_LAST, .mask = true};
    f32 shift, div, x[16] = {0};
    value[9] = value[7] = (f32)NAN;
    window_scale_of(&p, &s, 10, 0, &shift, &div);
    assert_true(shift == 8.f);
    window_fill_x(&p, &s, 10, 0, shift, div, (struct window_dst){.p = x, .ld = 16, .B = 1}, 0);
    f32 want[] = {-2, 0, 0, 0, 1, 0, 1, 0, 106, 107, 108, 109};
    t_near("values and mask", x, want, 12, 0);
}

TEST(window_holds_the_last_value_where_a_line_was_not_known) {
    struct series s = hours();
    struct window_shape p = {
        .context = 4, .horizon = 3, .seg = 4, .nseg = 1, .out_seg = 3, .nout = 1, .scale = WSCALE_LAST, .mask = true};
    f32 shift, div, x[16] = {0}, y[16] = {0};
    u8 filled[2 * N] = {0};
    filled[8] = filled[9] = filled[10] = 1;
    s.filled = filled;
    window_scale_of(&p, &s, 10, 0, &shift, &div);
    assert_true(shift == 7.f);
    window_fill_x(&p, &s, 10, 0, shift, div, (struct window_dst){.p = x, .ld = 16, .B = 1}, 0);
    f32 want[] = {-1, 0, 0, 0, 1, 1, 1, 1, 106, 107, 108, 109};
    t_near("values and mask", x, want, 12, 0);
    assert_int_equal(window_fill_y(&p, &s, 10, 0, 0.f, 1.f, (struct window_dst){.p = y, .ld = 16, .B = 1}, 0), 2);
    assert_true(isnan(y[0]) && y[1] == 11 && y[2] == 12);
    window_fill_x(&p, &s, 12, 0, 0.f, 1.f, (struct window_dst){.p = x, .ld = 16, .B = 1}, 0);
    assert_true(x[0] == 8 && x[1] == 9 && x[2] == 10 && x[3] == 11); /* the line is known now */
}

TEST(window_calendar_knows_the_hour) {
    struct series s = hours();
    assert_int_equal(window_calendar_size(&s.freq), 6);
    assert_int_equal(window_calendar_size(&(struct freq){.months = 1}), 2);
    assert_int_equal(window_calendar_size(&(struct freq){.step = 86400}), 4);
    struct window_shape p = {.context = 4, .horizon = 30, .seg = 4, .nseg = 1, .out_seg = 24, .nout = 2, .calendar = 6};
    f32 k[2 * 32] = {0};
    assert_int_equal(window_future_features(&p, &s), 30);
    window_fill_future(&p, &s, 24, 0, (struct window_dst){.p = k, .ld = 32, .B = 1}, 0);
    assert_true(k[0] == 124.f && k[15] == 139.f && k[16] == 0.f);            /* rows past the end of the file are zero */
    assert_true(fabsf(k[24]) < 1e-6f && fabsf(k[25] - 1) < 1e-6f);           /* midnight: sine 0, cosine 1 */
    assert_true(fabsf(k[32 + 24]) < 1e-6f && fabsf(k[32 + 25] - 1) < 1e-6f); /* the next midnight, past the end */
}

TEST(window_calendar_goes_on_behind_the_file) {
    struct window_shape p = {.context = 4, .horizon = 30, .seg = 4, .nseg = 1, .out_seg = 1, .nout = 12, .calendar = 2};
    struct series s = hours(), cut;
    f32 whole[12 * 8] = {0}, end[12 * 8] = {0};
    s.freq = (struct freq){.months = 1, .season = 12};
    for (i32 i = 0; i < N; i++) when[i] = time_add(978307200, &s.freq, i);
    s.nknown = 0, s.ncol = 1;
    cut = s;
    cut.nrow = 25;
    window_fill_future(&p, &s, 25, 0, (struct window_dst){.p = whole, .ld = 8, .B = 1}, 0);
    window_fill_future(&p, &cut, 25, 0, (struct window_dst){.p = end, .ld = 8, .B = 1}, 0);
    assert_memory_equal(whole, end, sizeof end);
}

/* --- prefetch --- */
struct filler {
    i64 slot[PREFETCH_SLOTS];
    i64 order[100], n;
};

static void fill(void *self, i64 step, i32 slot) {
    struct filler *f = self;
    f->slot[slot] = step;
    f->order[f->n++] = step;
}

TEST(prefetch_hands_out_every_step_in_order) {
    for (i32 threaded = 0; threaded < 2; threaded++) {
        struct filler f = {0};
        struct prefetch *p;
        T_OK(prefetch_new(fill, &f, 3, 53, threaded != 0, &p));
        for (i64 k = 3; k < 53; k++) {
            i32 slot = prefetch_next(p);
            assert_int_equal(f.slot[slot], k);
        }
        prefetch_free(p);
        assert_int_equal(f.n, 50);
        for (i64 i = 0; i < 50; i++) assert_int_equal(f.order[i], i + 3);
    }
}

TEST(prefetch_stops_when_freed_early) {
    struct filler f = {0};
    struct prefetch *p;
    T_OK(prefetch_new(fill, &f, 0, 100, true, &p));
    prefetch_next(p);
    prefetch_free(p);
    assert_true(f.n <= 2);
    prefetch_free(NULL);
}

/* A streaming step has the features of the last step of a window that ends at that row. */
TEST(window_step_is_the_last_step_of_a_window) {
    struct series s = hours();
    static u8 made[2 * N];
    struct window_shape p = {.context = 1, .horizon = 2, .seg = 1, .nseg = 1, .out_seg = 2, .nout = 1, .mask = true,
                             .calendar = window_calendar_size(&s.freq)};
    value[9] = (f32)NAN;
    made[14] = made[15] = 1; /* on a line to row 16 that nobody knew before */
    s.filled = made;
    for (i64 row = 0; row < N; row++) {
        f32 step[16] = {0}, x[16] = {0};
        window_fill_step(&p, &s, row, 0, step);
        window_fill_x(&p, &s, row + 1, 0, 0.f, 1.f, (struct window_dst){.p = x, .ld = 16, .B = 1}, 0);
        assert_memory_equal(step, x, sizeof x);
    }
    f32 held[16];
    window_fill_step(&p, &s, 15, 0, held);
    assert_true(held[0] == 13.f && held[1] == 1.f && held[2] == 115.f);
}

T_MAIN(cmocka_unit_test(window_segments_hold_consecutive_rows_newest_last),
       cmocka_unit_test(window_in_slices_is_the_window),
       cmocka_unit_test(window_targets_past_the_horizon_or_the_end_are_missing),
       cmocka_unit_test(window_scale_uses_the_window_only), cmocka_unit_test(window_last_observed_stands_in_for_missing_cells),
       cmocka_unit_test(window_holds_the_last_value_where_a_line_was_not_known),
       cmocka_unit_test(window_calendar_knows_the_hour), cmocka_unit_test(window_calendar_goes_on_behind_the_file),
       cmocka_unit_test(window_step_is_the_last_step_of_a_window),
       cmocka_unit_test(prefetch_hands_out_every_step_in_order), cmocka_unit_test(prefetch_stops_when_freed_early))

/* sample.c - see sample.h. */
#include "data/sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "data/time.h"

enum { HOUR = 3600, DAY = 24 * HOUR, SHOPS = 12, AHEAD = 28 };
enum { ROWS_MAX = 50000000, LAG = 17, PER_UNIT = 10, MEMORY = 200, PANEL = 8 };
static const f64 TURN = 6.283185307179586476925;

/* Monthly totals of international airline passengers, thousands, 1949-1960 (Box and Jenkins 1976, series G). */
static const short passengers[144] = {
    112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118, 115, 126, 141, 135, 125, 149, 170, 170, 158, 133, 114, 140,
    145, 150, 178, 163, 172, 178, 199, 199, 184, 162, 146, 166, 171, 180, 193, 181, 183, 218, 230, 242, 209, 191, 172, 194,
    196, 196, 236, 235, 229, 243, 264, 272, 237, 211, 180, 201, 204, 188, 235, 227, 234, 264, 302, 293, 259, 229, 203, 229,
    242, 233, 267, 269, 270, 315, 364, 347, 312, 274, 237, 278, 284, 277, 317, 313, 318, 374, 413, 405, 355, 306, 271, 306,
    315, 301, 356, 348, 355, 422, 465, 467, 404, 347, 305, 336, 340, 318, 362, 348, 363, 435, 491, 505, 404, 359, 310, 337,
    360, 342, 406, 396, 420, 472, 548, 559, 463, 407, 362, 405, 417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432};

static void write_airline(i64 rows, u64 seed, struct str *out) {
    (void)seed;
    str_add(out, "Month,Passengers\n");
    for (i32 i = 0; i < lmin(rows, 144); i++) str_addf(out, "%d-%02d,%d\n", 1949 + i / 12, i % 12 + 1, passengers[i]);
}

static void add_time(struct str *out, i64 t) {
    static const struct freq hourly = {.step = HOUR};
    char text[32];
    time_format(t, &hourly, text);
    str_add(out, text);
}

/* Hourly tide height: the six largest constituents by period in hours, plus autoregressive weather noise. */
static void write_tides(i64 rows, u64 seed, struct str *out) {
    static const struct {
        f64 period, height, phase;
    } part[] = {{12.4206012, 1.55, 0.4}, {12.0, 0.52, 1.9},       {12.65834751, 0.33, 0.1},
                {23.93447213, 0.14, 2.6}, {25.81933871, 0.10, 5.2}, {11.96723606, 0.15, 1.8}};
    i64 start = time_days(2020, 1, 1) * 86400;
    f64 weather = 0;
    str_add(out, "time,height\n");
    for (i64 i = 0; i < rows && !out->failed; i++) {
        f64 h = 3.2;
        for (size_t k = 0; k < COUNT(part); k++) h += part[k].height * cos(TURN * (f64)i / part[k].period - part[k].phase);
        weather = 0.97 * weather + 0.03 * rng_normal(seed, RNG_SAMPLE, 1, (u64)i);
        add_time(out, start + i * HOUR);
        str_addf(out, ",%.3f\n", h + weather + 0.02 * rng_normal(seed, RNG_SAMPLE, 2, (u64)i));
    }
}

/* Mackey and Glass 1977: x' = 0.2 x(t-17) / (1 + x(t-17)^10) - 0.1 x, ten Runge-Kutta steps per row with constant delayed
 * value. */
static void write_mackey(i64 rows, u64 seed, struct str *out) {
    f64 past[LAG * PER_UNIT], x = 1.2;
    for (i32 i = 0; i < LAG * PER_UNIT; i++) past[i] = 1.2 + 0.05 * rng_normal(seed, RNG_SAMPLE, 3, (u64)i);
    str_add(out, "step,x\n");
    const f64 h = 1.0 / PER_UNIT;
    i64 warm = 500;
    for (i64 i = 0, at = 0; i < (rows + warm) && !out->failed; i++) {
        for (i32 k = 0; k < PER_UNIT; k++, at = (at + 1) % (LAG * PER_UNIT)) {
            f64 d = past[at], drive = 0.2 * d / (1 + pow(d, 10));
            f64 k1 = drive - 0.1 * x, k2 = drive - 0.1 * (x + h / 2 * k1), k3 = drive - 0.1 * (x + h / 2 * k2),
                k4 = drive - 0.1 * (x + h * k3);
            past[at] = x;
            x += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
        }
        if (i >= warm) str_addf(out, "%lld,%.6f\n", (long long)(i - warm), x);
    }
}

/* Eight hourly loads with individual daily, weekly and yearly patterns, level and growth; long format: one row per id and hour.
 */
static void write_panel(i64 rows, u64 seed, struct str *out) {
    i64 start = time_days(2021, 1, 4) * 86400, each = lmax(1, rows / PANEL);
    str_add(out, "unique_id,ds,y\n");
    for (u32 id = 0; id < PANEL; id++) {
        f64 level = 50 * exp(2.5 * (f64)rng_uniform(seed, RNG_SAMPLE, 4, id)), noise = 0;
        f64 peak = 8 + 10 * (f64)rng_uniform(seed, RNG_SAMPLE, 5, id),
            weekend = 0.6 + 0.5 * (f64)rng_uniform(seed, RNG_SAMPLE, 6, id);
        for (i64 i = 0; i < each && !out->failed; i++) {
            f64 day = 1 + 0.35 * cos(TURN * ((f64)(i % 24) - peak) / 24) + 0.12 * cos(2 * TURN * ((f64)(i % 24) - peak) / 24);
            f64 week = i / 24 % 7 >= 5 ? weekend : 1, year = 1 + 0.2 * cos(TURN * (f64)i / 8766);
            noise = 0.8 * noise + 0.03 * rng_normal(seed, RNG_SAMPLE, 16 + id, (u64)i);
            str_addf(out, "S%u,", id + 1);
            add_time(out, start + i * HOUR);
            str_addf(out, ",%.2f\n", level * (day * week * year * (1 + noise) + 2e-5 * (f64)i));
        }
    }
}

/* Units that a shop sells on a day, given what it plans. */
struct shop {
    u32 id;
    f64 size, level, taste; /* taste: how much the price matters */
};

static f64 shop_price(u64 seed, const struct shop *s, i64 day) {
    const u64 month = (u64)(day / 35);
    return 8 + 2 * floor(3 * (f64)rng_uniform(seed, RNG_SAMPLE, 64 + s->id, month)) / 2 + 0.99;
}

/* A week of promotion in every five weeks or so, of all shops of a region. */
static bool shop_promotes(u64 seed, const struct shop *s, i64 day) {
    return rng_uniform(seed, RNG_SAMPLE, 48 + s->id % 2, (u64)(day / 7)) < 0.2f;
}

static f64 shop_units(u64 seed, const struct shop *s, i64 day) {
    static const f64 weekday[7] = {1.2, 1.6, 0.5, 0.8, 0.8, 0.9, 1}; /* from Friday on */
    const f64 year = 1 + 0.25 * pow(fmax(0, cos(TURN * ((f64)day + 15) / 365.25)), 8);
    const f64 price = pow(shop_price(seed, s, day) / 9.99, -s->taste), promo = shop_promotes(seed, s, day) ? 1.45 : 1;
    const f64 mean = s->level * weekday[day % 7] * year * price * promo;
    const f64 u = mean * (1 + 0.06 * rng_normal(seed, RNG_SAMPLE, 80 + s->id, (u64)day)) +
                  sqrt(mean) * rng_normal(seed, RNG_SAMPLE, 96 + s->id, (u64)day);
    return fmax(0, round(u));
}

/* Daily sales of twelve shops that opened one after the other: price and promotion are known 28 days ahead, where units are
 * empty; region and size stay the same.  Prices and promotions matter, so forecasts without them are worse. */
static void write_shops(i64 rows, u64 seed, struct str *out) {
    const i64 start = time_days(2022, 7, 1) * DAY, days = lmax(AHEAD + 1, rows / SHOPS);
    str_add(out, "shop,day,units,price,promo,region,size\n");
    for (u32 id = 0; id < SHOPS; id++) {
        struct shop s = {.id = id, .size = 100 * (1 + (id * 5) % 7)};
        s.level = s.size / 10 * (0.8 + 0.4 * (f64)rng_uniform(seed, RNG_SAMPLE, 60, id));
        s.taste = 1.2 + (f64)rng_uniform(seed, RNG_SAMPLE, 61, id);
        for (i64 day = days / 40 * id; day < days && !out->failed; day++) {
            static const struct freq daily = {.step = DAY};
            char text[32];
            time_format(start + day * DAY, &daily, text);
            str_addf(out, "shop %c,%s,", (char)('A' + id), text);
            if (day < days - AHEAD) str_addf(out, "%.0f", shop_units(seed, &s, day));
            str_addf(out, ",%.2f,%d,%s,%.0f\n", shop_price(seed, &s, day), shop_promotes(seed, &s, day),
                     id % 2 ? "south" : "north", s.size);
        }
    }
}

/* Long memory: y is a leaky sum of rare pulses over hundreds of steps, so a short context cannot predict it; the pulses are a
 * second column. */
static void write_integrator(i64 rows, u64 seed, struct str *out) {
    f64 sum = 0;
    str_add(out, "step,pulse,y\n");
    for (i64 i = 0; i < rows && !out->failed; i++) {
        bool fires = rng_uniform(seed, RNG_SAMPLE, 7, (u64)i) < 0.02f;
        f64 pulse = fires ? rng_normal(seed, RNG_SAMPLE, 8, (u64)i) : 0;
        sum = sum * (1 - 1.0 / MEMORY) + pulse;
        str_addf(out, "%lld,%.5g,%.5f\n", (long long)i, pulse, sum + 0.01 * rng_normal(seed, RNG_SAMPLE, 9, (u64)i));
    }
}

/* Memory over three time scales, driven by one shock u per row: an AR(2) oscillation, a sum of u that decays over about 100
 * rows, and the last u beyond 2.326, held until the next one (one row in 50). Small shocks decay, large ones persist, so no
 * linear function of lags separates them. y reveals each shock, so y alone suffices; the smallest possible one-step error is
 * 0.2. */
static void write_memory(i64 rows, u64 seed, struct str *out) {
    f64 sum = 0, held = 0, swing[2] = {0};
    str_add(out, "step,u,y\n");
    for (i64 i = 0; i < rows && !out->failed; i++) {
        f64 u = rng_normal(seed, RNG_SAMPLE, 10, (u64)i), now = 1.2 * swing[0] - 0.5 * swing[1] + 0.2 * u;
        swing[1] = swing[0], swing[0] = now;
        str_addf(out, "%lld,%.4f,%.4f\n", (long long)i, u, sum + held + now);
        sum = 0.99 * sum + 0.14 * u; /* visible in y from the next row on */
        if (fabs(u) > 2.326) held = 0.5 * u;
    }
}

static const struct {
    const char *name;
    i64 rows;
    void (*write)(i64 rows, u64 seed, struct str *out);
} samples[] = {{"airline", 144, write_airline},
               {"tides", 8760, write_tides},
               {"mackey-glass", 5000, write_mackey},
               {"panel", 8 * 2016, write_panel},
               {"shops", SHOPS * (730 + AHEAD), write_shops},
               {"integrator", 10000, write_integrator},
               {"long-memory", 20000, write_memory}};

const char *sample_list(void) {
    return "airline       passengers of airlines by month, 1949-1960: 144 rows, trend and season\n"
           "tides         height of the sea by the hour: six harmonics and weather, 8760 rows\n"
           "mackey-glass  a chaotic delay equation, 5000 rows without times\n"
           "panel         eight hourly loads in long form (unique_id, ds, y), 2016 rows each\n"
           "shops         daily sales of 12 shops; price and promotion known 28 days ahead, region and size\n"
           "integrator    a slowly leaking sum of rare pulses: long memory, 10000 rows\n"
           "long-memory   a swing, a fading sum and a held value, all of shocks u: 20000 rows\n";
}

err sample_write(const char *name, i64 rows, u64 seed, struct str *out) {
    const char *names[COUNT(samples)];
    for (size_t i = 0; i < COUNT(samples); i++) {
        names[i] = samples[i].name;
        if (strcmp(name, names[i]) != 0) continue;
        if (rows < 0 || rows > ROWS_MAX) return FAIL(E103, "%lld rows: 1 to %d are possible", (long long)rows, ROWS_MAX);
        samples[i].write(rows ? rows : samples[i].rows, seed, out);
        return str_ok(out);
    }
    i32 near = str_nearest(name, names, COUNT(samples));
    char fix[200];
    snprintf(fix, sizeof fix, "stretto sample %s   (there are airline, tides, mackey-glass, panel, shops, integrator, "
                              "long-memory)",
             names[imax(near, 0)]);
    return FAIL_AT(E103, NULL, fix, "there is no sample \"%s\"", name);
}

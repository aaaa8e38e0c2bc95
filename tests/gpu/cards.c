/* cards.c - see cards.h. */
#include "gpu/cards.h"

#include "base/mem.h"
#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the devices --------------------------------------------- */

enum { MOST_CARDS = 8, HEAP = 48 << 20, SMALL_HEAP = 4 << 20 };
static struct gpu *open_[MOST_CARDS], *card_; /* card_: the one under test */
static i32 ncards_ = -1;
static i64 used_;
static f64 worst_;

static i64 heap_bytes(void) { return emulated() ? SMALL_HEAP : HEAP; }

static void open_card(const struct gpu_driver *d, i32 i, const struct gpu_card *c) {
    if (c->lacks || ncards_ == MOST_CARDS) return;
    T_OK(gpu_open(d, i, CARD_LANES, heap_bytes(), &open_[ncards_]));
    printf("%s:%d  %s  (%s)\n", d->name, i, c->name, c->platform);
    ncards_++;
}

static void open_all(void) {
    static struct gpu_card found[GPU_CARDS];
    ncards_ = 0;
    assert_int_equal(setenv("STRETTO_CACHE", t_dir(), 1), 0);
    for (i32 i = 0; i < gpu_drivers(); i++) {
        char why[GPU_WHY] = "";
        const i32 n = gpu_driver_at(i)->cards(found, GPU_CARDS, why);
        if (n == 0) printf("skipped: %s: %s\n", gpu_driver_at(i)->name, why);
        for (i32 c = 0; c < n; c++) open_card(gpu_driver_at(i), c, &found[c]);
    }
}

struct gpu *card(void) { return card_; }

void close_cards(void) {
    for (i32 i = 0; i < ncards_; i++) gpu_close(open_[i]);
}

void each_card(void (*test)(void)) {
    if (ncards_ < 0) open_all();
    if (ncards_ == 0) {
        printf("skipped: no device\n");
        skip();
    }
    worst_ = 0;
    for (i32 i = 0; i < ncards_; i++) {
        card_ = open_[i];
        room_reset();
        gpu_enter(card_, 0);
        test();
        T_OK(gpu_sync());
        gpu_enter(NULL, 0);
    }
    printf("largest difference %.2g\n", worst_);
}
/* ------------------------------------------------------------------ memory -------------------------------------------------- */

void room_reset(void) { used_ = 0; }

void *room(i64 bytes) {
    char *at = (char *)gpu_heap(card_) + used_;
    used_ = round_up64(used_ + bytes, 256);
    assert_true(used_ <= heap_bytes());
    return at;
}

void *up_bytes(const void *host, i64 bytes) {
    void *at = room(bytes);
    gpu_put(at, bytes, host, bytes, bytes, 1);
    return at;
}

f32 *up(const f32 *host, i64 n) { return up_bytes(host, n * (i64)sizeof *host); }

f32 *down(const void *at, i64 n) {
    f32 *host = floats(n);
    gpu_get(host, n * 4, at, n * 4, n * 4, 1);
    return host;
}

f32 *noise(i64 n, u32 what) {
    f32 *p = floats(n);
    for (i64 i = 0; i < n; i++) p[i] = 2 * rng_uniform(3, RNG_TEST, what, (u64)i) - 1;
    return p;
}

f32 *copy_of(const f32 *from, i64 n) {
    f32 *p = floats(n);
    memcpy(p, from, (size_t)n * sizeof *p);
    return p;
}

void near(const char *what, const f32 *got, const f32 *want, i64 n) {
    f64 most = 0, apart = 0;
    for (i64 i = 0; i < n; i++) {
        most = dmax(most, fabs((f64)want[i]));
        apart = dmax(apart, fabs((f64)got[i] - (f64)want[i]));
    }
    if (most > 0) worst_ = fmax(worst_, apart / most);
    t_near(what, got, want, n, 1e-5);
}

void near_device(const char *what, const void *at, const f32 *want, i64 n) {
    f32 *got = down(at, n);
    near(what, got, want, n);
    mem_free(got);
}

const struct kern *host(void) { return kern_get(KERN_REF); }

bool emulated(void) {
    const char *few = getenv("STRETTO_TEST_FEW");
    return few && strcmp(few, "emulated") == 0;
}

bool chosen(u32 n) { return !t_few() || (n % 37 == 0 && (n <= 37 || !emulated())); }

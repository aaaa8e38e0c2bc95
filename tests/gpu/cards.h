/* cards.h - tests of kernels on every device of this machine: opens the devices, moves buffers, compares with the host. */
#ifndef STRETTO_TESTS_GPU_CARDS_H
#define STRETTO_TESTS_GPU_CARDS_H

#include "t.h"

#include "gpu/gpu.h"
#include "kern/layer_args.h"

enum { CARD_LANES = 3 };

/* Runs a test on every device, on its lane 0; skips it in plain words where there is none. */
void each_card(void (*test)(void));
#define EACH_CARD(name)                    \
    static void name##_here(void);         \
    TEST(name) { each_card(name##_here); } \
    static void name##_here(void)
void close_cards(void);

struct gpu *card(void); /* the device under test */

/* Memory of the device: a new buffer, one that holds what the host's holds, one that is read back.  room_reset gives up all. */
void room_reset(void);
void *room(i64 bytes);
void *up_bytes(const void *host, i64 bytes);
f32 *up(const f32 *host, i64 n);
f32 *down(const void *at, i64 n);

/* New buffers of the host: random numbers in [-1,1), a copy. */
f32 *noise(i64 n, u32 what);
f32 *copy_of(const f32 *from, i64 n);

/* Fails where a value differs from `want` by more than 1e-5 of the largest; each_card prints the largest difference. */
void near(const char *what, const f32 *got, const f32 *want, i64 n);
void near_device(const char *what, const void *at, const f32 *want, i64 n);

const struct kern *host(void); /* the plain twins */

/* Whether case n of a matrix runs: all of them, or some on an emulated machine or device. */
bool chosen(u32 n);
bool emulated(void); /* the device is an emulator that checks every access (oclgrind.py): no large case runs */

#endif

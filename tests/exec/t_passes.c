/* t_passes.c - a device that takes the rows of a step in passes holds no more than one of them, and gives the bits of one pass:
 * losses, norms, weights, optimiser state, and the final states that the host reads after a step. */
#include "t.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "gpu/gpu.h"
#include "exec/rig.h"

enum { B = 64, T = 40, H = 24 };

static struct net net;

static const struct gpu_driver *device(void) {
    const struct gpu_driver *d = gpu_driver_find("opencl");
    struct gpu_card card[1];
    char why[GPU_WHY] = "";
    if (d->cards(card, 1, why) > 0) return d;
    print_message("skipped: no OpenCL device: %s\n", why);
    return NULL;
}

static void live(struct rig *r, i32 passes, const char *machine, const char *parallel) {
    *r = (struct rig){.net = &net, .machine = machine, .parallel = parallel, .threads = 1, .B = B, .passes = passes};
    rig_live(r);
    if (r->e < 0) fail_msg("%d passes: %s", passes, r->why.text);
}

static i64 heap(const struct gpu_driver *d) {
    struct gpu_use u;
    return gpu_used(d, 0, &u) ? u.heap : 0;
}

/* Of the buffers that have a place for each row of the batch. */
static i64 bytes_of_rows(const struct plan *p) {
    i64 sum = 0;
    for (u32 i = 0; i < p->nbuf; i++) sum += p->buf[i].by_row ? p->buf[i].bytes : 0;
    return sum;
}

/* Final states of all rows, [states][B][H]. */
static void same_ends(const struct rig *a, const struct rig *b) {
    for (i32 l = 0; l < net.nop; l++) {
        const i32 end = net.op[l].end;
        if (end < 0) continue;
        const i64 n = buf_floats(&net.buf[end], B);
        f32 *kept = mem_alloc((size_t)n * sizeof *kept);
        memcpy(kept, step_buf(a->x, end), (size_t)n * sizeof *kept);
        assert_memory_equal(kept, step_buf(b->x, end), (size_t)n * sizeof *kept);
        mem_free(kept);
    }
}

TEST(passes_hold_one_of_them_and_have_the_bits_of_one) {
    static struct rig one, r;
    const struct gpu_driver *d = device();
    if (!d) skip();
    real_stack(&net, CELL_LSTM, 2, T, H, false);
    const i64 before = heap(d);
    live(&one, 0, "opencl", "serial");
    const i64 whole = heap(d) - before, rows = bytes_of_rows(one.plan);
    for (i32 passes = 2; passes <= 8; passes *= 2) {
        const i64 other = heap(d);
        live(&r, passes, "opencl", "serial");
        const i64 held = heap(d) - other;
        print_message("%d passes: %lld KiB on the device, one pass %lld, rows %lld\n", passes, (long long)held >> 10,
                      (long long)whole >> 10, (long long)rows >> 10);
        assert_true(whole - held > rows - rows / passes - (1 << 16)); /* buffers begin at multiples of 256 bytes */
        rig_compare(&r, &one);
        same_ends(&r, &one);
        rig_free(&r);
    }
    rig_free(&one);
}

TEST(passes_of_lanes_have_the_bits_of_one) {
    static struct rig one, r;
    if (!device()) skip();
    real_stack(&net, CELL_GRU, 2, T, H, false);
    live(&one, 0, "opencl", "serial");
    live(&r, 4, "opencl*2", "data:2");
    rig_compare(&r, &one);
    same_ends(&r, &one);
    rig_free(&r);
    rig_free(&one);
}

/* Each rank takes its own rows in passes; gradients are sent in the last one. */
static void on_ranks(const char *kind) {
    static struct rig one, r;
    char machine[32];
    real_stack(&net, CELL_LSTM, 2, T, H, false);
    live(&one, 0, kind, "serial");
    for (i32 ranks = 2; ranks <= 3; ranks++) {
        char parallel[16];
        snprintf(machine, sizeof machine, "host*%d(%s)", ranks, kind);
        snprintf(parallel, sizeof parallel, "data:%d", ranks);
        r = (struct rig){.net = &net, .machine = machine, .parallel = parallel, .threads = 1, .B = B, .passes = 3};
        rig_on_ranks(&one, &r, ranks);
    }
    rig_free(&one);
}

TEST(passes_of_ranks_have_the_bits_of_one) {
    on_ranks("cpu");
    if (device()) on_ranks("opencl");
}

/* Ops that run on the host see the rows of a pass, too. */
TEST(passes_with_ops_on_the_host_have_the_bits_of_one) {
    static struct rig one, r;
    if (!device()) skip();
    real_stack(&net, CELL_LSTM, 2, T, H, true); /* sequences of unequal length */
    live(&one, 0, "opencl", "serial");
    live(&r, 4, "opencl", "serial");
    rig_compare(&r, &one);
    rig_free(&r);
    rig_free(&one);
}

T_MAIN(cmocka_unit_test(passes_hold_one_of_them_and_have_the_bits_of_one), cmocka_unit_test(passes_of_lanes_have_the_bits_of_one),
       cmocka_unit_test(passes_of_ranks_have_the_bits_of_one), cmocka_unit_test(passes_with_ops_on_the_host_have_the_bits_of_one))

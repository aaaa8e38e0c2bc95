/* t_torch.c - a written model in torch.nn.LSTM, GRU and RNN: torch_load.py loads it and compares the outputs.  Skipped where the
 * peers (.peers/bin/python with torch) are not installed. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ckpt/model_file.h"
#include "model/cell/cell.h"
#include "model/nets.h"
#include "model/rig.h"

enum { B = 5, T = 7, I = 6, H = 19, P = 5, N = 3, DEPTH = 2 };

static i32 cell_op(struct net *n, const char *name, i32 k, const char *suffix, enum cell_kind cell, i32 projection, i32 x) {
    struct op_spec c = net_spec(projection ? "projected" : "recurrent", "", x);
    c.projection = projection;
    snprintf(c.name, sizeof c.name, "%s.%d%s", name, k, suffix);
    c.cell = cell;
    c.hidden = H;
    return nets_add(n, &c);
}

/* Layer k in both directions, concatenated. */
static i32 both_ways(struct net *n, const char *name, i32 k, enum cell_kind cell, i32 projection, i32 x) {
    struct op_spec turn = net_spec("reverse", "", x), back = turn, both;
    snprintf(turn.name, sizeof turn.name, "turn.%d", k);
    i32 t = nets_add(n, &turn), end = n->op[t].end;
    i32 there = n->op[cell_op(n, name, k, "", cell, projection, end >= 0 ? end : x)].out;
    back.in[0] = n->op[cell_op(n, name, k, ".reverse", cell, projection, n->op[t].out)].out;
    snprintf(back.name, sizeof back.name, "back.%d", k);
    both = net_spec("concat", "", there);
    both.in[1] = n->op[nets_add(n, &back)].out;
    snprintf(both.name, sizeof both.name, "both.%d", k);
    return n->op[nets_add(n, &both)].out;
}

/* Stacked cells with a head on every step. */
static void build(struct net *n, const char *name, enum cell_kind cell, bool bidirectional, i32 projection) {
    net_init(n);
    i32 x = nets_input(n, "x", T, I, false);
    for (i32 k = 0; k < DEPTH; k++)
        x = bidirectional ? both_ways(n, name, k, cell, projection, x) : n->op[cell_op(n, name, k, "", cell, projection, x)].out;
    nets_loss(n, "loss_mse", nets_dense(n, "head", x, N, ACT_NONE), T, N, false);
}

/* The buffer without its padding. */
static f32 *plain(struct rig *g, i32 b) {
    const struct buf *u = &g->n->buf[b];
    f32 *p = rig_floats(g, (i64)u->T * B * u->F);
    for (i32 at = 0; at < u->T * B; at++) memcpy(p + (i64)at * u->F, g->buf[b] + (i64)at * buf_fp(u), (size_t)u->F * sizeof *p);
    return p;
}

static void write_case(const char *path, const struct cell *cell, bool bidirectional, i32 projection) {
    struct net n;
    struct rig g;
    build(&n, cell->name, cell->kind, bidirectional, projection);
    rig_new(&g, &n, kern_best(), B, B);
    rig_step(&g, B, false);
    struct arena arena = {0};
    struct tens_list list = {.arena = &arena};
    char shape[64];
    snprintf(shape, sizeof shape, "%d %d %d %d %d %d %d %d", T, B, I, H, N, DEPTH, bidirectional, projection);
    struct meta meta[2] = {{"cell", cell->name}, {"shape", shape}};
    T_OK(model_put(&list, &n, g.theta, ""));
    T_OK(tens_add(&list, "test.x", DTYPE_F32, T * B, I, plain(&g, 0)));
    T_OK(tens_add(&list, "test.y", DTYPE_F32, T * B, N, plain(&g, n.op[n.nop - 1].spec.in[0])));
    T_OK(model_write(path, &list, meta, 2));
    arena_free(&arena);
    rig_free(&g);
}

TEST(written_models_give_the_same_outputs_in_torch) {
    const char *source = getenv("STRETTO_SOURCE");
    char python[4096], command[8192], path[4096];
    snprintf(python, sizeof python, "%s/.peers/bin/python", source ? source : ".");
    if (access(python, X_OK) != 0) {
        print_message("skipped: .peers/bin/python is not here (the script that installs the peers makes it)\n");
        skip();
    }
    size_t used = (size_t)snprintf(command, sizeof command, "'%s' '%s/tests/ckpt/torch_load.py'", python, source ? source : ".");
    for (i32 k = 0; k < 2 * (CELL_NKIND + 1); k++) { /* the cells PyTorch has; the last two: lstm with a projection */
        const struct cell *cell = cell_of((enum cell_kind)(k / 2 < CELL_NKIND ? k / 2 : 0));
        snprintf(path, sizeof path, "%s/%d.model", t_dir(), k);
        write_case(path, cell, k % 2, k / 2 < CELL_NKIND ? 0 : P);
        used += (size_t)snprintf(command + used, sizeof command - used, " '%s'", path);
    }
    int status = system(command);
    if (status == 77 << 8) {
        print_message("skipped: .peers/bin/python has no torch\n");
        skip();
    }
    assert_int_equal(status, 0);
}

T_MAIN(cmocka_unit_test(written_models_give_the_same_outputs_in_torch))

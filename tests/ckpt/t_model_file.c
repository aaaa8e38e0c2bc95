/* t_model_file.c - a network's parameters to PyTorch's names and back, bit-exact; error messages that name the fault. */
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "ckpt/model_file.h"
#include "model/nets.h"
#include "model/rig.h"

/* One network and nothing else. */
static err model_save(const char *path, const struct net *n, const f32 *theta, const struct meta *meta, i32 nmeta) {
    struct arena arena = {0};
    struct tens_list list = {.arena = &arena};
    err e = model_put(&list, n, theta, "");
    if (e == 0) e = model_write(path, &list, meta, nmeta);
    arena_free(&arena);
    return e;
}

static err model_load(const char *path, const struct net *n, f32 *theta) {
    struct st_file *f;
    TRY(model_open(path, &f));
    err e = model_take(f, n, "", theta);
    st_free(f);
    return e;
}

static const struct shape shape = {3, 3, 4, 5, 17, 3, 6, 4, 2};

static const char *path_in(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", t_dir(), name);
    return path;
}

TEST(save_then_load_gives_the_same_theta_for_every_layer_and_cell) {
    for (i32 cell = 0; cell < cell_count(); cell++)
        for (i32 which = 0; which < 3; which++) {
            struct net n;
            struct rig g;
            if (which == 0) nets_long(&n, shape, (enum cell_kind)cell, "loss_mse", 0);
            if (which == 1) nets_short(&n, shape, (enum cell_kind)cell, "loss_mse");
            if (which == 2) nets_mixed(&n, shape, (enum cell_kind)cell);
            rig_new(&g, &n, kern_best(), 1, 1);
            f32 *back = rig_floats(&g, n.ntheta);
            for (i64 i = 0; i < n.ntheta; i++) back[i] = 9;
            T_OK(model_save(path_in("m"), &n, g.theta, NULL, 0));
            T_OK(model_load(path_in("m"), &n, back));
            assert_memory_equal(back, g.theta, (size_t)n.ntheta * sizeof *back);
            rig_free(&g);
        }
}

TEST(tensors_have_the_names_and_shapes_of_pytorch) {
    struct net n;
    struct rig g;
    struct st_file *f;
    const struct tens *t;
    nets_short(&n, shape, CELL_LSTM, "loss_mse");
    rig_new(&g, &n, kern_best(), 1, 1);
    T_OK(model_save(path_in("m"), &n, g.theta, NULL, 0));
    T_OK(model_open(path_in("m"), &f));
    T_OK(model_tensor(f, "lstm.weight_ih_l0", DTYPE_F32, 68, 5, &t));
    T_OK(model_tensor(f, "lstm.weight_hh_l0", DTYPE_F32, 68, 17, &t));
    T_OK(model_tensor(f, "lstm.bias_ih_l0", DTYPE_F32, 68, 0, &t));
    T_OK(model_tensor(f, "lstm.bias_hh_l1", DTYPE_F32, 72, 0, &t));
    T_OK(model_tensor(f, "lstm.weight_ih_l1", DTYPE_F32, 72, 17, &t));
    T_OK(model_tensor(f, "head.weight", DTYPE_F32, 6, 18, &t));
    T_OK(model_tensor(f, "head.bias", DTYPE_F32, 6, 0, &t));
    assert_string_equal(st_meta(f, "format"), "pt");
    st_free(f);
    rig_free(&g);
}

static void write_bytes(const char *path, const char *bytes, i64 size) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, (size_t)size, f), size);
    fclose(f);
}

/* Flips any bit of the file: it is refused, or the content read is unchanged. */
TEST(a_bit_that_fell_over_is_never_another_model) {
    const struct shape small = {2, 2, 3, 2, 4, 2, 4, 3, 2};
    struct net n;
    struct rig g;
    i64 accepted = 0, size;
    char *bytes;
    nets_short(&n, small, CELL_LSTM, "loss_mse");
    rig_new(&g, &n, kern_best(), 1, 1);
    f32 *back = rig_floats(&g, n.ntheta);
    struct meta note = {"stretto.note", "{\"mean\": 41.5}"};
    T_OK(model_save(path_in("m"), &n, g.theta, &note, 1));
    T_OK(file_load(path_in("m"), 1 << 20, &bytes, &size));
    for (i64 at = 0; at < size; at++) {
        struct st_file *f;
        const char *was;
        bytes[at] ^= (char)(1 << at % 7);
        write_bytes(path_in("m"), bytes, size);
        bytes[at] ^= (char)(1 << at % 7);
        err e = model_load(path_in("m"), &n, back);
        if (e < 0) continue;
        assert_memory_equal(back, g.theta, (size_t)n.ntheta * sizeof *back);
        T_OK(model_open(path_in("m"), &f));
        if (model_meta(f, note.key, &was) >= 0) assert_string_equal(was, note.value);
        st_free(f);
        accepted++;
    }
    assert_true(accepted < size / 10); /* bits of unused names and of spaces */
    mem_free(bytes);
    rig_free(&g);
}

TEST(several_networks_and_extra_tensors_share_a_file) {
    struct net n;
    struct rig g;
    struct st_file *f;
    struct arena arena = {0};
    struct tens_list list = {.arena = &arena};
    f64 mean[3] = {1, 2, 3};
    i64 rows = 144;
    struct meta note = {"note", "{}"};
    const struct tens *t;
    const char *text;
    nets_short(&n, shape, CELL_GRU, "loss_mse");
    rig_new(&g, &n, kern_best(), 1, 1);
    f32 *second = rig_floats(&g, n.ntheta), *back = rig_floats(&g, n.ntheta);
    net_weights_init(&n, 5, second);
    T_OK(model_put(&list, &n, g.theta, "member.0."));
    T_OK(model_put(&list, &n, second, "member.1."));
    T_OK(tens_add(&list, "scaler.mean", DTYPE_F64, 3, 0, mean));
    T_OK(tens_add(&list, "rows", DTYPE_I64, 0, 0, &rows));
    T_OK(model_write(path_in("two"), &list, &note, 1));
    arena_free(&arena);
    T_OK(model_open(path_in("two"), &f));
    T_OK(model_take(f, &n, "member.1.", back));
    assert_memory_equal(back, second, (size_t)n.ntheta * sizeof *back);
    T_OK(model_tensor(f, "scaler.mean", DTYPE_F64, 3, 0, &t));
    assert_memory_equal(t->data, mean, sizeof mean);
    T_OK(model_tensor(f, "rows", DTYPE_I64, 0, 0, &t));
    assert_int_equal(*(const i64 *)t->data, 144);
    T_OK(model_meta(f, "note", &text));
    T_FAILS(model_meta(f, "nota", &text), E901);
    st_free(f);
    rig_free(&g);
}

static void says(const char *text) {
    if (strstr(err_last()->text, text)) return;
    print_error("the message is \"%s\", want \"%s\"\n", err_last()->text, text);
    fail();
}

TEST(load_refuses_foreign_newer_and_unfit_files) {
    struct net n, other;
    struct rig g;
    struct shape wide = shape;
    wide.H = 16;
    nets_short(&n, shape, CELL_LSTM, "loss_mse");
    nets_short(&other, wide, CELL_LSTM, "loss_mse");
    rig_new(&g, &n, kern_best(), 1, 1);
    f32 *back = rig_floats(&g, lmax(n.ntheta, other.ntheta));
    T_OK(model_save(path_in("m"), &n, g.theta, NULL, 0));
    T_FAILS(model_load(path_in("m"), &other, back), E901);
    says("tensor \"lstm.weight_ih_l0\" is F32 [68,5], want F32 [64,5]");
    nets_long(&other, shape, CELL_LSTM, "loss_mse", 0);
    T_FAILS(model_load(path_in("m"), &other, back), E901);
    says("no tensor \"seg.weight\"");
    T_OK(st_write(path_in("foreign"), NULL, 0, NULL, 0));
    T_FAILS(model_load(path_in("foreign"), &n, back), E901);
    says("was not written by stretto");
    struct meta newer = {"stretto.schema", "4"}, odd = {"stretto.schema", "one"};
    T_OK(st_write(path_in("newer"), NULL, 0, &newer, 1));
    T_FAILS(model_load(path_in("newer"), &n, back), E902);
    T_OK(st_write(path_in("odd"), NULL, 0, &odd, 1));
    T_FAILS(model_load(path_in("odd"), &n, back), E901);
    T_FAILS(model_load(t_file("text.csv", "a,b\n1,2\n3,4\n"), &n, back), E901);
    rig_free(&g);
}

T_MAIN(cmocka_unit_test(save_then_load_gives_the_same_theta_for_every_layer_and_cell),
       cmocka_unit_test(tensors_have_the_names_and_shapes_of_pytorch),
       cmocka_unit_test(a_bit_that_fell_over_is_never_another_model),
       cmocka_unit_test(several_networks_and_extra_tensors_share_a_file),
       cmocka_unit_test(load_refuses_foreign_newer_and_unfit_files))

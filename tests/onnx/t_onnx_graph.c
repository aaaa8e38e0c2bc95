/* t_onnx_graph.c - graphs that are built and read back; tensors in every form that files have; what is refused. */
#include <string.h>

#include "onnx/ops.h"
#include "onnx/read.h"
#include "onnx/wire.h"
#include "t.h"

static const struct onnx_dim two[] = {{"batch", 0}, {NULL, 3}};

static struct onnx_file *built(struct str *text) {
    static const f32 w[] = {1, 2, 3, 4, 5, 6};
    struct onnx_graph g = {0};
    struct onnx_file *f;
    const val x = onnx_input(&g, "x", ONNX_FLOAT, 2, two);
    const val v = onnx_tensor(&g, "w", ONNX_FLOAT, 2, (i64[]){3, 2}, w);
    onnx_output(&g, onnx_transpose(&g, onnx_2(&g, "MatMul", x, v), 2, (i64[]){1, 0}), "y", ONNX_FLOAT, 2, two);
    onnx_meta(&g, "key", "value");
    T_OK(onnx_graph_text(&g, "test", text));
    onnx_graph_free(&g);
    T_OK(onnx_read(str_text(text), (i64)text->len, "g.onnx", &f));
    return f;
}

TEST(a_graph_reads_back_as_built) {
    struct str text = {0};
    struct onnx_file *f = built(&text);
    assert_int_equal(f->nnode, 3);
    assert_string_equal(f->node[0].op, "MatMul");
    assert_string_equal(f->node[0].in[0], "x");
    assert_string_equal(f->node[0].in[1], "w");
    assert_string_equal(f->node[1].op, "Transpose");
    assert_int_equal(onnx_attr_of(&f->node[1], "perm")->n, 2);
    assert_int_equal(onnx_attr_of(&f->node[1], "perm")->ints[0], 1);
    assert_int_equal(f->opset, ONNX_OPSET);
    assert_int_equal(f->ninput, 1);
    assert_int_equal(f->input[0].dim[0], -1);
    assert_int_equal(f->input[0].dim[1], 3);
    assert_string_equal(f->output[0].name, "y");
    const struct onnx_constant *w = onnx_find(f, "w");
    assert_true(w && w->read && w->n == 6 && w->f[5] == 6.F && w->dim[0] == 3);
    onnx_file_free(f);
    str_free(&text);
}

TEST(every_shorter_file_is_refused_or_holds_less) {
    struct str text = {0};
    onnx_file_free(built(&text));
    for (i64 n = 0; n < (i64)text.len; n++) {
        struct onnx_file *f;
        const err e = onnx_read(text.s, n, "g.onnx", &f);
        assert_true(e == 0 || e == -E905);
        onnx_file_free(f);
    }
    str_free(&text);
}

TEST(all_reasons_stand_in_one_error) {
    struct onnx_graph g = {0};
    struct str text = {0};
    onnx_refuse(&g, "part %d", 1);
    onnx_refuse(&g, "part %d", 2);
    onnx_refuse(&g, "part %d", 1);
    assert_int_equal(onnx_graph_text(&g, "m.model", &text), -E904);
    assert_non_null(strstr(err_last()->text, "2 parts of this model: part 1; part 2"));
    str_free(&text);
    onnx_graph_free(&g);
}

/* A TensorProto of shape [2]. */
static struct str tensor_of(i32 type) {
    struct str t = {0};
    wire_int(&t, 1, 2);
    wire_int(&t, 2, type);
    return t;
}

static err take(struct str *t, struct arena *a, struct onnx_constant *c) {
    const err e = onnx_read_tensor(str_text(t), (i64)t->len, "t.pb", a, c);
    str_free(t);
    return e;
}

TEST(numbers_may_be_raw_packed_or_single) {
    static const f32 pair[] = {1.5F, -2};
    struct arena a = {0};
    struct onnx_constant c;
    struct str raw = tensor_of(ONNX_FLOAT), packed = tensor_of(ONNX_FLOAT), single = tensor_of(ONNX_FLOAT),
               whole = tensor_of(ONNX_INT64);
    wire_bytes(&raw, 9, pair, sizeof pair);
    wire_bytes(&packed, 4, pair, sizeof pair);
    wire_f32(&single, 4, 1.5F);
    wire_f32(&single, 4, -2);
    wire_bytes(&whole, 7, "\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    T_OK(take(&raw, &a, &c));
    assert_memory_equal(c.f, pair, sizeof pair);
    T_OK(take(&packed, &a, &c));
    assert_memory_equal(c.f, pair, sizeof pair);
    T_OK(take(&single, &a, &c));
    assert_memory_equal(c.f, pair, sizeof pair);
    T_OK(take(&whole, &a, &c));
    assert_true(c.i[0] == 5 && c.i[1] == -1);
    arena_free(&a);
}

TEST(tensors_that_lie_about_their_size_are_refused) {
    struct arena a = {0};
    struct onnx_constant c;
    struct str few = tensor_of(ONNX_FLOAT), many = tensor_of(ONNX_INT64), huge = {0}, outside = tensor_of(ONNX_FLOAT);
    wire_bytes(&few, 9, "abcd", 4);
    wire_bytes(&many, 7, "\x01\x02\x03", 3);
    wire_int(&huge, 1, 1LL << 40);
    wire_int(&huge, 2, ONNX_FLOAT);
    wire_int(&outside, 14, 1);
    assert_int_equal(take(&few, &a, &c), -E905);
    assert_int_equal(take(&many, &a, &c), -E905);
    assert_int_equal(take(&huge, &a, &c), -E905);
    assert_int_equal(take(&outside, &a, &c), -E905);
    arena_free(&a);
}

T_MAIN(cmocka_unit_test(a_graph_reads_back_as_built), cmocka_unit_test(every_shorter_file_is_refused_or_holds_less),
       cmocka_unit_test(all_reasons_stand_in_one_error), cmocka_unit_test(numbers_may_be_raw_packed_or_single),
       cmocka_unit_test(tensors_that_lie_about_their_size_are_refused))

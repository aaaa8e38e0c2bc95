/* table_rows.c - see table_rows.h. */
#include "learn/table_rows.h"

#include "base/json.h"

err table_rows_describe(struct onnx_graph *g, i32 n, const char *const *name) {
    struct js *o = js_object(), *list = js_array();
    struct str text = {0};
    for (i32 i = 0; i < n; i++) js_push(list, js_new_text(name[i]));
    js_put(o, "columns", list);
    const err e = js_text(o, &text, 0);
    if (e >= 0) onnx_meta(g, "stretto.inputs", str_text(&text));
    js_free(o);
    str_free(&text);
    return e;
}

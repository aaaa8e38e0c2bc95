/* json_load.c - js_load: a JSON file. Apart from json.c, because files of HDFS need JSON themselves. */
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

enum { FILE_MAX = 256 << 20 };

err js_load(const char *path, struct js **to) {
    char *text;
    i64 n;
    *to = NULL;
    TRY(file_load(path, FILE_MAX, &text, &n));
    err e = js_parse(text, (size_t)n, path, to);
    mem_free(text);
    return e;
}

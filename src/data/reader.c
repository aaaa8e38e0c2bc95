/* reader.c - table_read: uses the first reader of readers.def that recognizes the file. */
#include "data/reader.h"

#define READER(name) extern const struct reader reader_##name;
#include "data/readers.def"
#undef READER

static const struct reader *const all[] = {
#define READER(name) &reader_##name,
#include "data/readers.def"
#undef READER
};

err table_read(const char *path, const struct read_options *o, struct table **out) {
    const struct reader *r = NULL;
    *out = NULL;
    for (size_t i = 0; i < COUNT(all) && !r; i++)
        if (all[i]->is(path)) r = all[i];
    if (!r) return FAIL(E202, "no reader knows the format of %s", path);
    TRY(r->read(path, o, out));
    const err e = table_index(*out);
    if (e >= 0) return 0;
    table_free(*out);
    *out = NULL;
    return e;
}

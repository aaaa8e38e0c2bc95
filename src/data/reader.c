/* reader.c - table_read: uses the first reader of readers.def that recognizes the file; of a folder, the only one. */
#include "data/reader.h"

#include "base/input.h"
#include "data/folder.h"

#define READER(name) extern const struct reader reader_##name;
#include "data/readers.def"
#undef READER

static const struct reader *const all[] = {
#define READER(name) &reader_##name,
#include "data/readers.def"
#undef READER
};

/* The first reader from number *i on that recognizes the file, or NULL; *i: the number behind it. */
static const struct reader *next_of(const char *path, size_t *i) {
    while (*i < COUNT(all))
        if (all[(*i)++]->is(path)) return all[*i - 1];
    return NULL;
}

/* No file of a folder may be left out because it has another format than the others. */
static err find_reader(const char *path, const struct reader **out) {
    static const char none[] = "name a file in it   or   a folder with files like *.csv, *.jsonl, *.parquet, *.arrow";
    size_t i = 0;
    *out = next_of(path, &i);
    if (!folder_is(path)) return *out ? 0 : FAIL(E202, "no reader knows the format of %s", input_label(path));
    if (!*out) return FAIL_AT(E202, path, none, "this is a directory, and no data file is in it");
    const struct reader *other = next_of(path, &i);
    if (!other) return 0;
    return FAIL_AT(E202, path, "a folder for each format",
                   "the folder holds files of two formats, %s and %s: which are the table?", (*out)->name, other->name);
}

err table_read(const char *path, const struct read_options *o, struct table **out) {
    const struct reader *r;
    *out = NULL;
    TRY(find_reader(path, &r));
    TRY(r->read(path, o, out));
    const err e = table_index(*out);
    if (e >= 0) return 0;
    table_free(*out);
    *out = NULL;
    return e;
}

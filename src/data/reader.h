/* reader.h - descriptor of a file format: one file, one const struct, one line in readers.def. */
#ifndef STRETTO_DATA_READER_H
#define STRETTO_DATA_READER_H

#include "data/table.h"

struct reader {
    const char *name;
    const char *help;                /* one line of help: which files */
    bool (*is)(const char *path);    /* recognizes the file by its first bytes; false if unreadable */
    err (*read)(const char *path, const struct read_options *o, struct table **out);
};

#endif

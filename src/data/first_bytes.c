/* first_bytes.c - see first_bytes.h. */
#include "data/first_bytes.h"

#include <stdio.h>
#include <string.h>

#include "data/mend.h"

static const struct {
    const char *magic;
    i32 n;
    const char *what;
} formats[] = {{"\x89HDF", 4, "an HDF5 file"},
               {"\x93NUMPY", 6, "a NumPy file"},
               {"SQLite format", 13, "an SQLite file"},
               {"%PDF", 4, "a PDF file"},
               {"\xFD" "7zXZ", 5, "an xz file"},
               {"BZh", 3, "a bzip2 file"},
               {"\xD0\xCF\x11\xE0", 4, "an old spreadsheet"},
               {"\x7F" "ELF", 4, "a program"},
               {"\x89PNG", 4, "a picture"},
               {"CDF", 3, "a NetCDF file"},
               {"7z\xBC\xAF", 4, "a 7z file"},
               {"PK\3\4", 4, "a zip file"},
               {"PAR1", 4, "a Parquet file"},
               {"ARROW1", 6, "an Arrow file"}};

/* Eight bytes with the length of a header of JSON, whose upper half is zero, and the header. */
static bool is_safetensors(const char *head, i64 n) { return n > 8 && head[8] == '{' && !memcmp(head + 4, "\0\0\0\0", 4); }

static err fail_model(const char *name, const char *want) {
    char fix[MEND_PATH + 60], from[MEND_PATH];
    snprintf(fix, sizeof fix, "stretto info %s   (what it holds)   or   the file with the data", mend_from(name, from));
    return FAIL_AT(E202, name, fix, "this is a file of weights, such as a model, not %s", want);
}

err first_bytes_check(const char *name, const char *head, i64 n, const char *want, const char *fix) {
    if (is_safetensors(head, n)) return fail_model(name, want);
    for (size_t i = 0; i < COUNT(formats); i++)
        if (n >= formats[i].n && !memcmp(head, formats[i].magic, (size_t)formats[i].n))
            return FAIL_AT(E202, name, fix, "this is %s, not %s", formats[i].what, want);
    return 0;
}

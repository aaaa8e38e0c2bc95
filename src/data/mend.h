/* mend.h - file names, column names and cell words as arguments in the shell commands that error messages suggest. */
#ifndef STRETTO_DATA_MEND_H
#define STRETTO_DATA_MEND_H

#include "base/bits.h"

enum { MEND_PATH = 260 };

/* The input file as a shell word: quoted if needed, decompressed if compressed. */
const char *mend_from(const char *path, char out[MEND_PATH]);
/* The same for a command of Stretto, which reads packed and remote files itself. */
const char *mend_data(const char *path, char out[MEND_PATH]);

/* A column name or cell word as an item of a list option (--ignore, --na): quoted if needed, commas escaped. */
const char *mend_word(const char *name, char out[MEND_PATH]);
/* "--ignore NAME", the remedy for a column that is of no use. */
enum { MEND_IGNORE = MEND_PATH + 10 };
const char *mend_ignore(const char *name, char out[MEND_IGNORE]);
/* Remedies for a cell that is no number; numbers: as in struct read_options. */
const char *mend_cell(const char *cell, const char *column, bool numbers, char *out, size_t size);
/* A list made with str_list_add, quoted if needed. */
const char *mend_words(const char *list, char out[MEND_PATH]);

/* The output file: sales.csv and "clean" give sales-clean.csv in the same folder; never an existing name. */
const char *mend_to(const char *path, const char *what, char out[MEND_PATH]);

#endif

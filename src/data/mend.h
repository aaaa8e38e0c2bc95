/* mend.h - names of files and columns, and words of cells, in the shell commands that errors advise. */
#ifndef STRETTO_DATA_MEND_H
#define STRETTO_DATA_MEND_H

#include "base/bits.h"

enum { MEND_PATH = 260 };

/* The file to read, as a word of the shell: quoted where it must be, unpacked where it is packed. */
const char *mend_from(const char *path, char out[MEND_PATH]);

/* A column, or a word of a cell, as an item of a list (--ignore, --na): quoted where it must be, a comma in it as \, . */
const char *mend_word(const char *name, char out[MEND_PATH]);
/* Several of them, as str_list_add made the list: quoted where it must be. */
const char *mend_words(const char *list, char out[MEND_PATH]);

/* The file to write: sales.csv and "clean" make sales-clean.csv, beside the first; never a name that is there already. */
const char *mend_to(const char *path, const char *what, char out[MEND_PATH]);

#endif

/* folder.h - a folder of files that are the parts of one table, in the order of their names.
 *
 *     load/  part-00000.csv  part-00001.csv  _SUCCESS  .part-00000.csv.crc
 *            '---------- parts ----------'   '------ left out: names that begin with _ or . ------'
 *
 * A reader names the endings of its parts.  Files with other endings and subfolders are left out. */
#ifndef STRETTO_DATA_FOLDER_H
#define STRETTO_DATA_FOLDER_H

#include "base/arena.h"

bool folder_is(const char *path);
/* True if a file in the folder has one of the endings [.. NULL]; one without a dot ("part-") is the
 * beginning of a name that has no dot. */
bool folder_has(const char *path, const char *const *ending);
/* The paths of these files, sorted by name; they and the list live in the arena.  *n is 0 if there are none.  E601, E701. */
err folder_list(struct arena *memory, const char *path, const char *const *ending, const char ***out, i32 *n);

#endif

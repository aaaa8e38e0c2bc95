/* kind.h - outputs replace files of their own kind only: a report is no name for the data that it tells of. */
#ifndef STRETTO_BASE_KIND_H
#define STRETTO_BASE_KIND_H

#include "base/err.h"

/* E702 if there is a file at `path` that neither is empty nor begins with `head`, in letters of any case; what: "a report". */
err kind_replaces(const char *path, const char *option, const char *head, const char *what);

#endif

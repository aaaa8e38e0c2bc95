/* lists.h - the words of options that name things of higher floors; for the command line's help as well. */
#ifndef STRETTO_API_LISTS_H
#define STRETTO_API_LISTS_H

#include "opt/opt.h"

const struct opt_list *api_lists(void);

bool api_has_mpi(const char *flavour); /* a plug-in for this MPI library was built: "openmpi", "mpich" */

#endif

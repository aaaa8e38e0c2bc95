/* lists.h - the values of options that name parts of higher floors; also for the help of the command line. */
#ifndef STRETTO_API_LISTS_H
#define STRETTO_API_LISTS_H

#include "opt/opt.h"

const struct opt_list *api_lists(void);

bool api_has_mpi(const char *flavour); /* true if a plug-in for this MPI library was built: "openmpi", "mpich" */
enum { API_PLUGIN = 512 };
bool api_mpi_plugin(const char *flavour, char path[API_PLUGIN]); /* where it is; false and "": there is none */

#endif

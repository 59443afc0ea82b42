/* hollow_mpi.h - what the program calls of the plug-in. */
#ifndef MPI_HOLLOW_MPI_H
#define MPI_HOLLOW_MPI_H

#include "hollow/ranks.h"

/* Join the others. `ranks` must stay where it is; *local becomes the number of ranks on this machine. Nonzero: it failed. */
typedef int hollow_mpi_start_fn(hl_ranks *ranks, size_t *local);
/* Leave them, when all others do so within some seconds: returns nonzero. Else zero: then tell why and call hollow_mpi_abort. */
typedef int hollow_mpi_end_fn(double seconds);
/* End all ranks. */
typedef void hollow_mpi_abort_fn(int status);

__attribute__((visibility("default"))) hollow_mpi_start_fn hollow_mpi_start;
__attribute__((visibility("default"))) hollow_mpi_end_fn hollow_mpi_end;
__attribute__((visibility("default"))) hollow_mpi_abort_fn hollow_mpi_abort;

#endif

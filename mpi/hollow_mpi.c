/* hollow_mpi.c - ranks by MPI: a plug-in that the program loads when mpirun started it. Nothing else of Hollow knows MPI. */
#include "hollow_mpi.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { PIECE = 1 << 30 }; /* bytes of one message; MPI counts them in an int */

static MPI_Comm leaving; /* of ranks that have nothing more to do */

/* One rank after the other, in pieces. */
static int gather_by_pieces(const void *mine, const size_t *bytes, char *all, const hl_ranks *ranks)
{
    for (size_t k = 0; k < ranks->size; all += bytes[k++])
        for (size_t at = 0; at < bytes[k]; at += PIECE) {
            int count = bytes[k] - at < PIECE ? (int)(bytes[k] - at) : PIECE;
            if (k == ranks->rank)
                for (int i = 0; i < count; i++)
                    all[at + (size_t)i] = ((const char *)mine)[at + (size_t)i];
            if (MPI_Bcast(all + at, count, MPI_BYTE, (int)k, MPI_COMM_WORLD) != MPI_SUCCESS)
                return 1;
        }
    return 0;
}

static int gather(const void *mine, const size_t *bytes, void *all, void *user)
{
    const hl_ranks *ranks = user;
    int *count = calloc(2 * ranks->size, sizeof *count), *offset = count + ranks->size, failed = 1;
    size_t total = 0;
    if (!count)
        return 1;
    for (size_t k = 0; k < ranks->size && total < PIECE; total += bytes[k++]) {
        count[k] = bytes[k] < PIECE ? (int)bytes[k] : PIECE;
        offset[k] = (int)total;
    }
    if (total < PIECE)
        failed = MPI_Allgatherv(mine, count[ranks->rank], MPI_BYTE, all, count, offset, MPI_BYTE, MPI_COMM_WORLD) !=
                 MPI_SUCCESS;
    else
        failed = gather_by_pieces(mine, bytes, all, ranks);
    free(count);
    return failed;
}

int hollow_mpi_start(hl_ranks *ranks, size_t *local)
{
    int provided, rank, size, near;
    MPI_Comm machine;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
        MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS ||
        MPI_Comm_dup(MPI_COMM_WORLD, &leaving) != MPI_SUCCESS ||
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine) != MPI_SUCCESS)
        return 1;
    MPI_Comm_size(machine, &near);
    MPI_Comm_free(&machine);
    *local = (size_t)near;
    *ranks = (hl_ranks){ (size_t)rank, (size_t)size, gather, ranks };
    return 0;
}

int hollow_mpi_end(double seconds)
{
    const struct timespec pause = { .tv_nsec = 1000000 };
    double start = MPI_Wtime();
    MPI_Request request;
    int all = 0;
    if (MPI_Ibarrier(leaving, &request) != MPI_SUCCESS)
        return 0;
    while (MPI_Test(&request, &all, MPI_STATUS_IGNORE) == MPI_SUCCESS && !all && MPI_Wtime() - start < seconds)
        nanosleep(&pause, NULL);
    if (all)
        MPI_Finalize();
    return all;
}

void hollow_mpi_abort(int status)
{
    MPI_Abort(MPI_COMM_WORLD, status);
}

/* MPI_Alltoall as a program calls it, or PMPI_Alltoall, which nobody interposes, or both in turns.
 *
 *   alltoall ours|own|both ROUNDS CALLS BYTES...
 *
 * prints a line for each size of a shard: the size, and the microseconds of a call of each, the least
 * and the median of all rounds, each the mean of many calls on the slowest rank. With WIDTH=4 in the
 * environment all rows of 4 ranks exchange at once, with WIDTH=-4 all columns.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm comm;

typedef int call(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);

static double timed(call *function, const void *send, void *recv, int bytes, int calls)
{
    double took, slowest;
    MPI_Barrier(MPI_COMM_WORLD);
    took = MPI_Wtime();
    for (int each = 0; each < calls; each++)
        function(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm);
    took = (MPI_Wtime() - took) / calls;
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static int in_order(const void *one, const void *other)
{
    double first = *(const double *)one, second = *(const double *)other;
    return (first > second) - (first < second);
}

int main(int argc, char **argv)
{
    call *functions[] = {MPI_Alltoall, PMPI_Alltoall};
    int ranks, rank, rounds = atoi(argv[2]), calls = atoi(argv[3]);
    int first = !strcmp(argv[1], "own"), last = !!strcmp(argv[1], "ours");
    double *took = malloc(sizeof(double) * 2 * (size_t)rounds);
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int width = getenv("WIDTH") ? atoi(getenv("WIDTH")) : 0;
    comm = MPI_COMM_WORLD;
    if (width)
        MPI_Comm_split(MPI_COMM_WORLD, width > 0 ? rank / width : rank % -width, rank, &comm);
    for (int size = 4; size < argc; size++) {
        int bytes = atoi(argv[size]);
        char *send = malloc((size_t)bytes * ranks), *recv = malloc((size_t)bytes * ranks);
        memset(send, rank, (size_t)bytes * ranks);
        for (int way = first; way <= last; way++)
            functions[way](send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, comm);
        for (int round = 0; round < rounds; round++)
            for (int way = first; way <= last; way++)
                took[way * rounds + round] = timed(functions[way], send, recv, bytes, calls);
        if (rank == 0) {
            printf("%d", bytes);
            for (int way = first; way <= last; way++) {
                double *own = took + way * rounds;
                qsort(own, (size_t)rounds, sizeof(double), in_order);
                printf(" %.3f %.3f", 1e6 * own[0], 1e6 * own[rounds / 2]);
            }
            printf("\n");
            fflush(stdout);
        }
        free(send);
        free(recv);
    }
    MPI_Finalize();
    return 0;
}

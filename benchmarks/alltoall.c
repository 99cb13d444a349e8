/* MPI_Alltoall as a program calls it, beside PMPI_Alltoall, which nobody interposes, in turns.
 *
 *   alltoall ROUNDS CALLS BYTES...
 *
 * prints a line for each size of a shard: the size, and the microseconds of a call of either, the
 * least of all rounds, each the mean of many calls on the slowest rank.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int call(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);

static double timed(call *function, const void *send, void *recv, int bytes, int calls)
{
    double took, slowest;
    MPI_Barrier(MPI_COMM_WORLD);
    took = MPI_Wtime();
    for (int each = 0; each < calls; each++)
        function(send, bytes, MPI_BYTE, recv, bytes, MPI_BYTE, MPI_COMM_WORLD);
    took = (MPI_Wtime() - took) / calls;
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv)
{
    call *functions[] = {MPI_Alltoall, PMPI_Alltoall};
    int ranks, rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int size = 3; size < argc; size++) {
        int bytes = atoi(argv[size]), rounds = atoi(argv[1]), calls = atoi(argv[2]);
        char *send = malloc((size_t)bytes * ranks), *recv = malloc((size_t)bytes * ranks);
        double least[2] = {1e9, 1e9};
        memset(send, rank, (size_t)bytes * ranks);
        for (int round = 0; round < rounds; round++)
            for (int which = 0; which < 2; which++) {
                double took = timed(functions[which], send, recv, bytes, calls);
                least[which] = took < least[which] ? took : least[which];
            }
        if (rank == 0)
            printf("%d %.3f %.3f\n", bytes, 1e6 * least[0], 1e6 * least[1]);
        free(send);
        free(recv);
    }
    MPI_Finalize();
    return 0;
}

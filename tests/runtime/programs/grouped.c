/* All-to-alls of the world, of rows of so many hosts in the order of the world, and of columns:
 *
 *   grouped WIDTH    the hosts, by ALLTOALL_HOST, in rows of so many; without it the ranks
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 100 };

static int exchanged(MPI_Comm comm)
{
    int ranks, rank, wrong = 0;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    int send[COUNT * ranks], receive[COUNT * ranks];
    for (int i = 0; i < COUNT * ranks; i++) {
        send[i] = rank * COUNT * ranks + i;
        receive[i] = -1;
    }
    MPI_Alltoall(send, COUNT, MPI_INT, receive, COUNT, MPI_INT, comm);
    for (int i = 0; i < COUNT * ranks; i++)
        wrong += receive[i] != (i / COUNT * ranks + rank) * COUNT + i % COUNT;
    return wrong;
}

int main(int argc, char **argv)
{
    int width = argc > 1 ? atoi(argv[1]) : 2, rank, ranks, total;
    const char *name = getenv("ALLTOALL_HOST");
    MPI_Comm row, column;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int place = ranks > 4 && name ? name[0] - 'a' : rank;
    MPI_Comm_split(MPI_COMM_WORLD, place / width, -rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, place % width, rank, &column);
    int wrong = exchanged(MPI_COMM_WORLD) + exchanged(row) + exchanged(column);
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf(total ? "%d are wrong\n" : "right\n", total);
    MPI_Finalize();
    return total > 0;
}

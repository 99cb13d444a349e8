/* All-to-alls of which few can use a schedule: on the world, on its last two ranks, of other kinds.
 *
 *   left_out world   three on the world and no others
 *   left_out         the same, and those that are left out
 */
#include <mpi.h>
#include <stdio.h>

enum { MOST = 64 };

static int numbers[MOST], received[MOST], counts[MOST], places[MOST], bytes[MOST];
static MPI_Datatype types[MOST];

static void on_world(MPI_Comm comm)
{
    for (int i = 0; i < 3; i++)
        MPI_Alltoall(numbers, 1, MPI_INT, received, 1, MPI_INT, comm);
}

static void left_out(MPI_Comm comm, int rank, int ranks)
{
    MPI_Request request;
    MPI_Comm last;
    for (int r = 0; r < ranks; r++) {
        counts[r] = 1;
        places[r] = r;
        bytes[r] = r * (int)sizeof(int);
        types[r] = MPI_INT;
    }
    MPI_Alltoall(numbers, 0, MPI_INT, received, 0, MPI_INT, comm);
    MPI_Alltoallw(numbers, counts, bytes, types, received, counts, bytes, types, comm);
    MPI_Ialltoallv(numbers, counts, places, MPI_INT, received, counts, places, MPI_INT, comm,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ialltoallw(numbers, counts, bytes, types, received, counts, bytes, types, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Alltoall(numbers, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_SELF);
    MPI_Comm_split(comm, rank < ranks - 2 ? MPI_UNDEFINED : 0, rank, &last);
    if (last != MPI_COMM_NULL) {
        MPI_Alltoall(numbers, 1, MPI_INT, received, 1, MPI_INT, last);
        MPI_Alltoallv(numbers, counts, places, MPI_INT, received, counts, places, MPI_INT, last);
        MPI_Comm_free(&last);
    }
}

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int r = 0; r < ranks; r++)
        numbers[r] = rank * ranks + r;
    on_world(MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++)
        wrong += received[r] != r * ranks + rank;
    if (argc < 2)
        left_out(MPI_COMM_WORLD, rank, ranks);
    if (rank == 0)
        printf(wrong ? "wrong\n" : "right\n");
    MPI_Finalize();
    return wrong;
}

/* Transpose a matrix whose rows are spread over ranks: a program that knows only MPI.
 *
 *   mpicc -o transpose examples/transpose.c
 *   mpiexec -n 8 ./transpose                                  as it is
 *   alltoall wrap cube.json -- mpiexec -n 8 ./transpose        by a schedule
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int ranks, rank, wrong = 0, total = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int rows = 64, side = rows * ranks; /* rank r has rows r * rows and on, each as long as side */
    double *here = malloc(sizeof(double) * rows * side), *there = malloc(sizeof(double) * rows * side);
    for (int block = 0; block < ranks; block++) /* for rank `block`: our part of its rows, turned */
        for (int column = 0; column < rows; column++)
            for (int row = 0; row < rows; row++)
                here[(block * rows + column) * rows + row] =
                    (double)(rank * rows + row) * side + block * rows + column;
    MPI_Alltoall(here, rows * rows, MPI_DOUBLE, there, rows * rows, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int block = 0; block < ranks; block++)
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < rows; column++)
                wrong += there[(block * rows + row) * rows + column] !=
                         (double)(block * rows + column) * side + rank * rows + row;
    MPI_Reduce(&wrong, &total, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d x %d matrix transposed by %d ranks: %d wrong\n", side, side, ranks, total);
    MPI_Finalize();
    return total > 0;
}

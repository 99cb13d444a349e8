/* What a Fortran compiler makes of calls of MPI: everything by address, names in small letters. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

void mpi_alltoall_(void *, MPI_Fint *, MPI_Fint *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *,
                   MPI_Fint *) __attribute__((weak));
void mpi_alltoallv_(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, void *, MPI_Fint *, MPI_Fint *,
                    MPI_Fint *, MPI_Fint *, MPI_Fint *) __attribute__((weak));
void mpi_alltoall_f08_(void *, MPI_Fint *, MPI_Fint *, void *, MPI_Fint *, MPI_Fint *, MPI_Fint *,
                       MPI_Fint *) __attribute__((weak));
void mpi_alltoallv_f08_(void *, MPI_Fint *, MPI_Fint *, MPI_Fint *, void *, MPI_Fint *, MPI_Fint *,
                        MPI_Fint *, MPI_Fint *, MPI_Fint *) __attribute__((weak));
void mpi_init_(MPI_Fint *) __attribute__((weak));
void mpi_init_thread_(MPI_Fint *, MPI_Fint *, MPI_Fint *) __attribute__((weak));

/* What the Fortran of a library does, of which Open MPI's goes past the C calls that are taken. */
void pmpi_init_(MPI_Fint *code)
{
    *code = PMPI_Init(NULL, NULL);
}

void pmpi_init_thread_(MPI_Fint *wanted, MPI_Fint *given, MPI_Fint *code)
{
    int level;
    *code = PMPI_Init_thread(NULL, NULL, *wanted, &level);
    *given = level;
}

enum { COUNT = 50, RANKS = 4 };

int main(int argc, char **argv)
{
    MPI_Fint wanted = MPI_THREAD_MULTIPLE, given = -1, started = -1;
    if (argc > 1)
        mpi_init_thread_(&wanted, &given, &started);
    else
        mpi_init_(&started);
    if (started != MPI_SUCCESS || (argc > 1 && given != wanted))
        return 2;
    int rank, wrong = 0, all, send[RANKS * COUNT], receive[RANKS * COUNT];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Fint count = COUNT, code, type = MPI_Type_c2f(MPI_INT), comm = MPI_Comm_c2f(MPI_COMM_WORLD);
    MPI_Fint counts[RANKS], places[RANKS];
    for (int i = 0; i < RANKS; i++) {
        counts[i] = COUNT;
        places[i] = i * COUNT;
    }
    /* MPICH's pointer to Fortran's MPI_IN_PLACE is set by its Fortran library, which is not here. */
    void *in_place = dlsym(RTLD_DEFAULT, "mpi_fortran_in_place_");
    static int stand_in;
    void **kept = dlsym(RTLD_DEFAULT, "MPIR_F_MPI_IN_PLACE");
    if (!in_place && kept)
        in_place = *kept = &stand_in;
    for (int kind = 0; kind < 5; kind++) {
        for (int i = 0; i < RANKS * COUNT; i++) {
            send[i] = rank * 1000 + i;
            receive[i] = kind == 2 ? send[i] : -1;
        }
        if (kind == 0)
            mpi_alltoall_(send, &count, &type, receive, &count, &type, &comm, &code);
        if (kind == 1)
            mpi_alltoallv_(send, counts, places, &type, receive, counts, places, &type, &comm, &code);
        if (kind == 2 && in_place)
            mpi_alltoall_(in_place, &count, &type, receive, &count, &type, &comm, &code);
        else if (kind == 2)
            mpi_alltoall_(send, &count, &type, receive, &count, &type, &comm, &code);
        if (kind == 3) /* mpi_f08: the code at the end may be left out */
            mpi_alltoall_f08_(send, &count, &type, receive, &count, &type, &comm, NULL);
        if (kind == 4)
            mpi_alltoallv_f08_(send, counts, places, &type, receive, counts, places, &type, &comm,
                               NULL);
        for (int i = 0; i < RANKS * COUNT; i++)
            wrong += receive[i] != i / COUNT * 1000 + rank * COUNT + i % COUNT;
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf(all ? "%d wrong\n" : "right\n", all);
    MPI_Finalize();
    return all > 0;
}

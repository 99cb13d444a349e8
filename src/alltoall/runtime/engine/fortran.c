/* The Fortran names of what is interposed. Some libraries' Fortran calls go past their C calls.
 *
 * Those of Open MPI's mpi_f08 have the same arguments, as long as a buffer is an address there: a
 * handle is a structure of one integer, and the code at the end may be left out. */
#include "calls.h"

#include <dlfcn.h>
#include <stdlib.h>

/* Fortran's MPI_IN_PLACE and MPI_BOTTOM are variables, of which the address counts. Open MPI has
 * one for each way in which a compiler may spell it; MPICH has pointers to its own. */
static const char *const IN_PLACE[] = {"mpi_fortran_in_place", "mpi_fortran_in_place_",
                                       "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE"};
static const char *const BOTTOM[] = {"mpi_fortran_bottom", "mpi_fortran_bottom_",
                                     "mpi_fortran_bottom__", "MPI_FORTRAN_BOTTOM"};

static int stands_for(const void *buffer, const char *const names[4], const char *pointer)
{
    for (int i = 0; i < 4; i++) {
        const void *found = dlsym(RTLD_DEFAULT, names[i]);
        if (found && found == buffer)
            return 1;
    }
    void *const *kept = dlsym(RTLD_DEFAULT, pointer);
    return kept && *kept && *kept == buffer;
}

static void *in_c(void *buffer)
{
    if (stands_for(buffer, IN_PLACE, "MPIR_F_MPI_IN_PLACE"))
        return MPI_IN_PLACE;
    return stands_for(buffer, BOTTOM, "MPIR_F_MPI_BOTTOM") ? MPI_BOTTOM : buffer;
}

static void tell(MPI_Fint *code, int found)
{
    if (code)
        *code = found;
}

void a2a_alltoall_f(FORTRAN_ALLTOALL)
{
    tell(code, a2a_alltoall(in_c(send), *send_count, MPI_Type_f2c(*send_type), in_c(receive),
                            *receive_count, MPI_Type_f2c(*receive_type), MPI_Comm_f2c(*comm)));
}

void a2a_alltoallv_f(FORTRAN_ALLTOALLV)
{
    tell(code, a2a_alltoallv(in_c(send), send_counts, send_places, MPI_Type_f2c(*send_type),
                             in_c(receive), receive_counts, receive_places,
                             MPI_Type_f2c(*receive_type), MPI_Comm_f2c(*comm)));
}

/* The library's Fortran initializes more than its C does. MPICH's calls MPI_Init, which is taken by
 * then, Open MPI's goes past it. */
void a2a_init_f(MPI_Fint *code)
{
    MPI_Fint found = MPI_SUCCESS;
    void (*theirs)(MPI_Fint *) = (void (*)(MPI_Fint *))dlsym(RTLD_DEFAULT, "pmpi_init_");
    if (theirs)
        theirs(&found);
    tell(code, theirs ? a2a_begin(found) : a2a_init(NULL, NULL));
}

void a2a_init_thread_f(MPI_Fint *wanted, MPI_Fint *given, MPI_Fint *code)
{
    MPI_Fint found = MPI_SUCCESS;
    int level = 0;
    void (*theirs)(MPI_Fint *, MPI_Fint *, MPI_Fint *) =
        (void (*)(MPI_Fint *, MPI_Fint *, MPI_Fint *))dlsym(RTLD_DEFAULT, "pmpi_init_thread_");
    if (theirs)
        theirs(wanted, given, &found);
    tell(code, theirs ? a2a_begin(found) : a2a_init_thread(NULL, NULL, *wanted, &level));
    if (!theirs)
        *given = level;
}

void a2a_finalize_f(MPI_Fint *code)
{
    tell(code, a2a_finalize());
}

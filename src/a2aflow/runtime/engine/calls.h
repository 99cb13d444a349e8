/* The calls that are interposed: what each is named in the engine, and how the program makes it. */
#ifndef A2AFLOW_CALLS_H
#define A2AFLOW_CALLS_H

#include <mpi.h>

#define INIT_ARGUMENTS int *count, char ***words
#define INIT_THREAD_ARGUMENTS int *count, char ***words, int wanted, int *given
#define ALLTOALL_ARGUMENTS                                                                         \
    const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,    \
        MPI_Datatype receive_type, MPI_Comm comm
#define ALLTOALLV_ARGUMENTS                                                                        \
    const void *send, const int *send_counts, const int *send_places, MPI_Datatype send_type,      \
        void *receive, const int *receive_counts, const int *receive_places,                       \
        MPI_Datatype receive_type, MPI_Comm comm
#define FORTRAN_ALLTOALL_ARGUMENTS                                                                 \
    void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *receive,                          \
        MPI_Fint *receive_count, MPI_Fint *receive_type, MPI_Fint *comm, MPI_Fint *code
#define FORTRAN_ALLTOALLV_ARGUMENTS                                                                \
    void *send, MPI_Fint *send_counts, MPI_Fint *send_places, MPI_Fint *send_type, void *receive,  \
        MPI_Fint *receive_counts, MPI_Fint *receive_places, MPI_Fint *receive_type,                \
        MPI_Fint *comm, MPI_Fint *code

int a2a_init(INIT_ARGUMENTS);
int a2a_init_thread(INIT_THREAD_ARGUMENTS);
int a2a_finalize(void);
int a2a_alltoall(ALLTOALL_ARGUMENTS);
int a2a_alltoallv(ALLTOALLV_ARGUMENTS);
int a2a_ialltoall(ALLTOALL_ARGUMENTS, MPI_Request *request);
void a2a_alltoall_f(FORTRAN_ALLTOALL_ARGUMENTS);
void a2a_alltoallv_f(FORTRAN_ALLTOALLV_ARGUMENTS);
void a2a_finalize_f(MPI_Fint *code);

#endif

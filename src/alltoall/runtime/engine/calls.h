/* The calls that are interposed, as programs make them, and what they are named in the engine. */
#ifndef ALLTOALL_CALLS_H
#define ALLTOALL_CALLS_H

#include <mpi.h>

#define INIT int *count, char ***words
#define INIT_THREAD INIT, int wanted, int *given
#define ALLTOALL(number)                                                                           \
    const void *send, number send_count, MPI_Datatype send_type, void *receive,                    \
        number receive_count, MPI_Datatype receive_type, MPI_Comm comm
#define ALLTOALLV(number, place)                                                                   \
    const void *send, const number *send_counts, const place *send_places,                         \
        MPI_Datatype send_type, void *receive, const number *receive_counts,                       \
        const place *receive_places, MPI_Datatype receive_type, MPI_Comm comm
#define ALLTOALLW                                                                                  \
    const void *send, const int *send_counts, const int *send_places,                              \
        const MPI_Datatype *send_types, void *receive, const int *receive_counts,                  \
        const int *receive_places, const MPI_Datatype *receive_types, MPI_Comm comm
#define FORTRAN_ALLTOALL                                                                           \
    void *send, MPI_Fint *send_count, MPI_Fint *send_type, void *receive,                          \
        MPI_Fint *receive_count, MPI_Fint *receive_type, MPI_Fint *comm, MPI_Fint *code
#define FORTRAN_ALLTOALLV                                                                          \
    void *send, MPI_Fint *send_counts, MPI_Fint *send_places, MPI_Fint *send_type, void *receive,  \
        MPI_Fint *receive_counts, MPI_Fint *receive_places, MPI_Fint *receive_type,                \
        MPI_Fint *comm, MPI_Fint *code

int a2a_begin(int code); /* after the library has been initialized, once or twice */
int a2a_init(INIT);
int a2a_init_thread(INIT_THREAD);
int a2a_finalize(void);
int a2a_alltoall(ALLTOALL(int));
int a2a_alltoallv(ALLTOALLV(int, int));
int a2a_alltoallw(ALLTOALLW);
int a2a_ialltoall(ALLTOALL(int), MPI_Request *request);
int a2a_ialltoallv(ALLTOALLV(int, int), MPI_Request *request);
int a2a_ialltoallw(ALLTOALLW, MPI_Request *request);
#if MPI_VERSION >= 4
int a2a_alltoall_c(ALLTOALL(MPI_Count));
int a2a_alltoallv_c(ALLTOALLV(MPI_Count, MPI_Aint));
int a2a_ialltoall_c(ALLTOALL(MPI_Count), MPI_Request *request);
#endif
void a2a_alltoall_f(FORTRAN_ALLTOALL);
void a2a_alltoallv_f(FORTRAN_ALLTOALLV);
void a2a_init_f(MPI_Fint *code);
void a2a_init_thread_f(MPI_Fint *wanted, MPI_Fint *given, MPI_Fint *code);
void a2a_finalize_f(MPI_Fint *code);

#endif

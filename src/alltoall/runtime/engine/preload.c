/* What is preloaded: it stands in front of an MPI library's all-to-alls, and hands them to the engine.
 *
 * Every process of a job gets it, launchers and shells included, so it needs nothing but libc. The
 * engine, which needs the MPI library, is loaded at the first call of a program that has the library
 * which the engine was built for; any other program makes its calls as if this were not here. */
#include "calls.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *engine, *library;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Find a loaded library that has MPI, also one that was loaded for a part of the program only. */
static int find_library(struct dl_phdr_info *info, size_t size, void *name)
{
    (void)size;
    void *handle = info->dlpi_name[0] ? dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    Dl_info where;
    void *found = handle ? dlsym(handle, "PMPI_Alltoall") : NULL;
    if (found && dladdr(found, &where)) {
        library = handle;
        *(const char **)name = where.dli_fname;
        return 1;
    }
    if (handle)
        dlclose(handle);
    return 0;
}

/* Whether this is the rank that speaks for all, as far as launchers tell. */
static int speaks(void)
{
    static const char *const RANKS[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "SLURM_PROCID"};
    for (int i = 0; i < 4; i++) {
        const char *rank = getenv(RANKS[i]);
        if (rank)
            return !strcmp(rank, "0");
    }
    return 1;
}

static void load(void)
{
    const char *path = getenv("ALLTOALL_ENGINE"), *wanted = getenv("ALLTOALL_LIBMPI");
    const char *found = "none";
    dl_iterate_phdr(find_library, &found);
    if (!path || !wanted)
        return;
    void *known = dlopen(wanted, RTLD_LAZY | RTLD_NOLOAD);
    if (known)
        engine = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!engine && speaks())
        fprintf(stderr,
                "alltoall: the program uses %s, the engine %s (%s); the MPI library's own "
                "all-to-all is used\n",
                found, wanted, known ? dlerror() : "not loaded");
}

/* Return the engine's function, or else the library's. */
static void *function(const char *ours, const char *theirs)
{
    pthread_once(&once, load);
    void *found = engine ? dlsym(engine, ours) : NULL;
    if (!found && library)
        found = dlsym(library, theirs);
    if (!found)
        found = dlsym(RTLD_NEXT, theirs);
    if (!found) {
        fprintf(stderr, "alltoall: no %s in any library of this program\n", theirs);
        abort();
    }
    return found;
}

#define EXPORT __attribute__((visibility("default")))
#define INTERPOSE(result, name, ours, theirs, parameters, arguments)                               \
    EXPORT result name parameters                                                                  \
    {                                                                                              \
        static result(*call) parameters;                                                           \
        if (!call)                                                                                 \
            call = (result(*) parameters)function(ours, theirs);                                   \
        return call arguments;                                                                     \
    }

#define SHARDS (send, send_count, send_type, receive, receive_count, receive_type, comm)
#define PENDING (send, send_count, send_type, receive, receive_count, receive_type, comm, request)
#define COUNTED                                                                                    \
    (send, send_counts, send_places, send_type, receive, receive_counts, receive_places,           \
     receive_type, comm)
#define PENDING_COUNTED                                                                            \
    (send, send_counts, send_places, send_type, receive, receive_counts, receive_places,           \
     receive_type, comm, request)
#define TYPED                                                                                      \
    (send, send_counts, send_places, send_types, receive, receive_counts, receive_places,          \
     receive_types, comm)
#define PENDING_TYPED                                                                              \
    (send, send_counts, send_places, send_types, receive, receive_counts, receive_places,          \
     receive_types, comm, request)

INTERPOSE(int, MPI_Init, "a2a_init", "PMPI_Init", (INIT), (count, words))
INTERPOSE(int, MPI_Init_thread, "a2a_init_thread", "PMPI_Init_thread", (INIT_THREAD),
          (count, words, wanted, given))
INTERPOSE(int, MPI_Finalize, "a2a_finalize", "PMPI_Finalize", (void), ())
INTERPOSE(int, MPI_Alltoall, "a2a_alltoall", "PMPI_Alltoall", (ALLTOALL(int)), SHARDS)
INTERPOSE(int, MPI_Alltoallv, "a2a_alltoallv", "PMPI_Alltoallv", (ALLTOALLV(int, int)), COUNTED)
INTERPOSE(int, MPI_Alltoallw, "a2a_alltoallw", "PMPI_Alltoallw", (ALLTOALLW), TYPED)
INTERPOSE(int, MPI_Ialltoall, "a2a_ialltoall", "PMPI_Ialltoall",
          (ALLTOALL(int), MPI_Request *request), PENDING)
INTERPOSE(int, MPI_Ialltoallv, "a2a_ialltoallv", "PMPI_Ialltoallv",
          (ALLTOALLV(int, int), MPI_Request *request), PENDING_COUNTED)
INTERPOSE(int, MPI_Ialltoallw, "a2a_ialltoallw", "PMPI_Ialltoallw",
          (ALLTOALLW, MPI_Request *request), PENDING_TYPED)
#if MPI_VERSION >= 4
INTERPOSE(int, MPI_Alltoall_c, "a2a_alltoall_c", "PMPI_Alltoall_c", (ALLTOALL(MPI_Count)), SHARDS)
INTERPOSE(int, MPI_Alltoallv_c, "a2a_alltoallv_c", "PMPI_Alltoallv_c",
          (ALLTOALLV(MPI_Count, MPI_Aint)), COUNTED)
INTERPOSE(int, MPI_Ialltoall_c, "a2a_ialltoall_c", "PMPI_Ialltoall_c",
          (ALLTOALL(MPI_Count), MPI_Request *request), PENDING)
#endif
#define FORTRAN_SHARDS                                                                             \
    (send, send_count, send_type, receive, receive_count, receive_type, comm, code)
#define FORTRAN_COUNTED                                                                            \
    (send, send_counts, send_places, send_type, receive, receive_counts, receive_places,           \
     receive_type, comm, code)
#define FORTRAN(kind)                                                                              \
    INTERPOSE(void, mpi_init_##kind, "a2a_init_f", "pmpi_init_" #kind, (MPI_Fint * code), (code))  \
    INTERPOSE(void, mpi_init_thread_##kind, "a2a_init_thread_f", "pmpi_init_thread_" #kind,        \
              (MPI_Fint * wanted, MPI_Fint * given, MPI_Fint * code), (wanted, given, code))       \
    INTERPOSE(void, mpi_alltoall_##kind, "a2a_alltoall_f", "pmpi_alltoall_" #kind,                 \
              (FORTRAN_ALLTOALL), FORTRAN_SHARDS)                                                  \
    INTERPOSE(void, mpi_alltoallv_##kind, "a2a_alltoallv_f", "pmpi_alltoallv_" #kind,              \
              (FORTRAN_ALLTOALLV), FORTRAN_COUNTED)                                                \
    INTERPOSE(void, mpi_finalize_##kind, "a2a_finalize_f", "pmpi_finalize_" #kind,                 \
              (MPI_Fint * code), (code))

FORTRAN()
FORTRAN(f08_)

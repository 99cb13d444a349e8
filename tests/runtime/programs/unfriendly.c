/* What programs may do, and wrappers seldom think of:
 *
 *   unfriendly sessions   an all-to-all without MPI_Init
 *   unfriendly dies       a rank that is killed while the others are in an all-to-all
 *   unfriendly multiple   a call that does not wait, with threads; `single` without
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000 };

/* Exchange numbers that tell who sent them to whom; return how many are wrong. */
static int exchanged(MPI_Comm comm, int waits)
{
    MPI_Request request;
    int ranks, rank, wrong = 0;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    int *send = malloc(sizeof(int) * COUNT * (size_t)ranks);
    int *receive = calloc(COUNT * (size_t)ranks, sizeof(int));
    for (int i = 0; i < COUNT * ranks; i++)
        send[i] = rank * COUNT * ranks + i;
    if (waits)
        MPI_Alltoall(send, COUNT, MPI_INT, receive, COUNT, MPI_INT, comm);
    else {
        MPI_Ialltoall(send, COUNT, MPI_INT, receive, COUNT, MPI_INT, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < COUNT * ranks; i++)
        wrong += receive[i] != (i / COUNT * ranks + rank) * COUNT + i % COUNT;
    free(send);
    free(receive);
    return wrong;
}

static int by_session(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "everyone", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    int wrong = exchanged(comm, 1);
    printf(wrong ? "wrong\n" : "right\n");
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return wrong;
}

static void until_killed(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0;; turn++) {
        if (rank == 2 && turn == 3)
            raise(SIGKILL);
        exchanged(MPI_COMM_WORLD, 1);
    }
}

static int with_threads(int argc, char **argv, int level)
{
    MPI_Init_thread(&argc, &argv, level, &level);
    int wrong = exchanged(MPI_COMM_WORLD, 0);
    printf(wrong ? "wrong\n" : "right\n");
    MPI_Finalize();
    return wrong;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "multiple"))
        return with_threads(argc, argv, MPI_THREAD_MULTIPLE);
    if (!strcmp(what, "single"))
        return with_threads(argc, argv, MPI_THREAD_SINGLE);
    if (!strcmp(what, "dies"))
        until_killed(argc, argv);
    return by_session();
}

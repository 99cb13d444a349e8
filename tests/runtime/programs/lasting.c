/* A program that goes on for long:
 *
 *   lasting calls N    N all-to-alls, in which the process must not grow
 *   lasting comms N    N communicators with an all-to-all each, freed in between
 *   lasting threads N  N all-to-alls by each of two threads, on two communicators
 *
 * Prints `right` on rank 0 if every value is where it must be, and nothing has grown.
 */
#include <dirent.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 20, SPARE_PAGES = 1024, SPARE_FILES = 4 };

typedef struct {
    MPI_Comm comm;
    int calls, salt, wrong;
} Work;

static int exchanged(MPI_Comm comm, int salt)
{
    int ranks, rank, wrong = 0;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    int send[COUNT * ranks], receive[COUNT * ranks];
    for (int i = 0; i < COUNT * ranks; i++) {
        send[i] = salt + rank * COUNT * ranks + i;
        receive[i] = -1;
    }
    MPI_Alltoall(send, COUNT, MPI_INT, receive, COUNT, MPI_INT, comm);
    for (int i = 0; i < COUNT * ranks; i++)
        wrong += receive[i] != salt + (i / COUNT * ranks + rank) * COUNT + i % COUNT;
    return wrong;
}

static void *work(void *given)
{
    Work *it = given;
    for (int call = 0; call < it->calls; call++)
        it->wrong += exchanged(it->comm, it->salt + call);
    return NULL;
}

static long pages(void)
{
    long size = 0, resident = 0, shared = 0, text = 0, unused = 0, data = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld %ld %ld %ld %ld", &size, &resident, &shared, &text, &unused,
                        &data) != 6)
        return 0;
    fclose(file);
    return data;
}

static int files(void)
{
    int found = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        found++;
    closedir(folder);
    return found;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int times = argc > 2 ? atoi(argv[2]) : 1, level, wrong = 0, total, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!strcmp(what, "threads")) {
        Work each[2] = {{MPI_COMM_NULL, times, 1, 0}, {MPI_COMM_NULL, times, 1000000, 0}};
        pthread_t thread[2];
        for (int k = 0; k < 2; k++)
            MPI_Comm_dup(MPI_COMM_WORLD, &each[k].comm);
        for (int k = 0; k < 2; k++)
            pthread_create(&thread[k], NULL, work, &each[k]);
        for (int k = 0; k < 2; k++) {
            pthread_join(thread[k], NULL);
            MPI_Comm_free(&each[k].comm);
            wrong += each[k].wrong;
        }
    } else {
        long before = 0;
        int open = 0;
        for (int turn = 0; turn < times; turn++) {
            MPI_Comm comm = MPI_COMM_WORLD;
            if (!strcmp(what, "comms"))
                MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            wrong += exchanged(comm, turn);
            if (comm != MPI_COMM_WORLD)
                MPI_Comm_free(&comm);
            if (turn == times / 10) {
                before = pages();
                open = files();
            }
        }
        if (pages() > before + SPARE_PAGES || files() > open + SPARE_FILES) {
            fprintf(stderr, "grown by %ld pages, %d files\n", pages() - before, files() - open);
            wrong++;
        }
    }
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf(total ? "%d are wrong\n" : "right\n", total);
    MPI_Finalize();
    return total > 0;
}

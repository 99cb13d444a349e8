/* Memory of one host by a file without a name: one rank makes it, the others open it as that rank's.
 *
 * Not by MPI_Win_allocate_shared: its pages may be missing when they are touched, what holds them may
 * outlive a job that is killed, /dev/shm may be small, and MPI may have been told that ranks of one
 * host share nothing. */
#include "team.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 64, TOLD = 3, YIELDS = 300, LOOKS = 1024 };
/* How often to yield before sleeping, and after how many sleeps to look whether the others live. */
enum { SLEEP_NANOSECONDS = 20 * 1000 };

/* What begins the memory; numbers that different ranks write are in lines of their own. */
typedef struct {
    int64_t mark;
    _Alignas(LINE) _Atomic int64_t ended; /* messages, since the memory is shared */
} Head;
typedef struct {
    _Alignas(LINE) _Atomic int64_t met;
} Place;

static Head *head(const Team *team)
{
    return (Head *)team->mapped;
}

static Place *places(const Team *team)
{
    return (Place *)(team->mapped + sizeof(Head));
}

/* The messages that have ended in order, a call behind the other, each with a turn's number. */
static _Atomic int64_t *endings(const Team *team)
{
    return (_Atomic int64_t *)(places(team) + team->size);
}

static size_t head_bytes(const Team *team)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = sizeof(Head) + sizeof(Place) * (size_t)team->size +
                   sizeof(int64_t) * ((size_t)team->messages + 1);
    return (bytes + page - 1) / page * page;
}

/* Map a file that has all its pages; NULL if it has not. */
static char *map(int file, size_t bytes)
{
    struct stat about;
    if (file < 0 || fstat(file, &about) || about.st_size != (off_t)bytes)
        return NULL;
    char *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return found == MAP_FAILED ? NULL : found;
}

int a2a_team_share(Team *team, size_t bytes)
{
    size_t before = head_bytes(team), all = before + bytes;
    int64_t mine[TOLD] = {getpid(), -1, 0};
    char *mapped = NULL;
    int file = -1, every = 0;
    if (team->rank == 0) {
        file = memfd_create("alltoall", MFD_CLOEXEC);
        if (file >= 0 && !posix_fallocate(file, 0, (off_t)all) &&
            getrandom(&mine[2], sizeof mine[2], 0) == sizeof mine[2])
            mapped = map(file, all);
        if (mapped)
            ((Head *)mapped)->mark = mine[2];
        mine[1] = file;
    }
    PMPI_Allgather(mine, TOLD, MPI_INT64_T, team->told, TOLD, MPI_INT64_T, team->comm);
    if (team->rank > 0) {
        const int64_t *first = &team->told[TOLD * (size_t)team->members[0]];
        char path[64];
        snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)first[0],
                 (long long)first[1]);
        file = first[1] < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
        mapped = map(file, all);
        if (mapped && ((Head *)mapped)->mark != first[2]) { /* a file of another machine */
            munmap(mapped, all);
            mapped = NULL;
        }
    }
    int ok = mapped != NULL;
    PMPI_Allreduce(&ok, &every, 1, MPI_INT, MPI_MIN, team->comm);
    if (file >= 0)
        close(file);
    if (!every) {
        if (mapped)
            munmap(mapped, all);
        return 0;
    }
    a2a_team_free(team);
    team->mapped = mapped;
    team->mapped_bytes = all;
    team->memory = mapped + before;
    team->met = team->calls = team->heard = 0;
    return 1;
}

void a2a_team_free(Team *team)
{
    if (team->mapped)
        munmap(team->mapped, team->mapped_bytes);
    team->mapped = team->memory = NULL;
}

/* End the job if a rank of this host is no more: its launcher may leave the others waiting. */
static void look(const Team *team)
{
    for (int32_t k = 0; k < team->size; k++) {
        pid_t process = (pid_t)team->told[TOLD * (size_t)team->members[k]];
        if (kill(process, 0) && errno == ESRCH) {
            fprintf(stderr, "alltoall: rank %d of a communicator of %d ended in an all-to-all\n",
                    team->members[k], team->ranks);
            PMPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

void a2a_team_rest(const Team *team, int64_t tries)
{
    /* Others may wait for what we have sent: the library goes on with it when it is asked. */
    int found;
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, team->comm, &found, MPI_STATUS_IGNORE);
    if (tries < YIELDS) {
        sched_yield();
        return;
    }
    struct timespec moment = {0, SLEEP_NANOSECONDS};
    nanosleep(&moment, NULL);
    if (tries % LOOKS == 0)
        look(team);
}

void a2a_team_meet(Team *team)
{
    Place *place = places(team);
    int64_t turn = ++team->met;
    atomic_store_explicit(&place[team->rank].met, turn, memory_order_release);
    for (int32_t k = 0; k < team->size; k++)
        for (int64_t tries = 0;
             atomic_load_explicit(&place[k].met, memory_order_acquire) < turn; tries++)
            a2a_team_rest(team, tries);
}

void a2a_team_begin(Team *team)
{
    team->heard = team->calls++ * team->messages;
}

void a2a_team_tell(Team *team, int32_t message)
{
    int64_t at = atomic_fetch_add_explicit(&head(team)->ended, 1, memory_order_relaxed);
    atomic_store_explicit(&endings(team)[at % team->messages],
                          (at / team->messages + 1) << 32 | message, memory_order_release);
}

int32_t a2a_team_hear(Team *team)
{
    int64_t at = team->heard;
    int64_t found = atomic_load_explicit(&endings(team)[at % team->messages], memory_order_acquire);
    if (found >> 32 != at / team->messages + 1)
        return -1;
    team->heard++;
    return (int32_t)(found & INT32_MAX);
}

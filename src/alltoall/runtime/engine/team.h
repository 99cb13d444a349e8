/* The ranks of a communicator that are on one host: memory that they share, a meeting place, and the
 * messages of the host that have ended, whichever rank carried them. */
#ifndef ALLTOALL_TEAM_H
#define ALLTOALL_TEAM_H

#include <mpi.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    MPI_Comm comm;
    int32_t rank, size;     /* ours among those of the host, and how many they are */
    const int32_t *members; /* their ranks in the communicator, of which there are `ranks` */
    int32_t ranks, self, messages;
    int64_t *told; /* three numbers of each rank: process, file, and a mark */
    char *mapped, *memory;
    size_t mapped_bytes;
    int64_t met, calls, heard; /* meetings and calls so far, and messages heard to have ended */
} Team;

/* Share so many bytes in place of those shared before; 0 if any rank of any host cannot. Collective
 * over the communicator. The pages are there, or it fails, and no name for them is in any folder. */
int a2a_team_share(Team *team, size_t bytes);
void a2a_team_free(Team *team);

/* Wait for the others of this host. */
void a2a_team_meet(Team *team);
/* Let others run while there is nothing to do, for the `tries`th time. */
void a2a_team_rest(const Team *team, int64_t tries);

/* A call begins; a message of it that this rank carried has ended; the next that any rank has
 * carried to its end, or -1. */
void a2a_team_begin(Team *team);
void a2a_team_tell(Team *team, int32_t message);
int32_t a2a_team_hear(Team *team);

#endif

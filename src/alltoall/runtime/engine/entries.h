/* The schedules that a program was given, and which terminal of one each rank is. */
#ifndef ALLTOALL_ENTRIES_H
#define ALLTOALL_ENTRIES_H

#include "tally.h"

/* A file of messages, and from how many bytes of a shard on it is used. */
typedef struct {
    char *path, *label; /* of the messages, and what the user calls the schedule */
    int32_t file;       /* which of the files that the user gave */
    int32_t ranks;
    int64_t least;
    int32_t total, *part; /* terminals of the network, and which of them these are; NULL: all */
    int32_t *world;       /* the rank in MPI_COMM_WORLD of each, or one on its host, or NULL */
    char **names;         /* the hosts that these are, or NULL */
    int32_t named;
    int told; /* what there was to say about it has been said */
} Entry;

typedef struct {
    Entry *entries;
    int count, report, quiet;
    uint32_t mark; /* tells one configuration from another */
} Entries;

/* Read ALLTOALL_WRAP; without it there is nothing, and a warning. */
void a2a_read_entries(Entries *all);

/* Say what is wrong with a schedule. */
void a2a_warn(const char *label, const char *error);

/* Learn on which host each rank of the world is; collective. Without it no rank has a host. */
void a2a_gather_hosts(int report);

/* Say which terminal each rank of a communicator is, given its ranks in the world: one rank for
 * each, or all ranks of a host. NULL, and why, if they do not fit. The answer is alike on all. */
int32_t *a2a_roles(Entry *entry, int32_t ranks, int32_t rank, const int *world, Reason *why);

/* Print which host is which terminal, and its ranks. */
void a2a_say_roles(const Entry *entry, int32_t ranks, const int32_t *role, const int *world);

#endif

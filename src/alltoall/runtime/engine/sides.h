/* The program's side of a call: a buffer and what it counts there, and its shards as bytes. */
#ifndef ALLTOALL_SIDES_H
#define ALLTOALL_SIDES_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* `count` items for each rank, or as many as counts say at the places given, which are of either of
 * two types. */
typedef struct {
    char *buffer;
    MPI_Datatype type;
    int64_t count;
    const int *counts, *places;
    const MPI_Count *large_counts;
    const MPI_Aint *large_places;
} Side;

/* Whether memory holds the values of a type one after another, in the order of its signature. */
int a2a_plain(MPI_Datatype type);
int64_t a2a_type_bytes(MPI_Datatype type);
int64_t a2a_side_count(const Side *side, int32_t rank);
int64_t a2a_side_bytes(const Side *side, int32_t ranks);
char *a2a_side_place(const Side *side, int32_t rank);

/* Move the shard of one rank between a side of any type and the bytes of its values. */
int a2a_pack_shard(const Side *side, int32_t rank, char *packed, int unpack, MPI_Comm comm);
/* Move all shards, whose bytes lie one after another. */
int a2a_pack_side(const Side *side, int32_t ranks, char *packed, int unpack, MPI_Comm comm);

/* Make room for so many bytes; what was there is lost. */
int a2a_room(char **room, size_t *has, int64_t needs);

#endif

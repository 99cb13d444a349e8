/* Shards of the program's buffers, of any datatype. */
#include "sides.h"

#include <stdlib.h>

int a2a_plain(MPI_Datatype type)
{
    MPI_Count size, lower, extent;
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_extent_x(type, &lower, &extent);
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED && lower == 0 && size == extent;
}

int64_t a2a_type_bytes(MPI_Datatype type)
{
    MPI_Count size;
    if (PMPI_Type_size_x(type, &size) || size == MPI_UNDEFINED)
        return -1;
    return size;
}

int64_t a2a_side_count(const Side *side, int32_t rank)
{
    return side->large_counts ? side->large_counts[rank]
           : side->counts     ? side->counts[rank]
                              : side->count;
}

char *a2a_side_place(const Side *side, int32_t rank)
{
    MPI_Count lower, extent;
    PMPI_Type_get_extent_x(side->type, &lower, &extent);
    int64_t items = side->large_places ? side->large_places[rank]
                    : side->places     ? side->places[rank]
                                       : rank * side->count;
    return side->buffer + items * extent;
}

int64_t a2a_side_bytes(const Side *side, int32_t ranks)
{
    int64_t total = 0;
    for (int32_t r = 0; r < ranks; r++)
        total += a2a_side_count(side, r);
    return total * a2a_type_bytes(side->type);
}

int a2a_room(char **room, size_t *has, int64_t needs)
{
    if (*has >= (size_t)needs)
        return 1;
    free(*room);
    *room = malloc((size_t)needs);
    *has = *room ? (size_t)needs : 0;
    return *room != NULL;
}

int a2a_pack_shard(const Side *side, int32_t rank, char *packed, int unpack, MPI_Comm comm)
{
    int count = (int)a2a_side_count(side, rank), at = 0;
    int bytes = (int)(count * a2a_type_bytes(side->type));
    char *place = a2a_side_place(side, rank);
    if (!count)
        return MPI_SUCCESS;
    int code = unpack ? PMPI_Unpack(packed, bytes, &at, place, count, side->type, comm)
                      : PMPI_Pack(place, count, side->type, packed, bytes, &at, comm);
    return code ? code : at == bytes ? MPI_SUCCESS : MPI_ERR_OTHER;
}

int a2a_pack_side(const Side *side, int32_t ranks, char *packed, int unpack, MPI_Comm comm)
{
    int code = MPI_SUCCESS;
    for (int32_t r = 0; !code && r < ranks; r++) {
        code = a2a_pack_shard(side, r, packed, unpack, comm);
        packed += a2a_side_count(side, r) * a2a_type_bytes(side->type);
    }
    return code;
}

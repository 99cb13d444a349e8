/* All-to-alls among ranks of which several are on a host, by a schedule between the hosts. */
#ifndef ALLTOALL_HOSTED_H
#define ALLTOALL_HOSTED_H

#include "engine.h"
#include "sides.h"

typedef struct Hosted Hosted;

/* The buffers of one call, by the ranks of the communicator. Packed bytes are at `input` and go to
 * `output`; where these are NULL, shards are packed from and to sides of any type. */
typedef struct {
    const Side *send, *receive; /* the one or the other is NULL in a call in place: it is packed */
    const char *input;
    char *output;
    const int64_t *in, *out; /* where each rank's shard begins in these */
    int64_t shard;           /* bytes of every shard, if there is no */
    const int64_t *matrix;   /* bytes from each rank to each */
} HostedCall;

/* `role` is the host of each rank, the rank of the plan; both outlive it. Collective; NULL on all
 * ranks if any has no memory. */
Hosted *a2a_hosted_new(const Plan *plan, MPI_Comm comm, const int32_t *role);
void a2a_hosted_free(Hosted *hosted);

/* See to it that shards of so many bytes can be exchanged; return into how many parts each is cut
 * for that, or 0 if hosts cannot share the memory that it takes. Collective, alike on all ranks. */
int32_t a2a_hosted_parts(Hosted *hosted, int64_t shard, const int64_t *matrix);

/* Exchange shards in so many parts; `turn` counts up for each. */
int a2a_hosted_run(Hosted *hosted, const HostedCall *call, int32_t parts, int64_t *turn);

#endif

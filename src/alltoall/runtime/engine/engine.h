/* All-to-all by the messages of one rank, over MPI 3 point-to-point: what the parts share.
 *
 *   plan.c       what a rank sends and receives, from arrays or from a file of messages
 *   exchange.c   one all-to-all by a plan, with any number of bytes for each pair
 *   team.c       memory that the ranks of a host share
 *   hosted.c     one all-to-all among ranks of which several are on a host
 *   entries.c    which schedules a program was given, and which terminal each rank is
 *   sides.c      the program's buffers, of any datatype
 *   interpose.c  MPI_Alltoall and its kin of a program that knows nothing of this
 *   tally.c      counts them, and says at the end which used no schedule, and why
 *   preload.c    a library of its own: hands the program's calls to this one
 */
#ifndef ALLTOALL_ENGINE_H
#define ALLTOALL_ENGINE_H

#include "team.h"

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { INPUT, OUTPUT, SCRATCH };

typedef struct {
    int32_t source, destination, chunk, count, from_buffer, from_slot, to_buffer, to_slot;
} Range;
/* `count` chunks from `chunk` on of a pair's shard; docs/formats.md says the rest. */

typedef struct {
    int32_t ranks, rank, steps, per_shard, scratch;
    int32_t *chunks; /* of each pair, ranks x ranks; NULL if all have `per_shard` */
    int32_t messages, *sends, *peer, *step, *first;
    Range *ranges; /* those of message i are first[i] .. first[i + 1] - 1 */
    /* What follows from these. */
    int32_t *needs;     /* how much has to happen before each message may start */
    int32_t *followers; /* those of message i are followers_first[i] .. followers_first[i + 1] - 1 */
    int32_t *followers_first;
    int32_t *next_alike; /* the next message to, or from, the same peer, or -1 */
} Plan;

#define ERROR_BYTES 256

/* Build a plan from columns; NULL, and why in `error`, if they are not one. Nothing is kept. */
Plan *a2a_plan_new(int32_t ranks, int32_t rank, int32_t steps, int32_t per_shard,
                   const int32_t *chunks, int32_t scratch, int32_t messages,
                   const int32_t *message_rows, int32_t ranges, const Range *range_rows,
                   int32_t waits, const int32_t *wait_rows, char *error);

/* Read the part of one rank from a file that must be for so many ranks. */
Plan *a2a_plan_read(const char *path, int32_t ranks, int32_t rank, char *error);

void a2a_plan_free(Plan *plan);

/* Chunks of a pair. */
static inline int32_t a2a_chunks(const Plan *plan, int32_t source, int32_t destination)
{
    return plan->chunks ? plan->chunks[(size_t)source * plan->ranks + destination]
                        : plan->per_shard;
}

typedef struct Exchange Exchange;

/* The buffers of one call, by the ranks of the plan. */
typedef struct {
    const char *input;
    char *output;
    const int64_t *in, *out; /* where the shard to, and from, each rank begins, in bytes */
    int64_t shard;           /* bytes of every shard, if there is no */
    const int64_t *matrix;   /* bytes from each rank to each, ranks x ranks */
    char *scratch;           /* room for all slots of the plan; NULL: of the exchange's own */
} Call;

/* A place for one all-to-all at a time. `peers` are the ranks in `comm` of those of the plan; both
 * outlive it. NULL if there is no memory. */
Exchange *a2a_exchange_new(const Plan *plan, MPI_Comm comm, const int32_t *peers);
/* Carry only the messages that are `mine`, as others of a team do theirs. `to` and `from` are the
 * ranks in `comm` that take, and that send, the messages of each rank of the plan. All outlive it. */
void a2a_exchange_share(Exchange *exchange, Team *team, const char *mine, const int32_t *to,
                        const int32_t *from);
/* Start a step only when all ranks have ended the one before, by a barrier on the communicator. */
int a2a_exchange_by_step(Exchange *exchange);
void a2a_exchange_free(Exchange *exchange);

/* Start an all-to-all; `turn` counts those of a communicator, alike on all its ranks. */
int a2a_start(Exchange *exchange, const Call *call, int64_t turn);
/* Go on with it; `done` tells whether all is over. Never waits. */
int a2a_test(Exchange *exchange, int *done);
/* Go on until all is over. */
int a2a_wait(Exchange *exchange);

#endif

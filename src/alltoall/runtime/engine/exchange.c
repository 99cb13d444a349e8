/* One all-to-all by a plan. A state machine that never waits: `a2a_start`, then `a2a_test` until it
 * is done. What memory it needs is kept, so that a call like the one before allocates nothing.
 *
 * All bytes of a message lie in runs: contiguous at both ends, and cut alike by both, which know the
 * bytes of every pair. Many short runs travel as one message through a staging buffer, long ones
 * each by itself and without a copy. A message without bytes is not sent at all. */
#include "engine.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STAGED_RUN = 16 * 1024 };
/* Runs that are shorter than this on average are worth a copy: it costs less than a message. */
enum { BATCH = 8 };
/* Sends to a peer go in batches of at least so many requests. The last of a batch is synchronous, and
 * the batch after the next waits until it is received. A peer keeps messages that it does not expect
 * yet, but some transports only few (libfabric's tcp 64): behind these it leaves everything unread,
 * also acknowledgements of its own sends, which may be what it needs before it can expect more. */
enum { PATIENCE = 500, IMPATIENCE = 8 };
/* How often to ask in vain before sleeping in between; and if it took sleep the last time. */
enum { UNASKED_BYTES = 16 * 1024, LONGEST_SLEEP = 1000 * 1000 };
/* What may pass meanwhile, at the rate of this call so far, and nanoseconds at most: a transport
 * that moves on only when asked has some buffers, and these must not run dry. */

#ifdef OPEN_MPI
enum { YIELDS = 0 };
#else
enum { YIELDS = 1 };
#endif
/* Whether to yield after asking in vain. Open MPI has done so itself where ranks share cores, and a
 * second yield lets all others have two turns before we ask again. */

typedef struct {
    int64_t offset;
    int32_t bytes, buffer, other; /* the shard to or from rank `other`, or scratch */
} Run;

struct Exchange {
    const Plan *plan;
    MPI_Comm comm;
    const int32_t *to, *from; /* ranks in `comm`, by the rank of the plan */
    Team *team;               /* of which others carry the messages that are not `mine`; or NULL */
    const char *mine;
    int turns; /* how many turns tags tell apart */
    /* The layout, for these numbers of bytes. */
    int64_t shard, *matrix;
    Run *runs;
    int32_t *run_first, run_room;
    int64_t *staged; /* where each message is staged, or -1 */
    int32_t *bytes;
    int32_t *lets_go, *held; /* the send that waits until this one is received, or -1; is it one? */
    char *scratch, *staging;
    size_t scratch_room, staging_room;
    /* The call. */
    Call call;
    int tag;
    int32_t *needs, *left, *stack, unfinished;
    int32_t *in_step, at; /* messages of each step, and the step that goes on; NULL if any may */
    MPI_Request barrier;
    int64_t begun, moved; /* when, in nanoseconds, and the bytes of all that has ended since */
    MPI_Request *requests;
    int32_t *owner, active, request_room;
    int *finished;
};

Exchange *a2a_exchange_new(const Plan *plan, MPI_Comm comm, const int32_t *peers)
{
    Exchange *it = calloc(1, sizeof *it);
    size_t count = (size_t)plan->messages + 1;
    if (!it)
        return NULL;
    it->plan = plan;
    it->comm = comm;
    it->to = it->from = peers;
    it->shard = -1;
    it->barrier = MPI_REQUEST_NULL;
    it->run_first = calloc(count, sizeof(int32_t));
    it->staged = calloc(count, sizeof(int64_t));
    it->bytes = calloc(count, sizeof(int32_t));
    it->lets_go = calloc(count, sizeof(int32_t));
    it->held = calloc(count, sizeof(int32_t));
    it->needs = calloc(count, sizeof(int32_t));
    it->left = calloc(count, sizeof(int32_t));
    it->stack = calloc(count, sizeof(int32_t));
    int *most = NULL, known = 0;
    PMPI_Comm_get_attr(comm, MPI_TAG_UB, &most, &known);
    it->turns = (known ? *most : 32767) / plan->steps;
    if (!it->run_first || !it->staged || !it->bytes || !it->lets_go || !it->held ||
        !it->needs || !it->left || !it->stack || it->turns < 1) {
        a2a_exchange_free(it);
        return NULL;
    }
    return it;
}

void a2a_exchange_share(Exchange *it, Team *team, const char *mine, const int32_t *to,
                        const int32_t *from)
{
    it->team = team;
    it->mine = mine;
    it->to = to;
    it->from = from;
}

int a2a_exchange_by_step(Exchange *it)
{
    it->in_step = malloc(sizeof(int32_t) * (size_t)it->plan->steps);
    return it->in_step ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void a2a_exchange_free(Exchange *it)
{
    if (!it)
        return;
    free(it->matrix);
    free(it->runs);
    free(it->run_first);
    free(it->staged);
    free(it->bytes);
    free(it->lets_go);
    free(it->held);
    free(it->scratch);
    free(it->staging);
    free(it->needs);
    free(it->left);
    free(it->stack);
    free(it->in_step);
    free(it->requests);
    free(it->owner);
    free(it->finished);
    free(it);
}

/* Make room for so many bytes; what was there is lost. */
static int grow(void **room, size_t *has, size_t needs)
{
    if (*has >= needs)
        return 1;
    free(*room);
    *room = malloc(needs);
    *has = *room ? needs : 0;
    return *room != NULL;
}

static int64_t shard_bytes(const Call *call, int32_t ranks, int32_t source, int32_t destination)
{
    return call->matrix ? call->matrix[(size_t)source * ranks + destination] : call->shard;
}

/* Where chunk k begins; a shard has at most 2^31 bytes, so that 64 bits hold the product. */
static int64_t chunk_begin(int64_t shard, int32_t k, int32_t chunks)
{
    return k * shard / chunks;
}

static int64_t slot_bytes(const Plan *plan, const Call *call)
{
    if (!plan->chunks && !call->matrix)
        return (call->shard + plan->per_shard - 1) / plan->per_shard;
    int64_t most = 0;
    for (int32_t s = 0; s < plan->ranks; s++)
        for (int32_t d = 0; d < plan->ranks; d++) {
            int32_t chunks = a2a_chunks(plan, s, d);
            int64_t bytes = shard_bytes(call, plan->ranks, s, d);
            if (chunks && s != d && (bytes + chunks - 1) / chunks > most)
                most = (bytes + chunks - 1) / chunks;
        }
    return most;
}

static int add_run(Exchange *it, int32_t *count, Run run)
{
    if (*count == it->run_room) {
        int32_t room = it->run_room ? 2 * it->run_room : 64;
        Run *runs = realloc(it->runs, sizeof(Run) * (size_t)room);
        if (!runs)
            return 0;
        it->runs = runs;
        it->run_room = room;
    }
    it->runs[(*count)++] = run;
    return 1;
}

/* Cut a range into runs: whole where neither end has it in scratch, for shards lie together; else
 * from slot to slot, where a chunk that does not fill its slot ends a run. */
static int add_range(Exchange *it, const Call *call, int sends, const Range *range, int64_t slot,
                     int32_t *count)
{
    int32_t chunks = a2a_chunks(it->plan, range->source, range->destination);
    int64_t shard = shard_bytes(call, it->plan->ranks, range->source, range->destination);
    int32_t buffer = sends ? range->from_buffer : range->to_buffer;
    int32_t first_slot = sends ? range->from_slot : range->to_slot;
    int whole = range->from_buffer != SCRATCH && range->to_buffer != SCRATCH;
    Run run = {0, 0, buffer, buffer == INPUT ? range->destination : range->source};
    for (int32_t k = 0; k < range->count; k++) {
        int32_t chunk = range->chunk + k;
        int64_t begin = chunk_begin(shard, chunk, chunks);
        int32_t bytes = (int32_t)(chunk_begin(shard, chunk + 1, chunks) - begin);
        if (!run.bytes)
            run.offset = buffer == SCRATCH ? (first_slot + (int64_t)k) * slot : begin;
        run.bytes += bytes;
        if (run.bytes && (k + 1 == range->count || (!whole && bytes != slot))) {
            if (!add_run(it, count, run))
                return 0;
            run.bytes = 0;
        }
    }
    return 1;
}

typedef struct {
    int32_t requests, last, before; /* of this batch; its last message, and that of the one before */
} Batch;

/* Cut the sends to every peer into batches, and find what each has to wait for. */
static int pace(Exchange *it)
{
    const Plan *plan = it->plan;
    Batch *batches = malloc(sizeof(Batch) * (size_t)plan->ranks);
    if (!batches)
        return 0;
    for (int32_t peer = 0; peer < plan->ranks; peer++)
        batches[peer] = (Batch){0, -1, -1};
    for (int32_t i = 0; i < plan->messages; i++) {
        it->lets_go[i] = -1;
        it->held[i] = 0;
        if (!plan->sends[i] || !it->bytes[i])
            continue;
        Batch *batch = &batches[plan->peer[i]];
        if (batch->requests >= BATCH) {
            if (batch->before >= 0) {
                it->lets_go[batch->before] = i;
                it->held[i] = 1;
            }
            *batch = (Batch){0, -1, batch->last};
        }
        batch->requests += it->staged[i] >= 0 ? 1 : it->run_first[i + 1] - it->run_first[i];
        batch->last = i;
    }
    free(batches);
    return 1;
}

static int is_mine(const Exchange *it, int32_t message)
{
    return !it->team || it->mine[message];
}

static int lay_out(Exchange *it, const Call *call)
{
    const Plan *plan = it->plan;
    size_t pairs = sizeof(int64_t) * (size_t)plan->ranks * plan->ranks;
    if (call->matrix ? it->shard == -2 && !memcmp(it->matrix, call->matrix, pairs)
                     : it->shard == call->shard)
        return 1;
    it->shard = -1;
    int64_t slot = slot_bytes(plan, call), staging = 0;
    int32_t runs = 0;
    for (int32_t i = 0; i < plan->messages; i++) {
        int64_t bytes = 0;
        it->run_first[i] = runs;
        for (int32_t k = plan->first[i]; k < plan->first[i + 1]; k++)
            if (!add_range(it, call, plan->sends[i], &plan->ranges[k], slot, &runs))
                return 0;
        for (int32_t k = it->run_first[i]; k < runs; k++)
            bytes += it->runs[k].bytes;
        int32_t cut = runs - it->run_first[i];
        it->staged[i] = -1;
        it->bytes[i] = bytes > 0;
        if (cut > 1 && bytes / cut < STAGED_RUN && bytes <= INT32_MAX) {
            it->staged[i] = staging;
            it->bytes[i] = (int32_t)bytes;
            staging += is_mine(it, i) ? bytes : 0;
        }
    }
    it->run_first[plan->messages] = runs;
    size_t scratch = call->scratch ? 0 : (size_t)plan->scratch * (size_t)slot;
    if (!grow((void **)&it->scratch, &it->scratch_room, scratch) ||
        !grow((void **)&it->staging, &it->staging_room, (size_t)staging) || !pace(it))
        return 0;
    if (runs > it->request_room) {
        free(it->requests);
        free(it->owner);
        free(it->finished);
        it->requests = malloc(sizeof(MPI_Request) * (size_t)runs);
        it->owner = malloc(sizeof(int32_t) * (size_t)runs);
        it->finished = malloc(sizeof(int) * (size_t)runs);
        it->request_room = it->requests && it->owner && it->finished ? runs : 0;
        if (!it->request_room)
            return 0;
    }
    if (call->matrix) {
        if (!it->matrix && !(it->matrix = malloc(pairs)))
            return 0;
        memcpy(it->matrix, call->matrix, pairs);
    }
    it->shard = call->matrix ? -2 : call->shard;
    return 1;
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static char *place_of(const Exchange *it, const Run *run)
{
    switch (run->buffer) {
    case INPUT:
        return (char *)it->call.input + it->call.in[run->other] + run->offset;
    case OUTPUT:
        return it->call.output + it->call.out[run->other] + run->offset;
    default:
        return (it->call.scratch ? it->call.scratch : it->scratch) + run->offset;
    }
}

static void stage(Exchange *it, int32_t message, int sends)
{
    char *at = it->staging + it->staged[message];
    for (int32_t k = it->run_first[message]; k < it->run_first[message + 1]; k++) {
        const Run *run = &it->runs[k];
        memcpy(sends ? at : place_of(it, run), sends ? place_of(it, run) : at, (size_t)run->bytes);
        at += run->bytes;
    }
}

static int post(Exchange *it, int32_t message, char *place, int32_t bytes)
{
    const Plan *plan = it->plan;
    int peer = (plan->sends[message] ? it->to : it->from)[plan->peer[message]];
    int tag = it->tag + plan->step[message];
    MPI_Request *request = &it->requests[it->active];
    it->owner[it->active++] = message;
    it->left[message]++;
    if (!plan->sends[message])
        return PMPI_Irecv(place, bytes, MPI_BYTE, peer, tag, it->comm, request);
    return it->lets_go[message] < 0
               ? PMPI_Isend(place, bytes, MPI_BYTE, peer, tag, it->comm, request)
               : PMPI_Issend(place, bytes, MPI_BYTE, peer, tag, it->comm, request);
}

static int post_message(Exchange *it, int32_t message)
{
    if (it->staged[message] >= 0) {
        if (it->plan->sends[message])
            stage(it, message, 1);
        return post(it, message, it->staging + it->staged[message], it->bytes[message]);
    }
    int code = MPI_SUCCESS;
    for (int32_t k = it->run_first[message]; !code && k < it->run_first[message + 1]; k++)
        code = post(it, message, place_of(it, &it->runs[k]), it->runs[k].bytes);
    return code;
}

static void meet(Exchange *it, int32_t message, int32_t *ready)
{
    if (--it->needs[message] == 0 && is_mine(it, message))
        it->stack[(*ready)++] = message;
}

static void end_message(Exchange *it, int32_t message, int32_t *ready)
{
    const Plan *plan = it->plan;
    if (is_mine(it, message)) {
        if (!plan->sends[message] && it->staged[message] >= 0)
            stage(it, message, 0);
        if (it->team)
            a2a_team_tell(it->team, message);
    }
    it->unfinished--;
    if (it->in_step)
        it->in_step[plan->step[message]]--;
    for (int32_t k = it->run_first[message]; k < it->run_first[message + 1]; k++)
        it->moved += it->runs[k].bytes;
    for (int32_t k = plan->followers_first[message]; k < plan->followers_first[message + 1]; k++)
        meet(it, plan->followers[k], ready);
    if (it->lets_go[message] >= 0)
        meet(it, it->lets_go[message], ready);
}

/* Start what is on the stack, and whatever may start because of that. */
static int start_ready(Exchange *it, int32_t ready)
{
    while (ready) {
        int32_t message = it->stack[--ready], next = it->plan->next_alike[message];
        int code = it->bytes[message] ? post_message(it, message) : MPI_SUCCESS;
        if (code)
            return code;
        if (next >= 0)
            meet(it, next, &ready);
        if (!it->bytes[message])
            end_message(it, message, &ready);
    }
    return MPI_SUCCESS;
}

/* Let every message wait for its step, but for those of the first. */
static void hold_steps(Exchange *it)
{
    const Plan *plan = it->plan;
    memset(it->in_step, 0, sizeof(int32_t) * (size_t)plan->steps);
    for (int32_t i = 0; i < plan->messages; i++) {
        it->in_step[plan->step[i]]++;
        it->needs[i] += plan->step[i] > 0;
    }
    it->at = 0;
}

/* Go to the barrier when a step has ended here, and to the next step when all are there. */
static int next_step(Exchange *it, int32_t *ready)
{
    const Plan *plan = it->plan;
    int there = 0, code = MPI_SUCCESS;
    if (it->barrier == MPI_REQUEST_NULL && !it->in_step[it->at])
        code = PMPI_Ibarrier(it->comm, &it->barrier);
    if (code || it->barrier == MPI_REQUEST_NULL)
        return code;
    code = PMPI_Test(&it->barrier, &there, MPI_STATUS_IGNORE);
    it->at += there != 0;
    for (int32_t i = 0; there && i < plan->messages; i++)
        if (plan->step[i] == it->at)
            meet(it, i, ready);
    return code;
}

int a2a_start(Exchange *it, const Call *call, int64_t turn)
{
    const Plan *plan = it->plan;
    if (!lay_out(it, call))
        return MPI_ERR_NO_MEM;
    it->call = *call;
    it->tag = (int)(turn % it->turns) * plan->steps;
    int64_t own = shard_bytes(call, plan->ranks, plan->rank, plan->rank);
    if (own)
        memcpy(call->output + call->out[plan->rank], call->input + call->in[plan->rank],
               (size_t)own);
    for (int32_t i = 0; i < plan->messages; i++)
        it->needs[i] = plan->needs[i] + it->held[i];
    if (it->in_step)
        hold_steps(it);
    memset(it->left, 0, sizeof(int32_t) * (size_t)plan->messages);
    it->active = 0;
    it->begun = now();
    it->moved = 0;
    it->unfinished = plan->messages;
    if (it->team)
        a2a_team_begin(it->team);
    int32_t ready = 0;
    /* From the last on, for a stack: receives of early steps are posted first. */
    for (int32_t i = plan->messages - 1; i >= 0; i--)
        if (!it->needs[i] && is_mine(it, i))
            it->stack[ready++] = i;
    return start_ready(it, ready);
}

/* Note which requests have finished, and push what may start because of that. */
static int test_requests(Exchange *it, int32_t *ready)
{
    int count = 0;
    int32_t kept = 0;
    int code =
        PMPI_Testsome(it->active, it->requests, &count, it->finished, MPI_STATUSES_IGNORE);
    if (code || count <= 0)
        return code;
    for (int k = 0; k < count; k++) {
        int32_t message = it->owner[it->finished[k]];
        it->owner[it->finished[k]] = -1;
        if (--it->left[message] == 0)
            end_message(it, message, ready);
    }
    for (int32_t k = 0; k < it->active; k++)
        if (it->owner[k] >= 0) {
            it->owner[kept] = it->owner[k];
            it->requests[kept++] = it->requests[k];
        }
    it->active = kept;
    return MPI_SUCCESS;
}

int a2a_test(Exchange *it, int *done)
{
    int32_t ready = 0, heard;
    int code = it->active ? test_requests(it, &ready) : MPI_SUCCESS;
    while (it->team && it->unfinished && (heard = a2a_team_hear(it->team)) >= 0)
        if (!it->mine[heard])
            end_message(it, heard, &ready);
    if (!code && it->in_step && it->at < it->plan->steps)
        code = next_step(it, &ready);
    if (!code)
        code = start_ready(it, ready);
    *done = !it->unfinished && (!it->in_step || it->at == it->plan->steps);
    return code;
}

/* Give way to others: the rank that we wait for may need our core. Yields are answered within
 * microseconds, which short messages need; a transfer that takes longer than some hundreds of them
 * is better served by sleeping, which leaves the core to whoever moves its bytes. Not by
 * MPI_Waitsome, which in MPICH never yields and took ten times as long with four ranks on a core. */
static void give_way(const Exchange *it, int sleeps, int64_t tries)
{
    if (it->team && !it->active) {
        a2a_team_rest(it->team, tries);
        return;
    }
    if (!sleeps) {
        if (YIELDS)
            sched_yield();
        return;
    }
    int64_t spare = it->moved ? (now() - it->begun) / it->moved * UNASKED_BYTES : 0;
    struct timespec moment = {0, spare < 1 ? 1 : spare < LONGEST_SLEEP ? spare : LONGEST_SLEEP};
    nanosleep(&moment, NULL);
}

int a2a_wait(Exchange *it)
{
    int patience = PATIENCE;
    int done = 0;
    for (int64_t tries = 0;; tries++) {
        int32_t before = it->active, left = it->unfinished;
        int code = a2a_test(it, &done);
        if (code || done)
            return code;
        if (it->active != before || it->unfinished != left) {
            patience = tries < patience ? PATIENCE : IMPATIENCE;
            tries = 0;
        }
        give_way(it, tries >= patience, tries);
    }
}

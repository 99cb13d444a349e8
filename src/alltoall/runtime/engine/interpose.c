/* The all-to-alls of a program that knows nothing of this: which are taken, and by which plan.
 *
 * Whether a call is taken must come out alike on all ranks of its communicator, for the others wait:
 * so it depends on nothing but the communicator, which is looked at once and together, and on bytes
 * that all ranks know. Whatever is not taken is the library's own. */
#include "calls.h"
#include "engine.h"
#include "entries.h"
#include "hosted.h"
#include "sides.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { USUAL_PATIENCE = 60 };
/* Seconds to wait for ranks that may not have this library, unless ALLTOALL_PATIENCE says another
 * number; all that have it come here right after MPI_Init, which few leave much before others. */

static Entries given;
static int met, finalizing;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int keyval = MPI_KEYVAL_INVALID;
static int64_t taken_bytes;
static double taken_seconds;

/* One all-to-all, going on or to be used again. */
typedef struct Operation {
    struct Bound *bound;
    Exchange **exchanges; /* one for each plan, made when it is first needed */
    Exchange *running;
    int64_t *in, *out, *by_role;
    char *packed_in, *packed_out;
    size_t packed_in_room, packed_out_room;
    Side receive;
    int unpack;
    MPI_Request request;
    struct Operation *next;
} Operation;

/* A communicator and the plans that fit it, the one for the largest shards first, or why none. */
typedef struct Bound {
    Reason why;
    MPI_Comm comm; /* a duplicate: our messages cannot be taken for the program's */
    int32_t ranks, rank;
    int64_t turn;
    int count, gone, in_flight;
    int level; /* of threads, the least of any rank: all take a call, or none */
    struct {
        Plan *plan;
        const Entry *entry;
        int32_t *role, *peers; /* the plan's rank of each of ours, and the other way round */
        Hosted *hosted;        /* if ranks of the plan are hosts with several of ours, else NULL */
    } *plans;
    int64_t *counts, *matrix;
    Operation *blocking, *idle; /* for calls that wait, and for those that do not */
} Bound;

static void configure(void)
{
    a2a_read_entries(&given);
}

static void free_operation(Operation *operation)
{
    for (int i = 0; operation && i < operation->bound->count; i++)
        if (operation->exchanges)
            a2a_exchange_free(operation->exchanges[i]);
    if (operation) {
        free(operation->exchanges);
        free(operation->in);
        free(operation->out);
        free(operation->by_role);
        free(operation->packed_in);
        free(operation->packed_out);
    }
    free(operation);
}

static Operation *new_operation(Bound *bound)
{
    size_t ranks = (size_t)bound->ranks;
    Operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return NULL;
    operation->bound = bound;
    operation->exchanges = calloc((size_t)given.count + 1, sizeof(Exchange *));
    operation->in = calloc(ranks, sizeof(int64_t));
    operation->out = calloc(ranks, sizeof(int64_t));
    operation->by_role = calloc(ranks * ranks, sizeof(int64_t));
    if (operation->exchanges && operation->in && operation->out && operation->by_role)
        return operation;
    free_operation(operation);
    return NULL;
}

static void free_bound(Bound *bound)
{
    if (!bound)
        return;
    while (bound->idle) {
        Operation *next = bound->idle->next;
        free_operation(bound->idle);
        bound->idle = next;
    }
    free_operation(bound->blocking);
    for (int i = 0; i < bound->count; i++) {
        a2a_hosted_free(bound->plans[i].hosted);
        a2a_plan_free(bound->plans[i].plan);
        free(bound->plans[i].role);
        free(bound->plans[i].peers);
    }
    if (bound->comm != MPI_COMM_NULL && !finalizing)
        PMPI_Comm_free(&bound->comm);
    free(bound->plans);
    free(bound->counts);
    free(bound->matrix);
    free(bound);
}

/* The program has freed a communicator; what still goes on there ends first. */
static int forget(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)state;
    Bound *bound = value;
    if (!bound)
        return MPI_SUCCESS;
    pthread_mutex_lock(&lock);
    int busy = bound->in_flight;
    bound->gone = 1;
    pthread_mutex_unlock(&lock);
    if (!busy)
        free_bound(bound);
    return MPI_SUCCESS;
}

/* Take an entry if every rank can; the first that cannot says why. Collective. */
static Reason add_plan(Bound *bound, const Entry *entry, int32_t *role)
{
    char error[ERROR_BYTES] = "no memory";
    Reason why = UNREADABLE;
    Hosted *hosted = NULL;
    int32_t *peers = malloc(sizeof(int32_t) * (size_t)bound->ranks);
    Plan *plan = a2a_plan_read(entry->path, entry->ranks, role[bound->rank], error);
    struct {
        int ok, rank;
    } mine = {plan && peers, bound->rank}, worst;
    PMPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MINLOC, bound->comm);
    if (!worst.ok && worst.rank == bound->rank)
        a2a_warn(entry->label, error);
    if (worst.ok && entry->ranks < bound->ranks) {
        hosted = a2a_hosted_new(plan, bound->comm, role);
        why = hosted && a2a_hosted_parts(hosted, 1, NULL) ? USED : NO_SHARED;
    } else if (worst.ok)
        why = USED;
    if (why != USED) {
        a2a_hosted_free(hosted);
        a2a_plan_free(plan);
        free(peers);
        free(role);
        return why;
    }
    for (int32_t r = 0; r < bound->ranks; r++)
        peers[role[r]] = r;
    int at = bound->count++;
    for (; at > 0 && bound->plans[at - 1].entry->least < entry->least; at--)
        bound->plans[at] = bound->plans[at - 1];
    bound->plans[at].plan = plan;
    bound->plans[at].entry = entry;
    bound->plans[at].role = role;
    bound->plans[at].peers = peers;
    bound->plans[at].hosted = hosted;
    return USED;
}

/* Agree with the other ranks of a communicator; return USED if all are ready, and have been told the
 * same. Else there is no telling what they would do. Collective. */
static Reason agree(MPI_Comm comm, int rank, int ready, int *level)
{
    PMPI_Query_thread(level);
    int64_t mine[4] = {ready, *level, given.mark, -(int64_t)given.mark}, least[4] = {0};
    if (PMPI_Allreduce(mine, least, 4, MPI_INT64_T, MPI_MIN, comm))
        return UNREADABLE;
    *level = (int)least[1];
    int alike = least[2] == -least[3];
    if (!alike && rank == 0)
        a2a_warn("ALLTOALL_WRAP", "is not the same on all ranks");
    return !alike ? DIFFERENT : least[0] ? USED : UNREADABLE;
}

static Bound *new_bound(int ranks, int rank)
{
    Bound *bound = calloc(1, sizeof *bound);
    if (!bound)
        return NULL;
    bound->comm = MPI_COMM_NULL;
    bound->ranks = ranks;
    bound->rank = rank;
    bound->plans = calloc((size_t)given.count + 1, sizeof *bound->plans);
    bound->counts = calloc((size_t)ranks, sizeof(int64_t));
    bound->matrix = calloc((size_t)ranks * ranks, sizeof(int64_t));
    bound->blocking = new_operation(bound);
    if (bound->plans && bound->counts && bound->matrix && bound->blocking)
        return bound;
    free_bound(bound);
    return NULL;
}

/* Add all plans that fit; say why none does. Collective. */
static Reason add_plans(Bound *bound, MPI_Comm comm, int *ours, int *world)
{
    MPI_Group own, everyone;
    PMPI_Comm_group(comm, &own);
    PMPI_Comm_group(MPI_COMM_WORLD, &everyone);
    for (int r = 0; r < bound->ranks; r++)
        ours[r] = r;
    PMPI_Group_translate_ranks(own, bound->ranks, ours, everyone, world);
    PMPI_Group_free(&own);
    PMPI_Group_free(&everyone);
    Reason why = OTHER_SIZE;
    for (int i = 0; i < given.count; i++) {
        Entry *entry = &given.entries[i];
        Reason now;
        int32_t *role = a2a_roles(entry, bound->ranks, bound->rank, world, &now);
        if (role) {
            if (given.report && !entry->told && bound->rank == 0)
                a2a_say_roles(entry, bound->ranks, role, world);
            entry->told = 1;
            now = add_plan(bound, entry, role);
        }
        why = now == OTHER_SIZE ? why : now;
    }
    return bound->count ? USED : why;
}

/* Remember why no plan serves a communicator; NULL, if there is no memory, says as much. */
static Bound *unserved(Reason why)
{
    Bound *bound = calloc(1, sizeof *bound);
    if (bound) {
        bound->comm = MPI_COMM_NULL;
        bound->why = why;
    }
    return bound;
}

static int may_serve(int ranks)
{
    int found = 0;
    for (int i = 0; i < given.count; i++)
        found |= given.entries[i].ranks <= ranks;
    return found;
}

/* Look at a communicator for the first time, together with its other ranks. */
static Bound *bind(MPI_Comm comm)
{
    int ranks, rank, level;
    PMPI_Comm_size(comm, &ranks);
    PMPI_Comm_rank(comm, &rank);
    if (ranks < 2)
        return NULL;
    int *ours = malloc(sizeof(int) * (size_t)ranks), *world = malloc(sizeof(int) * (size_t)ranks);
    Bound *bound = may_serve(ranks) ? new_bound(ranks, rank) : NULL;
    Reason why = agree(comm, rank, ours && world && bound, &level);
    if (why == USED && PMPI_Comm_dup(comm, &bound->comm) == MPI_SUCCESS) {
        bound->level = level;
        why = add_plans(bound, comm, ours, world);
    }
    free(ours);
    free(world);
    if (bound && bound->count)
        return bound;
    free_bound(bound);
    return unserved(why == UNREADABLE && given.count && !may_serve(ranks) ? OTHER_SIZE : why);
}

/* Return a communicator with its plans; NULL, and why in `why`, if there are none. One that is new is
 * looked at if `wait` is set, which all its ranks then do: they make the same calls in order. */
static Bound *bound_of(MPI_Comm comm, int wait, Reason *why)
{
    int between = 1, known = 0, has_world = 0, ranks;
    void *value = NULL;
    *why = UNREADABLE;
    /* Without a world, in programs of sessions, nobody knows which rank is which. */
    if (PMPI_Initialized(&has_world) || !has_world)
        return NULL;
    pthread_once(&once, configure);
    *why = BETWEEN;
    if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &between) || between)
        return NULL;
    pthread_mutex_lock(&lock);
    if (keyval == MPI_KEYVAL_INVALID)
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
    pthread_mutex_unlock(&lock);
    PMPI_Comm_get_attr(comm, keyval, &value, &known);
    PMPI_Comm_size(comm, &ranks);
    *why = may_serve(ranks) ? UNKNOWN : OTHER_SIZE;
    if (!known && !wait)
        return NULL;
    Bound *bound = known ? value : bind(comm);
    if (!known)
        PMPI_Comm_set_attr(comm, keyval, bound);
    *why = !bound ? UNREADABLE : bound->count ? USED : bound->why;
    return *why == USED ? bound : NULL;
}

static void count_call(const Bound *bound, int at, int64_t bytes, double seconds)
{
    a2a_count(USED, bound->ranks, bound->plans[at].entry->file);
    pthread_mutex_lock(&lock);
    taken_bytes += bytes;
    taken_seconds += seconds;
    pthread_mutex_unlock(&lock);
}

/* Count a call that is the library's own; a rank alone has nothing to send. */
static void count_passed(MPI_Comm comm, Reason why)
{
    int ranks = 1;
    if (comm != MPI_COMM_NULL && !PMPI_Comm_size(comm, &ranks) && (ranks > 1 || why == BETWEEN))
        a2a_count(why, ranks, 0);
}

/* Say where each shard of a side begins, by the ranks of the plan: where it is, or packed. */
static void lay_side(const Side *side, const int32_t *role, int32_t ranks, int64_t *where,
                     int packed)
{
    int64_t size = a2a_type_bytes(side->type), next = 0;
    for (int32_t r = 0; r < ranks; r++) {
        where[role ? role[r] : r] = packed ? next : a2a_side_place(side, r) - side->buffer;
        next += a2a_side_count(side, r) * size;
    }
}

/* Whether a plan has chunks for all pairs of different terminals, or for those that have bytes. */
static int has_chunks(const Bound *bound, int at, const int64_t *matrix)
{
    const int32_t *role = bound->plans[at].role;
    for (int32_t s = 0; bound->plans[at].plan->chunks && s < bound->ranks; s++)
        for (int32_t d = 0; d < bound->ranks; d++)
            if (role[s] != role[d] && !a2a_chunks(bound->plans[at].plan, role[s], role[d]) &&
                (!matrix || matrix[(size_t)s * bound->ranks + d]))
                return 0;
    return 1;
}

/* Return the plan for shards of so many bytes and, if they differ, for all pairs that have any. */
static int plan_for(const Bound *bound, int64_t typical, const int64_t *matrix, Reason *why)
{
    *why = SMALL;
    for (int at = 0; at < bound->count; at++) {
        if (bound->plans[at].entry->least > typical)
            continue;
        if (has_chunks(bound, at, matrix))
            return at;
        *why = NO_CHUNKS;
    }
    return bound->count;
}

/* Start an all-to-all by a plan; `send` is NULL where it takes its data from what it receives to. */
static int start(Operation *operation, int at, const Side *send, const Side *receive,
                 int64_t shard, const int64_t *matrix)
{
    Bound *bound = operation->bound;
    int32_t ranks = bound->ranks, *role = bound->plans[at].role;
    if (!operation->exchanges[at])
        operation->exchanges[at] =
            a2a_exchange_new(bound->plans[at].plan, bound->comm, bound->plans[at].peers);
    for (int32_t pair = 0; matrix && pair < ranks * ranks; pair++)
        operation->by_role[(size_t)role[pair / ranks] * ranks + role[pair % ranks]] = matrix[pair];
    const Side *from = send ? send : receive;
    int pack = !send || !a2a_plain(from->type);
    int64_t turn = bound->turn++;
    operation->running = operation->exchanges[at];
    operation->receive = *receive;
    operation->unpack = !a2a_plain(receive->type);
    lay_side(from, role, ranks, operation->in, pack);
    lay_side(receive, role, ranks, operation->out, operation->unpack);
    Call call = {from->buffer, receive->buffer, operation->in, operation->out, shard,
                 matrix ? operation->by_role : NULL, NULL};
    if (!operation->running ||
        (pack && !a2a_room(&operation->packed_in, &operation->packed_in_room,
                           a2a_side_bytes(from, ranks))) ||
        (operation->unpack && !a2a_room(&operation->packed_out, &operation->packed_out_room,
                                        a2a_side_bytes(receive, ranks))))
        return MPI_ERR_NO_MEM;
    int code = pack ? a2a_pack_side(from, ranks, operation->packed_in, 0, bound->comm) : MPI_SUCCESS;
    if (pack)
        call.input = operation->packed_in;
    if (operation->unpack)
        call.output = operation->packed_out;
    return code ? code : a2a_start(operation->running, &call, turn);
}

static int end(Operation *operation)
{
    return operation->unpack ? a2a_pack_side(&operation->receive, operation->bound->ranks,
                                         operation->packed_out, 1, operation->bound->comm)
                             : MPI_SUCCESS;
}

/* The same among hosts, to its end. Packed beforehand, a shard of any type can be cut into parts. */
static int exchange_hosted(Bound *bound, int at, int32_t parts, const Side *send,
                           const Side *receive, int64_t shard, const int64_t *matrix)
{
    Operation *operation = bound->blocking;
    int32_t ranks = bound->ranks;
    const Side *from = send ? send : receive;
    int pack = parts > 1 && !a2a_plain(from->type), unpack = parts > 1 && !a2a_plain(receive->type);
    if ((pack && !a2a_room(&operation->packed_in, &operation->packed_in_room,
                           a2a_side_bytes(from, ranks))) ||
        (unpack && !a2a_room(&operation->packed_out, &operation->packed_out_room,
                             a2a_side_bytes(receive, ranks))))
        return MPI_ERR_NO_MEM;
    lay_side(from, NULL, ranks, operation->in, pack);
    lay_side(receive, NULL, ranks, operation->out, unpack);
    int code = pack ? a2a_pack_side(from, ranks, operation->packed_in, 0, bound->comm)
                    : MPI_SUCCESS;
    HostedCall call = {.send = from, .receive = receive, .in = operation->in,
                       .out = operation->out, .shard = shard, .matrix = matrix,
                       .input = pack                     ? operation->packed_in
                                : a2a_plain(from->type) ? from->buffer
                                                        : NULL,
                       .output = unpack                      ? operation->packed_out
                                 : a2a_plain(receive->type) ? receive->buffer
                                                            : NULL};
    if (!code)
        code = a2a_hosted_run(bound->plans[at].hosted, &call, parts, &bound->turn);
    return !code && unpack
               ? a2a_pack_side(receive, ranks, operation->packed_out, 1, bound->comm)
               : code;
}

/* Carry out a call by a plan, and count it; or count why not, and leave `code` as it is. */
static int exchange(Bound *bound, int at, const Side *send, const Side *receive, int64_t shard,
                    const int64_t *matrix, Reason *why, int *code)
{
    double started = PMPI_Wtime();
    Hosted *hosted = bound->plans[at].hosted;
    int32_t parts = hosted ? a2a_hosted_parts(hosted, shard, matrix) : 1;
    *why = NO_SHARED;
    if (!parts)
        return 0;
    if (hosted)
        *code = exchange_hosted(bound, at, parts, send, receive, shard, matrix);
    else {
        *code = start(bound->blocking, at, send, receive, shard, matrix);
        if (!*code)
            *code = a2a_wait(bound->blocking->running);
        if (!*code)
            *code = end(bound->blocking);
    }
    count_call(bound, at, a2a_side_bytes(receive, bound->ranks), PMPI_Wtime() - started);
    return 1;
}

/* Return the bytes of a shard, and the plan for it in `at`; 0, and why, if the library is to do it. */
static int64_t shard_of(const Bound *bound, const Side *receive, int *at, Reason *why)
{
    if (!bound)
        return 0;
    int64_t size = receive->count > 0 ? a2a_type_bytes(receive->type) : 0;
    *why = size <= 0 ? EMPTY : LARGE;
    if (size <= 0 || receive->count > INT_MAX / size)
        return 0;
    *at = plan_for(bound, size * receive->count, NULL, why);
    return *at < bound->count ? size * receive->count : 0;
}

/* Carry out a call if it can be taken, and count it if not. */
static int take(const Side *send, const Side *receive, MPI_Comm comm, int *code)
{
    Reason why;
    Bound *bound = bound_of(comm, 1, &why);
    int at;
    int64_t shard = shard_of(bound, receive, &at, &why);
    const Side *from = send->buffer == MPI_IN_PLACE ? NULL : send;
    if (shard && exchange(bound, at, from, receive, shard, NULL, &why, code))
        return 1;
    count_passed(comm, why);
    return 0;
}

/* The same for shards that differ. Those who pass bytes on have to know how many, so all tell all. */
static int take_v(const Side *send, const Side *receive, MPI_Comm comm, int *code)
{
    Reason why;
    Bound *bound = bound_of(comm, 1, &why);
    if (bound) {
        int32_t ranks = bound->ranks, pairs = ranks * ranks;
        const Side *from = send->buffer == MPI_IN_PLACE ? receive : send;
        int64_t size = a2a_type_bytes(from->type), total = 0, most = 0;
        for (int32_t r = 0; r < ranks; r++)
            bound->counts[r] = a2a_side_count(from, r) * size;
        *code = PMPI_Allgather(bound->counts, ranks, MPI_INT64_T, bound->matrix, ranks,
                               MPI_INT64_T, bound->comm);
        if (*code)
            return 1;
        for (int32_t pair = 0; pair < pairs; pair++) {
            int64_t bytes = bound->matrix[pair];
            if (bytes < 0 || bytes > most)
                most = bytes < 0 ? INT64_MAX : bytes;
            total += bytes;
        }
        int at = plan_for(bound, total / pairs, bound->matrix, &why);
        if (most <= 0 || most > INT_MAX)
            why = most <= 0 ? EMPTY : LARGE;
        else if (at < bound->count && exchange(bound, at, from == send ? send : NULL, receive, 0,
                                               bound->matrix, &why, code))
            return 1;
    }
    count_passed(comm, why);
    return 0;
}

int a2a_alltoall(ALLTOALL(int))
{
    Side from = {(char *)send, send_type, .count = send_count};
    Side to = {receive, receive_type, .count = receive_count};
    int code;
    return take(&from, &to, comm, &code) ? code
                                         : PMPI_Alltoall(send, send_count, send_type, receive,
                                                         receive_count, receive_type, comm);
}

int a2a_alltoallv(ALLTOALLV(int, int))
{
    Side from = {(char *)send, send_type, .counts = send_counts, .places = send_places};
    Side to = {receive, receive_type, .counts = receive_counts, .places = receive_places};
    int code;
    return take_v(&from, &to, comm, &code)
               ? code
               : PMPI_Alltoallv(send, send_counts, send_places, send_type, receive, receive_counts,
                                receive_places, receive_type, comm);
}

#if MPI_VERSION >= 4
int a2a_alltoall_c(ALLTOALL(MPI_Count))
{
    Side from = {(char *)send, send_type, .count = send_count};
    Side to = {receive, receive_type, .count = receive_count};
    int code;
    return take(&from, &to, comm, &code) ? code
                                         : PMPI_Alltoall_c(send, send_count, send_type, receive,
                                                           receive_count, receive_type, comm);
}

int a2a_alltoallv_c(ALLTOALLV(MPI_Count, MPI_Aint))
{
    Side from = {(char *)send, send_type, .large_counts = send_counts,
                 .large_places = send_places};
    Side to = {receive, receive_type, .large_counts = receive_counts,
               .large_places = receive_places};
    int code;
    return take_v(&from, &to, comm, &code)
               ? code
               : PMPI_Alltoallv_c(send, send_counts, send_places, send_type, receive,
                                  receive_counts, receive_places, receive_type, comm);
}
#endif

/* Calls that do not wait. The program may be anywhere while others wait for us to pass their bytes
 * on, so a thread of ours goes on with them; that needs MPI_THREAD_MULTIPLE, and without it such a
 * call is the library's own. */

static Operation *in_flight;
static pthread_cond_t bell = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static int thread_runs;

static int tell(void *state, MPI_Status *status)
{
    (void)state;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int let_go(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int keep_going(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

/* Go on with one; return whether it is over. An error that the communicator's handler returned has
 * no other way to the program than to end it. */
static int go_on(Operation *operation)
{
    int done = 0, code = a2a_test(operation->running, &done);
    if (!code && done)
        code = end(operation);
    if (code)
        PMPI_Abort(MPI_COMM_WORLD, code);
    return done;
}

static void *go_on_with_all(void *nothing)
{
    (void)nothing;
    pthread_mutex_lock(&lock);
    while (!finalizing) {
        if (!in_flight) {
            pthread_cond_wait(&bell, &lock);
            continue;
        }
        Operation *all = in_flight, *left = NULL;
        in_flight = NULL;
        pthread_mutex_unlock(&lock);
        while (all) {
            Operation *operation = all;
            Bound *bound = operation->bound;
            all = operation->next;
            if (!go_on(operation)) {
                operation->next = left;
                left = operation;
                continue;
            }
            MPI_Request request = operation->request;
            pthread_mutex_lock(&lock);
            operation->next = bound->idle;
            bound->idle = operation;
            int last = --bound->in_flight == 0 && bound->gone;
            pthread_mutex_unlock(&lock);
            if (last)
                free_bound(bound);
            PMPI_Grequest_complete(request);
        }
        sched_yield();
        pthread_mutex_lock(&lock);
        while (left) {
            Operation *next = left->next;
            left->next = in_flight;
            in_flight = left;
            left = next;
        }
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static Operation *take_idle(Bound *bound)
{
    pthread_mutex_lock(&lock);
    Operation *operation = bound->idle;
    if (operation)
        bound->idle = operation->next;
    pthread_mutex_unlock(&lock);
    return operation ? operation : new_operation(bound);
}

/* Start a call if it can be taken: on a communicator that has been looked at, for that waits. */
static int take_i(const Side *send, const Side *receive, MPI_Comm comm, MPI_Request *request,
                  int *code)
{
    int at;
    Reason why;
    Bound *bound = bound_of(comm, 0, &why);
    int64_t shard = shard_of(bound, receive, &at, &why);
    if (!shard || bound->level != MPI_THREAD_MULTIPLE || bound->plans[at].hosted) {
        count_passed(comm, !shard ? why : bound->plans[at].hosted ? NOT_PENDING : NO_THREADS);
        return 0;
    }
    Operation *operation = take_idle(bound);
    *code = MPI_ERR_NO_MEM;
    if (!operation)
        return 1;
    *code = start(operation, at, send->buffer == MPI_IN_PLACE ? NULL : send, receive, shard, NULL);
    if (!*code)
        *code = PMPI_Grequest_start(tell, let_go, keep_going, NULL, &operation->request);
    if (*code)
        return 1;
    *request = operation->request;
    count_call(bound, at, a2a_side_bytes(receive, bound->ranks), 0.0);
    pthread_mutex_lock(&lock);
    if (!thread_runs)
        thread_runs = !pthread_create(&thread, NULL, go_on_with_all, NULL);
    operation->next = in_flight;
    in_flight = operation;
    bound->in_flight++;
    pthread_cond_signal(&bell);
    pthread_mutex_unlock(&lock);
    return 1;
}

int a2a_ialltoall(ALLTOALL(int), MPI_Request *request)
{
    Side from = {(char *)send, send_type, .count = send_count};
    Side to = {receive, receive_type, .count = receive_count};
    int code;
    return take_i(&from, &to, comm, request, &code)
               ? code
               : PMPI_Ialltoall(send, send_count, send_type, receive, receive_count, receive_type,
                                comm, request);
}

#if MPI_VERSION >= 4
int a2a_ialltoall_c(ALLTOALL(MPI_Count), MPI_Request *request)
{
    Side from = {(char *)send, send_type, .count = send_count};
    Side to = {receive, receive_type, .count = receive_count};
    int code;
    return take_i(&from, &to, comm, request, &code)
               ? code
               : PMPI_Ialltoall_c(send, send_count, send_type, receive, receive_count,
                                  receive_type, comm, request);
}
#endif

/* Calls that never use a schedule are counted. */

int a2a_alltoallw(ALLTOALLW)
{
    count_passed(comm, OTHER_CALL);
    return PMPI_Alltoallw(send, send_counts, send_places, send_types, receive, receive_counts,
                          receive_places, receive_types, comm);
}

int a2a_ialltoallv(ALLTOALLV(int, int), MPI_Request *request)
{
    count_passed(comm, OTHER_CALL);
    return PMPI_Ialltoallv(send, send_counts, send_places, send_type, receive, receive_counts,
                           receive_places, receive_type, comm, request);
}

int a2a_ialltoallw(ALLTOALLW, MPI_Request *request)
{
    count_passed(comm, OTHER_CALL);
    return PMPI_Ialltoallw(send, send_counts, send_places, send_types, receive, receive_counts,
                           receive_places, receive_types, comm, request);
}

/* Wait until all ranks of the world are here; end them if some are not. These have not been given
 * this library, and whatever they do next, it is not what we wait for. */
static void meet_all(void)
{
    const char *told = getenv("ALLTOALL_PATIENCE");
    double patience = told ? atof(told) : USUAL_PATIENCE, begun = PMPI_Wtime();
    struct timespec moment = {0, 100 * 1000};
    MPI_Request request;
    int here = 0;
    if (PMPI_Ibarrier(MPI_COMM_WORLD, &request))
        return;
    while (!PMPI_Test(&request, &here, MPI_STATUS_IGNORE) && !here) {
        if (PMPI_Wtime() - begun > patience) {
            fprintf(stderr,
                    "alltoall: not all ranks are wrapped: some have not come within %g s "
                    "(ALLTOALL_PATIENCE); all need LD_PRELOAD, ALLTOALL_ENGINE, ALLTOALL_LIBMPI and "
                    "ALLTOALL_WRAP, and the files that these name\n",
                    patience);
            PMPI_Abort(MPI_COMM_WORLD, 1);
        }
        nanosleep(&moment, NULL);
    }
    met = here;
}

/* Look at the world as soon as there is one, so that calls that do not wait can be taken, too. */
int a2a_begin(int code)
{
    if (code == MPI_SUCCESS && !met) {
        Reason why;
        meet_all();
        pthread_once(&once, configure);
        a2a_gather_hosts(given.report);
        bound_of(MPI_COMM_WORLD, 1, &why);
    }
    return code;
}

int a2a_init(int *count, char ***words)
{
    return a2a_begin(PMPI_Init(count, words));
}

int a2a_init_thread(int *count, char ***words, int wanted, int *given)
{
    return a2a_begin(PMPI_Init_thread(count, words, wanted, given));
}

/* Say once what the job's all-to-alls used: if asked for, or if any did not use a schedule. */
static void say_counts(void)
{
    int rank = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (met) /* all ranks are wrapped, and come here; else rank 0 says what it knows */
        a2a_gather_counts();
    Schedule *schedules = rank ? NULL : malloc(sizeof(Schedule) * (size_t)(given.count + 1));
    char about[80] = "";
    if (given.report)
        snprintf(about, sizeof about, " (%lld bytes in %.6f s)", (long long)taken_bytes,
                 taken_seconds);
    for (int i = 0; schedules && i < given.count; i++)
        schedules[i] = (Schedule){given.entries[i].label, given.entries[i].file,
                                  given.entries[i].ranks};
    if (schedules && (given.report || (!given.quiet && a2a_counted(0))))
        a2a_say_counts(about, schedules, given.count, given.report);
    free(schedules);
}

int a2a_finalize(void)
{
    say_counts();
    pthread_mutex_lock(&lock);
    finalizing = 1;
    pthread_cond_signal(&bell);
    pthread_mutex_unlock(&lock);
    if (thread_runs)
        pthread_join(thread, NULL);
    return PMPI_Finalize();
}

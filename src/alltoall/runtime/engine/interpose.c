/* The all-to-alls of a program that knows nothing of this: which are taken, and by which plan.
 *
 * Whether a call is taken must come out alike on all ranks of its communicator, for the others wait:
 * so it depends on nothing but the communicator, which is looked at once and together, and on bytes
 * that all ranks know. Whatever is not taken is the library's own. */
#include "calls.h"
#include "engine.h"
#include "tally.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What `alltoall wrap` wrote: files of messages, and from how many bytes of a shard on. */
typedef struct {
    char *path;
    int32_t ranks;
    int64_t least;
    int32_t *world; /* the rank in MPI_COMM_WORLD of each of its ranks, or NULL */
} Entry;

#define HASH_PRIME 16777619u /* of the hash FNV-1a */
enum { USUAL_PATIENCE = 60 };
/* Seconds to wait for ranks that may not have this library, unless ALLTOALL_PATIENCE says another
 * number; all that have it come here right after MPI_Init, which few leave much before others. */

static Entry *entries;
static int entry_count, report, quiet, met, finalizing;
static uint32_t configured; /* tells one configuration from another */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int keyval = MPI_KEYVAL_INVALID;
static int64_t taken_bytes;
static double taken_seconds;

/* The user's side of a call: `count` items for each rank, or as many as counts say at the places
 * given, which are of either of two types. */
typedef struct {
    char *buffer;
    MPI_Datatype type;
    int64_t count;
    const int *counts, *places;
    const MPI_Count *large_counts;
    const MPI_Aint *large_places;
} Side;

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
        int64_t least;
        int32_t *role, *peers; /* the plan's rank of each of ours, and the other way round */
    } *plans;
    int64_t *counts, *matrix;
    Operation *blocking, *idle; /* for calls that wait, and for those that do not */
} Bound;

static void warn(const char *path, const char *error)
{
    fprintf(stderr, "alltoall: %s: %s; the MPI library's own all-to-all is used\n", path, error);
}

/* Read ALLTOALL_WRAP: lines `report` or `quiet`, `file RANKS LEAST PATH`, and `map R0 R1 ...` of it. */
static void configure(void)
{
    const char *path = getenv("ALLTOALL_WRAP");
    FILE *file = path ? fopen(path, "r") : NULL;
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    int rank = 0;
    if (!file) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0)
            warn(path ? path : "ALLTOALL_WRAP", "cannot be read");
        return;
    }
    while ((length = getline(&line, &room, file)) > 0) {
        for (ssize_t k = 0; k < length; k++)
            configured = (configured ^ (unsigned char)line[k]) * HASH_PRIME + 1;
        if (line[length - 1] == '\n')
            line[length - 1] = 0;
        int32_t ranks;
        long long least;
        int used = 0;
        if (!strcmp(line, "report"))
            report = 1;
        else if (!strcmp(line, "quiet"))
            quiet = 1;
        else if (sscanf(line, "file %d %lld %n", &ranks, &least, &used) == 2 && used) {
            Entry *more = realloc(entries, sizeof(Entry) * (size_t)(entry_count + 1));
            char *name = strdup(line + used);
            if (!more || !name)
                break;
            entries = more;
            entries[entry_count++] = (Entry){name, ranks, least, NULL};
        } else if (!strncmp(line, "map ", 4) && entry_count) {
            Entry *entry = &entries[entry_count - 1];
            int32_t *world = malloc(sizeof(int32_t) * (size_t)entry->ranks);
            char *at = line + 4;
            for (int32_t i = 0; world && i < entry->ranks; i++)
                world[i] = (int32_t)strtol(at, &at, 10);
            entry->world = world;
        }
    }
    free(line);
    fclose(file);
}

/* Say which rank of an entry each rank of a communicator is, if they fit. The ranks of a file that
 * is as large as the world are the world's; those of a smaller one are the communicator's. */
static int32_t *role_of(const Entry *entry, int32_t ranks, const int *world)
{
    int world_size;
    PMPI_Comm_size(MPI_COMM_WORLD, &world_size);
    int32_t *role = malloc(sizeof(int32_t) * (size_t)ranks);
    char *seen = calloc((size_t)ranks, 1);
    int fits = role && seen && entry->ranks == ranks;
    for (int32_t r = 0; fits && r < ranks; r++) {
        int32_t found = -1;
        if (entry->world) {
            for (int32_t q = 0; q < ranks && found < 0; q++)
                if (entry->world[q] == world[r])
                    found = q;
        } else
            found = ranks == world_size ? world[r] : r;
        fits = found >= 0 && found < ranks && !seen[found];
        if (fits) {
            role[r] = found;
            seen[found] = 1;
        }
    }
    free(seen);
    if (fits)
        return role;
    free(role);
    return NULL;
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
    operation->exchanges = calloc((size_t)entry_count + 1, sizeof(Exchange *));
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
static void add_plan(Bound *bound, const Entry *entry, int32_t *role)
{
    char error[ERROR_BYTES] = "no memory";
    int32_t *peers = malloc(sizeof(int32_t) * (size_t)bound->ranks);
    Plan *plan = a2a_plan_read(entry->path, bound->ranks, role[bound->rank], error);
    struct {
        int ok, rank;
    } mine = {plan && peers, bound->rank}, worst;
    PMPI_Allreduce(&mine, &worst, 1, MPI_2INT, MPI_MINLOC, bound->comm);
    if (!worst.ok) {
        if (worst.rank == bound->rank)
            warn(entry->path, error);
        a2a_plan_free(plan);
        free(peers);
        free(role);
        return;
    }
    for (int32_t r = 0; r < bound->ranks; r++)
        peers[role[r]] = r;
    int at = bound->count++;
    for (; at > 0 && bound->plans[at - 1].least < entry->least; at--)
        bound->plans[at] = bound->plans[at - 1];
    bound->plans[at].plan = plan;
    bound->plans[at].least = entry->least;
    bound->plans[at].role = role;
    bound->plans[at].peers = peers;
}

/* Agree with the other ranks of a communicator; return USED if all are ready, and have been told the
 * same. Else there is no telling what they would do. Collective. */
static Reason agree(MPI_Comm comm, int rank, int ready, int *level)
{
    PMPI_Query_thread(level);
    int64_t mine[4] = {ready, *level, configured, -(int64_t)configured}, least[4] = {0};
    if (PMPI_Allreduce(mine, least, 4, MPI_INT64_T, MPI_MIN, comm))
        return UNREADABLE;
    *level = (int)least[1];
    int alike = least[2] == -least[3];
    if (!alike && rank == 0)
        warn("ALLTOALL_WRAP", "is not the same on all ranks");
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
    bound->plans = calloc((size_t)entry_count + 1, sizeof *bound->plans);
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
    Reason why = OTHER_RANKS;
    for (int i = 0; i < entry_count; i++) {
        int32_t *role = role_of(&entries[i], bound->ranks, world);
        if (role) {
            why = UNREADABLE;
            add_plan(bound, &entries[i], role);
        }
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

static int has_size(int ranks)
{
    int found = 0;
    for (int i = 0; i < entry_count; i++)
        found |= entries[i].ranks == ranks;
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
    Bound *bound = has_size(ranks) ? new_bound(ranks, rank) : NULL;
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
    return unserved(why == UNREADABLE && entry_count && !has_size(ranks) ? OTHER_SIZE : why);
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
    *why = has_size(ranks) ? UNKNOWN : OTHER_SIZE;
    if (!known && !wait)
        return NULL;
    Bound *bound = known ? value : bind(comm);
    if (!known)
        PMPI_Comm_set_attr(comm, keyval, bound);
    *why = !bound ? UNREADABLE : bound->count ? USED : bound->why;
    return *why == USED ? bound : NULL;
}

static void count_call(const Bound *bound, int64_t bytes, double seconds)
{
    a2a_count(USED, bound->ranks);
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
        a2a_count(why, ranks);
}

/* Whether memory holds the values of a type one after another, in the order of its signature. */
static int plain(MPI_Datatype type)
{
    MPI_Count size, lower, extent;
    PMPI_Type_size_x(type, &size);
    PMPI_Type_get_extent_x(type, &lower, &extent);
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED && lower == 0 && size == extent;
}

static int64_t type_bytes(MPI_Datatype type)
{
    MPI_Count size;
    if (PMPI_Type_size_x(type, &size) || size == MPI_UNDEFINED)
        return -1;
    return size;
}

static int64_t side_count(const Side *side, int32_t rank)
{
    return side->large_counts ? side->large_counts[rank]
           : side->counts     ? side->counts[rank]
                              : side->count;
}

static char *side_place(const Side *side, int32_t rank, MPI_Count extent)
{
    int64_t items = side->large_places ? side->large_places[rank]
                    : side->places     ? side->places[rank]
                                       : rank * side->count;
    return side->buffer + items * extent;
}

/* Say where each shard of a side begins, by the ranks of the plan: where it is, or packed. */
static void lay_side(const Side *side, const int32_t *role, int32_t ranks, int64_t *where,
                     int packed)
{
    MPI_Count lower, extent;
    int64_t size = type_bytes(side->type), next = 0;
    PMPI_Type_get_extent_x(side->type, &lower, &extent);
    for (int32_t r = 0; r < ranks; r++) {
        where[role[r]] = packed ? next : side_place(side, r, extent) - side->buffer;
        next += side_count(side, r) * size;
    }
}

static int64_t side_bytes(const Side *side, int32_t ranks)
{
    int64_t total = 0;
    for (int32_t r = 0; r < ranks; r++)
        total += side_count(side, r);
    return total * type_bytes(side->type);
}

static int room_for(char **room, size_t *has, int64_t needs)
{
    if (*has >= (size_t)needs)
        return 1;
    free(*room);
    *room = malloc((size_t)needs);
    *has = *room ? (size_t)needs : 0;
    return *room != NULL;
}

/* Move shards between a side of any type and the bytes of their values. */
static int pack_side(const Side *side, int32_t ranks, char *packed, int unpack, MPI_Comm comm)
{
    MPI_Count lower, extent;
    int64_t size = type_bytes(side->type);
    int code = MPI_SUCCESS;
    PMPI_Type_get_extent_x(side->type, &lower, &extent);
    for (int32_t r = 0; !code && r < ranks; r++) {
        int count = (int)side_count(side, r), at = 0;
        int bytes = (int)(count * size);
        char *place = side_place(side, r, extent);
        if (count)
            code = unpack ? PMPI_Unpack(packed, bytes, &at, place, count, side->type, comm)
                          : PMPI_Pack(place, count, side->type, packed, bytes, &at, comm);
        if (!code && count && at != bytes)
            code = MPI_ERR_OTHER;
        packed += bytes;
    }
    return code;
}

/* Return the plan for shards of so many bytes and, if they differ, for all pairs that have any. */
static int plan_for(const Bound *bound, int64_t typical, const int64_t *matrix, Reason *why)
{
    int at = 0;
    *why = SMALL;
    while (at < bound->count && bound->plans[at].least > typical)
        at++;
    if (at == bound->count || !bound->plans[at].plan->chunks)
        return at;
    const int32_t *role = bound->plans[at].role;
    *why = NO_CHUNKS;
    for (int32_t s = 0; s < bound->ranks; s++)
        for (int32_t d = 0; d < bound->ranks; d++)
            if (s != d && !a2a_chunks(bound->plans[at].plan, role[s], role[d]) &&
                (!matrix || matrix[(size_t)s * bound->ranks + d]))
                return bound->count;
    return at;
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
    int pack = !send || !plain(from->type);
    int64_t turn = bound->turn++;
    operation->running = operation->exchanges[at];
    operation->receive = *receive;
    operation->unpack = !plain(receive->type);
    lay_side(from, role, ranks, operation->in, pack);
    lay_side(receive, role, ranks, operation->out, operation->unpack);
    Call call = {from->buffer, receive->buffer, operation->in, operation->out, shard,
                 matrix ? operation->by_role : NULL};
    if (!operation->running ||
        (pack && !room_for(&operation->packed_in, &operation->packed_in_room,
                           side_bytes(from, ranks))) ||
        (operation->unpack && !room_for(&operation->packed_out, &operation->packed_out_room,
                                        side_bytes(receive, ranks))))
        return MPI_ERR_NO_MEM;
    int code = pack ? pack_side(from, ranks, operation->packed_in, 0, bound->comm) : MPI_SUCCESS;
    if (pack)
        call.input = operation->packed_in;
    if (operation->unpack)
        call.output = operation->packed_out;
    return code ? code : a2a_start(operation->running, &call, turn);
}

static int end(Operation *operation)
{
    return operation->unpack ? pack_side(&operation->receive, operation->bound->ranks,
                                         operation->packed_out, 1, operation->bound->comm)
                             : MPI_SUCCESS;
}

static int exchange(Bound *bound, int at, const Side *send, const Side *receive, int64_t shard,
                    const int64_t *matrix)
{
    double started = PMPI_Wtime();
    int code = start(bound->blocking, at, send, receive, shard, matrix);
    if (!code)
        code = a2a_wait(bound->blocking->running);
    if (!code)
        code = end(bound->blocking);
    count_call(bound, side_bytes(receive, bound->ranks), PMPI_Wtime() - started);
    return code;
}

/* Return the bytes of a shard, and the plan for it in `at`; 0, and why, if the library is to do it. */
static int64_t shard_of(const Bound *bound, const Side *receive, int *at, Reason *why)
{
    if (!bound)
        return 0;
    int64_t size = receive->count > 0 ? type_bytes(receive->type) : 0;
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
    if (!shard) {
        count_passed(comm, why);
        return 0;
    }
    *code = exchange(bound, at, send->buffer == MPI_IN_PLACE ? NULL : send, receive, shard, NULL);
    return 1;
}

/* The same for shards that differ. Those who pass bytes on have to know how many, so all tell all. */
static int take_v(const Side *send, const Side *receive, MPI_Comm comm, int *code)
{
    Reason why;
    Bound *bound = bound_of(comm, 1, &why);
    if (bound) {
        int32_t ranks = bound->ranks, pairs = ranks * ranks;
        const Side *from = send->buffer == MPI_IN_PLACE ? receive : send;
        int64_t size = type_bytes(from->type), total = 0, most = 0;
        for (int32_t r = 0; r < ranks; r++)
            bound->counts[r] = side_count(from, r) * size;
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
        if (most > 0 && most <= INT_MAX && at < bound->count) {
            *code = exchange(bound, at, from == send ? send : NULL, receive, 0, bound->matrix);
            return 1;
        }
        why = most <= 0 ? EMPTY : most > INT_MAX ? LARGE : why;
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
    if (!shard || bound->level != MPI_THREAD_MULTIPLE) {
        count_passed(comm, shard ? NO_THREADS : why);
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
    count_call(bound, side_bytes(receive, bound->ranks), 0.0);
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
    int32_t *sizes = rank ? NULL : malloc(sizeof(int32_t) * (size_t)(entry_count + 1));
    char about[80] = "";
    if (report)
        snprintf(about, sizeof about, " (%lld bytes in %.6f s)", (long long)taken_bytes,
                 taken_seconds);
    for (int i = 0; sizes && i < entry_count; i++)
        sizes[i] = entries[i].ranks;
    if (sizes && (report || (!quiet && a2a_counted(0))))
        a2a_say_counts(about, sizes, entry_count);
    free(sizes);
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

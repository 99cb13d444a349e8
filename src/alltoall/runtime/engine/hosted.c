/* Several ranks on a host. What goes from host to host is one shard of the schedule: what each rank
 * of the one has for each rank of the other, in order. All ranks of a host pack their parts of it
 * into memory that they share, each carries its share of the host's messages between such memories,
 * and all take out what is for them. What stays on a host goes through the same memory.
 *
 * The memory has an area to send from, one to receive to, scratch for what is passed on, and two,
 * used in turn, for what stays here. Where it would be more than a host may share, shards are cut
 * into parts, which are exchanged one after the other. */
#include "hosted.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 1 << 16, ALIGNED = 64, OURS = 1, THEIRS = 2 };
#define USUAL_LIMIT (INT64_C(512) << 20)
/* The most bytes that the ranks of a host share for a communicator, unless ALLTOALL_SHARED says
 * another number. */

typedef struct {
    int64_t receive, scratch, here[2], end; /* where areas begin; that to send from is the first */
} Areas;

struct Hosted {
    const Plan *plan;
    const int32_t *role;
    Team team;
    Exchange *exchange;
    int32_t ranks, rank, hosts, host;
    int32_t *first, *members; /* ranks of host h are members[first[h]] .. members[first[h + 1] - 1] */
    int32_t *to, *from;
    char *mine;
    int64_t limit, shared, refused; /* bytes */
    int32_t slots;                  /* of scratch, at most, on any host */
    int64_t *whole, *part;          /* bytes between hosts, hosts x hosts, those inside too */
    int64_t *in, *out;
    Areas areas;
    int64_t known, laid; /* the shard that the parts, and the areas, are for, or -1 */
    int32_t known_parts;
};

static int32_t size_of(const Hosted *it, int32_t host)
{
    return it->first[host + 1] - it->first[host];
}

static const int32_t *members_of(const Hosted *it, int32_t host)
{
    return it->members + it->first[host];
}

static void list_members(Hosted *it)
{
    for (int32_t r = 0; r < it->ranks; r++)
        it->first[it->role[r] + 1]++;
    for (int32_t h = 0; h < it->hosts; h++)
        it->first[h + 1] += it->first[h];
    for (int32_t r = it->ranks - 1, h; r >= 0; r--) { /* `to` counts here how many are left */
        h = it->role[r];
        it->members[it->first[h] + size_of(it, h) - 1 - it->to[h]++] = r;
    }
    it->team.members = members_of(it, it->host);
    it->team.size = size_of(it, it->host);
    while (it->team.members[it->team.rank] != it->rank)
        it->team.rank++;
}

/* Share out the links of a host: those that it sends over, then those that it receives over. Every
 * rank tells those of other hosts which of theirs it attends to. */
static int share_links(Hosted *it)
{
    const Plan *plan = it->plan;
    char *links = calloc(2, (size_t)it->hosts), *tell = malloc((size_t)it->ranks);
    char *told = malloc((size_t)it->ranks);
    int code = links && tell && told ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    int32_t unit = 0;
    for (int32_t i = 0; !code && i < plan->messages; i++)
        links[(plan->sends[i] ? 0 : it->hosts) + plan->peer[i]] = 1;
    for (int32_t k = 0; !code && k < 2 * it->hosts; k++)
        if (links[k])
            links[k] = unit++ % it->team.size == it->team.rank;
    for (int32_t i = 0; !code && i < plan->messages; i++)
        it->mine[i] = links[(plan->sends[i] ? 0 : it->hosts) + plan->peer[i]];
    for (int32_t r = 0; !code && r < it->ranks; r++)
        tell[r] = (char)((links[it->role[r]] ? OURS : 0) |
                         (links[it->hosts + it->role[r]] ? THEIRS : 0));
    if (!code)
        code = PMPI_Alltoall(tell, 1, MPI_CHAR, told, 1, MPI_CHAR, it->team.comm);
    for (int32_t r = 0; !code && r < it->ranks; r++) {
        if (told[r] & OURS)
            it->from[it->role[r]] = r;
        if (told[r] & THEIRS)
            it->to[it->role[r]] = r;
    }
    free(links);
    free(tell);
    free(told);
    return code;
}

static int64_t limit_told(void)
{
    const char *told = getenv("ALLTOALL_SHARED");
    char *unit;
    long long found = told ? strtoll(told, &unit, 10) : 0;
    if (found <= 0)
        return USUAL_LIMIT;
    int shift = *unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0;
    return found > INT64_MAX >> shift ? INT64_MAX : found << shift;
}

Hosted *a2a_hosted_new(const Plan *plan, MPI_Comm comm, const int32_t *role)
{
    Hosted *it = calloc(1, sizeof *it);
    int ranks, every = 0;
    PMPI_Comm_size(comm, &ranks);
    size_t all = (size_t)ranks, hosts = (size_t)plan->ranks;
    if (it) {
        PMPI_Comm_rank(comm, &it->rank);
        it->plan = plan;
        it->role = role;
        it->ranks = ranks;
        it->hosts = plan->ranks;
        it->host = plan->rank;
        it->refused = INT64_MAX;
        it->known = it->laid = -1;
        it->first = calloc(hosts + 1, sizeof(int32_t));
        it->members = calloc(all, sizeof(int32_t));
        it->to = calloc(hosts, sizeof(int32_t));
        it->from = calloc(hosts, sizeof(int32_t));
        it->mine = calloc((size_t)plan->messages + 1, 1);
        it->whole = calloc(hosts * hosts, sizeof(int64_t));
        it->part = calloc(hosts * hosts, sizeof(int64_t));
        it->in = calloc(hosts, sizeof(int64_t));
        it->out = calloc(hosts, sizeof(int64_t));
        it->team = (Team){.comm = comm, .ranks = ranks, .self = it->rank,
                          .messages = plan->messages,
                          .told = calloc(3 * all, sizeof(int64_t))};
        it->exchange = a2a_exchange_new(plan, comm, it->to);
    }
    int ready = it && it->first && it->members && it->to && it->from && it->mine && it->whole &&
                it->part && it->in && it->out && it->team.told && it->exchange;
    int64_t mine[3] = {ready, ready ? limit_told() : 0, -plan->scratch}, least[3];
    PMPI_Allreduce(mine, least, 3, MPI_INT64_T, MPI_MIN, comm);
    if (least[0]) {
        it->limit = least[1];
        it->slots = (int32_t)-least[2];
        list_members(it);
        ready = share_links(it) == MPI_SUCCESS;
        a2a_exchange_share(it->exchange, &it->team, it->mine, it->to, it->from);
        PMPI_Allreduce(&ready, &every, 1, MPI_INT, MPI_MIN, comm);
    }
    if (every)
        return it;
    a2a_hosted_free(it);
    return NULL;
}

void a2a_hosted_free(Hosted *it)
{
    if (!it)
        return;
    a2a_exchange_free(it->exchange);
    a2a_team_free(&it->team);
    free(it->team.told);
    free(it->first);
    free(it->members);
    free(it->to);
    free(it->from);
    free(it->mine);
    free(it->whole);
    free(it->part);
    free(it->in);
    free(it->out);
    free(it);
}

/* Where part k of so many bytes begins. */
static int64_t cut(int64_t bytes, int32_t k, int32_t parts)
{
    return bytes / parts * k + bytes % parts * k / parts;
}

/* The bytes of part k that a rank has for the first `count` ranks of a host. */
static int64_t row_bytes(const Hosted *it, int64_t shard, const int64_t *matrix, int32_t rank,
                         int32_t host, int32_t count, int32_t k, int32_t parts)
{
    if (!matrix)
        return count * (cut(shard, k + 1, parts) - cut(shard, k, parts));
    const int64_t *row = matrix + (size_t)rank * (size_t)it->ranks;
    const int32_t *members = members_of(it, host);
    int64_t total = 0;
    for (int32_t j = 0; j < count; j++)
        total += cut(row[members[j]], k + 1, parts) - cut(row[members[j]], k, parts);
    return total;
}

/* The bytes of part k from every host to every host. */
static void add_up(const Hosted *it, int64_t shard, const int64_t *matrix, int32_t k,
                   int32_t parts, int64_t *found)
{
    memset(found, 0, sizeof(int64_t) * (size_t)it->hosts * (size_t)it->hosts);
    for (int32_t r = 0; r < it->ranks; r++) {
        int64_t *row = found + (size_t)it->role[r] * (size_t)it->hosts;
        for (int32_t h = 0; h < it->hosts; h++)
            row[h] += row_bytes(it, shard, matrix, r, h, size_of(it, h), k, parts);
    }
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* The most bytes that any host shares if shards are cut into parts; INT64_MAX if a part is too large
 * for the exchange. Parts differ by a byte for each pair of ranks. */
static int64_t most_shared(const Hosted *it, int32_t parts)
{
    int64_t most = 0, slot = 0;
    for (int32_t h = 0; h < it->hosts; h++) {
        int64_t area[3] = {0}; /* to send from, to receive to, inside */
        for (int32_t g = 0; g < it->hosts; g++) {
            int32_t spare = parts > 1 ? size_of(it, h) * size_of(it, g) : 0;
            int64_t sent = it->whole[(size_t)h * (size_t)it->hosts + (size_t)g] / parts + spare;
            int64_t taken = it->whole[(size_t)g * (size_t)it->hosts + (size_t)h] / parts + spare;
            int32_t chunks = a2a_chunks(it->plan, h, g);
            area[g == h ? 2 : 0] += sent;
            area[1] += g == h ? 0 : taken;
            if (g == h)
                continue;
            if (sent > INT_MAX)
                return INT64_MAX;
            if (chunks && sent / chunks + 1 > slot)
                slot = sent / chunks + 1;
        }
        int64_t all = aligned(area[0]) + aligned(area[1]) + 2 * aligned(area[2]);
        most = all > most ? all : most;
    }
    return slot > INT64_MAX / 2 / (it->slots + 1) ? INT64_MAX : most + aligned(slot * it->slots);
}

int32_t a2a_hosted_parts(Hosted *it, int64_t shard, const int64_t *matrix)
{
    int64_t bytes;
    int32_t parts = 1;
    if (!matrix && shard == it->known)
        return it->known_parts;
    it->known = it->laid = -1;
    add_up(it, shard, matrix, 0, 1, it->whole);
    while ((bytes = most_shared(it, parts)) > it->limit)
        if ((parts *= 2) > MOST_PARTS)
            return 0;
    if (bytes >= it->refused)
        return 0;
    if (bytes > it->shared) {
        if (!a2a_team_share(&it->team, (size_t)bytes)) {
            it->refused = bytes;
            return 0;
        }
        it->shared = bytes;
        it->areas = (Areas){0};
    }
    it->known = matrix ? -1 : shard;
    return it->known_parts = parts;
}

/* Say where everything of a part lies; wait for the others first if it lay elsewhere before. */
static void lay_out(Hosted *it, const HostedCall *call, int32_t k, int32_t parts)
{
    int64_t sent = 0, taken = 0, slot = 0;
    if (!call->matrix && parts == 1 && it->laid == call->shard)
        return;
    it->laid = call->matrix || parts > 1 ? -1 : call->shard;
    add_up(it, call->shard, call->matrix, k, parts, it->part);
    for (int32_t h = 0; h < it->hosts; h++) {
        int64_t *row = it->part + (size_t)h * (size_t)it->hosts;
        it->in[h] = sent;
        it->out[h] = taken;
        sent += h == it->host ? 0 : it->part[(size_t)it->host * (size_t)it->hosts + (size_t)h];
        taken += h == it->host ? 0 : row[it->host];
        for (int32_t g = 0; g < it->hosts; g++) {
            int32_t chunks = a2a_chunks(it->plan, h, g);
            if (g != h && chunks && (row[g] + chunks - 1) / chunks > slot)
                slot = (row[g] + chunks - 1) / chunks;
        }
    }
    int64_t inside = it->part[(size_t)it->host * ((size_t)it->hosts + 1)];
    Areas areas = {.receive = aligned(sent)};
    areas.scratch = areas.receive + aligned(taken);
    areas.here[0] = areas.scratch + aligned(slot * it->plan->scratch);
    areas.here[1] = areas.here[0] + aligned(inside);
    areas.end = areas.here[1] + aligned(inside);
    for (int32_t h = 0; h < it->hosts; h++)
        it->part[(size_t)h * ((size_t)it->hosts + 1)] = 0;
    if (it->areas.end && memcmp(&areas, &it->areas, sizeof areas))
        a2a_team_meet(&it->team);
    it->areas = areas;
}

/* Move part k of one shard between the program's buffer and shared memory. */
static int move(const Hosted *it, const HostedCall *call, int32_t other, int takes, char *shared,
                int64_t bytes, int64_t begin)
{
    const Side *side = takes ? call->receive : call->send;
    if (!bytes)
        return MPI_SUCCESS;
    if (takes ? !call->output : !call->input)
        return a2a_pack_shard(side, other, shared, takes, it->team.comm);
    if (takes)
        memcpy(call->output + call->out[other] + begin, shared, (size_t)bytes);
    else
        memcpy(shared, call->input + call->in[other] + begin, (size_t)bytes);
    return MPI_SUCCESS;
}

/* Move part k of the shard to another rank, or from it, and say how many bytes it has. */
static int move_pair(const Hosted *it, const HostedCall *call, int32_t other, int takes,
                     char *shared, int32_t k, int32_t parts, int64_t *bytes)
{
    int32_t source = takes ? other : it->rank, to = takes ? it->rank : other;
    int64_t all = call->matrix ? call->matrix[(size_t)source * (size_t)it->ranks + (size_t)to]
                               : call->shard;
    int64_t begin = cut(all, k, parts);
    *bytes = cut(all, k + 1, parts) - begin;
    if (other == it->rank && call->input && call->output)
        return MPI_SUCCESS; /* it has been copied */
    return move(it, call, other, takes, shared, *bytes, begin);
}

/* Pack part k of what this rank has for the ranks of a host, whose shard begins at `shared`. */
static int pack(const Hosted *it, const HostedCall *call, int32_t host, char *shared, int32_t k,
                int32_t parts)
{
    int32_t size = size_of(it, host);
    int64_t bytes = 0;
    int code = MPI_SUCCESS;
    for (int32_t i = 0; i < it->team.rank; i++)
        shared += row_bytes(it, call->shard, call->matrix, it->team.members[i], host, size, k,
                            parts);
    for (int32_t j = 0; !code && j < size; j++, shared += bytes)
        code = move_pair(it, call, members_of(it, host)[j], 0, shared, k, parts, &bytes);
    return code;
}

/* Take part k of what the ranks of a host have for this one. */
static int unpack(const Hosted *it, const HostedCall *call, int32_t host, char *shared, int32_t k,
                  int32_t parts)
{
    int code = MPI_SUCCESS;
    for (int32_t i = 0; !code && i < size_of(it, host); i++) {
        int32_t source = members_of(it, host)[i];
        int64_t before = row_bytes(it, call->shard, call->matrix, source, it->host, it->team.rank,
                                   k, parts), bytes;
        code = move_pair(it, call, source, 1, shared + before, k, parts, &bytes);
        shared += row_bytes(it, call->shard, call->matrix, source, it->host, it->team.size, k,
                            parts);
    }
    return code;
}

static int run_part(Hosted *it, const HostedCall *call, int32_t k, int32_t parts, int64_t turn)
{
    char *memory = it->team.memory;
    int code = MPI_SUCCESS;
    lay_out(it, call, k, parts);
    char *here = memory + it->areas.here[turn % 2], *taken = memory + it->areas.receive;
    for (int32_t h = 0; !code && h < it->hosts; h++)
        code = pack(it, call, h, h == it->host ? here : memory + it->in[h], k, parts);
    a2a_team_meet(&it->team);
    Call between = {.input = memory, .output = taken, .in = it->in, .out = it->out,
                    .matrix = it->part, .scratch = memory + it->areas.scratch};
    if (!code)
        code = a2a_start(it->exchange, &between, turn);
    if (!code)
        code = unpack(it, call, it->host, here, k, parts);
    if (!code)
        code = a2a_wait(it->exchange);
    for (int32_t h = 0; !code && h < it->hosts; h++)
        if (h != it->host)
            code = unpack(it, call, h, taken + it->out[h], k, parts);
    return code;
}

int a2a_hosted_run(Hosted *it, const HostedCall *call, int32_t parts, int64_t *turn)
{
    int64_t own = call->matrix ? call->matrix[(size_t)it->rank * ((size_t)it->ranks + 1)]
                               : call->shard;
    int code = MPI_SUCCESS;
    if (call->input && call->output && own &&
        call->input + call->in[it->rank] != call->output + call->out[it->rank])
        memcpy(call->output + call->out[it->rank], call->input + call->in[it->rank], (size_t)own);
    for (int32_t k = 0; !code && k < parts; k++)
        code = run_part(it, call, k, parts, (*turn)++);
    return code;
}

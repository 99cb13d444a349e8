/* A rank that checks and times an all-to-all: what `alltoall.runtime.worker` does for metered runs,
 * as a program that is there in milliseconds. 27 Pythons take many seconds to start on two cores.
 *
 *   rank JOB    JOB as `runtime/engine/job.py` writes it; the first rank writes the results
 *
 * `runtime/metered.py` says what is measured, and why in this order; the bytes are those of
 * `runtime/bench.py`. */
#include "engine.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_LINE = 4096, MAX_DEVICES = 4096, MAX_TOLD = 10, LOOK_MICROSECONDS = 10000 };
#define MOST_STEAL 0.10
#define MOST_REPEATS 2
/* As in runtime/metered.py. */

typedef struct {
    char messages[MAX_LINE], results[MAX_LINE], way[MAX_LINE], native[MAX_LINE], **gates;
    int ours, by_step, iterations, warmup, timeout, gate_count, sizes;
} Job;

typedef struct {
    int32_t ranks, rank, ours;
    Exchange *exchange;
    int64_t turn, bytes, shard; /* bytes of a unit, and of a shard, -1 if they differ */
    int64_t *matrix, *in, *out;  /* bytes of every pair, and where shards begin */
    char *input, *output;
    int *counts[4]; /* for the library: what is sent and received, and where it lies */
} Rank;

typedef struct {
    char name[64];
    int64_t sent, received;
} Device;

typedef struct {
    Device device[MAX_DEVICES];
    int devices;
    int64_t retransmits;
} Counters;

/* End all ranks: a goodbye would wait for those that wait for this one. */
static void fail(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    vfprintf(stderr, format, words);
    va_end(words);
    fputc('\n', stderr);
    fflush(stderr);
    _exit(1);
}

static void *room(size_t bytes)
{
    void *found = malloc(bytes ? bytes : 1);
    if (!found)
        fail("no memory for %zu bytes", bytes);
    return found;
}

static void line_of(FILE *file, const char *key, char *value)
{
    char line[MAX_LINE];
    size_t skipped = strlen(key);
    if (!fgets(line, sizeof line, file) || strncmp(line, key, skipped) || line[skipped] != ' ')
        fail("the job has no %s", key);
    line[strcspn(line, "\n")] = 0;
    strcpy(value, line + skipped + 1);
}

static int number_of(FILE *file, const char *key)
{
    char value[MAX_LINE];
    line_of(file, key, value);
    return atoi(value);
}

static void read_job(FILE *file, Job *job)
{
    line_of(file, "messages", job->messages);
    line_of(file, "results", job->results);
    line_of(file, "way", job->way);
    line_of(file, "native", job->native);
    job->by_step = number_of(file, "by_step");
    job->ours = !strcmp(job->way, "ours");
    job->iterations = number_of(file, "iterations");
    job->warmup = number_of(file, "warmup");
    job->timeout = number_of(file, "timeout");
    job->gate_count = number_of(file, "gates");
    job->gates = room(sizeof(char *) * (size_t)job->gate_count);
    for (int k = 0; k < job->gate_count; k++)
        line_of(file, "gate", job->gates[k] = room(MAX_LINE));
    job->sizes = number_of(file, "sizes");
}

/* The next size of the job: a unit, and either the bytes of every shard or of every pair. */
static void read_size(FILE *file, Rank *it)
{
    if (fscanf(file, "%" SCNd64 " %" SCNd64, &it->bytes, &it->shard) != 2)
        fail("the job ends early");
    size_t pairs = (size_t)it->ranks * (size_t)it->ranks;
    for (size_t k = 0; k < pairs; k++) {
        it->matrix[k] = it->shard;
        if (it->shard < 0 && fscanf(file, "%" SCNd64, &it->matrix[k]) != 1)
            fail("the job ends early");
    }
    int64_t sent = 0, received = 0;
    for (int32_t other = 0; other < it->ranks; other++) {
        int64_t there = it->matrix[(size_t)it->rank * it->ranks + other];
        int64_t back = it->matrix[(size_t)other * it->ranks + it->rank];
        it->in[other] = sent;
        it->out[other] = received;
        if (!it->ours && it->shard < 0 && (sent > INT32_MAX || received > INT32_MAX))
            fail("buffers beyond what MPI_Alltoallv can say");
        it->counts[0][other] = (int)there;
        it->counts[1][other] = (int)sent;
        it->counts[2][other] = (int)back;
        it->counts[3][other] = (int)received;
        sent += there;
        received += back;
    }
    free(it->input);
    free(it->output);
    it->input = room((size_t)sent);
    it->output = room((size_t)received);
}

/* What is at a position of the shard from one rank to another: never the same when shifted. */
static uint8_t byte_at(const Rank *it, int32_t source, int32_t destination, int64_t position)
{
    return (uint8_t)(((uint32_t)position * UINT32_C(2654435761) >> 24) +
                     (uint32_t)(source * it->ranks + destination));
}

static void fill(Rank *it)
{
    for (int32_t other = 0; other < it->ranks; other++) {
        int64_t there = it->matrix[(size_t)it->rank * it->ranks + other];
        int64_t back = it->matrix[(size_t)other * it->ranks + it->rank];
        for (int64_t k = 0; k < there; k++)
            it->input[it->in[other] + k] = (char)byte_at(it, it->rank, other, k);
        for (int64_t k = 0; k < back; k++)
            it->output[it->out[other] + k] = (char)~byte_at(it, other, it->rank, k);
    }
}

static void tell_wrong(const Rank *it, FILE *told)
{
    int shards = 0;
    for (int32_t other = 0; other < it->ranks && shards < MAX_TOLD; other++) {
        int64_t size = it->matrix[(size_t)other * it->ranks + it->rank], wrong = 0, first = 0;
        const uint8_t *found = (const uint8_t *)it->output + it->out[other];
        for (int64_t k = size - 1; k >= 0; k--)
            if (found[k] != byte_at(it, other, it->rank, k)) {
                wrong++;
                first = k;
            }
        if (!wrong)
            continue;
        fprintf(told,
                "%s\"shards of %" PRId64 " bytes: rank %d has %" PRId64 " wrong bytes in the shard "
                "from rank %d, the first at %" PRId64 ": found %d, expected %d\"",
                shards++ ? "," : "", it->bytes, it->rank, wrong, other, first, found[first],
                byte_at(it, other, it->rank, first));
    }
}

static void exchange(Rank *it)
{
    int code;
    if (it->ours) {
        const int64_t *matrix = it->shard < 0 ? it->matrix : NULL;
        Call call = {it->input, it->output, it->in, it->out, it->shard, matrix};
        code = a2a_start(it->exchange, &call, ++it->turn);
        if (!code)
            code = a2a_wait(it->exchange);
    } else if (it->shard >= 0)
        code = MPI_Alltoall(it->input, (int)it->shard, MPI_BYTE, it->output, (int)it->shard,
                            MPI_BYTE, MPI_COMM_WORLD);
    else
        code = MPI_Alltoallv(it->input, it->counts[0], it->counts[1], MPI_BYTE, it->output,
                             it->counts[2], it->counts[3], MPI_BYTE, MPI_COMM_WORLD);
    if (code)
        fail("MPI failed, with code %d", code);
}

static double steal_seconds(void)
{
    long long value = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (!file || fscanf(file, "cpu %*d %*d %*d %*d %*d %*d %*d %lld", &value) != 1)
        fail("/proc/stat does not tell of steal");
    fclose(file);
    return (double)value / 100.0;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The seconds of the slowest rank, which has waited for all others, and the steal that it saw. */
static void timed(Rank *it, double *seconds, double *steal)
{
    double own[2], *all = room(sizeof(double) * 2 * (size_t)it->ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    double stolen = steal_seconds(), began = seconds_now();
    exchange(it);
    own[0] = seconds_now() - began;
    own[1] = (steal_seconds() - stolen) / (own[0] > 1e-9 ? own[0] : 1e-9);
    MPI_Allgather(own, 2, MPI_DOUBLE, all, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    *seconds = *steal = -1;
    for (int32_t k = 0; k < it->ranks; k++)
        if (all[2 * k] > *seconds) {
            *seconds = all[2 * k];
            *steal = all[2 * k + 1];
        }
    free(all);
}

static int64_t retransmits(void)
{
    char names[MAX_LINE], values[MAX_LINE], *name_at = NULL, *value_at = NULL;
    FILE *file = fopen("/proc/self/net/snmp", "r");
    while (file && fgets(names, sizeof names, file))
        if (!strncmp(names, "Tcp:", 4) && fgets(values, sizeof values, file)) {
            const char *name = strtok_r(names, " \n", &name_at);
            const char *value = strtok_r(values, " \n", &value_at);
            while (name && value && strcmp(name, "RetransSegs")) {
                name = strtok_r(NULL, " \n", &name_at);
                value = strtok_r(NULL, " \n", &value_at);
            }
            fclose(file);
            return value ? atoll(value) : 0;
        }
    fail("/proc/self/net/snmp does not tell of TCP");
    return 0;
}

static void read_counters(Counters *found)
{
    char line[MAX_LINE];
    FILE *file = fopen("/proc/self/net/dev", "r");
    if (!file)
        fail("/proc/self/net/dev cannot be read");
    found->devices = 0;
    for (int row = 0; fgets(line, sizeof line, file); row++) {
        Device *each = &found->device[found->devices];
        if (row >= 2 && found->devices < MAX_DEVICES &&
            sscanf(line, " %63[^:]:%" SCNd64 " %*d %*d %*d %*d %*d %*d %*d %" SCNd64, each->name,
                   &each->received, &each->sent) == 3)
            found->devices++;
    }
    fclose(file);
    found->retransmits = retransmits();
}

static int64_t grown(const Counters *before, const Device *after, int sends)
{
    int64_t old = 0;
    for (int k = 0; k < before->devices; k++)
        if (!strcmp(before->device[k].name, after->name))
            old = sends ? before->device[k].sent : before->device[k].received;
    return (sends ? after->sent : after->received) - old;
}

/* Write the texts of all ranks, as the first rank has them, with commas in between. */
static void write_all(const Rank *it, FILE *to, char *text)
{
    int own = (int)strlen(text), *length = room(sizeof(int) * (size_t)it->ranks);
    int *begin = room(sizeof(int) * (size_t)it->ranks), total = 0, told = 0;
    MPI_Gather(&own, 1, MPI_INT, length, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int32_t k = 0; it->rank == 0 && k < it->ranks; k++) {
        begin[k] = total;
        total += length[k];
    }
    char *all = room((size_t)total);
    MPI_Gatherv(text, own, MPI_CHAR, all, length, begin, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int32_t k = 0; it->rank == 0 && k < it->ranks; k++)
        if (length[k])
            fprintf(to, "%s%.*s", told++ ? "," : "", length[k], all + begin[k]);
    free(length);
    free(begin);
    free(all);
}

static void write_counters(const Rank *it, FILE *to, const Counters *before, const Counters *after)
{
    for (int sends = 1; sends >= 0; sends--) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *own = open_memstream(&text, &bytes);
        for (int k = 0; k < after->devices; k++)
            fprintf(own, "%s\"%s\": %" PRId64, k ? ", " : "{", after->device[k].name,
                    grown(before, &after->device[k], sends));
        fprintf(own, "}");
        fclose(own);
        fprintf(to, "\"%s\": [", sends ? "sent" : "received");
        write_all(it, to, text);
        fprintf(to, "], ");
        free(text);
    }
}

/* Say that this run is ready, and wait for those that are to begin with it. */
static void pass_gates(const Job *job)
{
    if (!job->gate_count)
        return;
    FILE *own = fopen(job->gates[0], "w");
    if (!own)
        fail("%s cannot be made", job->gates[0]);
    fclose(own);
    double deadline = seconds_now() + job->timeout;
    for (int k = 1; k < job->gate_count; k++)
        while (access(job->gates[k], F_OK)) {
            if (seconds_now() > deadline)
                fail("runs that were to begin at once were not ready within %d seconds; give them "
                     "longer (--timeout)", job->timeout);
            usleep(LOOK_MICROSECONDS);
        }
}

static void write_numbers(FILE *to, const char *name, const double *values, int count)
{
    fprintf(to, "\"%s\": [", name);
    for (int k = 0; k < count; k++)
        fprintf(to, "%s%.9g", k ? ", " : "", values[k]);
    fprintf(to, "], ");
}

/* Check and time one size; return how many shards were wrong anywhere. */
static int measure(const Job *job, Rank *it, FILE *to)
{
    char *wrong = NULL;
    size_t bytes = 0;
    static Counters before, after;
    double *seconds = room(sizeof(double) * (size_t)job->iterations), slowest, stolen;
    double *steal = room(sizeof(double) * (size_t)job->iterations);
    int done = 0, calls = 0;
    fill(it);
    exchange(it);
    FILE *told = open_memstream(&wrong, &bytes);
    tell_wrong(it, told);
    fclose(told);
    for (int k = 0; k < job->warmup; k++)
        exchange(it);
    if (it->rank == 0)
        pass_gates(job);
    MPI_Barrier(MPI_COMM_WORLD);
    read_counters(&before);
    while (done < job->iterations) {
        timed(it, &slowest, &stolen);
        calls++;
        if (stolen > MOST_STEAL && calls - done <= MOST_REPEATS * job->iterations)
            continue;
        seconds[done] = slowest;
        steal[done++] = stolen;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    read_counters(&after);
    int64_t again = after.retransmits - before.retransmits, total = 0;
    int bad = bytes > 0, anywhere = 0;
    MPI_Reduce(&again, &total, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&bad, &anywhere, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    fprintf(to, "{\"bytes\": %" PRId64 ", \"calls\": %d, \"retransmits\": %" PRId64 ", ", it->bytes,
            calls, total);
    write_numbers(to, "seconds", seconds, done);
    write_numbers(to, "steal", steal, done);
    write_counters(it, to, &before, &after);
    fprintf(to, "\"violations\": [");
    write_all(it, to, wrong);
    fprintf(to, "]}");
    free(wrong);
    free(seconds);
    free(steal);
    return anywhere;
}

/* The library's name and version, in the words of mpi4py. */
static void library(char *name)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING], version[64] = "";
    int length;
    MPI_Get_library_version(text, &length);
    if (sscanf(text, "MPICH Version: %63s", version) == 1)
        sprintf(name, "MPICH %s", version);
    else if (sscanf(text, "Open MPI v%63[^, \n]", version) == 1)
        sprintf(name, "Open MPI %s", version);
    else
        strcpy(name, "MPI");
}

static void work(const Job *job, FILE *file, Rank *it)
{
    char name[MAX_LINE], *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    library(name);
    fprintf(to, "{\"runtime\": \"%s, exchange in C\", \"native\": \"%s\", \"readings\": [", name,
            job->native);
    for (int k = 0, wrong = 0; k < job->sizes && !wrong; k++) {
        read_size(file, it);
        fprintf(to, "%s", k ? ", " : "");
        wrong = measure(job, it, to);
    }
    fprintf(to, "]}\n");
    fclose(to);
    if (it->rank == 0) {
        FILE *results = fopen(job->results, "w");
        if (!results || fwrite(text, 1, bytes, results) != bytes || fclose(results))
            fail("%s cannot be written", job->results);
    }
    free(text);
}

int main(int words, char **word)
{
    static Job job;
    Rank it = {0};
    char error[ERROR_BYTES];
    int ranks, rank;
    FILE *file = words == 2 ? fopen(word[1], "r") : NULL;
    if (!file)
        fail("expected a job that can be read");
    read_job(file, &job);
    alarm((unsigned)job.timeout);
    MPI_Init(&words, &word);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    it.ranks = ranks;
    it.rank = rank;
    it.ours = job.ours;
    it.matrix = room(sizeof(int64_t) * (size_t)ranks * (size_t)ranks);
    it.in = room(sizeof(int64_t) * (size_t)ranks);
    it.out = room(sizeof(int64_t) * (size_t)ranks);
    for (int k = 0; k < 4; k++)
        it.counts[k] = room(sizeof(int) * (size_t)ranks);
    int32_t *peers = room(sizeof(int32_t) * (size_t)ranks);
    for (int32_t k = 0; k < ranks; k++)
        peers[k] = k;
    Plan *plan = a2a_plan_read(job.messages, ranks, rank, error);
    if (!plan)
        fail("%s: %s", job.messages, error);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    it.exchange = a2a_exchange_new(plan, comm, peers);
    if (!it.exchange || (job.by_step && a2a_exchange_by_step(it.exchange)))
        fail("no memory for an exchange");
    work(&job, file, &it);
    a2a_exchange_free(it.exchange);
    a2a_plan_free(plan);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}

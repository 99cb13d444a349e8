/* One line at the end of a program: how many all-to-alls used a schedule, and why others did not.
 *
 * A program makes the same calls on many ranks, so a count of the job is the largest of any rank. */
#include "tally.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t reason, ranks, file, calls;
} Row;
enum { COLUMNS = sizeof(Row) / sizeof(int64_t) };

static const char *const WORDS[] = {
    [OTHER_RANKS] = "other ones than the schedule is for",
    [OTHER_HOSTS] = "on other hosts than the schedule names",
    [SAME_HOST] = "and --rank-map names two of one host",
    [NO_SHARED] = "and those of a host cannot share enough memory",
    [NOT_PENDING] = "several on a host, which MPI_Ialltoall does not serve",
    [UNREADABLE] = "its schedule could not be loaded",
    [DIFFERENT] = "which were given different schedules",
    [SMALL] = "shards are smaller than the least size given",
    [LARGE] = "shards are 2 GiB or larger",
    [EMPTY] = "there are no bytes to send",
    [NO_CHUNKS] = "the schedule has no chunks for some pairs",
    [NO_THREADS] = "MPI_Ialltoall needs MPI_THREAD_MULTIPLE",
    [UNKNOWN] = "MPI_Ialltoall came before any call that waits",
    [BETWEEN] = "it joins two groups",
    [OTHER_CALL] = "MPI_Ialltoallv, MPI_Alltoallw and MPI_Ialltoallw use no schedule",
};

static Row *rows;
static int row_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Return the row of a reason and a size, a new one if need be; NULL without memory. */
static Row *row_of(int64_t reason, int64_t ranks, int64_t file)
{
    for (int i = 0; i < row_count; i++)
        if (rows[i].reason == reason && rows[i].ranks == ranks && rows[i].file == file)
            return &rows[i];
    Row *more = realloc(rows, sizeof(Row) * (size_t)(row_count + 1));
    if (!more)
        return NULL;
    rows = more;
    rows[row_count] = (Row){reason, ranks, file, 0};
    return &rows[row_count++];
}

void a2a_count(Reason reason, int ranks, int file)
{
    pthread_mutex_lock(&lock);
    Row *row = row_of(reason, ranks, file);
    if (row)
        row->calls++;
    pthread_mutex_unlock(&lock);
}

static void merge(const Row *others, int count)
{
    for (int i = 0; i < count; i++) {
        Row *row =
            others[i].calls ? row_of(others[i].reason, others[i].ranks, others[i].file) : NULL;
        if (row && row->calls < others[i].calls)
            row->calls = others[i].calls;
    }
}

void a2a_gather_counts(void)
{
    int rank, size, most = 0, ready = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Allreduce(&row_count, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    int places = rank ? 0 : size * most;
    Row *mine = calloc((size_t)most + 1, sizeof(Row)), *all = calloc((size_t)places + 1, sizeof(Row));
    int has_room = mine && all;
    PMPI_Allreduce(&has_room, &ready, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (ready) {
        if (row_count)
            memcpy(mine, rows, sizeof(Row) * (size_t)row_count);
        PMPI_Gather(mine, most * COLUMNS, MPI_INT64_T, all, most * COLUMNS, MPI_INT64_T, 0,
                    MPI_COMM_WORLD);
        merge(all, places);
    }
    free(mine);
    free(all);
}

int64_t a2a_counted(int used)
{
    int64_t total = 0;
    for (int i = 0; i < row_count; i++)
        if ((rows[i].reason == USED) == used)
            total += rows[i].calls;
    return total;
}

/* Write the sizes of schedules, each once; return how many there are. */
static int write_sizes(FILE *line, const Schedule *schedules, int count)
{
    int written = 0;
    for (int i = 0; i < count; i++) {
        int known = 0;
        for (int k = 0; k < i; k++)
            known |= schedules[k].ranks == schedules[i].ranks;
        if (!known && line)
            fprintf(line, "%s%d", written ? ", " : "", schedules[i].ranks);
        written += !known;
    }
    return written;
}

static void write_reason(FILE *line, const Row *row, const Schedule *schedules, int count)
{
    fprintf(line, "communicator has %lld ranks, ", (long long)row->ranks);
    if (row->reason != OTHER_SIZE)
        fputs(WORDS[row->reason], line);
    else {
        fputs(write_sizes(NULL, schedules, count) == 1 ? "schedule has " : "schedules have ", line);
        write_sizes(line, schedules, count);
    }
}

static void write_counts(FILE *line, const char *about, const Schedule *schedules, int count)
{
    int64_t used = a2a_counted(1), total = used + a2a_counted(0);
    int reasons = 0;
    fprintf(line, "alltoall: %lld of %lld all-to-all%s used %s%s", (long long)used,
            (long long)total, total == 1 ? "" : "s",
            write_sizes(NULL, schedules, count) == 1 ? "the schedule" : "schedules", about);
    for (int i = 0; i < row_count; i++)
        reasons += rows[i].reason != USED;
    const char *between = ": ";
    for (int i = 0; i < row_count; i++) {
        if (rows[i].reason == USED)
            continue;
        fputs(between, line);
        if (reasons > 1)
            fprintf(line, "%lld where ", (long long)rows[i].calls);
        write_reason(line, &rows[i], schedules, count);
        between = "; ";
    }
    fputc('\n', line);
}

/* Say which schedule served how many all-to-alls. */
static void write_used(FILE *line, const Schedule *schedules, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < row_count && (!i || schedules[i].file != schedules[i - 1].file); k++)
            if (rows[k].reason == USED && rows[k].file == schedules[i].file)
                fprintf(line, "alltoall: %s: %lld on communicators of %lld ranks\n",
                        schedules[i].label, (long long)rows[k].calls, (long long)rows[k].ranks);
}

void a2a_say_counts(const char *about, const Schedule *schedules, int count, int each)
{
    char *text = NULL;
    size_t length;
    FILE *line = open_memstream(&text, &length);
    if (!line)
        return;
    write_counts(line, about, schedules, count);
    if (each)
        write_used(line, schedules, count);
    if (!fclose(line))
        fputs(text, stderr); /* in one piece: other ranks may be printing, too */
    free(text);
}

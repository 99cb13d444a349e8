/* A program that knows nothing of alltoall: every way to make an all-to-all, and what must come of it.
 *
 *   mpiexec -n N ./alltoalls [multiple]
 *
 * Prints `right` on rank 0 if every value is where it must be; else what is wrong, and exits with 1.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

static int value(int source, int destination, int index)
{
    return source * 1000003 + destination * 1009 + index;
}

static void expect(const char *what, int found, int expected)
{
    if (found != expected && wrong++ < 5)
        fprintf(stderr, "%s: found %d, expected %d\n", what, found, expected);
}

static void equal_shards(MPI_Comm comm, int count, int in_place, int waits)
{
    int ranks, rank;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    int *send = malloc(sizeof(int) * ranks * count), *receive = malloc(sizeof(int) * ranks * count);
    for (int d = 0; d < ranks; d++)
        for (int i = 0; i < count; i++) {
            send[d * count + i] = value(rank, d, i);
            receive[d * count + i] = in_place ? send[d * count + i] : -1;
        }
    void *from = in_place ? MPI_IN_PLACE : send;
    if (waits)
        MPI_Alltoall(from, count, MPI_INT, receive, count, MPI_INT, comm);
    else {
        MPI_Request request;
        MPI_Ialltoall(from, count, MPI_INT, receive, count, MPI_INT, comm, &request);
        MPI_Barrier(comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int s = 0; s < ranks; s++)
        for (int i = 0; i < count; i++)
            expect(waits ? "alltoall" : "ialltoall", receive[s * count + i], value(s, rank, i));
    free(send);
    free(receive);
}

/* Several at once, on two communicators that ranks use in different orders. */
static void crossed(MPI_Comm comm, int count)
{
    int ranks, rank;
    MPI_Comm other;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_dup(comm, &other);
    equal_shards(other, count, 0, 1);
    int *buffers = malloc(sizeof(int) * ranks * count * 4);
    int *send[2] = {buffers, buffers + ranks * count};
    int *receive[2] = {buffers + 2 * ranks * count, buffers + 3 * ranks * count};
    MPI_Comm comms[2] = {comm, other};
    MPI_Request requests[2];
    for (int d = 0; d < ranks; d++)
        for (int i = 0; i < count; i++)
            for (int k = 0; k < 2; k++)
                send[k][d * count + i] = value(rank, d, i) + k;
    for (int turn = 0; turn < 2; turn++) {
        int k = rank % 2 ? turn : 1 - turn;
        MPI_Ialltoall(send[k], count, MPI_INT, receive[k], count, MPI_INT, comms[k], &requests[k]);
    }
    MPI_Comm_free(&other);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int s = 0; s < ranks; s++)
        for (int i = 0; i < count; i++)
            for (int k = 0; k < 2; k++)
                expect("crossed", receive[k][s * count + i], value(s, rank, i) + k);
    free(buffers);
}

/* Every other value, sent by a derived type and received by a plain one, and the other way round. */
static void derived(MPI_Comm comm, int count, int sends)
{
    int ranks, rank;
    MPI_Datatype spaced, type;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    MPI_Type_vector(count, 1, 2, MPI_INT, &spaced);
    MPI_Type_create_resized(spaced, 0, 2 * count * sizeof(int), &type);
    MPI_Type_commit(&type);
    int *wide = malloc(sizeof(int) * ranks * count * 2), *tight = malloc(sizeof(int) * ranks * count);
    /* Only odd ranks use the derived type: whether a call is taken must not depend on it. */
    int use = rank % 2;
    for (int d = 0; d < ranks; d++)
        for (int i = 0; i < count; i++) {
            wide[(d * count + i) * 2] = sends ? value(rank, d, i) : -1;
            wide[(d * count + i) * 2 + 1] = -7;
            tight[d * count + i] = sends ? -1 : value(rank, d, i);
        }
    if (!use && sends)
        for (int i = 0; i < ranks * count; i++)
            wide[i] = value(rank, i / count, i % count);
    int wide_count = use ? 1 : count;
    MPI_Datatype wide_type = use ? type : MPI_INT;
    if (sends)
        MPI_Alltoall(wide, wide_count, wide_type, tight, count, MPI_INT, comm);
    else
        MPI_Alltoall(tight, count, MPI_INT, wide, wide_count, wide_type, comm);
    for (int s = 0; s < ranks; s++)
        for (int i = 0; i < count; i++) {
            int at = s * count + i;
            expect("derived", sends ? tight[at] : use ? wide[at * 2] : wide[at], value(s, rank, i));
            if (!sends && use)
                expect("between derived", wide[at * 2 + 1], -7);
        }
    MPI_Type_free(&spaced);
    MPI_Type_free(&type);
    free(wide);
    free(tight);
}

static int count_of(int source, int destination, int scale)
{
    int other = (source * 5 + destination * 3) % 4;
    return source == 1 || destination == 2 ? 0 : other * scale + (source + destination) % 3;
}

static void uneven(MPI_Comm comm, int scale, int in_place)
{
    int ranks, rank, sent = 0, received = 0;
    MPI_Comm_size(comm, &ranks);
    MPI_Comm_rank(comm, &rank);
    int *numbers = malloc(sizeof(int) * ranks * 4);
    int *counts = numbers, *places = numbers + ranks, *taken = places + ranks, *at = taken + ranks;
    for (int r = 0; r < ranks; r++) {
        int low = r < rank ? r : rank, high = r < rank ? rank : r;
        counts[r] = in_place ? count_of(low, high, scale) : count_of(rank, r, scale);
        taken[r] = in_place ? count_of(low, high, scale) : count_of(r, rank, scale);
        places[r] = sent + 3 * r; /* with gaps */
        at[r] = received + r;
        sent += counts[r];
        received += taken[r];
    }
    int *send = malloc(sizeof(int) * (sent + 4 * ranks + 1));
    int *receive = malloc(sizeof(int) * (received + 2 * ranks + 1));
    for (int i = 0; i < received + 2 * ranks; i++)
        receive[i] = -7;
    for (int d = 0; d < ranks; d++)
        for (int i = 0; i < counts[d]; i++)
            *(in_place ? &receive[at[d] + i] : &send[places[d] + i]) = value(rank, d, i);
    MPI_Alltoallv(in_place ? MPI_IN_PLACE : send, counts, places, MPI_INT, receive, taken, at,
                  MPI_INT, comm);
    for (int s = 0; s < ranks; s++) {
        for (int i = 0; i < taken[s]; i++)
            expect("alltoallv", receive[at[s] + i], value(s, rank, i));
        expect("between alltoallv", receive[at[s] + taken[s]], -7);
    }
    free(numbers);
    free(send);
    free(receive);
}

static void all_kinds(MPI_Comm comm, int count)
{
    for (int twice = 0; twice < 2; twice++) {
        equal_shards(comm, count, 0, 1);
        equal_shards(comm, count, 1, 1);
        equal_shards(comm, count, 0, 0);
        derived(comm, count, 1);
        derived(comm, count, 0);
        uneven(comm, count, 0);
        uneven(comm, count, 1);
    }
}

int main(int argc, char **argv)
{
    int multiple = argc > 1 && !strcmp(argv[1], "multiple"), given = MPI_THREAD_SINGLE;
    if (multiple)
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    else
        MPI_Init(&argc, &argv);
    int ranks, rank, total;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    static const int COUNTS[] = {1, 7, 250, 5000, 60001};
    for (int i = 0; i < 5; i++)
        all_kinds(MPI_COMM_WORLD, COUNTS[i]);
    MPI_Comm copy, turned, half;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &turned);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    all_kinds(copy, 300);
    all_kinds(turned, 300);
    all_kinds(half, 300);
    crossed(MPI_COMM_WORLD, 300);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&turned);
    MPI_Comm_free(&half);
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf(total ? "%d values are wrong\n" : "right\n", total);
    MPI_Finalize();
    return total > 0;
}

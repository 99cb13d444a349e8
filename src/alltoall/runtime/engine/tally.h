/* All-to-alls counted by what became of them: they used a schedule, or a reason why not. */
#ifndef ALLTOALL_TALLY_H
#define ALLTOALL_TALLY_H

#include <stdint.h>

typedef enum {
    USED,
    OTHER_SIZE,
    OTHER_RANKS,
    OTHER_HOSTS,
    SAME_HOST,
    NO_SHARED,
    NOT_PENDING,
    UNREADABLE,
    DIFFERENT,
    SMALL,
    LARGE,
    EMPTY,
    NO_CHUNKS,
    NO_THREADS,
    UNKNOWN,
    BETWEEN,
    OTHER_CALL
} Reason;

/* A schedule, by what the user calls it, which of the files it is of, and for how many ranks. */
typedef struct {
    const char *label;
    int32_t file, ranks;
} Schedule;

/* Count an all-to-all of a communicator of so many ranks and, if one was used, its file. */
void a2a_count(Reason reason, int ranks, int file);

/* Gather the counts of all ranks of the world at its rank 0. Collective. */
void a2a_gather_counts(void);

/* Return the number of all-to-alls that used a schedule or, with 0, of those that did not. */
int64_t a2a_counted(int used);

/* Print one line with the counts; `about` is put behind them. And, if `each`, one for each schedule. */
void a2a_say_counts(const char *about, const Schedule *schedules, int count, int each);

#endif

/* All-to-alls counted by what became of them: they used a schedule, or a reason why not. */
#ifndef ALLTOALL_TALLY_H
#define ALLTOALL_TALLY_H

#include <stdint.h>

typedef enum {
    USED,
    OTHER_SIZE,
    OTHER_RANKS,
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

/* Count an all-to-all of a communicator of so many ranks. */
void a2a_count(Reason reason, int ranks);

/* Gather the counts of all ranks of the world at its rank 0. Collective. */
void a2a_gather_counts(void);

/* Return the number of all-to-alls that used a schedule or, with 0, of those that did not. */
int64_t a2a_counted(int used);

/* Print one line with the counts; `about` is put behind them, `sizes` are those of the schedules. */
void a2a_say_counts(const char *about, const int32_t *sizes, int count);

#endif

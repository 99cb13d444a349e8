/* What a rank sends and receives. Nothing of a file is believed: whatever a plan is used for later,
 * its numbers have been held against each other here, so that no index leaves its array and no
 * message waits for a later one. */
#include "engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_COLUMNS = 5, RANGE_COLUMNS = 8, INDEX_COLUMNS = 5, MAX_LINE = 4096 };
enum { MAX_RANKS = 65536, MAX_UNEVEN_RANKS = 8192 };
static const char FORMAT[] = "alltoall.messages/1\n";

typedef struct {
    int32_t sends, peer, step, ranges, waits;
} MessageRow;

static void *fail(char *error, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    vsnprintf(error, ERROR_BYTES, format, words);
    va_end(words);
    return NULL;
}

static int32_t *numbers(size_t count)
{
    return calloc(count ? count : 1, sizeof(int32_t));
}

void a2a_plan_free(Plan *plan)
{
    if (!plan)
        return;
    free(plan->chunks);
    free(plan->sends);
    free(plan->peer);
    free(plan->step);
    free(plan->first);
    free(plan->ranges);
    free(plan->needs);
    free(plan->followers);
    free(plan->followers_first);
    free(plan->next_alike);
    free(plan);
}

/* Messages: with other ranks, by step, receives before sends, then by peer. */
static int messages_fit(Plan *plan, const MessageRow *rows, int32_t ranges, int32_t waits)
{
    int64_t used_ranges = 0, used_waits = 0, before = -1;
    for (int32_t i = 0; i < plan->messages; i++) {
        const MessageRow *row = &rows[i];
        if (row->sends < 0 || row->sends > 1 || row->peer < 0 || row->peer >= plan->ranks ||
            row->peer == plan->rank || row->step < 0 || row->step >= plan->steps ||
            row->ranges < 1 || row->waits < 0)
            return 0;
        int64_t place = ((int64_t)row->step * 2 + row->sends) * plan->ranks + row->peer;
        if (place <= before)
            return 0;
        before = place;
        plan->sends[i] = row->sends;
        plan->peer[i] = row->peer;
        plan->step[i] = row->step;
        plan->first[i] = (int32_t)used_ranges;
        used_ranges += row->ranges;
        used_waits += row->waits;
        if (used_ranges > ranges || used_waits > waits)
            return 0;
    }
    plan->first[plan->messages] = ranges;
    return used_ranges == ranges && used_waits == waits;
}

static int in_scratch(const Plan *plan, int32_t slot, int32_t count)
{
    return slot >= 0 && slot <= plan->scratch - count;
}

static int range_fits(const Plan *plan, int32_t message, const Range *range)
{
    int32_t sends = plan->sends[message], peer = plan->peer[message];
    int32_t sender = sends ? plan->rank : peer, receiver = sends ? peer : plan->rank;
    if (range->source < 0 || range->source >= plan->ranks || range->destination < 0 ||
        range->destination >= plan->ranks || range->source == range->destination)
        return 0;
    int32_t chunks = a2a_chunks(plan, range->source, range->destination);
    if (range->chunk < 0 || range->count < 1 || range->count > chunks - range->chunk)
        return 0;
    int32_t from = sender == range->source        ? INPUT
                   : sender == range->destination ? OUTPUT
                                                  : SCRATCH;
    int32_t to = receiver == range->destination ? OUTPUT : SCRATCH;
    if (range->from_buffer != from || range->to_buffer != to)
        return 0;
    int32_t here = sends ? from : to;
    return here != SCRATCH ||
           in_scratch(plan, sends ? range->from_slot : range->to_slot, range->count);
}

/* Turn who waits for whom around, and add that what is sent to a peer, and what is received from
 * one, starts in the order of steps: else later ones overtake on the link, and what the next step
 * needs comes late. */
static int order(Plan *plan, const MessageRow *rows, const int32_t *waits, int32_t count)
{
    int32_t *last = malloc(2 * sizeof(int32_t) * (size_t)plan->ranks);
    if (!last)
        return 0;
    memset(last, -1, 2 * sizeof(int32_t) * (size_t)plan->ranks);
    for (int32_t i = 0; i < plan->messages; i++) {
        int32_t *before = &last[2 * plan->peer[i] + plan->sends[i]];
        plan->next_alike[i] = -1;
        plan->needs[i] = rows[i].waits;
        if (*before >= 0) {
            plan->next_alike[*before] = i;
            plan->needs[i]++;
        }
        *before = i;
    }
    free(last);
    const int32_t *wait = waits;
    for (int32_t i = 0; i < plan->messages; i++)
        for (int32_t k = 0; k < rows[i].waits; k++, wait++) {
            if (*wait < 0 || *wait >= plan->messages || plan->step[*wait] >= plan->step[i])
                return 0;
            plan->followers_first[*wait + 1]++;
        }
    for (int32_t i = 0; i < plan->messages; i++)
        plan->followers_first[i + 1] += plan->followers_first[i];
    int32_t *place = malloc(sizeof(int32_t) * ((size_t)plan->messages + 1));
    if (!place)
        return 0;
    memcpy(place, plan->followers_first, sizeof(int32_t) * ((size_t)plan->messages + 1));
    wait = waits;
    for (int32_t i = 0; i < plan->messages; i++)
        for (int32_t k = 0; k < rows[i].waits; k++)
            plan->followers[place[*wait++]++] = i;
    free(place);
    return plan->followers_first[plan->messages] == count;
}

Plan *a2a_plan_new(int32_t ranks, int32_t rank, int32_t steps, int32_t per_shard,
                   const int32_t *chunks, int32_t scratch, int32_t messages,
                   const int32_t *message_rows, int32_t ranges, const Range *range_rows,
                   int32_t waits, const int32_t *wait_rows, char *error)
{
    if (ranks < 2 || ranks > MAX_RANKS || rank < 0 || rank >= ranks || steps < 1 || scratch < 0 ||
        messages < 0 || ranges < 0 || waits < 0 || (per_shard < 1) != (chunks != NULL) ||
        (chunks && ranks > MAX_UNEVEN_RANKS))
        return fail(error, "rank %d of %d, %d steps, %d chunks: not what a plan can have", rank,
                    ranks, steps, per_shard);
    Plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return fail(error, "no memory");
    plan->ranks = ranks;
    plan->rank = rank;
    plan->steps = steps;
    plan->per_shard = per_shard;
    plan->scratch = scratch;
    plan->messages = messages;
    size_t pairs = chunks ? (size_t)ranks * ranks : 0;
    plan->chunks = chunks ? numbers(pairs) : NULL;
    plan->sends = numbers(messages);
    plan->peer = numbers(messages);
    plan->step = numbers(messages);
    plan->first = numbers((size_t)messages + 1);
    plan->ranges = calloc(ranges ? ranges : 1, sizeof(Range));
    plan->needs = numbers(messages);
    plan->followers = numbers(waits);
    plan->followers_first = numbers((size_t)messages + 1);
    plan->next_alike = numbers(messages);
    const MessageRow *rows = (const MessageRow *)message_rows;
    const char *wrong = NULL;
    if ((chunks && !plan->chunks) || !plan->sends || !plan->peer || !plan->step || !plan->first ||
        !plan->ranges || !plan->needs || !plan->followers || !plan->followers_first ||
        !plan->next_alike)
        wrong = "no memory";
    else {
        if (chunks)
            memcpy(plan->chunks, chunks, sizeof(int32_t) * pairs);
        if (ranges)
            memcpy(plan->ranges, range_rows, sizeof(Range) * (size_t)ranges);
        if (!messages_fit(plan, rows, ranges, waits))
            wrong = "messages that are not with other ranks, in order, and of all ranges and waits";
        for (int32_t i = 0; !wrong && i < messages; i++)
            for (int32_t k = plan->first[i]; !wrong && k < plan->first[i + 1]; k++)
                if (!range_fits(plan, i, &plan->ranges[k]))
                    wrong = "a range that its pair, its ends or scratch have not";
        if (!wrong && !order(plan, rows, wait_rows, waits))
            wrong = "a message that waits for one of no earlier step";
    }
    if (wrong) {
        a2a_plan_free(plan);
        return fail(error, "rank %d: %s", rank, wrong);
    }
    return plan;
}

/* A file: numbers in lines, each written in one way only. */

static int get_line(FILE *file, char *line)
{
    if (!fgets(line, MAX_LINE, file))
        return 0;
    size_t length = strlen(line);
    return length > 0 && line[length - 1] == '\n';
}

/* Read a number that ends in `end`; return what follows, or NULL if there is none. */
static const char *get_number(const char *text, const char *limit, char end, int32_t *value)
{
    const char *start = text;
    int64_t number = 0;
    while (text < limit && *text >= '0' && *text <= '9' && text - start < 10)
        number = number * 10 + (*text++ - '0');
    if (text == start || text == limit || *text != end || number > INT32_MAX ||
        (*start == '0' && text - start > 1))
        return NULL;
    *value = (int32_t)number;
    return text + 1;
}

static const char *get_row(const char *text, const char *limit, int columns, int32_t *row)
{
    for (int i = 0; text && i < columns; i++)
        text = get_number(text, limit, i + 1 < columns ? ' ' : '\n', &row[i]);
    return text;
}

static int get_keyed(FILE *file, char *line, const char *key, int32_t *value)
{
    size_t length = strlen(key);
    return get_line(file, line) && !strncmp(line, key, length) && line[length] == ' ' &&
           get_row(line + length + 1, line + strlen(line), 1, value) == line + strlen(line);
}

/* Read how many chunks each pair has, where they differ. The demand that each line ends in is for
 * others: a call says how many bytes a pair has. */
static int32_t *get_chunks(FILE *file, char *line, int32_t ranks, int32_t shards)
{
    int32_t *chunks = numbers((size_t)ranks * ranks);
    for (int32_t i = 0; chunks && i < shards; i++) {
        int32_t row[3] = {0};
        const char *at = get_line(file, line) ? line : NULL, *limit = line + strlen(line);
        for (int k = 0; at && k < 3; k++)
            at = get_number(at, limit, ' ', &row[k]);
        if (!at || row[0] >= ranks || row[1] >= ranks || row[0] == row[1] || row[2] < 1) {
            free(chunks);
            return NULL;
        }
        chunks[(size_t)row[0] * ranks + row[1]] = row[2];
    }
    return chunks;
}

static Plan *get_section(FILE *file, int32_t ranks, int32_t rank, int32_t steps, int32_t per_shard,
                         const int32_t *chunks, const int32_t *index, char *error)
{
    size_t bytes = (size_t)index[4];
    size_t sizes[3] = {(size_t)index[0], (size_t)index[1], (size_t)index[2]};
    int columns[3] = {MESSAGE_COLUMNS, RANGE_COLUMNS, 1};
    size_t wanted = 0;
    for (int i = 0; i < 3; i++)
        wanted += sizes[i] * (size_t)columns[i];
    if (2 * wanted > bytes)
        return fail(error, "rank %d: a section of %zu bytes for %zu numbers", rank, bytes, wanted);
    char *text = malloc(bytes + 1);
    int32_t *values = numbers(wanted), *value = values;
    Plan *plan = NULL;
    const char *at = text;
    if (!text || !values)
        fail(error, "no memory");
    else if (fread(text, 1, bytes, file) != bytes)
        fail(error, "rank %d: the file ends early", rank);
    else {
        for (int i = 0; i < 3; i++)
            for (size_t row = 0; at && row < sizes[i]; row++, value += columns[i])
                at = get_row(at, text + bytes, columns[i], value);
        const int32_t *ranges = values + sizes[0] * MESSAGE_COLUMNS;
        if (at != text + bytes)
            fail(error, "rank %d: numbers are not written as expected", rank);
        else
            plan = a2a_plan_new(ranks, rank, steps, per_shard, chunks, index[3], index[0], values,
                                index[1], (const Range *)ranges, index[2],
                                ranges + sizes[1] * RANGE_COLUMNS, error);
    }
    free(text);
    free(values);
    return plan;
}

static Plan *get_plan(FILE *file, int32_t wanted, int32_t rank, char *error)
{
    char line[MAX_LINE] = "";
    int32_t ranks, steps, per_shard, shards, mine[INDEX_COLUMNS] = {0};
    if (!get_line(file, line) || strcmp(line, FORMAT))
        return fail(error, "the first line is not %.18s", FORMAT);
    if (!get_line(file, line) || strncmp(line, "name ", 5))
        return fail(error, "there is no name");
    if (!get_keyed(file, line, "ranks", &ranks) || ranks < 2 || ranks > MAX_RANKS ||
        !get_keyed(file, line, "steps", &steps) || !get_keyed(file, line, "chunks", &per_shard) ||
        !get_keyed(file, line, "shards", &shards) || (per_shard && shards))
        return fail(error, "ranks, steps, chunks or shards are missing or out of range");
    if (ranks != wanted)
        return fail(error, "messages of %d ranks, not %d", ranks, wanted);
    if (!per_shard && ranks > MAX_UNEVEN_RANKS)
        return fail(error, "uneven shards of %d ranks; at most %d", ranks, MAX_UNEVEN_RANKS);
    int32_t *chunks = per_shard ? NULL : get_chunks(file, line, ranks, shards);
    if (!per_shard && !chunks)
        return fail(error, "the shards are not as expected");
    long before = 0;
    for (int32_t each = 0; each < ranks; each++) {
        int32_t row[INDEX_COLUMNS];
        if (!get_line(file, line) ||
            get_row(line, line + strlen(line), INDEX_COLUMNS, row) != line + strlen(line)) {
            free(chunks);
            return fail(error, "the index of rank %d is not as expected", each);
        }
        if (each < rank)
            before += row[4];
        if (each == rank)
            memcpy(mine, row, sizeof mine);
    }
    long here = ftell(file);
    Plan *plan = NULL;
    /* What the index claims must be in the file before anything of that size is allocated. */
    if (here < 0 || fseek(file, 0, SEEK_END) || ftell(file) - here - before < mine[4] ||
        fseek(file, here + before, SEEK_SET))
        fail(error, "rank %d: the file ends before its section does", rank);
    else
        plan = get_section(file, ranks, rank, steps, per_shard, chunks, mine, error);
    free(chunks);
    return plan;
}

Plan *a2a_plan_read(const char *path, int32_t ranks, int32_t rank, char *error)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return fail(error, "cannot be opened");
    Plan *plan = get_plan(file, ranks, rank, error);
    fclose(file);
    return plan;
}

/* Which schedules there are, and which rank is which terminal: by the hosts' names, by a map of
 * ranks, or in order. All of it comes out alike on all ranks, which know all hosts. */
#include "entries.h"

#include <ctype.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_PRIME 16777619u /* of the hash FNV-1a */
#define LONG_PRIME UINT64_C(1099511628211)
enum { NAME_BYTES = 256, MAX_TOLD = 4 };

/* A host's name in numbers: whole, and up to its first dot. */
typedef struct {
    uint64_t full, brief;
} Name;

static Name *hosts;        /* of each rank of the world */
static int32_t *host_of;   /* their numbers, in the order of their first ranks */
static int32_t host_count, world_ranks;
static char own_name[NAME_BYTES], *names; /* those of all ranks, if they are to be printed */

void a2a_warn(const char *label, const char *error)
{
    fprintf(stderr, "alltoall: %s: %s; the MPI library's own all-to-all is used\n", label, error);
}

static int32_t *numbers_in(const char *at, int32_t count)
{
    int32_t *found = malloc(sizeof(int32_t) * (size_t)count);
    char *end = (char *)at;
    for (int32_t i = 0; found && i < count; i++)
        found[i] = (int32_t)strtol(end, &end, 10);
    return found;
}

/* Read one line of those that describe an entry. */
static void read_line(Entry *entry, char *line)
{
    int used = 0;
    if (sscanf(line, "from %d %n", &entry->file, &used) == 1 && used)
        entry->label = strdup(line + used);
    else if (sscanf(line, "part %d %n", &entry->total, &used) == 1 && used)
        entry->part = numbers_in(line + used, entry->ranks);
    else if (!strncmp(line, "map ", 4))
        entry->world = numbers_in(line + 4, entry->ranks);
    else if (!strncmp(line, "name ", 5)) {
        if (!entry->names)
            entry->names = calloc((size_t)entry->ranks, sizeof(char *));
        if (entry->names && entry->named < entry->ranks)
            entry->names[entry->named++] = strdup(line + 5);
    }
}

/* Lines `report` or `quiet`; `file RANKS LEAST PATH`; and of it `from FILE LABEL`, `part TOTAL T0 T1
 * ...`, `map R0 R1 ...`, and a `name` for each terminal. */
void a2a_read_entries(Entries *all)
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
            a2a_warn(path ? path : "ALLTOALL_WRAP", "cannot be read");
        return;
    }
    while ((length = getline(&line, &room, file)) > 0) {
        for (ssize_t k = 0; k < length; k++)
            all->mark = (all->mark ^ (unsigned char)line[k]) * HASH_PRIME + 1;
        if (line[length - 1] == '\n')
            line[length - 1] = 0;
        Entry entry = {0};
        long long least;
        int used = 0;
        if (!strcmp(line, "report"))
            all->report = 1;
        else if (!strcmp(line, "quiet"))
            all->quiet = 1;
        else if (sscanf(line, "file %d %lld %n", &entry.ranks, &least, &used) == 2 && used) {
            Entry *more = realloc(all->entries, sizeof(Entry) * (size_t)(all->count + 1));
            entry.path = entry.label = strdup(line + used);
            entry.least = least;
            entry.total = entry.ranks;
            if (!more || !entry.path)
                break;
            all->entries = more;
            all->entries[all->count++] = entry;
        } else if (all->count)
            read_line(&all->entries[all->count - 1], line);
    }
    free(line);
    fclose(file);
}

/* Upper and lower case are one in names of hosts; an address in numbers has no short form. */
static Name name_of(const char *text)
{
    Name name = {UINT64_C(14695981039346656037), 0};
    for (; *text; text++) {
        if (*text == '.' && !name.brief)
            name.brief = name.full;
        name.full = (name.full ^ (uint64_t)tolower((unsigned char)*text)) * LONG_PRIME;
    }
    if (!name.brief || isdigit((unsigned char)text[-1]))
        name.brief = name.full;
    return name;
}

void a2a_gather_hosts(int report)
{
    int length, ready[2], every[2] = {0};
    const char *told = getenv("ALLTOALL_HOST");
    char name[MPI_MAX_PROCESSOR_NAME];
    if (hosts)
        return;
    if (!told) {
        PMPI_Get_processor_name(name, &length);
        told = name;
    }
    snprintf(own_name, sizeof own_name, "%s", told);
    PMPI_Comm_size(MPI_COMM_WORLD, &world_ranks);
    size_t ranks = (size_t)world_ranks;
    hosts = malloc(sizeof(Name) * ranks);
    host_of = malloc(sizeof(int32_t) * ranks);
    names = report ? malloc(NAME_BYTES * ranks) : NULL;
    ready[0] = hosts && host_of;
    ready[1] = names != NULL;
    PMPI_Allreduce(ready, every, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!every[1]) {
        free(names);
        names = NULL;
    }
    if (!every[0]) {
        free(hosts);
        hosts = NULL;
        return;
    }
    Name own = name_of(own_name);
    PMPI_Allgather(&own, 2, MPI_UINT64_T, hosts, 2, MPI_UINT64_T, MPI_COMM_WORLD);
    if (names)
        PMPI_Allgather(own_name, NAME_BYTES, MPI_CHAR, names, NAME_BYTES, MPI_CHAR,
                       MPI_COMM_WORLD);
    for (int32_t r = 0; r < world_ranks; r++) {
        int32_t before = 0;
        while (hosts[before].full != hosts[r].full)
            before++;
        host_of[r] = before == r ? host_count++ : host_of[before];
    }
}

/* Return the terminal with the name of a rank's host, by the short names if only one has it; or -1. */
static int32_t terminal_named(const Name *terminals, int32_t count, const Name *host)
{
    int32_t found = -1, alike = 0;
    for (int32_t t = 0; t < count; t++)
        if (terminals[t].full == host->full)
            return t;
    for (int32_t t = 0; t < count; t++)
        if (terminals[t].brief == host->brief) {
            found = t;
            alike++;
        }
    return alike == 1 ? found : -1;
}

static int32_t place_in(const int32_t *values, int32_t count, int32_t value)
{
    for (int32_t i = 0; i < count; i++)
        if (values[i] == value)
            return i;
    return -1;
}

static void by_name(const Entry *entry, int32_t ranks, const int *world, int32_t *role)
{
    Name *terminals = malloc(sizeof(Name) * (size_t)entry->ranks);
    for (int32_t t = 0; terminals && t < entry->ranks; t++)
        terminals[t] = name_of(entry->names[t]);
    for (int32_t r = 0; r < ranks; r++) {
        int alike = r && host_of[world[r]] == host_of[world[r - 1]];
        role[r] = !terminals ? -1
                  : alike    ? role[r - 1]
                             : terminal_named(terminals, entry->ranks, &hosts[world[r]]);
    }
    free(terminals);
}

/* By the ranks that a map names: these, or all that are on their hosts. */
static Reason by_map(const Entry *entry, int32_t ranks, const int *world, int32_t *role)
{
    int direct = ranks == entry->ranks;
    for (int32_t r = 0; direct && r < ranks; r++)
        direct = (role[r] = place_in(entry->world, entry->ranks, world[r])) >= 0;
    if (direct || ranks <= entry->ranks || !hosts)
        return OTHER_RANKS;
    int32_t *terminal = malloc(sizeof(int32_t) * (size_t)host_count);
    Reason why = terminal ? OTHER_RANKS : UNREADABLE;
    for (int32_t h = 0; terminal && h < host_count; h++)
        terminal[h] = -1;
    for (int32_t t = 0; terminal && t < entry->ranks; t++) {
        if (entry->world[t] >= world_ranks)
            continue;
        int32_t *host = &terminal[host_of[entry->world[t]]];
        if (*host >= 0)
            why = SAME_HOST;
        *host = t;
    }
    for (int32_t r = 0; r < ranks; r++)
        role[r] = terminal && why == OTHER_RANKS ? terminal[host_of[world[r]]] : -1;
    free(terminal);
    return why;
}

/* The ranks or hosts of the world in order, if there are as many as terminals; else those of the
 * communicator. */
static void in_order(const Entry *entry, int32_t ranks, const int *world, int32_t *role)
{
    int size;
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    int by_host = size != entry->total && hosts && host_count == entry->total;
    for (int32_t r = 0; r < ranks; r++) {
        int32_t terminal = size == entry->total ? world[r] : by_host ? host_of[world[r]] : r;
        role[r] = entry->part ? place_in(entry->part, entry->ranks, terminal) : terminal;
    }
}

/* Whether every rank is a terminal, and every terminal has a rank. */
static int covers(int32_t terminals, int32_t ranks, const int32_t *role)
{
    char *seen = calloc((size_t)terminals, 1);
    int32_t found = 0;
    int fits = seen != NULL;
    for (int32_t r = 0; fits && r < ranks; r++) {
        fits = role[r] >= 0 && role[r] < terminals;
        if (fits && !seen[role[r]]) {
            seen[role[r]] = 1;
            found++;
        }
    }
    free(seen);
    return fits && found == terminals;
}

/* Say once that a schedule of the world's size names other hosts. */
static void say_stranger(Entry *entry, int32_t ranks, int32_t rank, const int32_t *role)
{
    char text[2 * NAME_BYTES + 64 * MAX_TOLD];
    int32_t first = place_in(role, ranks, -1), strangers = 0, at = 0;
    if (entry->told || entry->part || ranks != world_ranks)
        return;
    entry->told = 1;
    for (int32_t r = 0; r < ranks; r++)
        strangers += role[r] < 0;
    if (rank != (strangers ? first : 0))
        return;
    if (strangers)
        at = snprintf(text, sizeof text, "host %s%s is none of its terminals, ", own_name,
                      strangers > 1 ? " and those of other ranks" : "");
    for (int32_t t = 0, told = 0; t < entry->ranks && told <= MAX_TOLD; t++)
        if (strangers || place_in(role, ranks, t) < 0)
            at += snprintf(text + at, sizeof text - (size_t)at, told++ == MAX_TOLD ? "..." : "%.48s%s",
                           entry->names[t], t + 1 < entry->ranks ? ", " : "");
    snprintf(text + at, sizeof text - (size_t)at, "%s",
             strangers ? " (names: MPI_Get_processor_name or ALLTOALL_HOST; or give --rank-map)"
                       : " have no rank");
    a2a_warn(entry->label, text);
}

int32_t *a2a_roles(Entry *entry, int32_t ranks, int32_t rank, const int *world, Reason *why)
{
    int32_t *role = malloc(sizeof(int32_t) * (size_t)ranks);
    *why = OTHER_SIZE;
    if (!role || ranks < entry->ranks) {
        free(role);
        return NULL;
    }
    if (entry->world)
        *why = by_map(entry, ranks, world, role);
    else if (entry->names && entry->named == entry->ranks && hosts) {
        by_name(entry, ranks, world, role);
        *why = OTHER_HOSTS;
    } else {
        in_order(entry, ranks, world, role);
        *why = ranks == entry->ranks ? OTHER_RANKS : OTHER_SIZE;
    }
    if (covers(entry->ranks, ranks, role))
        return role;
    if (*why == OTHER_HOSTS)
        say_stranger(entry, ranks, rank, role);
    free(role);
    return NULL;
}

void a2a_say_roles(const Entry *entry, int32_t ranks, const int32_t *role, const int *world)
{
    char *text = NULL;
    size_t length;
    FILE *line = open_memstream(&text, &length);
    if (!line)
        return;
    fprintf(line, "alltoall: %s:", entry->label);
    for (int32_t t = 0; t < entry->ranks; t++) {
        int32_t first = place_in(role, ranks, t);
        fprintf(line, "%s terminal %d", t ? ";" : "", entry->part ? entry->part[t] : t);
        if (entry->names)
            fprintf(line, " %s", entry->names[t]);
        if (names)
            fprintf(line, " on %s", names + (size_t)NAME_BYTES * (size_t)world[first]);
        fputs(" is rank", line);
        for (int32_t r = first; r < ranks; r++)
            if (role[r] == t)
                fprintf(line, " %d", world[r]);
    }
    fputc('\n', line);
    if (!fclose(line))
        fputs(text, stderr);
    free(text);
}

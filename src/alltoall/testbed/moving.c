/* Moves the bytes of all flows of a host, by one loop over events; `moving.py` calls it.
 *
 * A flow sends its pieces of the input, or receives into its pieces of the output. Sockets do not
 * block; those that receive are watched from the start, those that send once they are full. */
#include <errno.h>
#include <linux/sockios.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

enum { DONE, STOPPED, INTERRUPTED, BROKEN };
enum { MAX_EVENTS = 256, UNSENT_MILLISECONDS = 2 };
#define BILLION INT64_C(1000000000)

typedef struct {
    int64_t begin, end;
} Piece; /* of a buffer */

typedef struct {
    int32_t file, phase;
    int64_t watched;            /* whether the socket was full when there was more to send */
    int64_t piece, moved, left; /* the one under way, bytes of it that have moved, bytes to go */
} Flow;

typedef struct {
    int32_t events, line, sending, receiving; /* files, and numbers of flows */
    Flow *out, *into;
    const Piece *pieces; /* those of a flow stand in a row */
    char *input, *output;
    int64_t start, silence, phase; /* nanoseconds, and the phase that has begun last */
    int32_t broken, error;         /* the file of a flow that failed, and why */
} Work;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * BILLION + time.tv_nsec;
}

/* Count bytes as moved; the next piece follows if one has ended. */
static void moved(const Work *work, Flow *flow, int64_t count)
{
    const Piece *piece = &work->pieces[flow->piece];
    flow->left -= count;
    flow->moved += count;
    if (flow->moved == piece->end - piece->begin) {
        flow->piece++;
        flow->moved = 0;
    }
}

static int broken(Work *work, const Flow *flow, int error)
{
    work->broken = flow->file;
    work->error = error;
    return BROKEN;
}

/* Hand over what the socket has room for; watch it while there is more. */
static int send_some(Work *work, Flow *flow)
{
    struct epoll_event event = {.events = EPOLLOUT, .data.fd = flow->file};
    while (flow->left) {
        const Piece *piece = &work->pieces[flow->piece];
        int64_t begin = piece->begin + flow->moved;
        ssize_t count = send(flow->file, work->input + begin, (size_t)(piece->end - begin),
                             MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno != EAGAIN)
            return broken(work, flow, errno);
        if (count < 0)
            break;
        moved(work, flow, count);
    }
    if (!!flow->left != flow->watched) {
        flow->watched = !flow->watched;
        int change = flow->watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
        if (epoll_ctl(work->events, change, flow->file, &event))
            return broken(work, flow, errno);
    }
    return DONE;
}

/* Take what is there of the piece under way; a flow that has nothing left must say nothing. */
static int receive_some(Work *work, Flow *flow)
{
    const Piece *piece = &work->pieces[flow->piece];
    int64_t begin = flow->left ? piece->begin + flow->moved : 0;
    size_t most = flow->left ? (size_t)(piece->end - begin) : 0;
    ssize_t count = most ? recv(flow->file, work->output + begin, most, MSG_DONTWAIT) : 0;
    if (count < 0 && errno == EAGAIN)
        return DONE;
    if (count <= 0)
        return broken(work, flow, count ? errno : 0);
    moved(work, flow, count);
    return DONE;
}

/* Whether a flow of the phase that has begun last is still to be sent, or lies in its socket. */
static int under_way(const Work *work)
{
    for (int32_t k = 0; k < work->sending; k++) {
        const Flow *flow = &work->out[k];
        int unsent = 0;
        if (flow->watched)
            return 1;
        if (flow->phase == work->phase && !ioctl(flow->file, SIOCOUTQNSD, &unsent) && unsent)
            return 1;
    }
    return 0;
}

/* Begin the next phase, if there is one whose turn it is; `more` is whether any is left. */
static int next_phase(Work *work, int *more)
{
    int64_t next = INT64_MAX;
    for (int32_t k = 0; k < work->sending; k++)
        if (work->out[k].left && work->out[k].phase > work->phase && work->out[k].phase < next)
            next = work->out[k].phase;
    *more = next != INT64_MAX;
    if (!*more || under_way(work))
        return DONE;
    work->phase = next;
    for (int32_t k = 0; k < work->sending; k++)
        if (work->out[k].phase == next && work->out[k].left) {
            int code = send_some(work, &work->out[k]);
            if (code)
                return code;
        }
    return DONE;
}

static int left(const Flow *flows, int32_t count)
{
    int found = 0;
    for (int32_t k = 0; k < count; k++)
        found += flows[k].left > 0;
    return found;
}

/* The flow of each file; NULL if there is no memory. */
static Flow **by_file(const Work *work, int32_t *files)
{
    *files = 0;
    for (int32_t k = 0; k < work->sending; k++)
        *files = work->out[k].file >= *files ? work->out[k].file + 1 : *files;
    for (int32_t k = 0; k < work->receiving; k++)
        *files = work->into[k].file >= *files ? work->into[k].file + 1 : *files;
    Flow **found = calloc((size_t)*files + 1, sizeof *found);
    for (int32_t k = 0; found && k < work->sending; k++)
        found[work->out[k].file] = &work->out[k];
    for (int32_t k = 0; found && k < work->receiving; k++)
        found[work->into[k].file] = &work->into[k];
    return found;
}

static int loop(Work *work, Flow **flows, int32_t files)
{
    struct epoll_event events[MAX_EVENTS];
    int to_send = left(work->out, work->sending), to_come = left(work->into, work->receiving);
    int64_t heard = now();
    while (to_send || to_come) {
        int more = 0, code = to_send ? next_phase(work, &more) : DONE;
        if (code)
            return code;
        to_send = to_send ? left(work->out, work->sending) : 0;
        if (!to_send && !to_come)
            break;
        int wait = more ? UNSENT_MILLISECONDS : (int)(work->silence / 1000000);
        int count = epoll_wait(work->events, events, MAX_EVENTS, wait);
        if (count < 0)
            return INTERRUPTED;
        int64_t moment = now();
        if (!count && moment - heard >= work->silence)
            return STOPPED;
        heard = count ? moment : heard;
        for (int k = 0; k < count; k++) {
            int32_t file = events[k].data.fd;
            Flow *flow = file < files ? flows[file] : NULL;
            /* Nobody speaks to us while we are at work, but to say that it is over. */
            if (file == work->line)
                return STOPPED;
            if (!flow)
                continue;
            int sends = flow >= work->out && flow < work->out + work->sending;
            code = sends ? send_some(work, flow) : receive_some(work, flow);
            if (code)
                return code;
            to_come -= !sends && !flow->left;
        }
    }
    return DONE;
}

/* Wait for the start and move all bytes. After a signal it is to be called again, and goes on. */
int a2a_move(Work *work)
{
    struct timespec start = {work->start / BILLION, work->start % BILLION};
    if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL))
        return INTERRUPTED;
    int32_t files;
    Flow **flows = by_file(work, &files);
    if (!flows) {
        work->broken = -1;
        work->error = ENOMEM;
        return BROKEN;
    }
    int code = loop(work, flows, files);
    free(flows);
    return code;
}

/* Preloaded into a rank: memory to share cannot be had, from a number of times on (NO_ROOM_AFTER). */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int memfd_create(const char *name, unsigned flags)
{
    static int calls;
    const char *after = getenv("NO_ROOM_AFTER");
    if (after && calls++ >= atoi(after)) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_memfd_create, name, flags);
}

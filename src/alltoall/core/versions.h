// Loops that gain from wide vectors are compiled for several processors; the loader chooses. All
// versions round alike, because multiply-adds are never fused and sums have a fixed order.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ALLTOALL_VERSIONS [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#else
#define ALLTOALL_VERSIONS
#endif

// Threads that live as long as a call, so that a fork finds none; and wide vectors where they pay.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "graph.h"

// Loops that gain from wide vectors are compiled for several processors; the loader chooses. All
// versions round alike, because multiply-adds are never fused and sums have a fixed order.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ALLTOALL_VERSIONS [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#else
#define ALLTOALL_VERSIONS
#endif

namespace alltoall {

// Call body(0) to body(count - 1) on at most `threads` threads; rethrow the first exception.
template <class Body>
void in_parallel(Int count, int threads, const Body& body) {
  std::atomic<Int> next = 0;
  std::exception_ptr failure;
  std::mutex failing;
  const auto work = [&] {
    try {
      for (Int each = next++; each < count; each = next++) body(each);
    } catch (...) {
      const std::lock_guard guard(failing);
      if (!failure) failure = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> others;
    for (Int each = 1; each < std::min<Int>(threads, count); ++each) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace alltoall

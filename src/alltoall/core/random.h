// Random numbers that are the same on every machine: no library, no rounding of logarithms.
#pragma once

#include "graph.h"

namespace alltoall {

// xoshiro256**, seeded by splitmix64. Blackman and Vigna, "Scrambled linear pseudorandom number
// generators", 2021.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (auto& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      std::uint64_t mixed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9u;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
      word = mixed ^ (mixed >> 31);
    }
  }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // An integer from 0 to `count` - 1; counts are below 2^32.
  Int below(std::size_t count) { return static_cast<Int>(((next() >> 32) * count) >> 32); }

  // A number from 0 to below 1.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // An exponential variate of mean 1, by comparisons alone: a run of falling numbers that begins
  // with x has odd length with probability exp(-x). Von Neumann, 1951.
  double exponential() {
    for (double whole = 0.0;; ++whole) {
      const double first = uniform();
      bool odd = true;
      for (double last = first, next = uniform(); next < last; next = uniform()) {
        last = next;
        odd = !odd;
      }
      if (odd) return whole + first;
    }
  }

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace alltoall

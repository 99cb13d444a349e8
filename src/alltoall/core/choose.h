// Chunks that choose from listed paths, each in one of some phases.
#pragma once

#include "prices.h"

namespace alltoall {

// Paths to choose from, rows of links: chunk i takes one of low[i] to high[i] - 1. Each phase has
// its own copy of every link.
struct ListedPaths {
  RowsView paths;
  Ints low, high;
  Int links, phases;
};

// The path and the phase of each chunk, `none` if it has no phase yet.
struct Choice {
  std::span<Int> path, phase;
};

template <Price P>
class Choosing {
 public:
  Choosing(const ListedPaths& paths, P& price) : paths_(paths), price_(price) {}

  void add(Int path, Int phase, double size) {
    for (const Int link : paths_.paths[path]) price_.add(phase * paths_.links + link, size);
  }

  bool is_over_budget(Int path, Int phase) const
    requires std::same_as<P, BudgetPrice>
  {
    return std::ranges::any_of(paths_.paths[path],
                               [&](Int link) { return price_.is_over(phase * paths_.links + link); });
  }

  // The cost of a choice, or more than `enough`.
  double cost(Int path, Int phase, double size, double enough) const {
    double total = 0.0;
    for (const Int link : paths_.paths[path]) {
      total += price_.join(phase * paths_.links + link, size);
      if (total >= enough) break;
    }
    return total;
  }

 private:
  ListedPaths paths_;
  P& price_;
};

// Let chunks choose anew, from order[begin] on, and price about `most` choices; return where it
// stopped. With budgets, only chunks over one choose.
template <Price P>
Int choose(const ListedPaths& paths, Floats size, Ints order, Int begin, Int most, P& price, Choice choice) {
  Choosing<P> choosing(paths, price);
  for (Int place = begin; place < static_cast<Int>(order.size()); ++place) {
    const Int chunk = order[place];
    Int &path = choice.path[chunk], &phase = choice.phase[chunk];
    double least = infinity;
    if (phase != none) {
      if constexpr (std::same_as<P, BudgetPrice>)
        if (!choosing.is_over_budget(path, phase)) continue;
      choosing.add(path, phase, -size[chunk]);
      least = choosing.cost(path, phase, size[chunk], infinity);
    } else {  // some place, even if all are infinitely expensive
      path = paths.low[chunk], phase = 0;
    }
    // A tie, or a last digit, is no reason to change.
    for (Int other = paths.low[chunk]; other < paths.high[chunk]; ++other)
      for (Int in = 0; in < paths.phases; ++in) {
        const double cost = choosing.cost(other, in, size[chunk], least);
        if (cost < least * (1 - 1e-12)) path = other, phase = in, least = cost;
      }
    choosing.add(path, phase, size[chunk]);
    most -= (paths.high[chunk] - paths.low[chunk]) * paths.phases;
    if (most < 0) return place + 1;
  }
  return static_cast<Int>(order.size());
}

}  // namespace alltoall

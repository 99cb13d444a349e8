// Annealing of lifts: symmetric wirings, in which a few sources stand for all.
//
// A lift has a node (b, g) for every node b of a base graph and every element g of a group. A base
// arc from b to c with voltage s becomes the links (b, g) -> (c, g s) for all g. Multiplication
// from the left maps the lift to itself, so distances from (b, 1) for every b are all there are.
#pragma once

#include "random.h"

namespace alltoall {

// Z_m x| Z_k: the element i + m j is the pair (i, j), and (i, j)(x, y) = (i + r^j x, j + y), where
// `power[j]` is r^j modulo m.
struct Group {
  Int m, k;
  std::vector<Int> power;

  Int order() const { return m * k; }
  Int inverse(Int element) const {
    const Int j = (k - element / m) % k;
    return (m - power[j] * (element % m) % m) % m + m * j;
  }
};

struct Arc {
  Int tail, head, voltage;
};

// Row b of a base has `ports` places. An arc stands in `place[0]` of its tail's row and, unless that
// is `none`, its way back in `place[1]` of its head's. A single arc is its own way back: its
// voltage is its own inverse.
class LiftAnnealing {
 public:
  LiftAnnealing(Int bases, Int ports, Group group, std::vector<Int> involutions, std::vector<Arc> arcs,
                std::vector<std::array<Int, 2>> places, std::vector<Int> single, std::uint64_t seed)
      : bases_(bases), ports_(ports), group_(std::move(group)), involutions_(std::move(involutions)),
        arcs_(std::move(arcs)), best_(arcs_), places_(std::move(places)), single_(std::move(single)),
        random_(seed), out_(bases * group_.order() * ports), queue_(bases * group_.order()),
        seen_(queue_.size()) {
    for (std::size_t arc = 0; arc < arcs_.size(); ++arc) connect(static_cast<Int>(arc));
  }

  // Whether no link leads to its own tail, and no two are parallel.
  bool is_simple() const {
    for (Int base = 0; base < bases_; ++base)
      if (!is_simple(base)) return false;
    return true;
  }

  // The least sum of the distances from (b, 1) over all b so far; infinite at first.
  double least() const { return least_; }
  const std::vector<Arc>& best() const { return best_; }

  // Try one move at each temperature: an arc gets another voltage, or two exchange heads.
  void run(Floats temperatures) {
    for (const double temperature : temperatures) try_move(temperature);
  }

 private:
  // The share of moves that exchange heads, where the base has several nodes.
  static constexpr double exchanges = 0.3;

  void try_move(double temperature) {
    const Int one = random_.below(arcs_.size()), two = random_.below(arcs_.size());
    const Arc before = arcs_[one];
    const bool swaps = bases_ > 1 && random_.uniform() < exchanges;
    if (swaps) {
      if (single_[one] || single_[two] || arcs_[one].head == arcs_[two].head) return;
      swap_heads(one, two);
    } else {
      arcs_[one].voltage =
          single_[one] ? involutions_[random_.below(involutions_.size())] : random_.below(group_.order());
      connect(one);
    }
    const double limit = cost_ + temperature * random_.exponential();
    const double cost = is_simple_at(one) && is_simple_at(two) ? sum_of_distances(limit) : infinity;
    if (cost == infinity || cost > limit) {
      arcs_[one].voltage = before.voltage;
      if (swaps) swap_heads(one, two);
      else connect(one);
      return;
    }
    cost_ = cost;
    if (cost < least_) {
      least_ = cost;
      best_ = arcs_;
    }
  }

  // Each arc keeps its tail and its voltage.
  void swap_heads(Int one, Int two) {
    std::swap(arcs_[one].head, arcs_[two].head);
    std::swap(places_[one][1], places_[two][1]);
    connect(one);
    connect(two);
  }

  void connect(Int arc) {
    const auto [tail, head, voltage] = arcs_[arc];
    if (places_[arc][1] != none) connect(places_[arc][1], tail, group_.inverse(voltage));
    connect(places_[arc][0], head, voltage);
  }

  // Let a place of a base row lead to (head, g s) from every g.
  void connect(Int place, Int head, Int s) {
    const Int base = place / ports_, port = place % ports_, m = group_.m;
    std::int32_t* link = out_.data() + base * group_.order() * ports_ + port;
    for (Int j = 0; j < group_.k; ++j) {
      const Int start = head * group_.order() + m * ((j + s / m) % group_.k);
      Int i = group_.power[j] * (s % m) % m;
      for (Int each = 0; each < m; ++each, link += ports_) {
        *link = static_cast<std::int32_t>(start + i);
        if (++i == m) i = 0;
      }
    }
  }

  bool is_simple_at(Int arc) const { return is_simple(arcs_[arc].tail) && is_simple(arcs_[arc].head); }

  bool is_simple(Int base) const {
    const Int node = base * group_.order();
    const std::int32_t* const row = out_.data() + node * ports_;
    for (Int port = 0; port < ports_; ++port) {
      if (row[port] == node) return false;
      for (Int other = 0; other < port; ++other)
        if (row[port] == row[other]) return false;
    }
    return true;
  }

  // Infinite if some pair has no path; any number above the limit will do where the sum is above it.
  double sum_of_distances(double limit) {
    Int total = 0;
    std::ranges::fill(seen_, std::int32_t{-1});
    for (Int base = 0; base < bases_; ++base) {
      const auto mark = static_cast<std::int32_t>(base);
      std::size_t begin = 0, end = 1;
      queue_[0] = static_cast<std::int32_t>(base * group_.order());
      seen_[queue_[0]] = mark;
      for (Int depth = 1; begin < end; ++depth) {
        const std::size_t last = end;
        for (; begin < last; ++begin) {
          const std::int32_t* const row = out_.data() + queue_[begin] * ports_;
          for (Int port = 0; port < ports_; ++port)
            if (seen_[row[port]] != mark) {
              seen_[row[port]] = mark;
              queue_[end++] = row[port];
            }
        }
        total += depth * static_cast<Int>(end - last);
      }
      if (end < queue_.size()) return infinity;
      if (static_cast<double>(total) > limit) break;
    }
    return static_cast<double>(total);
  }

  Int bases_, ports_;
  Group group_;
  std::vector<Int> involutions_;
  std::vector<Arc> arcs_, best_;
  std::vector<std::array<Int, 2>> places_;
  std::vector<Int> single_;
  Random random_;
  std::vector<std::int32_t> out_, queue_, seen_;
  double cost_ = infinity, least_ = infinity;
};

}  // namespace alltoall

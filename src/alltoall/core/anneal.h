// Simulated annealing of a wiring: two cables exchange an end, and sums of distances judge.
//
// Links (a, b) and (c, d) become (a, d) and (c, b): every port stays in use, so degrees never
// change. Cables that may be turned round first, (c, d) being (d, c), reach all simple graphs of
// the same degrees; one-way links, and ports that only fit ports of another kind, never turn.
#pragma once

#include "distances.h"
#include "random.h"

namespace alltoall {

using Ends = std::vector<std::array<Int, 2>>;

// The cost of a wiring: a demand decides if there is one, then failures, then distances, to which
// uneven link loads are added if loads are to be even.
struct Aim {
  std::vector<double> weight, demand;
  bool failures, even;
};

// Cables exchange ends with those on the same panel. All together should cost no more than a
// budget: each unit above it is fined.
struct Cabling {
  bool directed, turns;
  std::vector<Int> panel;
  std::vector<double> price;
  double budget, fine;
};

// An annealing under way: the wiring as it is now, and the best so far.
class Annealing {
 public:
  Annealing(Int nodes, const Ends& fixed, Ends ends, Aim aim, Cabling cabling, std::uint64_t seed)
      : aim_(std::move(aim)), cabling_(std::move(cabling)), random_(seed), ends_(std::move(ends)),
        by_panel_(by_key(std::ssize(ends_), cabling_.panel)), best_(ends_), wires_(nodes, most_ports(nodes, fixed)), distances_(wires_) {
    connect(fixed);
    for (const auto& [a, b] : ends_) paid_ += price(a, b);
    cost_ = least_ = over_budget(paid_) + cost_of_wiring(infinity);
  }

  double least() const { return least_; }
  const Ends& best() const { return best_; }

  // Try one move at each temperature.
  void run(Floats temperatures) {
    for (const double temperature : temperatures) try_move(temperature);
  }

 private:
  Int most_ports(Int nodes, const Ends& fixed) const {
    std::vector<Int> used(nodes, 0);
    for (const Ends* some : {&fixed, &ends_})
      for (const auto& [a, b] : *some) {
        ++used[a];
        if (!cabling_.directed) ++used[b];
      }
    return std::max<Int>(1, std::ranges::max(used));
  }

  // Give every cable its places among the successors of its ends, in order.
  void connect(const Ends& fixed) {
    std::vector<Int> used(wires_.nodes, 0);
    const auto plug = [&](Int tail, Int head) {
      const Int place = tail * wires_.ports + used[tail]++;
      wires_.set(place, head);
      return place;
    };
    const auto both_ways = [&](Int a, Int b) -> std::array<Int, 2> {
      const Int there = plug(a, b);
      return {there, cabling_.directed ? wires_.nodes * wires_.ports : plug(b, a)};
    };
    for (const auto& [a, b] : fixed) both_ways(a, b);
    for (const auto& [a, b] : ends_) places_.push_back(both_ways(a, b));
  }

  double price(Int a, Int b) const {
    return cabling_.price.empty() ? 0.0 : cabling_.price[a * wires_.nodes + b];
  }

  double over_budget(double paid) const {
    return paid > cabling_.budget ? cabling_.fine * (paid - cabling_.budget) : 0.0;
  }

  // Any number above the limit will do where the cost is above it.
  double cost_of_wiring(double limit) {
    if (!aim_.demand.empty())
      return distances_.sum(wires_, Matrix<const double>(aim_.demand.data(), wires_.nodes, wires_.nodes), limit);
    if (aim_.failures) return distances_.mean_after_failure(wires_, !cabling_.directed, aim_.weight);
    const double cost = distances_.sum(wires_, aim_.weight, limit);
    // The norm of the loads is never below the sum of distances.
    return aim_.even && cost <= limit ? std::max(cost, distances_.load_norm(wires_)) : cost;
  }

  void try_move(double temperature) {
    const Int one = random_.below(ends_.size());
    const Ints others = by_panel_[cabling_.panel[one]];
    const Int two = others[random_.below(others.size())];
    if (cabling_.turns && random_.next() >> 63) {
      std::swap(ends_[two][0], ends_[two][1]);
      std::swap(places_[two][0], places_[two][1]);
    }
    const auto [a, b] = ends_[one];
    const auto [c, d] = ends_[two];
    if (a == c || a == d || b == c || b == d || wires_.has_link(a, d) || wires_.has_link(c, b)) return;
    const double paid = paid_ + price(a, d) + price(c, b) - price(a, b) - price(c, d);
    const double fine = over_budget(paid);
    const double limit = cost_ + temperature * random_.exponential();
    if (fine > limit) return;
    exchange(one, two);
    const double cost = fine + cost_of_wiring(limit - fine);
    if (cost > limit) {
      exchange(one, two);
      return;
    }
    cost_ = cost;
    paid_ = paid;
    if (cost < least_) {
      least_ = cost;
      best_ = ends_;
    }
  }

  // Exchange the second ends of two cables; doing so again takes it back.
  void exchange(Int one, Int two) {
    std::swap(ends_[one][1], ends_[two][1]);
    std::swap(places_[one][1], places_[two][1]);
    for (const Int cable : {one, two}) {
      wires_.set(places_[cable][0], ends_[cable][1]);
      wires_.set(places_[cable][1], ends_[cable][0]);
    }
  }

  Aim aim_;
  Cabling cabling_;
  Random random_;
  Ends ends_;
  Rows by_panel_;  // the cables on each panel
  Ends best_, places_;
  Successors wires_;
  Distances distances_;
  double paid_ = 0.0, cost_ = 0.0, least_ = 0.0;
};

}  // namespace alltoall

// The loops of sweeps: sources move flow from expensive paths to cheap ones.
//
// A node that a source reaches over several links gets its flow over paths of different cost. The
// most expensive one in use and the cheapest one there is part somewhere upstream. Flow moves from
// one branch to the other until both cost the same, by Newton's rule. Prices follow every move.
#pragma once

#include <algorithm>
#include <vector>

#include "flow.h"
#include "graph.h"
#include "shortest.h"
#include "parallel.h"

namespace alltoall {

inline constexpr double equal_costs = 1e-7;  // paths whose costs differ by a smaller share are equal
inline constexpr double least_price = 1e-9;  // next to a mean price: no cheapest path closes a cycle
inline constexpr double tiny = std::numeric_limits<double>::min();
inline constexpr double level_rounding = 1e-15;

// Classes of links: which one each link has, and what a unit of flow on a link adds to its time.
// Links of class `classes` or above share no capacity and cost next to nothing.
struct LinkClasses {
  Ints of_link;
  Floats unit_cost;
};

// By class: the multiplier, and how fast the price rises with the class's time. Prices are
// max(0, multiplier + slope * (time - level)), at the level at which they sum to 1.
struct PenaltyParams {
  Floats multiplier;
  Floats slope;

  Int classes() const { return static_cast<Int>(multiplier.size()); }
};

// By group: its source, its weight, and the demand of each node.
struct Commodities {
  Ints source;
  Floats weight;
  Matrix<const double> wanted;
};

// Return the level at which the sum of width * max(0, target - slope * level) is 1.
// The sum is convex and falls, so Newton's method from the left arrives in a few rounds.
inline double find_level(Floats target, Floats slope, Floats width) {
  const std::size_t classes = target.size();
  double level = -infinity;
  for (std::size_t each = 0; each < classes; ++each)
    level = std::max(level, target[each] / slope[each] - 1.0 / (width[each] * slope[each]));
  for (std::size_t round = 0; round <= classes; ++round) {
    double total = -1.0, fall = 0.0;
    for (std::size_t each = 0; each < classes; ++each) {
      const double left = target[each] - slope[each] * level;
      if (left > 0.0) {
        total += width[each] * left;
        fall += width[each] * slope[each];
      }
    }
    if (total <= level_rounding || fall == 0.0) break;
    level += total / fall;
  }
  return level;
}

// The times of classes and the cost of links, as they are now.
class LinkPrices {
 public:
  LinkPrices(const LinkClasses& classes, const PenaltyParams& params, std::span<double> time)
      : classes_(classes), params_(params), time_(time), cost_(classes.of_link.size()),
        least_(least_price / static_cast<double>(params.classes())) {
    std::vector<double> target(time.size()), ones(time.size(), 1.0);
    for (std::size_t each = 0; each < time.size(); ++each)
      target[each] = params.multiplier[each] + params.slope[each] * time[each];
    level_ = find_level(target, params.slope, ones);
    for (std::size_t link = 0; link < cost_.size(); ++link) update_cost(static_cast<Int>(link));
  }

  Floats costs() const { return cost_; }
  double cost(Int link) const { return cost_[link]; }
  bool is_shared(Int link) const { return classes_.of_link[link] < params_.classes(); }

  // How fast the cost of a link changes with flow that passes its class so many times.
  double rise(Int link, double passes) const {
    const double unit = classes_.unit_cost[link];
    return passes * params_.slope[classes_.of_link[link]] * (unit * unit);
  }

  void add(Int link, double volume) {
    if (!is_shared(link)) return;
    time_[classes_.of_link[link]] += volume * classes_.unit_cost[link];
    update_cost(link);
  }

 private:
  void update_cost(Int link) {
    double price = least_;
    if (is_shared(link)) {
      const Int each = classes_.of_link[link];
      price = std::max(price, params_.multiplier[each] + params_.slope[each] * (time_[each] - level_));
    }
    cost_[link] = price * classes_.unit_cost[link];
  }

  const LinkClasses& classes_;
  const PenaltyParams& params_;
  std::span<double> time_;
  std::vector<double> cost_;
  double least_, level_ = 0.0;
};

// Lets some groups respond to prices, one after the other; it keeps its memory.
class Workspace {
 public:
  Workspace(const Graph& graph, const LinkClasses& classes, const PenaltyParams& params,
            std::span<double> time)
      : graph_(graph), class_of_(classes.of_link), prices_(classes, params, time), cycles_(graph),
        dearest_(graph.nodes()), used_into_(graph.nodes(), none), cheap_into_(graph.nodes()),
        marked_(graph.nodes(), none), passes_(params.classes() + 1) {}

  // Return the sum of weight times demand times distance. Cheapest paths are those at the start.
  double respond(const Commodities& groups, double damping, Matrix<double> flows) {
    ManyTrees trees(graph_, flows.rows());
    trees.find(prices_.costs(), groups.source);
    double total = 0.0;
    for (Int group = 0; group < flows.rows(); ++group) {
      const Int root = groups.source[group];
      const double weight = damping * groups.weight[group];
      const auto flow = flows[group];
      const auto wants = groups.wanted[group];
      for (Int node = 0; node < graph_.nodes(); ++node) cheap_into_[node] = trees.parent(node, group);
      const Ints sinks_first = cycles_.cancel(flow, root);
      find_dearest_paths(flow, root, sinks_first);
      for (Int node = 0; node < graph_.nodes(); ++node)
        if (wants[node] > 0.0) total += weight * wants[node] * trees.distance(node, group);
      for (const Int node : sinks_first) {
        if (node == root || used_into_[node] == cheap_into_[node]) continue;
        if (dearest_[node] - trees.distance(node, group) > equal_costs * dearest_[node])
          shift_to_cheapest(weight, flow, root, node);
      }
    }
    return total;
  }

 private:
  struct Branch {
    Int from, to;
  };

  struct Survey {
    double cost = 0.0, rise = 0.0, least_flow = infinity;
  };

  // Find the most expensive path in use to each node: its cost and its last link.
  void find_dearest_paths(Floats flow, Int root, Ints sinks_first) {
    dearest_[root] = 0.0;
    for (std::size_t place = sinks_first.size(); place-- > 0;) {
      const Int node = sinks_first[place];
      if (node == root) continue;
      double most = -1.0;
      used_into_[node] = none;
      for (const Int link : graph_.in[node]) {
        if (!(flow[link] > 0.0)) continue;
        const double reach = dearest_[graph_.tail[link]] + prices_.cost(link);
        if (reach > most) {
          most = reach;
          used_into_[node] = link;
        }
      }
      dearest_[node] = most;
    }
  }

  // Move flow to a node from its most expensive path to its cheapest, until both cost the same.
  void shift_to_cheapest(double weight, std::span<double> flow, Int root, Int node) {
    mark(root, node, node);
    Int fork = node;
    do {
      const Int link = used_into_[fork];
      fork = link == none ? none : graph_.tail[link];
    } while (fork != none && marked_[fork] != node);
    if (fork != none) {
      const Branch branch{fork, node};
      const Survey dear = survey(flow, branch, used_into_), cheap = survey(flow, branch, cheap_into_);
      double volume = 0.0;
      if (dear.cost > cheap.cost) {
        const double rise = std::max(weight * (dear.rise + cheap.rise), tiny);
        volume = std::min(dear.least_flow, (dear.cost - cheap.cost) / rise);
      }
      shift(weight, flow, branch, used_into_, -volume);
      shift(weight, flow, branch, cheap_into_, volume);
    }
    mark(root, node, none);
  }

  // Mark the nodes of the cheapest path to a node.
  void mark(Int root, Int node, Int value) {
    for (Int at = node; at != root; at = graph_.tail[cheap_into_[at]]) marked_[at] = value;
    marked_[root] = value;
  }

  // Return what a branch costs, how fast that changes with its flow, and its least flow. A class
  // that is passed k times rises k times as fast, on k links: k * k in all.
  Survey survey(Floats flow, Branch branch, Ints into) {
    Survey found;
    for (Int at = branch.to; at != branch.from;) {
      const Int link = into[at];
      found.cost += prices_.cost(link);
      found.least_flow = std::min(found.least_flow, flow[link]);
      if (prices_.is_shared(link)) {
        const Int passes = ++passes_[class_of_[link]];
        found.rise += prices_.rise(link, static_cast<double>(2 * passes - 1));
      }
      at = graph_.tail[link];
    }
    return found;
  }

  // Add a volume to the flow of a branch, and reset the counts of passes.
  void shift(double weight, std::span<double> flow, Branch branch, Ints into, double volume) {
    for (Int at = branch.to; at != branch.from;) {
      const Int link = into[at];
      if (prices_.is_shared(link)) passes_[class_of_[link]] = 0;
      flow[link] += volume;
      prices_.add(link, weight * volume);
      at = graph_.tail[link];
    }
  }

  const Graph& graph_;
  Ints class_of_;
  LinkPrices prices_;
  CycleCanceller cycles_;
  std::vector<double> dearest_;
  std::vector<Int> used_into_, cheap_into_, marked_, passes_;
};

// Let parts of the groups respond to prices at once; part i has groups cuts[i] to cuts[i + 1] - 1.
// Each part prices its own moves `damping` times, because other parts do the same. Fill, by part,
// how the times of classes change, and last the sum of demand times distance.
inline void update_batch(const Graph& graph, const LinkClasses& classes, const PenaltyParams& params,
                         const Commodities& groups, Matrix<double> flows, Floats time, Ints cuts,
                         double damping, Matrix<double> change, int threads) {
  const Int parts = static_cast<Int>(cuts.size()) - 1;
  in_parallel(parts, threads, [&](Int part) {
    const Int low = cuts[part], high = cuts[part + 1];
    const auto changed = change[part];
    std::ranges::fill(changed, 0.0);
    if (low == high) return;
    std::vector<double> mine(time.begin(), time.end());
    Workspace workspace(graph, classes, params, mine);
    const Commodities some{groups.source.subspan(low, high - low), groups.weight.subspan(low, high - low),
                           groups.wanted.part(low, high)};
    changed[time.size()] = workspace.respond(some, damping, flows.part(low, high));
    for (std::size_t each = 0; each < time.size(); ++each) changed[each] = mine[each] - time[each];
    for (double& each : changed) each /= damping;
  });
}

}  // namespace alltoall

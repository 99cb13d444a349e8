// From a solver's approximate flows to flows that conserve exactly.
//
// For every group: drop negligible flow; send what nodes lack along a shortest-path tree; cancel
// cycles; and trim what each node receives to what it needs, from the sinks back to the source.
#pragma once

#include "shortest.h"

namespace alltoall {

// Cancels cycles of positive flow.
class CycleCanceller {
 public:
  explicit CycleCanceller(const Graph& graph) : graph_(graph), search_(graph) {}

  // Subtract from every cycle its smallest flow; return the nodes reached, sinks first.
  Ints cancel(std::span<double> flow, Int start) {
    Int all = std::numeric_limits<Int>::max();
    search_.restart();
    search_.run(start, all, [&](Int link) { return flow[link] > 0.0; }, [&](Ints path, Int begin) {
      const Ints cycle = path.subspan(begin);
      double smallest = infinity;
      for (const Int link : cycle) smallest = std::min(smallest, flow[link]);
      for (const Int link : cycle) flow[link] -= smallest;
      return begin + (std::ranges::find_if(cycle, [&](Int link) { return flow[link] <= 0.0; }) - cycle.begin());
    });
    // Flow that no path from the start reaches is a circulation of its own.
    for (Int node = 0; node < graph_.nodes(); ++node)
      if (!search_.is_finished(node))
        for (const Int link : graph_.out[node]) flow[link] = 0.0;
    return search_.sinks_first();
  }

 private:
  const Graph& graph_;
  CycleSearch search_;
};

inline constexpr double negligible_flow = 1e-10;   // share of the group's largest demand
inline constexpr double balance_rounding = 1e-13;  // share of what passes a node
// The first round does the work; a demand drowned by a large cycle's rounding needs another.
inline constexpr int repair_rounds = 4;
inline constexpr Int block_groups = 8;  // groups that share the memory of one repair

inline std::size_t longest_row(const Rows& rows) {
  std::size_t most = 0;
  for (Int row = 0; row < rows.count(); ++row) most = std::max(most, rows[row].size());
  return most;
}

// Makes the flows of single groups exact, one after the other.
class Repair {
 public:
  Repair(const Graph& graph, Floats lengths)
      : graph_(graph), lengths_(lengths), search_(graph.out, graph.head), cycles_(graph),
        parent_(graph.nodes(), none), largest_first_(longest_row(graph.in)),
        distance_(graph.nodes()), lacking_(graph.nodes()), gross_(graph.nodes()) {}

  void run(Int root, Floats wanted, std::span<double> flow) {
    search_.run(lengths_, root, distance_, parent_);
    drop_noise(flow, negligible_flow * std::ranges::max(wanted));
    for (int round = 0; round < repair_rounds; ++round) {
      const bool unbalanced = fill_deficits(flow, wanted);
      if (round > 0 && !unbalanced) break;
      trim_surplus(flow, wanted, cycles_.cancel(flow, root), root);
    }
  }

 private:
  void drop_noise(std::span<double> flow, double threshold) const {
    for (Int link = 0; link < graph_.links(); ++link)
      if (!(flow[link] > threshold) || distance_[graph_.tail[link]] == infinity) flow[link] = 0.0;
  }

  // Send what each node lacks down the tree, gathered from the leaves towards the root; return
  // whether any node was out of balance by more than rounding.
  bool fill_deficits(std::span<double> flow, Floats wanted) {
    std::ranges::copy(wanted, lacking_.begin());
    std::ranges::copy(wanted, gross_.begin());
    for (Int link = 0; link < graph_.links(); ++link) {
      const Int head = graph_.head[link], tail = graph_.tail[link];
      lacking_[head] -= flow[link];
      lacking_[tail] += flow[link];
      gross_[head] += flow[link];
      gross_[tail] += flow[link];
    }
    bool unbalanced = false;
    const Ints nearest_first = search_.order();
    for (std::size_t place = nearest_first.size(); place-- > 1;) {
      const Int node = nearest_first[place];
      const double rounding = balance_rounding * gross_[node];
      unbalanced |= std::abs(lacking_[node]) > rounding;
      if (lacking_[node] > rounding) {
        flow[parent_[node]] += lacking_[node];
        lacking_[graph_.tail[parent_[node]]] += lacking_[node];
      }
    }
    return unbalanced;
  }

  // Make each node receive what it needs, sinks first; its smallest inflows are given up first.
  void trim_surplus(std::span<double> flow, Floats wanted, Ints sinks_first, Int root) {
    for (const Int node : sinks_first) {
      if (node == root) continue;
      double need = wanted[node];
      for (const Int link : graph_.out[node]) need += flow[link];
      const Ints links = graph_.in[node];
      const Int used = sort_inflows(flow, links);
      for (const Int link : Ints(largest_first_).first(used)) {
        flow[link] = std::min(flow[link], need);
        need -= flow[link];
      }
      // What rounding left uncovered is a last digit of the largest inflow.
      flow[used > 0 ? largest_first_[0] : links[0]] += need;
    }
  }

  // Sort the links that carry flow, which are few, by insertion; return their number.
  Int sort_inflows(Floats flow, Ints links) {
    Int used = 0;
    for (const Int link : links) {
      if (!(flow[link] > 0.0)) continue;
      Int place = used++;
      for (; place > 0 && flow[largest_first_[place - 1]] < flow[link]; --place)
        largest_first_[place] = largest_first_[place - 1];
      largest_first_[place] = link;
    }
    return used;
  }

  const Graph& graph_;
  Floats lengths_;
  Dijkstra search_;
  CycleCanceller cycles_;
  std::vector<Int> parent_, largest_first_;
  std::vector<double> distance_, lacking_, gross_;
};

// Make flows [groups, links] deliver exactly what nodes want [groups, nodes], in place.
inline void make_exact(const Graph& graph, Floats lengths, Ints start, Matrix<const double> wanted,
                       Matrix<double> flows, int threads) {
  const Int groups = flows.rows();
  in_parallel((groups + block_groups - 1) / block_groups, threads, [&](Int block) {
    Repair repair(graph, lengths);
    for (Int group = block * block_groups; group < std::min((block + 1) * block_groups, groups); ++group)
      repair.run(start[group], wanted[group], flows[group]);
  });
}

// Split flows into widest paths.
//
// For each destination in turn, the path whose narrowest link is widest is taken off, until the
// demand is met. The width of a node, that of the widest path to it, only shrinks meanwhile, so
// earlier widths are upper bounds. To find a node's width, look at its best inflow by these bounds,
// tighten the bound of that inflow's tail first, and look again: the search follows little more
// than the path itself. A walk that meets itself has found a cycle of flow, which is cancelled.

// Rows of items with values: links and amounts, or end nodes and demands.
struct SparseRows : RowsView {
  Floats value;
};

// Paths of pairs with their widths; the links of path p are link[start[p]] to link[start[p + 1] - 1].
struct WeightedPaths {
  Int failed = none;  // a pair that cannot be served
  std::vector<Int> pair;
  std::vector<double> width;
  std::vector<Int> start{0};
  std::vector<Int> link;
};

inline constexpr double negligible_rest = 1e-10;  // share of the demand below which a rest is rounding

// The remaining flows, and bounds on the widths of the nodes of one group.
class Splitter {
 public:
  Splitter(const Graph& graph, SparseRows flow)
      : tail_(graph.tail), head_(graph.head), link_(flow.item), left_(flow.value.begin(), flow.value.end()),
        first_(graph.nodes(), none), best_(graph.nodes()), place_(graph.nodes(), none), walk_(graph.nodes() + 1),
        after_(flow.item.size()), age_(graph.nodes()), bound_(graph.nodes(), infinity) {}

  // List the inflows of each node of a group; its widths are unknown.
  void enter(Int root, Int begin, Int end) {
    root_ = root;
    for (Int entry = end; entry-- > begin;) {
      const Int node = head_[link_[entry]];
      after_[entry] = first_[node];
      first_[node] = entry;
      bound_[node] = infinity;
    }
  }

  // Forget the inflows of a group.
  void leave(Int begin, Int end) {
    for (Int entry = begin; entry < end; ++entry) first_[head_[link_[entry]]] = none;
  }

  // Find the width of the goal, and with it the best inflows back to the root; return it.
  double widen(Int goal) {
    ++now_;
    Int depth = 0;
    walk_[0] = goal;
    place_[goal] = 0;
    while (depth >= 0) {
      const Int node = walk_[depth];
      double width = 0.0;
      Int chosen = none;
      for (Int entry = first_[node]; entry >= 0; entry = after_[entry]) {
        const Int source = tail_[link_[entry]];
        const double reach = source == root_ ? left_[entry] : std::min(bound_[source], left_[entry]);
        if (reach > width) {
          width = reach;
          chosen = entry;
        }
      }
      const Int source = chosen >= 0 ? tail_[link_[chosen]] : root_;
      best_[node] = chosen;
      if (source == root_ || age_[source] == now_) {
        bound_[node] = width;
        age_[node] = now_;
        place_[node] = none;
        --depth;
      } else if (place_[source] >= 0) {
        depth = cancel(place_[source], depth);
      } else {
        walk_[++depth] = source;
        place_[source] = depth;
      }
    }
    return bound_[goal];
  }

  // Set best inflows from the goal back to the root over fewest links; return if there are any.
  // Links count whether or not anything is left on them: only rounding is.
  bool fewest(Int goal) {
    std::vector<Int> onwards(first_.size(), none), queue{goal};
    for (std::size_t at = 0; at < queue.size(); ++at) {
      for (Int entry = first_[queue[at]]; entry >= 0 && onwards[root_] < 0; entry = after_[entry]) {
        const Int source = tail_[link_[entry]];
        if (onwards[source] < 0 && source != goal) {
          onwards[source] = entry;
          queue.push_back(source);
        }
      }
    }
    if (onwards[root_] < 0) return false;
    for (Int node = root_; node != goal;) {
      const Int entry = onwards[node];
      node = head_[link_[entry]];
      best_[node] = entry;
    }
    return true;
  }

  // Take an amount off the best inflows back to the root; append their links.
  void take(Int goal, double amount, std::vector<Int>& path) {
    const auto used = static_cast<std::ptrdiff_t>(path.size());
    for (Int node = goal; node != root_; node = tail_[link_[best_[node]]]) {
      const Int entry = best_[node];
      left_[entry] = std::max(0.0, left_[entry] - amount);
      path.push_back(link_[entry]);
    }
    std::reverse(path.begin() + used, path.end());
  }

 private:
  // Cancel the cycle of best inflows of walk[bottom..top]; return where the walk resumes.
  Int cancel(Int bottom, Int top) {
    double smallest = infinity;
    for (Int depth = bottom; depth <= top; ++depth) smallest = std::min(smallest, left_[best_[walk_[depth]]]);
    for (Int depth = bottom; depth <= top; ++depth) left_[best_[walk_[depth]]] -= smallest;
    for (Int depth = bottom + 1; depth <= top; ++depth) place_[walk_[depth]] = none;
    return bottom;
  }

  Ints tail_, head_, link_;
  std::vector<double> left_;
  std::vector<Int> first_, best_, place_, walk_, after_, age_;
  std::vector<double> bound_;
  Int root_ = none, now_ = 0;
};

// Return the widest paths of all pairs of all groups.
inline WeightedPaths split_flows(const Graph& graph, Ints begin, SparseRows flow, SparseRows wanted) {
  WeightedPaths paths;
  Splitter splitter(graph, flow);
  for (std::size_t group = 0; group < begin.size(); ++group) {
    const Int first = flow.first[group], last = flow.first[group + 1];
    splitter.enter(begin[group], first, last);
    for (Int each = wanted.first[group]; each < wanted.first[group + 1]; ++each) {
      const Int node = wanted.item[each];
      const std::size_t widest = paths.width.size();
      double rest = wanted.value[each];
      const double least = negligible_rest * rest;
      while (rest > least || paths.width.size() == widest) {
        double take = splitter.widen(node);
        if (take <= least) {
          if (paths.width.size() > widest) break;
          take = rest;
          if (!splitter.fewest(node)) {
            WeightedPaths failure;
            failure.failed = each;
            return failure;
          }
        }
        take = std::min(take, rest);
        splitter.take(node, take, paths.link);
        paths.pair.push_back(each);
        paths.width.push_back(take);
        paths.start.push_back(std::ssize(paths.link));
        rest -= take;
      }
      paths.width[widest] += rest;
    }
    splitter.leave(first, last);
  }
  return paths;
}

}  // namespace alltoall

#include "splitting.h"

#include <algorithm>

namespace alltoall {
namespace {

constexpr double negligible_rest = 1e-10;  // share of the demand below which a rest is rounding

// The remaining flows, and bounds on the widths of the nodes of one group.
class Splitter {
 public:
  Splitter(const Graph& graph, SparseRows flow)
      : tail_(graph.tail),
        head_(graph.head),
        link_(flow.item),
        left_(flow.value.begin(), flow.value.end()),
        first_(graph.nodes(), none),
        best_(graph.nodes()),
        place_(graph.nodes(), none),
        walk_(graph.nodes() + 1),
        after_(flow.item.size()),
        age_(graph.nodes()),
        bound_(graph.nodes(), infinity) {}

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
    for (Int depth = bottom; depth <= top; ++depth) {
      smallest = std::min(smallest, left_[best_[walk_[depth]]]);
    }
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

}  // namespace

WeightedPaths split_flows(const Graph& graph, Ints begin, SparseRows flow, SparseRows wanted) {
  WeightedPaths paths;
  Splitter splitter(graph, flow);
  for (std::size_t group = 0; group < begin.size(); ++group) {
    const Int first = flow.start[group], last = flow.start[group + 1];
    splitter.enter(begin[group], first, last);
    for (Int each = wanted.start[group]; each < wanted.start[group + 1]; ++each) {
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
        paths.start.push_back(static_cast<Int>(paths.link.size()));
        rest -= take;
      }
      paths.width[widest] += rest;
    }
    splitter.leave(first, last);
  }
  return paths;
}

PairFlows merge_paths(Int pairs, Ints pair, Floats width, Ints start, Ints link) {
  PairFlows flows;
  flows.first.assign(pairs + 1, 0);
  flows.link.reserve(link.size());
  flows.volume.reserve(link.size());
  std::vector<std::pair<Int, double>> part;
  std::size_t path = 0;
  for (Int each = 0; each < pairs; ++each) {
    part.clear();
    for (; path < pair.size() && pair[path] == each; ++path) {
      for (const Int arc : link.subspan(start[path], start[path + 1] - start[path])) {
        part.emplace_back(arc, width[path]);
      }
    }
    std::ranges::stable_sort(part, {}, &std::pair<Int, double>::first);
    const std::size_t begin = flows.link.size();
    for (const auto& [arc, amount] : part) {
      if (flows.link.size() > begin && flows.link.back() == arc) {
        flows.volume.back() += amount;
      } else {
        flows.link.push_back(arc);
        flows.volume.push_back(amount);
      }
    }
    flows.first[each + 1] = static_cast<Int>(flows.link.size());
  }
  return flows;
}

}  // namespace alltoall

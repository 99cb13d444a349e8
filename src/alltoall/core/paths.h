// Searches for paths of pairs: link-disjoint ones, simple ones by length, shortest ones.
#pragma once

#include <deque>

#include "finders.h"

namespace alltoall {

// Paths with their ends; the links of path p are link[start[p]] to link[start[p + 1] - 1].
struct FoundPaths {
  std::vector<Int> goal;
  std::vector<Int> start{0};
  std::vector<Int> link;

  template <class Links>
  void add(Int end, const Links& links) {
    goal.push_back(end);
    link.insert(link.end(), links.begin(), links.end());
    start.push_back(std::ssize(link));
  }
};

struct SimplePathLimits {
  Int slack;       // hops beyond a shortest path
  Int most_paths;  // of each goal
  Int most_links;  // in all paths together: the search stops beyond
};

inline constexpr double least_volume = 0.25;  // share of a chunk below which a link carries none of it

// Finds for each goal a largest set of link-disjoint paths with the fewest links in total, by successive
// shortest augmenting paths on unit capacities: a used link may be given back, at the gain of its length.
class DisjointSearch {
 public:
  explicit DisjointSearch(const Graph& graph)
      : graph_(graph), used_(graph.links()), waiting_(graph.nodes()), distance_(graph.nodes()),
        reached_by_(graph.nodes()) {}

  FoundPaths run(Int start, Ints goals) {
    FoundPaths paths;
    for (const Int goal : goals) {
      if (goal == start) continue;
      std::ranges::fill(used_, false);
      while (augment(start, goal)) {
      }
      for (std::vector<Int> path = take_path(start, goal); !path.empty(); path = take_path(start, goal))
        paths.add(goal, path);
    }
    return paths;
  }

 private:
  // Flip the links of a shortest augmenting path; return whether there is one.
  bool augment(Int start, Int goal) {
    std::ranges::fill(distance_, graph_.links() + 1);
    std::ranges::fill(reached_by_, none);
    distance_[start] = 0;
    queue_.assign(1, start);
    while (!queue_.empty()) {
      const Int node = queue_.front();
      queue_.pop_front();
      waiting_[node] = false;
      for (const Int link : graph_.out[node])
        if (!used_[link]) reach(graph_.head[link], distance_[node] + 1, link);
      for (const Int link : graph_.in[node])
        if (used_[link]) reach(graph_.tail[link], distance_[node] - 1, link);
    }
    if (reached_by_[goal] == none) return false;
    for (Int node = goal; node != start;) {
      const Int link = reached_by_[node];
      used_[link] = !used_[link];
      node = used_[link] ? graph_.tail[link] : graph_.head[link];
    }
    return true;
  }

  void reach(Int node, Int hops, Int link) {
    if (hops >= distance_[node]) return;
    distance_[node] = hops;
    reached_by_[node] = link;
    if (waiting_[node]) return;
    queue_.push_back(node);
    waiting_[node] = true;
  }

  // Follow used links from start to goal and free them; return them.
  std::vector<Int> take_path(Int start, Int goal) {
    std::vector<Int> path;
    for (Int node = start; node != goal; node = graph_.head[path.back()]) {
      const Ints links = graph_.out[node];
      const auto next = std::ranges::find_if(links, [&](Int link) { return used_[link]; });
      if (next == links.end()) return {};
      used_[*next] = false;
      path.push_back(*next);
    }
    return path;
  }

  const Graph& graph_;
  std::vector<char> used_, waiting_;
  std::vector<Int> distance_, reached_by_;
  std::deque<Int> queue_;
};

// Finds for each goal its first simple paths, shortest first, by depth-first searches for paths of an exact
// length, cut where the goal is too far.
class SimpleSearch {
 public:
  SimpleSearch(const Graph& graph, Int start, const SimplePathLimits& limits)
      : graph_(graph), limits_(limits), start_(start), on_path_(graph.nodes()), cursor_(graph.nodes() + 1) {}

  // hops[g, v] leads from v to goal g.
  FoundPaths run(Ints goals, Matrix<const double> hops) {
    FoundPaths paths;
    for (Int row = 0; row < hops.rows() && std::ssize(paths.link) <= limits_.most_links; ++row) {
      if (goals[row] == start_ || !(hops.at(row, start_) < infinity)) continue;
      const Int shortest = static_cast<Int>(hops.at(row, start_));
      const Int longest = std::min(shortest + limits_.slack, graph_.nodes() - 1);
      found_ = 0;
      for (Int length = shortest; length <= longest && !is_full(paths); ++length)
        search_length(goals[row], length, hops[row], paths);
    }
    return paths;
  }

 private:
  bool is_full(const FoundPaths& paths) const {
    return found_ >= limits_.most_paths || std::ssize(paths.link) > limits_.most_links;
  }

  void search_length(Int goal, Int length, Floats hops, FoundPaths& paths) {
    std::ranges::fill(on_path_, false);
    walk_.clear();
    enter(start_);
    while (!is_full(paths)) {
      const Int depth = std::ssize(walk_);
      const Int node = depth == 0 ? start_ : graph_.head[walk_.back()];
      const bool arrived = node == goal && depth == length;
      if (arrived) {
        paths.add(goal, walk_);
        ++found_;
      }
      if (arrived || depth == length || cursor_[depth] == graph_.out.first[node + 1]) {
        on_path_[node] = false;
        if (depth == 0) return;
        walk_.pop_back();
        continue;
      }
      const Int link = graph_.out.item[cursor_[depth]++], target = graph_.head[link];
      if (on_path_[target] || static_cast<double>(depth + 1) + hops[target] > static_cast<double>(length))
        continue;
      if (target == goal && depth + 1 < length) continue;
      walk_.push_back(link);
      enter(target);
    }
  }

  void enter(Int node) {
    on_path_[node] = true;
    cursor_[walk_.size()] = graph_.out.first[node];
  }

  const Graph& graph_;
  SimplePathLimits limits_;
  Int start_, found_ = 0;
  std::vector<char> on_path_;
  std::vector<Int> cursor_, walk_;
};

// Find a shortest path per pair; pairs are sorted by their beginning. Pairs without one are empty.
inline FoundPaths find_tree_paths(const Graph& graph, Floats lengths, Ints begin, Ints end) {
  FoundPaths paths;
  TreeFinder trees(graph);
  std::vector<std::int32_t> path(graph.nodes());
  for (std::size_t pair = 0; pair < begin.size(); ++pair) {
    if (pair == 0 || begin[pair] != begin[pair - 1]) trees.search(begin[pair], lengths);
    const Int hops = trees.reaches(end[pair]) ? trees.walk(end[pair], path) : 0;
    paths.add(end[pair], Path(path).first(hops));
  }
  return paths;
}

// Trace a path per chunk along the volumes [rows, links] of its row, and take its size out of them.
// A chunk walks back from its end along the largest volume; without volume left it gets no path.
inline void trace_paths(const Graph& graph, Ints begin, Ints end, Floats size, Ints row,
                        Matrix<double> volumes, Matrix<Int> paths) {
  std::vector<Int> walk;
  for (Int chunk = 0; chunk < paths.rows(); ++chunk) {
    const auto volume = volumes[row[chunk]];
    walk.clear();
    Int node = end[chunk];
    while (node != begin[chunk] && std::ssize(walk) < paths.columns()) {
      const Ints links = graph.in[node];
      const auto best = std::ranges::max_element(links, {}, [&](Int link) { return volume[link]; });
      if (best == links.end() || volume[*best] < least_volume * size[chunk]) break;
      walk.push_back(*best);
      node = graph.tail[*best];
    }
    if (node != begin[chunk]) continue;
    std::ranges::copy(walk.rbegin(), walk.rend(), paths[chunk].begin());
    for (const Int link : walk) volume[link] -= size[chunk];
  }
}

}  // namespace alltoall

#include "search.h"

#include <algorithm>
#include <deque>

#include "shortest.h"

namespace alltoall {
namespace {

constexpr double least_volume = 0.25;  // share of a chunk below which a link carries none of it

// Successive shortest augmenting paths on unit capacities: a used link may be given back, at the
// gain of its length.
class DisjointSearch {
 public:
  explicit DisjointSearch(const Graph& graph)
      : graph_(graph), used_(graph.links()), waiting_(graph.nodes()), distance_(graph.nodes()),
        reached_by_(graph.nodes()) {}

  void search(Int start, Int goal, FoundPaths& paths) {
    std::ranges::fill(used_, false);
    while (augment(start, goal)) {
    }
    for (std::vector<Int> path = take_path(start, goal); !path.empty(); path = take_path(start, goal))
      paths.add(goal, path);
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
      for (const Int link : graph_.out.at(node))
        if (!used_[link]) reach(graph_.head[link], distance_[node] + 1, link);
      for (const Int link : graph_.in.at(node))
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
      const Ints links = graph_.out.at(node);
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

// Depth-first search for simple paths of an exact length, cut where the goal is too far.
class SimpleSearch {
 public:
  SimpleSearch(const Graph& graph, Int start, const SimplePathLimits& limits)
      : graph_(graph), limits_(limits), start_(start), on_path_(graph.nodes()), cursor_(graph.nodes() + 1) {}

  void search(Int goal, std::span<const double> hops, FoundPaths& paths) {
    if (!(hops[start_] < infinity)) return;
    const Int shortest = static_cast<Int>(hops[start_]);
    found_ = 0;
    for (Int length = shortest; length <= std::min(shortest + limits_.slack, graph_.nodes() - 1); ++length) {
      search_length(goal, length, hops, paths);
      if (is_full(paths)) return;
    }
  }

  bool is_full(const FoundPaths& paths) const {
    return found_ >= limits_.most_paths || static_cast<Int>(paths.link.size()) > limits_.most_links;
  }

 private:
  void search_length(Int goal, Int length, std::span<const double> hops, FoundPaths& paths) {
    std::ranges::fill(on_path_, false);
    walk_.clear();
    enter(start_);
    while (!is_full(paths)) {
      const Int depth = static_cast<Int>(walk_.size());
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
      const Int link = graph_.out.link[cursor_[depth]++], target = graph_.head[link];
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

}  // namespace

FoundPaths find_disjoint_paths(const Graph& graph, Int start, Ints goals) {
  FoundPaths paths;
  DisjointSearch search(graph);
  for (const Int goal : goals)
    if (goal != start) search.search(start, goal, paths);
  return paths;
}

FoundPaths find_simple_paths(const Graph& graph, Int start, Ints goals, Matrix<const double> hops,
                             const SimplePathLimits& limits) {
  FoundPaths paths;
  SimpleSearch search(graph, start, limits);
  for (std::size_t row = 0; row < goals.size(); ++row) {
    if (goals[row] != start) search.search(goals[row], hops[static_cast<Int>(row)], paths);
    if (static_cast<Int>(paths.link.size()) > limits.most_links) break;
  }
  return paths;
}

FoundPaths find_tree_paths(const Graph& graph, Floats lengths, Ints begin, Ints end) {
  FoundPaths paths;
  Dijkstra dijkstra(graph.out, graph.head);
  std::vector<double> distance(graph.nodes());
  std::vector<Int> parent(graph.nodes(), none), path;
  Int root = none;
  for (std::size_t pair = 0; pair < begin.size(); ++pair) {
    if (begin[pair] != root) {
      root = begin[pair];
      dijkstra.run(lengths, root, distance, parent);
    }
    path.clear();
    if (distance[end[pair]] < infinity)
      for (Int node = end[pair]; node != root; node = graph.tail[parent[node]]) path.push_back(parent[node]);
    std::ranges::reverse(path);
    paths.add(end[pair], path);
  }
  return paths;
}

void trace_paths(const Graph& graph, Ints begin, Ints end, Floats size, Ints row, Matrix<double> volumes,
                 Matrix<Int> paths) {
  std::vector<Int> walk;
  for (Int chunk = 0; chunk < paths.rows(); ++chunk) {
    const auto volume = volumes[row[chunk]];
    walk.clear();
    Int node = end[chunk];
    while (node != begin[chunk] && static_cast<Int>(walk.size()) < paths.columns()) {
      const Ints links = graph.in.at(node);
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

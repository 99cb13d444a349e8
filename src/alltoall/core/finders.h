// Where cheapest paths are looked for: a shortest-path tree, or one relaxation in a fixed order.
#pragma once

#include <concepts>

#include "shortest.h"

namespace alltoall {

// Finds cheapest paths from one start; `cost` has an entry per priced link and, last, that of a
// link that is free.
template <class F>
concept Finder = requires(F finder, const F done, Floats cost, Int at, std::span<std::int32_t> path) {
  { finder.search(at, cost) };
  { done.reaches(at) } -> std::same_as<bool>;
  { done.walk(at, path) } -> std::same_as<Int>;  // hops, 0 if the path is longer than the span
};

// All paths of a graph, by Dijkstra's algorithm; every link has a price of its own.
class TreeFinder {
 public:
  explicit TreeFinder(const Graph& graph)
      : tail_(graph.tail), dijkstra_(graph.out, graph.head), distance_(graph.nodes()),
        parent_(graph.nodes()) {}

  void search(Int start, Floats cost) {
    start_ = start;
    dijkstra_.run(cost, start, distance_, parent_);
  }
  bool reaches(Int end) const { return distance_[end] < infinity; }

  Int walk(Int end, std::span<std::int32_t> path) const {
    Int hops = 0;
    for (Int node = end; node != start_; node = tail_[parent_[node]]) ++hops;
    if (hops > std::ssize(path)) return 0;
    Int node = end;
    for (Int hop = hops; hop-- > 0; node = tail_[parent_[node]])
      path[hop] = static_cast<std::int32_t>(parent_[node]);
    return hops;
  }
 private:
  Ints tail_;
  Dijkstra dijkstra_;
  std::vector<double> distance_;
  std::vector<Int> parent_;
  Int start_ = none;
};

// Links in an order, which paths follow. Channels of a deadlock-free order and the links of a graph
// unrolled in time are both such orders.
struct LinkOrder {
  const Graph& graph;
  std::vector<Int> order;   // links, each at a place
  std::vector<Int> blocks;  // bounds of the blocks of places
  Int settled;              // a block is read again while it improves the way to a node from here on
  std::vector<Int> priced;  // the priced link of each link, or their number if it is free
  Int priced_links;
  std::vector<Int> copies;  // [copies, ends]: nodes of each end: a terminal has a copy per layer
  Int ends;

  Int links() const { return graph.links(); }
};

class OrderFinder {
 public:
  explicit OrderFinder(const LinkOrder& links)
      : links_(links), cost_(links.graph.nodes()), last_(links.graph.nodes()), before_(links.order.size()) {}

  void search(Int start, Floats cost) {
    std::ranges::fill(cost_, infinity);
    std::ranges::fill(last_, none);
    for (std::size_t copy = start; copy < links_.copies.size(); copy += links_.ends) cost_[links_.copies[copy]] = 0;
    for (std::size_t block = 0; block + 1 < links_.blocks.size(); ++block)
      while (relax(links_.blocks[block], links_.blocks[block + 1], cost)) {
      }
  }
  bool reaches(Int end) const { return cost_[cheapest_copy(end)] < infinity; }

  Int walk(Int end, std::span<std::int32_t> path) const {
    const Int last = last_[cheapest_copy(end)];
    Int hops = 0;
    for (Int place = last; place != none; place = before_[place]) ++hops;
    if (hops > std::ssize(path)) return 0;
    Int hop = hops;
    for (Int place = last; place != none; place = before_[place])
      path[--hop] = static_cast<std::int32_t>(links_.order[place]);
    return hops;
  }
 private:
  // Read some places once; return whether the way to a node that must settle became cheaper.
  bool relax(Int low, Int high, Floats cost) {
    bool improved = false;
    for (Int place = low; place < high; ++place) {
      const Int link = links_.order[place], head = links_.graph.head[link], tail = links_.graph.tail[link];
      const double reach = cost_[tail] + cost[links_.priced[link]];
      if (reach < cost_[head]) {
        cost_[head] = reach;
        before_[place] = last_[tail];
        last_[head] = place;
        improved |= head >= links_.settled;
      }
    }
    return improved;
  }
  Int cheapest_copy(Int end) const {
    Int best = links_.copies[end];
    for (std::size_t copy = end + links_.ends; copy < links_.copies.size(); copy += links_.ends)
      if (cost_[links_.copies[copy]] < cost_[best]) best = links_.copies[copy];
    return best;
  }
  const LinkOrder& links_;
  std::vector<double> cost_;
  std::vector<Int> last_, before_;
};

}  // namespace alltoall

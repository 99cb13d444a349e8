// Shortest paths: Dijkstra's algorithm, many starts side by side, and flow along them.
#pragma once

#include "parallel.h"

namespace alltoall {

// A search that keeps its memory, so that many starts can use it one after the other.
class Dijkstra {
 public:
  Dijkstra(const Rows& out, Ints head)
      : out_(out), head_(head), heap_(out.item.size() + 1), settled_(out.count()) {
    order_.reserve(out.count());
  }

  // Fill the distances and the link into each node. `parent` is set for reached nodes other than
  // the start. Links may have length 0.
  void run(Floats lengths, Int start, std::span<double> distance, std::span<Int> parent) {
    std::ranges::fill(settled_, false);
    order_.clear();
    std::ranges::fill(distance, infinity);
    distance[start] = 0.0;
    size_ = 0;
    push({0.0, start});
    while (size_ > 0) {
      const Int node = pop();
      if (settled_[node]) continue;
      settled_[node] = true;
      order_.push_back(node);
      for (const Int link : out_[node]) {
        const Int end = head_[link];
        const double reach = distance[node] + lengths[link];
        if (reach < distance[end]) {
          distance[end] = reach;
          parent[end] = link;
          push({reach, end});
        }
      }
    }
  }

  // The nodes that the last run reached, nearest first.
  Ints order() const { return order_; }

 private:
  struct Entry {
    double key;
    Int node;
  };

  void push(Entry entry) {
    Int hole = size_++;
    while (hole > 0 && heap_[(hole - 1) / 2].key > entry.key) {
      heap_[hole] = heap_[(hole - 1) / 2];
      hole = (hole - 1) / 2;
    }
    heap_[hole] = entry;
  }

  Int pop() {
    const Int node = heap_[0].node;
    const Entry last = heap_[--size_];
    Int hole = 0;
    for (Int child = 1; child < size_; child = 2 * hole + 1) {
      if (child + 1 < size_ && heap_[child + 1].key < heap_[child].key) ++child;
      if (heap_[child].key >= last.key) break;
      heap_[hole] = heap_[child];
      hole = child;
    }
    heap_[hole] = last;
    return node;
  }

  const Rows& out_;
  Ints head_;
  std::vector<Entry> heap_;
  std::vector<char> settled_;
  std::vector<Int> order_;
  Int size_ = 0;
};

// Shortest paths from many starts at once: Bellman and Ford's algorithm, one lane per start.
//
// Where paths have few hops, a few rounds over the links settle all starts of a block, and each
// relaxation serves all its lanes at once. Where they do not settle soon, Dijkstra takes over.

inline constexpr Int block_starts = 64;  // starts that share their trees' memory
inline constexpr Int stride = 32;        // lanes that are relaxed together
inline constexpr Int most_rounds = 60;   // mean visits of a link before Dijkstra is the faster one

// Reach a node over a link in some lanes; return whether any of them gets shorter. The count is a
// constant, and the loops are apart, because g++ vectorizes nothing else.
[[gnu::always_inline]] inline bool relax(const double* __restrict here, double* __restrict there,
                                         std::int32_t* __restrict parent, double length, std::int32_t link) {
  std::int64_t shorter = 0;
  for (Int lane = 0; lane < stride; ++lane) shorter |= here[lane] + length < there[lane] ? -1 : 0;
  if (shorter == 0) return false;
  for (Int lane = 0; lane < stride; ++lane)
    parent[lane] = here[lane] + length < there[lane] ? link : parent[lane];
  for (Int lane = 0; lane < stride; ++lane) {
    const double reach = here[lane] + length;
    there[lane] = reach < there[lane] ? reach : there[lane];
  }
  return true;
}

// Shortest-path trees of some starts; it keeps its memory. Links may have length 0.
class ManyTrees {
 public:
  ManyTrees(const Graph& graph, Int most_starts)
      : graph_(graph), width_((most_starts + stride - 1) / stride * stride),
        distance_(graph.nodes() * width_), parent_(graph.nodes() * width_, none),
        waiting_(graph.nodes()) {}

  // Find the distances, and the link into each node, from each start.
  void find(Floats lengths, Ints starts) {
    std::ranges::fill(distance_, infinity);
    for (std::size_t lane = 0; lane < starts.size(); ++lane) {
      distance_[starts[lane] * width_ + lane] = 0.0;
      waiting_[starts[lane]] = true;
    }
    if (!settle(lengths)) search_one_by_one(lengths, starts);
  }

  double distance(Int node, Int start) const { return distance_[node * width_ + start]; }

  // The link into a node; meaningful if the node is reached and is not the start.
  Int parent(Int node, Int start) const { return parent_[node * width_ + start]; }

 private:
  // Return whether all lanes settled before too many links were visited.
  ALLTOALL_VERSIONS bool settle(Floats lengths) {
    const Int most = most_rounds * graph_.links();
    Int visited = 0;
    for (bool changed = true; changed;) {
      if (visited > most) return false;
      changed = false;
      for (Int node = 0; node < graph_.nodes(); ++node) {
        if (!waiting_[node]) continue;
        waiting_[node] = false;
        changed = true;
        const Ints links = graph_.out[node];
        visited += std::ssize(links);
        for (const Int link : links) {
          const Int here = node * width_, there = graph_.head[link] * width_;
          if (here == there) continue;  // a loop shortens nothing
          for (Int lane = 0; lane < width_; lane += stride)
            if (relax(&distance_[here + lane], &distance_[there + lane], &parent_[there + lane],
                      lengths[link], static_cast<std::int32_t>(link)))
              waiting_[graph_.head[link]] = true;
        }
      }
    }
    return true;
  }

  void search_one_by_one(Floats lengths, Ints starts) {
    std::ranges::fill(waiting_, false);
    const Int nodes = graph_.nodes();
    Dijkstra search(graph_.out, graph_.head);
    std::vector<double> distance(nodes);
    std::vector<Int> parent(nodes, none);
    for (std::size_t lane = 0; lane < starts.size(); ++lane) {
      search.run(lengths, starts[lane], distance, parent);
      for (Int node = 0; node < nodes; ++node) {
        distance_[node * width_ + lane] = distance[node];
        parent_[node * width_ + lane] = static_cast<std::int32_t>(parent[node]);
      }
    }
  }

  const Graph& graph_;
  Int width_;  // lanes, rounded up to a whole number of vectors
  std::vector<double> distance_;
  std::vector<std::int32_t> parent_;
  std::vector<char> waiting_;
};

// Call body(trees, start, lane) for every start, with the trees of its block.
template <class Body>
inline void for_all_trees(const Graph& graph, Floats lengths, Ints starts, int threads, const Body& body) {
  const Int count = std::ssize(starts);
  in_parallel((count + block_starts - 1) / block_starts, threads, [&](Int block) {
    const Int low = block * block_starts, lanes = std::min(block_starts, count - low);
    ManyTrees trees(graph, lanes);
    trees.find(lengths, starts.subspan(low, lanes));
    for (Int lane = 0; lane < lanes; ++lane) body(trees, low + lane, lane);
  });
}

// List the nodes of a tree so that each comes before its parent. `into` has the link into each
// node; the root and nodes that were not reached have none.
inline void list_leaves_first(Int root, Ints into, Ints tail, std::vector<Int>& order,
                              std::vector<Int>& children) {
  std::ranges::fill(children, 0);
  order.clear();
  for (const Int link : into)
    if (link != none) ++children[tail[link]];
  for (Int leaf = 0; leaf < std::ssize(into); ++leaf) {
    // A node that has lost its last child goes next, unless its own turn is still to come.
    for (Int node = leaf; node != root && into[node] != none && children[node] == 0;) {
      order.push_back(node);
      children[node] = -1;
      node = tail[into[node]];
      --children[node];
      if (node > leaf) break;
    }
  }
}

// Fill the distance from each start to each node, [starts, nodes].
inline void fill_distances(const Graph& graph, Floats lengths, Ints starts, Matrix<double> distance,
                           int threads) {
  for_all_trees(graph, lengths, starts, threads, [&](const ManyTrees& trees, Int start, Int lane) {
    const auto row = distance[start];
    for (Int node = 0; node < graph.nodes(); ++node) row[node] = trees.distance(node, lane);
  });
}

// Add to the flow of each start what its shortest-path tree carries if node v is sent amount[v].
inline void add_tree_flows(const Graph& graph, Floats lengths, Ints starts, Matrix<const double> amount,
                           Matrix<double> flows, int threads) {
  const Int nodes = graph.nodes();
  for_all_trees(graph, lengths, starts, threads, [&](const ManyTrees& trees, Int start, Int lane) {
    const Int root = starts[start];
    std::vector<double> below(amount[start].begin(), amount[start].end());
    std::vector<Int> into(nodes), order, children(nodes);
    for (Int node = 0; node < nodes; ++node)
      into[node] = node != root && trees.distance(node, lane) < infinity ? trees.parent(node, lane) : none;
    list_leaves_first(root, into, graph.tail, order, children);
    for (const Int node : order) {
      if (!(below[node] > 0.0)) continue;
      flows.at(start, into[node]) += below[node];
      below[graph.tail[into[node]]] += below[node];
    }
  });
}

// The source that is served, and the share of its demand that is left.
using GrowthState = std::pair<Int, double>;

// FPTAS: route `wanted` from every source along shortest paths, as much at a time as no capacity
// limits, while lengths grow by epsilon times the share of the capacity. Return after `most` trees.
inline GrowthState grow_lengths(const Graph& graph, Floats capacity, Ints starts, Matrix<const double> wanted,
                               double epsilon, GrowthState state, Int most, std::span<double> lengths,
                               Matrix<double> flows) {
  Dijkstra dijkstra(graph.out, graph.head);
  std::vector<double> distance(graph.nodes()), load(graph.links()), passing(graph.nodes());
  std::vector<Int> parent(graph.nodes());
  auto& [source, left] = state;
  while (source < std::ssize(starts) && most-- > 0) {
    dijkstra.run(lengths, starts[source], distance, parent);
    const Ints reached = dijkstra.order();
    std::ranges::transform(wanted[source], passing.begin(), [&](double each) { return each * left; });
    double share = 1.0;
    for (std::size_t place = reached.size(); place-- > 1;) {
      const Int link = parent[reached[place]];
      load[link] = passing[reached[place]];
      passing[graph.tail[link]] += load[link];
      if (load[link] > 0.0) share = std::min(share, capacity[link] / load[link]);
    }
    for (std::size_t place = 1; place < reached.size(); ++place) {
      const Int link = parent[reached[place]];
      flows.at(source, link) += load[link] * share;
      lengths[link] *= 1.0 + epsilon * load[link] * share / capacity[link];
    }
    left = share < 1.0 ? left * (1.0 - share) : 0.0;
    if (!(left > 0.0)) ++source, left = 1.0;
  }
  return state;
}

}  // namespace alltoall

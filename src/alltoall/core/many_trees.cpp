#include "many_trees.h"

#include <algorithm>

#include "parallel.h"
#include "shortest.h"
#include "versions.h"

namespace alltoall {
namespace {

constexpr Int block_starts = 64;  // starts that share their trees' memory
constexpr Int stride = 32;        // lanes that are relaxed together
constexpr Int most_rounds = 60;   // mean visits of a link before Dijkstra is the faster one

// Reach a node over a link in some lanes; return whether any of them gets shorter. The count is a
// constant, and the loops are apart, because g++ vectorizes nothing else.
[[gnu::always_inline]] inline bool relax(const double* __restrict here, double* __restrict there,
                                         std::int32_t* __restrict parent, double length,
                                         std::int32_t link) {
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

// Call body(trees, start, lane) for every start, with the trees of its block.
template <class Body>
void for_all_trees(const Graph& graph, Floats lengths, Ints starts, int threads, const Body& body) {
  const Int count = static_cast<Int>(starts.size());
  in_parallel((count + block_starts - 1) / block_starts, threads, [&](Int block) {
    const Int low = block * block_starts, lanes = std::min(block_starts, count - low);
    ManyTrees trees(graph, lanes);
    trees.find(lengths, starts.subspan(low, lanes));
    for (Int lane = 0; lane < lanes; ++lane) body(trees, low + lane, lane);
  });
}

// List the nodes of a tree so that each comes before its parent. `into` has the link into each
// node; the root and nodes that were not reached have none.
void list_leaves_first(Int root, Ints into, Ints tail, std::vector<Int>& order,
                       std::vector<Int>& children) {
  std::ranges::fill(children, 0);
  order.clear();
  for (const Int link : into)
    if (link != none) ++children[tail[link]];
  for (Int leaf = 0; leaf < static_cast<Int>(into.size()); ++leaf) {
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

}  // namespace

ManyTrees::ManyTrees(const Graph& graph, Int most_starts)
    : graph_(graph), width_((most_starts + stride - 1) / stride * stride),
      distance_(graph.nodes() * width_), parent_(graph.nodes() * width_, none),
      waiting_(graph.nodes()) {}

void ManyTrees::find(Floats lengths, Ints starts) {
  std::ranges::fill(distance_, infinity);
  for (std::size_t lane = 0; lane < starts.size(); ++lane) {
    distance_[starts[lane] * width_ + lane] = 0.0;
    waiting_[starts[lane]] = true;
  }
  if (!settle(lengths)) search_one_by_one(lengths, starts);
}

// Return whether all lanes settled before too many links were visited.
ALLTOALL_VERSIONS bool ManyTrees::settle(Floats lengths) {
  const Int most = most_rounds * graph_.links();
  Int visited = 0;
  for (bool changed = true; changed;) {
    if (visited > most) return false;
    changed = false;
    for (Int node = 0; node < graph_.nodes(); ++node) {
      if (!waiting_[node]) continue;
      waiting_[node] = false;
      changed = true;
      const Ints links = graph_.out.at(node);
      visited += static_cast<Int>(links.size());
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

void ManyTrees::search_one_by_one(Floats lengths, Ints starts) {
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

void fill_distances(const Graph& graph, Floats lengths, Ints starts, Matrix<double> distance,
                    int threads) {
  for_all_trees(graph, lengths, starts, threads, [&](const ManyTrees& trees, Int start, Int lane) {
    const auto row = distance[start];
    for (Int node = 0; node < graph.nodes(); ++node) row[node] = trees.distance(node, lane);
  });
}

void sum_distances(const Graph& graph, Floats lengths, Ints starts, Matrix<const double> wanted,
                   std::span<double> sums, int threads) {
  for_all_trees(graph, lengths, starts, threads, [&](const ManyTrees& trees, Int start, Int lane) {
    const auto wants = wanted[start];
    double total = 0.0;
    for (Int node = 0; node < graph.nodes(); ++node)
      if (wants[node] > 0.0) total += wants[node] * trees.distance(node, lane);
    sums[start] = total;
  });
}

void add_tree_flows(const Graph& graph, Floats lengths, Ints starts, Matrix<const double> amount,
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

}  // namespace alltoall

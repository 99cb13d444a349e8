// Shortest paths from many starts at once: Bellman and Ford's algorithm, one lane per start.
//
// Where paths have few hops, a few rounds over the links settle all starts of a block, and each
// relaxation serves all its lanes at once. Where they do not settle soon, Dijkstra takes over.
#pragma once

#include <vector>

#include "graph.h"

namespace alltoall {

// Shortest-path trees of some starts; it keeps its memory. Links may have length 0.
class ManyTrees {
 public:
  ManyTrees(const Graph& graph, Int most_starts);

  // Find the distances, and the link into each node, from each start.
  void find(Floats lengths, Ints starts);

  double distance(Int node, Int start) const { return distance_[node * width_ + start]; }

  // The link into a node; meaningful if the node is reached and is not the start.
  Int parent(Int node, Int start) const { return parent_[node * width_ + start]; }

 private:
  bool settle(Floats lengths);
  void search_one_by_one(Floats lengths, Ints starts);

  Graph graph_;
  Int width_;  // lanes, rounded up to a whole number of vectors
  std::vector<double> distance_;
  std::vector<std::int32_t> parent_;
  std::vector<char> waiting_;
};

// Fill the distance from each start to each node, [starts, nodes].
void fill_distances(const Graph& graph, Floats lengths, Ints starts, Matrix<double> distance,
                    int threads);

// Fill, for each start, the sum over all nodes of demand times distance.
void sum_distances(const Graph& graph, Floats lengths, Ints starts, Matrix<const double> wanted,
                   std::span<double> sums, int threads);

// Add to the flow of each start what its shortest-path tree carries if node v is sent amount[v].
void add_tree_flows(const Graph& graph, Floats lengths, Ints starts, Matrix<const double> amount,
                    Matrix<double> flows, int threads);

}  // namespace alltoall

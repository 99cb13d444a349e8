// Split flows into widest paths.
//
// For each destination in turn, the path whose narrowest link is widest is taken off, until the
// demand is met. The width of a node, that of the widest path to it, only shrinks meanwhile, so
// earlier widths are upper bounds. To find a node's width, look at its best inflow by these bounds,
// tighten the bound of that inflow's tail first, and look again: the search follows little more
// than the path itself. A walk that meets itself has found a cycle of flow, which is cancelled.
#pragma once

#include <vector>

#include "graph.h"

namespace alltoall {

// Rows of (item, value): links and amounts, or end nodes and demands.
struct SparseRows {
  Ints start;
  Ints item;
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

// Return the widest paths of all pairs of all groups.
WeightedPaths split_flows(const Graph& graph, Ints begin, SparseRows flow, SparseRows wanted);

// The flow of each pair: where its links begin, the links in order, their volumes.
struct PairFlows {
  std::vector<Int> first;
  std::vector<Int> link;
  std::vector<double> volume;
};

// Add up the paths of each pair by link.
PairFlows merge_paths(Int pairs, Ints pair, Floats width, Ints start, Ints link);

}  // namespace alltoall

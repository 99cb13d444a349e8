// Searches for paths of pairs: link-disjoint ones, simple ones by length, shortest ones.
#pragma once

#include <vector>

#include "graph.h"

namespace alltoall {

// Paths with their ends; the links of path p are link[start[p]] to link[start[p + 1] - 1].
struct FoundPaths {
  std::vector<Int> goal;
  std::vector<Int> start{0};
  std::vector<Int> link;

  void add(Int end, Ints links) {
    goal.push_back(end);
    link.insert(link.end(), links.begin(), links.end());
    start.push_back(static_cast<Int>(link.size()));
  }
};

// Find for each goal a largest set of link-disjoint paths with the fewest links in total.
FoundPaths find_disjoint_paths(const Graph& graph, Int start, Ints goals);

struct SimplePathLimits {
  Int slack;       // hops beyond a shortest path
  Int most_paths;  // of each goal
  Int most_links;  // in all paths together: the search stops beyond
};

// Find for each goal its first simple paths, shortest first. hops[g, v] leads from v to goal g.
FoundPaths find_simple_paths(const Graph& graph, Int start, Ints goals, Matrix<const double> hops,
                             const SimplePathLimits& limits);

// Find a shortest path per pair; pairs are sorted by their beginning. Pairs without one are empty.
FoundPaths find_tree_paths(const Graph& graph, Floats lengths, Ints begin, Ints end);

// Trace a path per chunk along the volumes [rows, links] of its row, and take its size out of them.
// A chunk walks back from its end along the largest volume; without volume left it gets no path.
void trace_paths(const Graph& graph, Ints begin, Ints end, Floats size, Ints row, Matrix<double> volumes,
                 Matrix<Int> paths);

}  // namespace alltoall

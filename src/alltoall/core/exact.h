// From a solver's approximate flows to flows that conserve exactly.
//
// For every group: drop negligible flow; send what nodes lack along a shortest-path tree; cancel
// cycles; and trim what each node receives to what it needs, from the sinks back to the source.
#pragma once

#include <vector>

#include "graph.h"

namespace alltoall {

// Depth-first search for cycles of positive flow; it keeps its memory.
class CycleCanceller {
 public:
  explicit CycleCanceller(const Graph& graph);

  // Remove all cycles of positive flow; return the nodes reached, sinks first. A link that leads
  // back onto the current path closes a cycle, whose smallest flow is subtracted all around.
  Ints cancel(std::span<double> flow, Int start);

 private:
  enum class State : char { unseen, on_path, finished };

  Int cancel_one(std::span<double> flow, Int bottom, Int top);

  Graph graph_;
  std::vector<State> state_;
  std::vector<Int> finished_, place_, cursor_, path_node_, path_link_;
};

// Make flows [groups, links] deliver exactly what nodes want [groups, nodes], in place.
void make_exact(const Graph& graph, Floats lengths, Ints start, Matrix<const double> wanted,
                Matrix<double> flows, int threads);

}  // namespace alltoall

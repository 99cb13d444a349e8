// Loops of the routing methods that others use: trees that remember loads, growing lengths, equal
// weights over all shortest paths, and phases of routes.
#pragma once

#include <utility>

#include "shortest.h"

namespace alltoall {

// SSSP: a tree of shortest paths to each terminal; weights grow by what each tree puts on a link.
// wanted[t, v] is what node v sends to terminal t. Fill the link of each node, `none` without a path.
void grow_trees(const Graph& graph, Floats capacity, Ints terminals, Matrix<const double> wanted,
                std::span<double> weight, Matrix<Int> table);

// Where a phase stands: the source it serves, and the share of its demand that is left.
using PhaseState = std::pair<Int, double>;

// FPTAS: route `wanted` from every source along shortest paths, as much at a time as no capacity
// limits, while lengths grow by epsilon times the share of the capacity. Return after `most` trees.
PhaseState grow_lengths(const Graph& graph, Floats capacity, Ints starts, Matrix<const double> wanted,
                        double epsilon, PhaseState state, Int most, std::span<double> lengths,
                        Matrix<double> flows);

// Fill the numbers of shortest paths, by hops, from each start to each node.
void count_shortest(const Graph& graph, Ints starts, Matrix<double> count);

// Send amounts [starts, nodes] with equal weights over all shortest paths; add to flows.
void add_equal_flows(const Graph& graph, Ints starts, Matrix<const double> amount, Matrix<double> flows);

// Routes in phases: route r of a source takes time[e] of link[e], for e from start[r] to start[r + 1] - 1.
struct PhasedRoutes {
  Ints start, link;
  Floats time;
  Ints source;
};

// Move routes to phases in which their source has at least two flows fewer, within the budgets.
// Return whether any moved; `active` counts the flows of each phase and source.
bool even_phases(const PhasedRoutes& routes, Floats budget, Matrix<double> load, Matrix<Int> active,
                 std::span<Int> phase);

}  // namespace alltoall

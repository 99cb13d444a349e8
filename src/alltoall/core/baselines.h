// Loops of the routing methods that others use: trees that remember loads, growing lengths, and
// phases of routes.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "shortest.h"

namespace alltoall {

// SSSP: a tree of shortest paths to each terminal; weights grow by what each tree puts on a link.
// wanted[t, v] is what node v sends to terminal t. Fill the link of each node, `none` without a path.
inline void grow_trees(const Graph& graph, Floats capacity, Ints terminals, Matrix<const double> wanted,
                       std::span<double> weight, Matrix<Int> table) {
  Dijkstra dijkstra(graph.in, graph.tail);
  std::vector<double> distance(graph.nodes()), passing;
  for (std::size_t row = 0; row < terminals.size(); ++row) {
    const std::span<Int> parent = table[row];
    std::ranges::fill(parent, none);
    dijkstra.run(weight, terminals[row], distance, parent);
    passing.assign(wanted[row].begin(), wanted[row].end());
    for (std::size_t place = dijkstra.order().size(); place-- > 1;) {
      const Int node = dijkstra.order()[place], link = parent[node];
      weight[link] += passing[node] / capacity[link];
      passing[graph.head[link]] += passing[node];
    }
  }
}

// Where a phase stands: the source it serves, and the share of its demand that is left.
using PhaseState = std::pair<Int, double>;

// FPTAS: route `wanted` from every source along shortest paths, as much at a time as no capacity
// limits, while lengths grow by epsilon times the share of the capacity. Return after `most` trees.
inline PhaseState grow_lengths(const Graph& graph, Floats capacity, Ints starts, Matrix<const double> wanted,
                               double epsilon, PhaseState state, Int most, std::span<double> lengths,
                               Matrix<double> flows) {
  Dijkstra dijkstra(graph.out, graph.head);
  std::vector<double> distance(graph.nodes()), load(graph.links()), passing(graph.nodes());
  std::vector<Int> parent(graph.nodes());
  auto& [source, left] = state;
  while (source < static_cast<Int>(starts.size()) && most-- > 0) {
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

// Routes in phases: the place e of a link in its row is also that of the time that the route takes of it.
struct PhasedRoutes {
  RowsView links;
  Floats time;
  Ints source;
};

// Move routes to phases in which their source has at least two flows fewer, within the budgets.
// Return whether any moved; `active` counts the flows of each phase and source.
inline bool even_phases(const PhasedRoutes& routes, Floats budget, Matrix<double> load, Matrix<Int> active,
                        std::span<Int> phase) {
  bool moved = false;
  for (std::size_t route = 0; route < phase.size(); ++route) {
    const Int source = routes.source[route], low = routes.links.first[route];
    const Ints links = routes.links[route];
    for (Int to = 0; to < load.rows(); ++to) {
      const Int here = phase[route];
      if (active.at(to, source) + 1 >= active.at(here, source)) continue;
      bool fits = true;
      for (std::size_t hop = 0; hop < links.size(); ++hop)
        fits &= load.at(to, links[hop]) + routes.time[low + hop] <= budget[to];
      if (!fits) continue;
      for (std::size_t hop = 0; hop < links.size(); ++hop) {
        load.at(to, links[hop]) += routes.time[low + hop];
        load.at(here, links[hop]) -= routes.time[low + hop];
      }
      --active.at(here, source);
      ++active.at(to, source);
      phase[route] = to;
      moved = true;
    }
  }
  return moved;
}

}  // namespace alltoall

// Paths of a graph, as Python sees them: distances, searches, splitting of flows.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "graph_arrays.h"
#include "many_trees.h"
#include "owned.h"
#include "search.h"
#include "splitting.h"

using namespace nanobind::literals;

namespace alltoall::border {
namespace {

using Rows = std::tuple<IntArray, IntArray, FloatArray>;

auto py_distances(const GraphArrays& graph, FloatArray lengths, IntArray starts, int threads) {
  require_lengths(graph, view(lengths));
  require_range(view(starts), 0, graph.nodes(), "starts");
  const Int rows = static_cast<Int>(starts.shape(0));
  std::vector<double> distance(rows * graph.nodes());
  unlocked([&] {
    fill_distances(graph.graph(), view(lengths), view(starts), {distance.data(), rows, graph.nodes()}, threads);
  });
  return to_numpy(std::move(distance), {starts.shape(0), static_cast<std::size_t>(graph.nodes())});
}

auto py_distance_sums(const GraphArrays& graph, FloatArray lengths, IntArray starts,
                      Array<const double, 2> wanted, int threads) {
  require_lengths(graph, view(lengths));
  require_range(view(starts), 0, graph.nodes(), "starts");
  require_shape(wanted, starts.shape(0), graph.nodes(), "wanted");
  std::vector<double> sums(starts.shape(0));
  unlocked([&] {
    sum_distances(graph.graph(), view(lengths), view(starts), view(wanted), sums, threads);
  });
  return to_numpy(std::move(sums));
}

void py_add_tree_flows(const GraphArrays& graph, FloatArray lengths, IntArray starts,
                       Array<const double, 2> amount, Array<double, 2> flows, int threads) {
  require_lengths(graph, view(lengths));
  require_range(view(starts), 0, graph.nodes(), "starts");
  require_shape(amount, starts.shape(0), graph.nodes(), "amount");
  require_shape(flows, starts.shape(0), graph.links(), "flows");
  unlocked([&] {
    add_tree_flows(graph.graph(), view(lengths), view(starts), view(amount), view(flows), threads);
  });
}

auto paths_to_numpy(FoundPaths paths) {
  return std::tuple(to_numpy(std::move(paths.goal)), to_numpy(std::move(paths.start)),
                    to_numpy(std::move(paths.link)));
}

auto py_disjoint_paths(const GraphArrays& graph, Int start, IntArray goals) {
  require(start >= 0 && start < graph.nodes(), "start", "a node");
  require_range(view(goals), 0, graph.nodes(), "goals");
  return paths_to_numpy(unlocked([&] { return find_disjoint_paths(graph.graph(), start, view(goals)); }));
}

auto py_simple_paths(const GraphArrays& graph, Int start, IntArray goals, Array<const double, 2> hops,
                     Int slack, Int most_paths, Int most_links) {
  require(start >= 0 && start < graph.nodes(), "start", "a node");
  require_range(view(goals), 0, graph.nodes(), "goals");
  require_shape(hops, goals.shape(0), graph.nodes(), "hops");
  return paths_to_numpy(unlocked([&] {
    return find_simple_paths(graph.graph(), start, view(goals), view(hops), {slack, most_paths, most_links});
  }));
}

auto py_tree_paths(const GraphArrays& graph, FloatArray lengths, IntArray begin, IntArray end) {
  require_lengths(graph, view(lengths));
  require_size(view(end), begin.shape(0), "end");
  require_range(view(begin), 0, graph.nodes(), "begin");
  require_range(view(end), 0, graph.nodes(), "end");
  FoundPaths paths =
      unlocked([&] { return find_tree_paths(graph.graph(), view(lengths), view(begin), view(end)); });
  return std::tuple(to_numpy(std::move(paths.start)), to_numpy(std::move(paths.link)));
}

void py_trace_paths(const GraphArrays& graph, IntArray begin, IntArray end, FloatArray size, IntArray row,
                    Array<double, 2> volumes, Array<Int, 2> paths) {
  const std::size_t chunks = begin.shape(0);
  require_size(view(end), chunks, "end");
  require_size(view(size), chunks, "size");
  require_size(view(row), chunks, "row");
  require_range(view(begin), 0, graph.nodes(), "begin");
  require_range(view(end), 0, graph.nodes(), "end");
  require_range(view(row), 0, static_cast<Int>(volumes.shape(0)), "row");
  require_shape(volumes, volumes.shape(0), graph.links(), "volumes");
  require_shape(paths, chunks, static_cast<Int>(paths.shape(1)), "paths");
  unlocked([&] {
    trace_paths(graph.graph(), view(begin), view(end), view(size), view(row), view(volumes), view(paths));
  });
}

SparseRows checked_rows(const Rows& rows, std::size_t count, Int items, const char* name) {
  const auto& [start, item, value] = rows;
  require_size(view(start), count + 1, name);
  require_bounds(view(start), static_cast<Int>(item.shape(0)), name);
  require_range(view(item), 0, items, name);
  require_size(view(value), item.shape(0), name);
  return {view(start), view(item), view(value)};
}

auto py_split_flows(const GraphArrays& graph, IntArray begin, Rows flow, Rows wanted) {
  require_range(view(begin), 0, graph.nodes(), "begin");
  const SparseRows flows = checked_rows(flow, begin.shape(0), graph.links(), "flow");
  const SparseRows wants = checked_rows(wanted, begin.shape(0), graph.nodes(), "wanted");
  WeightedPaths paths =
      unlocked([&] { return split_flows(graph.graph(), view(begin), flows, wants); });
  return std::tuple(paths.failed, to_numpy(std::move(paths.pair)), to_numpy(std::move(paths.width)),
                    to_numpy(std::move(paths.start)), to_numpy(std::move(paths.link)));
}

auto py_merge_paths(Int pairs, IntArray pair, FloatArray width, IntArray start, IntArray link) {
  require(pairs >= 0, "pairs", "at least 0");
  require_range(view(pair), 0, pairs, "pair");
  require(std::ranges::is_sorted(view(pair)), "pair", "pairs in order");
  require_size(view(width), pair.shape(0), "width");
  require_size(view(start), pair.shape(0) + 1, "start");
  require_bounds(view(start), static_cast<Int>(link.shape(0)), "start");
  PairFlows flows =
      unlocked([&] { return merge_paths(pairs, view(pair), view(width), view(start), view(link)); });
  return std::tuple(to_numpy(std::move(flows.first)), to_numpy(std::move(flows.link)),
                    to_numpy(std::move(flows.volume)));
}

}  // namespace

void bind_paths(nb::module_& module) {
  module.def("distances", &py_distances, "graph"_a, "lengths"_a, "starts"_a, "threads"_a = 1);
  module.def("distance_sums", &py_distance_sums, "graph"_a, "lengths"_a, "starts"_a, "wanted"_a,
             "threads"_a = 1);
  module.def("add_tree_flows", &py_add_tree_flows, "graph"_a, "lengths"_a, "starts"_a, "amount"_a,
             "flows"_a.noconvert(), "threads"_a = 1);
  module.def("disjoint_paths", &py_disjoint_paths, "graph"_a, "start"_a, "goals"_a);
  module.def("simple_paths", &py_simple_paths, "graph"_a, "start"_a, "goals"_a, "hops"_a, "slack"_a,
             "most_paths"_a, "most_links"_a);
  module.def("tree_paths", &py_tree_paths, "graph"_a, "lengths"_a, "begin"_a, "end"_a);
  module.def("trace_paths", &py_trace_paths, "graph"_a, "begin"_a, "end"_a, "size"_a, "row"_a,
             "volumes"_a.noconvert(), "paths"_a.noconvert());
  module.def("split_flows", &py_split_flows, "graph"_a, "begin"_a, "flow"_a, "wanted"_a);
  module.def("merge_paths", &py_merge_paths, "pairs"_a, "pair"_a, "width"_a, "start"_a, "link"_a);
}

}  // namespace alltoall::border

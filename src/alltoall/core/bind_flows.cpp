// What Python sees of paths and flows: distances, searches, splitting, growing lengths, repair, sweeps, steps.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "arrays.h"
#include "flow.h"
#include "paths.h"
#include "primal_dual.h"
#include "sweeps.h"

namespace alltoall::border {
namespace {

using ValuedRows = std::tuple<IntArray, IntArray, FloatArray>;

// Rows over the nodes, or over the links, for each of some nodes.
struct NodeRows {
  NodeRows(const Graph& graph, const IntArray& node, const char* name)
      : graph(graph), node(indices(node, graph.nodes(), name)), count(std::ssize(node)) {}

  Matrix<const double> by_node(const FloatTable& table, const char* name) const {
    return sized(table, count, graph.nodes(), name);
  }
  template <class Number>
  Matrix<Number> by_link(const Array<Number, 2>& table, const char* name) const {
    return sized(table, count, graph.links(), name);
  }

  const Graph& graph;
  Ints node;
  Int count;
};

auto paths_to_numpy(FoundPaths paths) {
  return std::tuple(to_numpy(std::move(paths.goal)), to_numpy(std::move(paths.start)),
                    to_numpy(std::move(paths.link)));
}

void define_distances(nb::module_& module) {
  module.def("distances", [](const Graph& graph, FloatArray length, IntArray starts, int threads) {
    const NodeRows rows(graph, starts, "starts");
    const Floats checked = lengths(graph, length);
    std::vector<double> distance(rows.count * graph.nodes());
    const Matrix<double> filled(distance.data(), rows.count, graph.nodes());
    unlocked([&] { fill_distances(graph, checked, rows.node, filled, threads); });
    return to_numpy(std::move(distance), {rows.count, graph.nodes()});
  }, "graph"_a, "lengths"_a, "starts"_a, "threads"_a = 1);
  module.def("add_tree_flows", [](const Graph& graph, FloatArray length, IntArray starts, FloatTable amount,
                                  FilledTable flows, int threads) {
    const NodeRows rows(graph, starts, "starts");
    const Floats checked = lengths(graph, length);
    const auto amounts = rows.by_node(amount, "amount");
    const auto filled = rows.by_link(flows, "flows");
    unlocked([&] { add_tree_flows(graph, checked, rows.node, amounts, filled, threads); });
  }, "graph"_a, "lengths"_a, "starts"_a, "amount"_a, "flows"_a.noconvert(), "threads"_a = 1);
  module.def("grow_lengths", [](const Graph& graph, FloatArray capacity, IntArray starts, FloatTable wanted,
                                double epsilon, GrowthState state, Int most, FilledFloats length, FilledTable flows) {
    const NodeRows rows(graph, starts, "starts");
    const Floats wide = each(sized(capacity, graph.links(), "capacity"), [](double value) { return value > 0.0; },
                             "capacity", "numbers above 0");
    const auto grown = sized(length, graph.links(), "lengths");
    lengths(grown, "lengths");
    const auto wants = amounts(rows.by_node(wanted, "wanted"), "wanted");
    const auto filled = rows.by_link(flows, "flows");
    require(epsilon > 0.0, "epsilon", "a number above 0");
    require(state.first >= 0, "state", "a source of at least 0");
    require(most >= 0, "most", "at least 0");
    return unlocked([&] { return grow_lengths(graph, wide, rows.node, wants, epsilon, state, most, grown, filled); });
  }, "graph"_a, "capacity"_a, "starts"_a, "wanted"_a, "epsilon"_a, "state"_a, "most"_a, "lengths"_a.noconvert(),
             "flows"_a.noconvert());
}

void define_paths(nb::module_& module) {
  module.def("disjoint_paths", [](const Graph& graph, Int start, IntArray goals) {
    const NodeRows rows(graph, goals, "goals");
    ranged(start, 0, graph.nodes(), "start");
    return paths_to_numpy(unlocked([&] { return DisjointSearch(graph).run(start, rows.node); }));
  }, "graph"_a, "start"_a, "goals"_a);
  module.def("simple_paths", [](const Graph& graph, Int start, IntArray goals, FloatTable hops, Int slack,
                                Int most_paths, Int most_links) {
    const NodeRows rows(graph, goals, "goals");
    ranged(start, 0, graph.nodes(), "start");
    const auto checked = each(rows.by_node(hops, "hops"), [&](double hop) {
      return hop == infinity || (hop >= 0.0 && hop < static_cast<double>(graph.nodes()));
    }, "hops", "numbers from 0 to below the number of nodes, or infinity");
    require(slack >= 0, "slack", "at least 0");
    const SimplePathLimits limits{std::min(slack, graph.nodes()), most_paths, most_links};
    return paths_to_numpy(unlocked([&] { return SimpleSearch(graph, start, limits).run(rows.node, checked); }));
  }, "graph"_a, "start"_a, "goals"_a, "hops"_a, "slack"_a, "most_paths"_a, "most_links"_a);
  module.def("tree_paths", [](const Graph& graph, FloatArray length, IntArray begin, IntArray end) {
    const NodeRows rows(graph, begin, "begin");
    const Floats checked = lengths(graph, length);
    const Ints ends = indices(end, rows.count, graph.nodes(), "end");
    FoundPaths paths = unlocked([&] { return find_tree_paths(graph, checked, rows.node, ends); });
    return std::tuple(to_numpy(std::move(paths.start)), to_numpy(std::move(paths.link)));
  }, "graph"_a, "lengths"_a, "begin"_a, "end"_a);
  module.def("trace_paths", [](const Graph& graph, IntArray begin, IntArray end, FloatArray size, IntArray row,
                               FilledTable volumes, Array<Int, 2> paths) {
    const NodeRows chunks(graph, begin, "begin");
    const Ints ends = indices(end, chunks.count, graph.nodes(), "end");
    const Int rows = static_cast<Int>(volumes.shape(0));
    const Ints of_chunk = indices(row, chunks.count, rows, "row");
    const Floats sizes = sized(size, chunks.count, "size");
    const auto volume = sized(volumes, rows, graph.links(), "volumes");
    const auto table = sized(paths, chunks.count, static_cast<Int>(paths.shape(1)), "paths");
    unlocked([&] { trace_paths(graph, chunks.node, ends, sizes, of_chunk, volume, table); });
  }, "graph"_a, "begin"_a, "end"_a, "size"_a, "row"_a, "volumes"_a.noconvert(), "paths"_a.noconvert());
}

SparseRows checked_rows(const ValuedRows& given, Int count, Int items, const char* name) {
  const auto& [start, item, value] = given;
  sized(start, count + 1, name);
  return {rows(start, item, items, name, name), sized(value, std::ssize(item), name)};
}

Ints checked_classes(const Graph& graph, const IntArray& link_class) {
  return indices(link_class, graph.links(), most_ints, "link_class");
}

void define_flows(nb::module_& module) {
  module.def("split_flows", [](const Graph& graph, IntArray begin, ValuedRows flow, ValuedRows wanted) {
    const NodeRows groups(graph, begin, "begin");
    const SparseRows flows = checked_rows(flow, groups.count, graph.links(), "flow");
    const SparseRows wants = checked_rows(wanted, groups.count, graph.nodes(), "wanted");
    finite(flows.value, "flow"), amounts(wants.value, "wanted");
    WeightedPaths paths = unlocked([&] { return split_flows(graph, groups.node, flows, wants); });
    return std::tuple(paths.failed, to_numpy(std::move(paths.pair)), to_numpy(std::move(paths.width)),
                      to_numpy(std::move(paths.start)), to_numpy(std::move(paths.link)));
  }, "graph"_a, "begin"_a, "flow"_a, "wanted"_a);
  module.def("make_exact", [](const Graph& graph, FloatArray length, IntArray source, FloatTable wanted,
                              FilledTable flows, int threads) {
    const NodeRows groups(graph, source, "source");
    const Floats checked = lengths(graph, length);
    const auto wants = groups.by_node(wanted, "wanted");
    const auto filled = groups.by_link(flows, "flows");
    unlocked([&] { make_exact(graph, checked, groups.node, wants, filled, threads); });
  }, "graph"_a, "lengths"_a, "source"_a, "wanted"_a, "flows"_a.noconvert(), "threads"_a = 1);
  module.def("find_level", [](FloatArray target, FloatArray slope, FloatArray width) {
    const Int classes = std::ssize(target);
    return find_level(all(target), sized(slope, classes, "slope"), sized(width, classes, "width"));
  }, "target"_a, "slope"_a, "width"_a);
  module.def("update_batch", [](const Graph& graph, IntArray link_class, FloatArray unit_cost, FloatArray multiplier,
                                FloatArray slope, IntArray source, FloatArray weight, FloatTable wanted,
                                FilledTable flows, FloatArray time, IntArray cuts, double damping, int threads) {
    const Int classes = std::ssize(multiplier);
    const NodeRows groups(graph, source, "source");
    const LinkClasses links{checked_classes(graph, link_class),
                            amounts(sized(unit_cost, graph.links(), "unit_cost"), "unit_cost")};
    const PenaltyParams params{finite(all(multiplier), "multiplier"),
                               finite(sized(slope, classes, "slope"), "slope")};
    const Commodities commodities{groups.node, sized(weight, groups.count, "weight"),
                                  groups.by_node(wanted, "wanted")};
    const auto filled = groups.by_link(flows, "flows");
    const Floats times = finite(sized(time, classes, "time"), "time");
    const Ints parts = indices(cuts, groups.count + 1, "cuts");
    require(!parts.empty() && std::ranges::is_sorted(parts), "cuts", "bounds in order");
    require(damping > 0.0, "damping", "a number above 0");
    const Int rows = std::ssize(parts) - 1;
    std::vector<double> change(rows * (classes + 1));
    const Matrix<double> changes(change.data(), rows, classes + 1);
    unlocked([&] { update_batch(graph, links, params, commodities, filled, times, parts, damping, changes, threads); });
    return to_numpy(std::move(change), {rows, classes + 1});
  }, "graph"_a, "link_class"_a, "unit_cost"_a, "multiplier"_a, "slope"_a, "source"_a, "weight"_a, "wanted"_a,
             "flows"_a.noconvert(), "time"_a, "cuts"_a, "damping"_a, "threads"_a = 1);
}

PrimalDual make_primal_dual(const Graph& graph, IntArray link_class, IntArray first, FloatArray size,
                            FloatArray capacity, IntArray source, FloatTable wanted, FloatArray share,
                            FloatTable flow, FloatTable potential, FloatArray price) {
  const Int classes = std::ssize(size);
  const NodeRows groups(graph, source, "source");
  return {graph,
          {copy(checked_classes(graph, link_class)), copy(bounds(first, classes, "first")), copy(all(size)),
           copy(sized(capacity, classes, "capacity"))},
          {groups.node, sized(share, groups.count, "share"), groups.by_node(wanted, "wanted")},
          groups.by_link(flow, "flow"), groups.by_node(potential, "potential"), sized(price, classes, "price")};
}

}  // namespace

void bind_flows(nb::module_& module) {
  define_distances(module);
  define_paths(module);
  define_flows(module);
  nb::class_<PrimalDual>(module, "PrimalDual")
      .def(nb::new_(&make_primal_dual), "graph"_a, "link_class"_a, "first"_a, "size"_a, "capacity"_a, "source"_a,
           "wanted"_a, "share"_a, "flow"_a, "potential"_a, "price"_a)
      .def("set_steps", [](PrimalDual& self, FloatArray flow, FloatArray potential, FloatArray price) {
        self.set_steps(sized(flow, self.links(), "flow"), sized(potential, self.nodes(), "potential"),
                       sized(price, self.classes(), "price"));
      }, "flow"_a, "potential"_a, "price"_a)
      .def("restart", &PrimalDual::restart)
      .def("step_flows", [](PrimalDual& self, double keep, int threads) {
        require(self.has_steps(), "step_flows", "step sizes, by set_steps");
        std::vector<double> load(self.links() + 1);
        unlocked([&] { self.step_flows(keep, load, threads); });
        return to_numpy(std::move(load));
      }, "keep"_a, "threads"_a = 1)
      .def("step_prices", [](PrimalDual& self, FloatArray load, double keep) {
        require(self.has_steps(), "step_prices", "step sizes, by set_steps");
        return self.step_prices(sized(load, self.links() + 1, "load"), keep);
      }, "load"_a, "keep"_a)
      .def("write_flows", [](const PrimalDual& self, FilledTable rows) {
        self.write_flows(sized(rows, self.groups(), self.links(), "rows"));
      }, "rows"_a.noconvert())
      .def("write_potentials", [](const PrimalDual& self, FilledTable rows) {
        self.write_potentials(sized(rows, self.groups(), self.nodes(), "rows"));
      }, "rows"_a.noconvert())
      .def_prop_ro("price", copied(&PrimalDual::prices));
}

}  // namespace alltoall::border

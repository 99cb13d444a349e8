// Routing, as Python sees it: layers without cycles, orders of channels, tables, baselines.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <cmath>
#include <optional>

#include "baselines.h"
#include "channel_order.h"
#include "forwarding.h"
#include "graph_arrays.h"
#include "owned.h"
#include "sifting.h"
#include "turns.h"

using namespace nanobind::literals;

namespace alltoall::border {
namespace {

template <class Number>
auto copy_to_numpy(std::span<const Number> values, std::initializer_list<std::size_t> shape = {}) {
  return to_numpy(std::vector<Number>(values.begin(), values.end()), shape);
}

void require_amounts(std::span<const double> values, const char* name) {
  require(std::ranges::all_of(values, [](double each) { return each >= 0.0 && std::isfinite(each); }), name,
          "finite numbers of at least 0");
}

void require_amounts(const Array<const double, 2>& values, const char* name) {
  require_amounts({values.data(), values.size()}, name);
}

void require_capacity(const GraphArrays& graph, Floats capacity) {
  require_size(capacity, graph.links(), "capacity");
  require(std::ranges::all_of(capacity, [](double each) { return each > 0.0; }), "capacity", "numbers above 0");
}

// Every link once.
void require_order(Ints order, Int links) {
  require_size(order, links, "order");
  require_range(order, 0, links, "order");
  std::vector<char> seen(links);
  for (const Int link : order) seen[link] = true;
  require(std::ranges::all_of(seen, [](char each) { return each; }), "order", "every link once");
}

RouteTurns checked_turns(Int links, IntArray held, IntArray wanted, IntArray start, IntArray turn) {
  require(links >= 0, "links", "at least 0");
  require_size(view(wanted), held.shape(0), "wanted");
  require_range(view(held), 0, links, "held");
  require_range(view(wanted), 0, links, "wanted");
  require(std::ranges::is_sorted(view(held)), "held", "links in order");
  require_bounds(view(start), static_cast<Int>(turn.shape(0)), "start");
  require_range(view(turn), 0, static_cast<Int>(held.shape(0)), "turn");
  return {Turns(links, copy(view(held)), copy(view(wanted))), copy(view(start)), copy(view(turn))};
}

auto py_offer(LayerFilling& layer, const RouteTurns& turns, IntArray routes) {
  require_range(view(routes), 0, turns.routes(), "routes");
  std::vector<std::uint8_t> taken;
  unlocked([&] {
    for (const Int route : view(routes)) taken.push_back(layer.offer(route));
  });
  return to_numpy(std::move(taken));
}

// A layer with the turns that it is filled with; Python keeps these alive.
struct PyLayer : LayerFilling {
  explicit PyLayer(const RouteTurns& turns) : LayerFilling(turns), turns(turns) {}
  const RouteTurns& turns;
};

struct PySifting : LinkSifting {
  PySifting(const RouteTurns& turns, IntArray which, FloatArray weight, FloatArray rank)
      : LinkSifting(checked(turns, view(which), view(weight), view(rank)), view(which), view(weight), view(rank)),
        links(turns.turns.links()) {}

  static const RouteTurns& checked(const RouteTurns& turns, Ints which, Floats weight, Floats rank) {
    require_range(which, 0, turns.routes(), "which");
    require(std::ranges::none_of(which, [&](Int route) { return turns.of(route).empty(); }), "which",
            "routes of two links at least");
    require_size(weight, which.size(), "weight");
    require_size(rank, turns.turns.links(), "rank");
    require(std::ranges::all_of(rank, [](double each) { return std::isfinite(each); }), "rank", "finite numbers");
    return turns;
  }

  void place_links(IntArray part, FloatArray powers) {
    require_range(view(part), 0, links, "part");
    require_size(view(powers), static_cast<std::size_t>(most_turns()) + 2, "powers");
    unlocked([&] { place(view(part), view(powers)); });
  }

  Int links;
};

Channels checked_channels(IntArray order, Int nodes, IntArray tail, IntArray head, Array<const Int, 2> terminals,
                          Array<const float, 1> lengths, Array<const float, 2> wanted) {
  require(nodes >= 1, "nodes", "at least 1");
  require(terminals.shape(0) >= 1, "terminals", "at least one row");
  require_size(view(head), tail.shape(0), "head");
  require_size(view(lengths), tail.shape(0), "lengths");
  require_range(view(tail), 0, nodes, "tail");
  require_range(view(head), 0, nodes, "head");
  require_range(std::span(terminals.data(), terminals.size()), 0, nodes, "terminals");
  require_shape(wanted, terminals.shape(1), static_cast<Int>(terminals.shape(1)), "wanted");
  require_order(view(order), static_cast<Int>(tail.shape(0)));
  return {view(tail), view(head), view(terminals), view(lengths), view(wanted), nodes};
}

double py_order_distance(IntArray order, Int nodes, IntArray tail, IntArray head, Array<const Int, 2> terminals,
                         Array<const float, 1> lengths, Array<const float, 2> wanted) {
  const Channels channels = checked_channels(order, nodes, tail, head, terminals, lengths, wanted);
  return unlocked([&] { return OrderImprovement(channels).total_distance(view(order)); });
}

void py_improve_order(Array<Int, 1> order, Int nodes, IntArray tail, IntArray head, Array<const Int, 2> terminals,
                      Array<const float, 1> lengths, Array<const float, 2> wanted, Int moves, std::uint64_t seed) {
  const Channels channels = checked_channels(IntArray(order), nodes, tail, head, terminals, lengths, wanted);
  unlocked([&] {
    Random random(seed);
    if (order.shape(0) > 0) OrderImprovement(channels).improve(view(order), moves, random);
  });
}

auto py_find_tables(const GraphArrays& graph, IntArray terminals, IntArray order) {
  require_range(view(terminals), 0, graph.nodes(), "terminals");
  require_order(view(order), graph.links());
  std::vector<Int> table = unlocked([&] { return find_tables(graph.graph(), view(terminals), view(order)); });
  return to_numpy(std::move(table), {terminals.shape(0), static_cast<std::size_t>(graph.nodes())});
}

// Entries are links that leave their node, no row has a cycle, and pairs with demand have a path.
void require_tables(const Graph& graph, Ints terminals, Matrix<const Int> table, Matrix<const double> demand) {
  std::vector<Int> seen(graph.nodes());
  for (Int row = 0; row < table.rows(); ++row) {
    std::ranges::fill(seen, none);
    const Ints link = table[row];
    const Int end = terminals[row];
    for (Int node = 0; node < graph.nodes(); ++node) {
      require(link[node] == none || graph.tail[link[node]] == node, "table", "links that leave their node");
      for (Int at = node; at != end && link[at] != none && seen[at] != end; at = graph.head[link[at]]) {
        require(seen[at] != graph.nodes() + node, "table", "rows without a cycle");
        seen[at] = graph.nodes() + node;
      }
      for (Int at = node; at != end && link[at] != none && seen[at] != end; at = graph.head[link[at]]) seen[at] = end;
    }
    for (Int from = 0; from < demand.rows(); ++from)
      if (demand.at(from, row) > 0.0) {
        Int at = terminals[from];
        while (at != end && link[at] != none) at = graph.head[link[at]];
        require(at == end, "table", "a path for every pair with demand");
      }
  }
}

ForwardingTables make_tables(const GraphArrays& graph, IntArray terminals, Array<const Int, 2> table,
                             Array<const double, 2> demand, const std::optional<IntArray>& order) {
  require_range(view(terminals), 0, graph.nodes(), "terminals");
  require_shape(table, terminals.shape(0), graph.nodes(), "table");
  require_shape(demand, terminals.shape(0), static_cast<Int>(terminals.shape(0)), "demand");
  require_range(std::span(table.data(), table.size()), none, graph.links(), "table");
  require_amounts(demand, "demand");
  require_tables(graph.graph(), view(terminals), view(table), view(demand));
  if (order) require_order(view(*order), graph.links());
  ForwardingTables tables(graph.graph(), view(terminals), view(table), view(demand));
  if (order) require(tables.keep_order(view(*order)), "order", "one in which all turns go forward");
  return tables;
}

void py_respond(ForwardingTables& tables, IntArray terminals, IntArray nodes, FloatArray scale, double steepness) {
  require_range(view(terminals), 0, tables.terminals(), "terminals");
  require_range(view(nodes), 0, tables.nodes(), "nodes");
  require_size(view(scale), tables.links(), "scale");
  unlocked([&] { tables.respond(view(terminals), view(nodes), view(scale), steepness); });
}

auto py_grow_trees(const GraphArrays& graph, FloatArray capacity, IntArray terminals,
                   Array<const double, 2> wanted, Array<double, 1> weight) {
  require_capacity(graph, view(capacity));
  require_lengths(graph, view(FloatArray(weight)));
  require_range(view(terminals), 0, graph.nodes(), "terminals");
  require_shape(wanted, terminals.shape(0), graph.nodes(), "wanted");
  require_amounts(wanted, "wanted");
  const std::size_t rows = terminals.shape(0), nodes = graph.nodes();
  std::vector<Int> table(rows * nodes);
  unlocked([&] {
    grow_trees(graph.graph(), view(capacity), view(terminals), view(wanted), view(weight),
               {table.data(), static_cast<Int>(rows), graph.nodes()});
  });
  return to_numpy(std::move(table), {rows, nodes});
}

PhaseState py_grow_lengths(const GraphArrays& graph, FloatArray capacity, IntArray starts,
                           Array<const double, 2> wanted, double epsilon, PhaseState state, Int most,
                           Array<double, 1> lengths, Array<double, 2> flows) {
  require_capacity(graph, view(capacity));
  require_lengths(graph, view(FloatArray(lengths)));
  require_range(view(starts), 0, graph.nodes(), "starts");
  require_shape(wanted, starts.shape(0), graph.nodes(), "wanted");
  require_shape(flows, starts.shape(0), graph.links(), "flows");
  require_amounts(wanted, "wanted");
  require(epsilon > 0.0, "epsilon", "a number above 0");
  require(state.first >= 0, "state", "a source of at least 0");
  return unlocked([&] {
    return grow_lengths(graph.graph(), view(capacity), view(starts), view(wanted), epsilon, state, most,
                        view(lengths), view(flows));
  });
}

auto py_count_shortest(const GraphArrays& graph, IntArray starts) {
  require_range(view(starts), 0, graph.nodes(), "starts");
  const Int rows = static_cast<Int>(starts.shape(0));
  std::vector<double> count(rows * graph.nodes());
  unlocked([&] { count_shortest(graph.graph(), view(starts), {count.data(), rows, graph.nodes()}); });
  return to_numpy(std::move(count), {starts.shape(0), static_cast<std::size_t>(graph.nodes())});
}

void py_add_equal_flows(const GraphArrays& graph, IntArray starts, Array<const double, 2> amount,
                        Array<double, 2> flows) {
  require_range(view(starts), 0, graph.nodes(), "starts");
  require_shape(amount, starts.shape(0), graph.nodes(), "amount");
  require_shape(flows, starts.shape(0), graph.links(), "flows");
  unlocked([&] { add_equal_flows(graph.graph(), view(starts), view(amount), view(flows)); });
}

bool py_even_phases(IntArray start, IntArray link, FloatArray time, IntArray source, FloatArray budget,
                    Array<double, 2> load, Array<Int, 2> active, Array<Int, 1> phase) {
  const Int phases = static_cast<Int>(budget.shape(0));
  require_bounds(view(start), static_cast<Int>(link.shape(0)), "start");
  require_size(view(phase), start.shape(0) - 1, "phase");
  require_size(view(source), start.shape(0) - 1, "source");
  require_size(view(time), link.shape(0), "time");
  require(load.shape(0) == budget.shape(0) && active.shape(0) == budget.shape(0), "load, active", "a row per phase");
  require_range(view(link), 0, static_cast<Int>(load.shape(1)), "link");
  require_range(view(source), 0, static_cast<Int>(active.shape(1)), "source");
  require_range(view(phase), 0, phases, "phase");
  return unlocked([&] {
    return even_phases({view(start), view(link), view(time), view(source)}, view(budget), view(load), view(active),
                       view(phase));
  });
}

}  // namespace

void bind_layers(nb::module_& module) {
  nb::class_<RouteTurns>(module, "RouteTurns")
      .def("__init__",
           [](RouteTurns* self, Int links, IntArray held, IntArray wanted, IntArray start, IntArray turn) {
             new (self) RouteTurns(checked_turns(links, held, wanted, start, turn));
           },
           "links"_a, "held"_a, "wanted"_a, "start"_a, "turn"_a);
  nb::class_<PyLayer>(module, "LayerFilling")
      .def(nb::init<const RouteTurns&>(), "turns"_a, nb::keep_alive<1, 2>())
      .def("offer", [](PyLayer& self, IntArray routes) { return py_offer(self, self.turns, routes); }, "routes"_a)
      .def_prop_ro("rank", [](const PyLayer& self) { return copy_to_numpy(self.rank()); }, nb::rv_policy::move);
  nb::class_<CycleBreaking>(module, "CycleBreaking")
      .def(nb::init<const RouteTurns&>(), "turns"_a, nb::keep_alive<1, 2>())
      .def("begin_layer", &CycleBreaking::begin_layer, "level"_a)
      .def("run",
           [](CycleBreaking& self, Int most) {
             require(most >= 1, "most", "at least 1");
             return unlocked([&] { return self.run(most); });
           },
           "most"_a)
      .def_prop_ro("layer", [](const CycleBreaking& self) { return copy_to_numpy(self.layer()); }, nb::rv_policy::move);
  nb::class_<PySifting>(module, "LinkSifting")
      .def(nb::init<const RouteTurns&, IntArray, FloatArray, FloatArray>(), "turns"_a, "which"_a, "weight"_a, "rank"_a,
           nb::keep_alive<1, 2>())
      .def("place", &PySifting::place_links, "part"_a, "powers"_a)
      .def("renumber", [](PySifting& self) { self.renumber(); })
      .def_prop_ro("rank", [](const PySifting& self) { return copy_to_numpy(self.rank()); }, nb::rv_policy::move);
}

void bind_routes(nb::module_& module) {
  bind_layers(module);
  module.def("order_distance", &py_order_distance, "order"_a, "nodes"_a, "tail"_a, "head"_a, "terminals"_a,
             "lengths"_a, "wanted"_a);
  module.def("improve_order", &py_improve_order, "order"_a.noconvert(), "nodes"_a, "tail"_a, "head"_a, "terminals"_a,
             "lengths"_a, "wanted"_a, "moves"_a, "seed"_a);
  module.def("find_tables", &py_find_tables, "graph"_a, "terminals"_a, "order"_a);
  nb::class_<ForwardingTables>(module, "ForwardingTables")
      .def("__init__",
           [](ForwardingTables* self, const GraphArrays& graph, IntArray terminals, Array<const Int, 2> table,
              Array<const double, 2> demand, std::optional<IntArray> order) {
             new (self) ForwardingTables(make_tables(graph, terminals, table, demand, order));
           },
           "graph"_a, "terminals"_a, "table"_a, "demand"_a, "order"_a.none() = nb::none(), nb::keep_alive<1, 2>())
      .def("respond", &py_respond, "terminals"_a, "nodes"_a, "scale"_a, "steepness"_a)
      .def_prop_ro("table",
                   [](const ForwardingTables& self) {
                     return copy_to_numpy(self.table(), {static_cast<std::size_t>(self.terminals()),
                                                         static_cast<std::size_t>(self.nodes())});
                   },
                   nb::rv_policy::move)
      .def_prop_ro("load", [](const ForwardingTables& self) { return copy_to_numpy(self.load()); }, nb::rv_policy::move);
  module.def("grow_trees", &py_grow_trees, "graph"_a, "capacity"_a, "terminals"_a, "wanted"_a, "weight"_a.noconvert());
  module.def("grow_lengths", &py_grow_lengths, "graph"_a, "capacity"_a, "starts"_a, "wanted"_a, "epsilon"_a, "state"_a,
             "most"_a, "lengths"_a.noconvert(), "flows"_a.noconvert());
  module.def("count_shortest", &py_count_shortest, "graph"_a, "starts"_a);
  module.def("add_equal_flows", &py_add_equal_flows, "graph"_a, "starts"_a, "amount"_a, "flows"_a.noconvert());
  module.def("even_phases", &py_even_phases, "start"_a, "link"_a, "time"_a, "source"_a, "budget"_a, "load"_a.noconvert(),
             "active"_a.noconvert(), "phase"_a.noconvert());
}

}  // namespace alltoall::border

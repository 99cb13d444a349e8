// What Python sees of routing: layers without cycles, orders of channels, tables, baselines.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>

#include "arrays.h"
#include "baselines.h"
#include "channel_order.h"
#include "forwarding.h"
#include "sifting.h"
#include "turns.h"

namespace alltoall::border {
namespace {

Floats checked_capacity(const Graph& graph, const FloatArray& capacity) {
  return each(sized(capacity, graph.links(), "capacity"), [](double value) { return value > 0.0; }, "capacity",
              "numbers above 0");
}

// Every link once.
template <class Numbers>
Numbers checked_order(Numbers order, Int links) {
  require(static_cast<Int>(order.size()) == links, "order", std::to_string(links) + " entries");
  std::vector<char> seen(links);
  for (const Int link : ranged(order, 0, links, "order")) seen[link] = true;
  require(std::ranges::all_of(seen, [](char each) { return each; }), "order", "every link once");
  return order;
}

RouteTurns make_turns(Int links, IntArray held, IntArray wanted, IntArray start, IntArray turn) {
  require(links >= 0 && links < most_ints, "links", "at least 0, below 2^31");
  const Int count = static_cast<Int>(held.size());
  const Ints by_link = indices(held, links, "held");
  require(std::ranges::is_sorted(by_link), "held", "links in order");
  return {Turns(links, copy(by_link), copy(indices(wanted, count, links, "wanted"))),
          copy(rows(start, turn, count, "start", "turn"))};
}

auto py_offer(LayerFilling& layer, IntArray routes) {
  std::vector<std::uint8_t> taken;
  const Ints offered = indices(routes, layer.routes(), "routes");
  unlocked([&] {
    for (const Int route : offered) taken.push_back(layer.offer(route));
  });
  return to_numpy(std::move(taken));
}

// A route that turned from a link to itself would go backward wherever that is put.
void start_sifting(LinkSifting* self, const RouteTurns& turns, IntArray which, FloatArray weight, FloatArray rank) {
  const Ints routes = indices(which, turns.routes.count(), "which");
  for (const Int route : routes) {
    require(!turns.routes[route].empty(), "which", "routes of two links at least");
    for (const Int turn : turns.routes[route])
      require(turns.turns.held[turn] != turns.turns.wanted[turn], "which", "routes without a link twice in turn");
  }
  new (self) LinkSifting(turns, routes, sized(weight, static_cast<Int>(routes.size()), "weight"),
                         finite(sized(rank, turns.turns.links(), "rank"), "rank"));
}

void place_links(LinkSifting& self, IntArray part, FloatArray powers) {
  const Ints links = indices(part, static_cast<Int>(self.rank().size()), "part");
  const Floats checked = sized(powers, self.most_turns() + 2, "powers");
  unlocked([&] { self.place(links, checked); });
}

double py_improve_order(FilledInts order, Int nodes, IntArray tail, IntArray head, IntTable terminals,
                        Array<const float, 1> lengths, Array<const float, 2> wanted, Int moves, std::uint64_t seed) {
  require(nodes >= 1 && nodes < most_ints, "nodes", "at least 1, below 2^31");
  require(terminals.shape(0) >= 1, "terminals", "at least one row");
  const Int count = static_cast<Int>(terminals.shape(1)), channels = static_cast<Int>(tail.size());
  const auto checked = checked_order(all(order), channels);
  ranged(all(terminals), 0, nodes, "terminals");
  OrderImprovement improvement({indices(tail, nodes, "tail"),
                                indices(head, channels, nodes, "head"),
                                {terminals.data(), static_cast<Int>(terminals.shape(0)), count},
                                sized(lengths, channels, "lengths"),
                                sized(wanted, count, count, "wanted"),
                                nodes});
  return unlocked([&] {
    if (!checked.empty()) improvement.improve(checked, moves, seed);
    return improvement.total_distance(checked);
  });
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
      for (Int at = node; at != end && link[at] != none && (seen[at] == none || seen[at] == node);
           at = graph.head[link[at]]) {
        require(seen[at] == none, "table", "rows without a cycle");
        seen[at] = node;
      }
    }
    for (Int from = 0; from < demand.rows(); ++from) {
      if (!(demand.at(from, row) > 0.0)) continue;
      Int at = terminals[from];
      while (at != end && link[at] != none) at = graph.head[link[at]];
      require(at == end, "table", "a path for every pair with demand");
    }
  }
}

void start_tables(ForwardingTables* self, const Graph& graph, IntArray terminals, IntTable table, FloatTable demand,
                  std::optional<IntArray> order) {
  const Ints ends = indices(terminals, graph.nodes(), "terminals");
  const Int count = static_cast<Int>(ends.size());
  const auto links = sized(table, count, graph.nodes(), "table");
  const auto amount = amounts(sized(demand, count, count, "demand"), "demand");
  ranged(all(table), none, graph.links(), "table");
  require_tables(graph, ends, links, amount);
  ForwardingTables tables(graph, ends, links, amount);
  if (order)
    require(tables.keep_order(checked_order(all(*order), graph.links())), "order",
            "one in which all turns go forward");
  new (self) ForwardingTables(std::move(tables));
}

void py_respond(ForwardingTables& tables, IntArray terminals, IntArray nodes, FloatArray scale, double steepness) {
  const Ints ends = indices(terminals, tables.terminals(), "terminals");
  const Ints some = indices(nodes, tables.nodes(), "nodes");
  const Floats scales = sized(scale, tables.links(), "scale");
  unlocked([&] { tables.respond(ends, some, scales, steepness); });
}

auto py_grow_trees(const Graph& graph, FloatArray capacity, IntArray terminals, FloatTable wanted,
                   FilledFloats weight) {
  const Ints ends = indices(terminals, graph.nodes(), "terminals");
  const Int count = static_cast<Int>(ends.size());
  const Floats wide = checked_capacity(graph, capacity);
  const auto weights = sized(weight, graph.links(), "weight");
  lengths(weights, "weight");
  const auto wants = amounts(sized(wanted, count, graph.nodes(), "wanted"), "wanted");
  std::vector<Int> table(count * graph.nodes());
  unlocked([&] { grow_trees(graph, wide, ends, wants, weights, {table.data(), count, graph.nodes()}); });
  return to_numpy(std::move(table), {count, graph.nodes()});
}

PhaseState py_grow_lengths(const Graph& graph, FloatArray capacity, IntArray starts, FloatTable wanted,
                           double epsilon, PhaseState state, Int most, FilledFloats length, FilledTable flows) {
  const Ints sources = indices(starts, graph.nodes(), "starts");
  const Int count = static_cast<Int>(sources.size());
  const Floats wide = checked_capacity(graph, capacity);
  const auto long_links = sized(length, graph.links(), "lengths");
  lengths(long_links, "lengths");
  const auto wants = amounts(sized(wanted, count, graph.nodes(), "wanted"), "wanted");
  const auto filled = sized(flows, count, graph.links(), "flows");
  require(epsilon > 0.0, "epsilon", "a number above 0");
  require(state.first >= 0, "state", "a source of at least 0");
  require(most >= 0, "most", "at least 0");
  return unlocked(
      [&] { return grow_lengths(graph, wide, sources, wants, epsilon, state, most, long_links, filled); });
}

bool py_even_phases(IntArray start, IntArray link, FloatArray time, IntArray source, FloatArray budget,
                    FilledTable load, Array<Int, 2> active, FilledInts phase) {
  const Int phases = static_cast<Int>(budget.size());
  const Int links = static_cast<Int>(load.shape(1)), sources = static_cast<Int>(active.shape(1));
  const RowsView routes = rows(start, link, links, "start", "link");
  const PhasedRoutes phased{routes, sized(time, static_cast<Int>(link.size()), "time"),
                            indices(source, routes.count(), sources, "source")};
  const auto loads = sized(load, phases, links, "load");
  const auto counts = sized(active, phases, sources, "active");
  ranged(all(active), 0, most_ints, "active");
  const auto chosen = ranged(sized(phase, routes.count(), "phase"), 0, phases, "phase");
  return unlocked([&] { return even_phases(phased, all(budget), loads, counts, chosen); });
}

void define_layers(nb::module_& module) {
  nb::class_<RouteTurns>(module, "RouteTurns")
      .def(nb::new_(&make_turns), "links"_a, "held"_a, "wanted"_a, "start"_a, "turn"_a);
  nb::class_<LayerFilling>(module, "LayerFilling")
      .def(nb::init<const RouteTurns&>(), "turns"_a, nb::keep_alive<1, 2>())
      .def("offer", &py_offer, "routes"_a)
      .def_prop_ro("rank", copied(&LayerFilling::rank));
  nb::class_<CycleBreaking>(module, "CycleBreaking")
      .def(nb::init<const RouteTurns&>(), "turns"_a, nb::keep_alive<1, 2>())
      .def("begin_layer", &CycleBreaking::begin_layer, "level"_a)
      .def("run", [](CycleBreaking& self, Int most) {
        require(most >= 1, "most", "at least 1");
        return unlocked([&] { return self.run(most); });
      }, "most"_a)
      .def_prop_ro("layer", copied(&CycleBreaking::layer));
  nb::class_<LinkSifting>(module, "LinkSifting")
      .def("__init__", &start_sifting, "turns"_a, "which"_a, "weight"_a, "rank"_a, nb::keep_alive<1, 2>())
      .def("place", &place_links, "part"_a, "powers"_a)
      .def("renumber", &LinkSifting::renumber)
      .def_prop_ro("rank", copied(&LinkSifting::rank));
}

void define_baselines(nb::module_& module) {
  module.def("grow_trees", &py_grow_trees, "graph"_a, "capacity"_a, "terminals"_a, "wanted"_a, "weight"_a.noconvert());
  module.def("grow_lengths", &py_grow_lengths, "graph"_a, "capacity"_a, "starts"_a, "wanted"_a, "epsilon"_a, "state"_a,
             "most"_a, "lengths"_a.noconvert(), "flows"_a.noconvert());
  module.def("even_phases", &py_even_phases, "start"_a, "link"_a, "time"_a, "source"_a, "budget"_a,
             "load"_a.noconvert(), "active"_a.noconvert(), "phase"_a.noconvert());
}

}  // namespace

void bind_routes(nb::module_& module) {
  define_layers(module);
  module.def("improve_order", &py_improve_order, "order"_a.noconvert(), "nodes"_a, "tail"_a, "head"_a, "terminals"_a,
             "lengths"_a, "wanted"_a, "moves"_a, "seed"_a);
  nb::class_<ForwardingTables>(module, "ForwardingTables")
      .def("__init__", &start_tables, "graph"_a, "terminals"_a, "table"_a, "demand"_a, "order"_a.none() = nb::none(),
           nb::keep_alive<1, 2>())
      .def("respond", &py_respond, "terminals"_a, "nodes"_a, "scale"_a, "steepness"_a)
      .def_prop_ro("table", [](const ForwardingTables& self) {
        return to_numpy(copy(self.table()), {self.terminals(), self.nodes()});
      }, nb::rv_policy::move)
      .def_prop_ro("load", copied(&ForwardingTables::load));
  define_baselines(module);
}

}  // namespace alltoall::border

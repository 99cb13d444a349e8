// What Python sees of routing: layers without cycles, orders of channels, tables.
#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.h"
#include "channel_order.h"
#include "forwarding.h"
#include "sifting.h"
#include "turns.h"

namespace alltoall::border {
namespace {

// Every link once.
template <class Numbers>
Numbers checked_order(Numbers order, Int links) {
  require(std::ssize(order) == links, "order", std::to_string(links) + " entries");
  std::vector<char> seen(links);
  for (const Int link : ranged(order, 0, links, "order")) seen[link] = true;
  require(std::ranges::all_of(seen, [](char each) { return each; }), "order", "every link once");
  return order;
}

// A route that turned from a link to itself would go backward wherever that is put.
void start_sifting(LinkSifting* self, const RouteTurns& routes, IntArray which, FloatArray weight, FloatArray rank) {
  const Graph& turns = routes.turns;
  const Ints sifted = indices(which, routes.routes.count(), "which");
  for (const Int route : sifted) {
    require(!routes.routes[route].empty(), "which", "routes of two links at least");
    for (const Int turn : routes.routes[route])
      require(turns.tail[turn] != turns.head[turn], "which", "routes without a link twice in turn");
  }
  new (self) LinkSifting(routes, sifted, sized(weight, std::ssize(sifted), "weight"),
                         finite(sized(rank, turns.nodes(), "rank"), "rank"));
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
  const Int count = std::ssize(ends);
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

void define_layers(nb::module_& module) {
  nb::class_<RouteTurns>(module, "RouteTurns")
      .def(nb::new_([](const Graph& turns, IntArray start, IntArray turn) -> RouteTurns {
        require(std::ranges::is_sorted(turns.tail), "turns", "held links in order");
        return {turns, copy(rows(start, turn, turns.links(), "start", "turn"))};
      }), "turns"_a, "start"_a, "turn"_a);
  nb::class_<LayerFilling>(module, "LayerFilling")
      .def(nb::init<const RouteTurns&>(), "turns"_a, nb::keep_alive<1, 2>())
      .def("offer", [](LayerFilling& self, IntArray routes) {
        std::vector<std::uint8_t> taken;
        const Ints offered = indices(routes, self.routes(), "routes");
        unlocked([&] {
          for (const Int route : offered) taken.push_back(self.offer(route));
        });
        return to_numpy(std::move(taken));
      }, "routes"_a)
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
      .def("place", [](LinkSifting& self, IntArray part, FloatArray powers) {
        const Ints links = indices(part, std::ssize(self.rank()), "part");
        const Floats checked = sized(powers, self.most_turns() + 2, "powers");
        unlocked([&] { self.place(links, checked); });
      }, "part"_a, "powers"_a)
      .def("renumber", &LinkSifting::renumber)
      .def_prop_ro("rank", copied(&LinkSifting::rank));
}

double py_improve_order(FilledInts order, const Graph& graph, IntTable terminals, Array<const float, 1> lengths,
                        Array<const float, 2> wanted, Int moves, std::uint64_t seed) {
  require(terminals.shape(0) >= 1, "terminals", "at least one row");
  const Int rows = static_cast<Int>(terminals.shape(0)), count = static_cast<Int>(terminals.shape(1));
  const auto checked = checked_order(all(order), graph.links());
  ranged(all(terminals), 0, graph.nodes(), "terminals");
  OrderImprovement improvement({graph, {terminals.data(), rows, count}, sized(lengths, graph.links(), "lengths"),
                                sized(wanted, count, count, "wanted")});
  return unlocked([&] {
    if (!checked.empty()) improvement.improve(checked, moves, seed);
    return improvement.total_distance(checked);
  });
}

}  // namespace

void bind_routes(nb::module_& module) {
  define_layers(module);
  module.def("improve_order", &py_improve_order, "order"_a.noconvert(), "graph"_a, "terminals"_a, "lengths"_a,
             "wanted"_a, "moves"_a, "seed"_a);
  nb::class_<ForwardingTables>(module, "ForwardingTables")
      .def("__init__", &start_tables, "graph"_a, "terminals"_a, "table"_a, "demand"_a, "order"_a.none() = nb::none(),
           nb::keep_alive<1, 2>())
      .def("respond", [](ForwardingTables& self, IntArray terminals, IntArray nodes, FloatArray scale, double steepness) {
        const Ints ends = indices(terminals, self.terminals(), "terminals");
        const Ints some = indices(nodes, self.nodes(), "nodes");
        const Floats scales = sized(scale, self.links(), "scale");
        unlocked([&] { self.respond(ends, some, scales, steepness); });
      }, "terminals"_a, "nodes"_a, "scale"_a, "steepness"_a)
      .def_prop_ro("table", [](const ForwardingTables& self) {
        return to_numpy(copy(self.table()), {self.terminals(), self.nodes()});
      }, nb::rv_policy::move)
      .def_prop_ro("load", copied(&ForwardingTables::load));
}

}  // namespace alltoall::border

// What Python sees: graphs, and chunks that are placed on their paths.
#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.h"
#include "place.h"

namespace alltoall::border {

void bind_flows(nb::module_& module);
void bind_routes(nb::module_& module);
void bind_schedules(nb::module_& module);

namespace {

using FilledPaths = Array<std::int32_t, 2>;

Graph make_graph(Int nodes, IntArray tail, IntArray head) {
  require(nodes >= 1 && nodes < most_ints, "nodes", "at least 1, below 2^31");
  const Int links = std::ssize(tail);
  require(links < most_ints, "tail", "fewer links than 2^31");
  return {nodes, copy(indices(tail, nodes, "tail")), copy(indices(head, links, nodes, "head"))};
}

void start_order(LinkOrder* self, const Graph& graph, IntArray order, IntArray blocks, Int settled, IntArray priced,
                 Int priced_links, IntTable copies) {
  require(priced_links >= 0 && priced_links < most_ints, "priced_links", "at least 0, below 2^31");
  require(copies.shape(0) >= 1 && copies.shape(1) >= 1, "copies", "at least one row and one column");
  new (self) LinkOrder{graph, copy(indices(order, graph.links(), "order")),
                       copy(bounds(blocks, std::ssize(order), "blocks")), settled,
                       copy(indices(priced, graph.links(), priced_links + 1, "priced")), priced_links,
                       copy(ranged(all(copies), 0, graph.nodes(), "copies")), static_cast<Int>(copies.shape(1))};
}

template <class Where>
Sources checked_sources(const Where& where, IntArray start, IntArray first, IntArray end) {
  const RowsView chunks = rows(first, end, ends(where), "first", "end");
  return {indices(start, chunks.count(), ends(where), "start"), chunks};
}

template <class Where>
PathTable checked_paths(const Where& where, const FilledPaths& table, Int chunks) {
  require(static_cast<Int>(table.shape(0)) == chunks, "table", "a row per chunk");
  ranged(all(table), none, where.links(), "table");
  return {table.data(), chunks, static_cast<Int>(table.shape(1))};
}

// Budgets of priced links, what a chunk takes of each, and what they learnt.
BudgetPrice checked_budgets(Int links, FloatArray budget, FloatArray share, FloatArray history, double fill,
                            double pressure, FilledFloats load) {
  const auto checked = [&](FloatArray values, const char* name) {
    return lengths(sized(values, links, name), name);
  };
  return {checked(budget, "budget"), checked(share, "share"),       checked(history, "history"),
          amount(fill, "fill"),      amount(pressure, "pressure"), finite(sized(load, links, "load"), "load")};
}

template <class Where>
void define_placing(nb::module_& module) {
  module.def("most_hops", [](const Where& where, IntArray start, IntArray first, IntArray end) {
    const Sources sources = checked_sources(where, start, first, end);
    return unlocked([&] {
      auto finder = finder_of(where);
      return most_hops(finder, sources, pricing_of(where).count, longest_path(where));
    });
  }, "where"_a, "start"_a, "first"_a, "end"_a);
  module.def("respond", [](const Where& where, IntArray start, IntArray first, IntArray end, FloatArray size,
                           FloatArray mean_size, std::optional<FloatArray> scale, double steepness,
                           FilledPaths table, FilledFloats load, Int together, int threads) {
    const Sources sources = checked_sources(where, start, first, end);
    const Pricing pricing = pricing_of(where);
    const Int chunks = std::ssize(end), count = sources.chunks.count();
    const Floats sizes = amounts(sized(size, chunks, "size"), "size");
    const Floats means = amounts(sized(mean_size, count, "mean_size"), "mean_size");
    const auto loads = finite(sized(load, pricing.count, "load"), "load");
    const PathTable paths = checked_paths(where, table, chunks);
    require(together >= 1, "together", "at least 1");
    const auto respond_at = [&]<Price P>(P price) {
      return unlocked([&] {
        std::vector finders(std::clamp<Int>(count, 1, together), finder_of(where));
        Placing<P> placing(pricing, sizes, paths, price);
        return respond(finders, sources, means, placing, threads);
      });
    };
    if (!scale) return respond_at(HopPrice(loads));
    return respond_at(
        ExponentialPrice(amounts(sized(*scale, pricing.count, "scale"), "scale"), steepness, loads));
  }, "where"_a, "start"_a, "first"_a, "end"_a, "size"_a, "mean_size"_a, "scale"_a.none(), "steepness"_a,
             "table"_a.noconvert(), "load"_a.noconvert(), "together"_a = 1, "threads"_a = 1);
  module.def("reroute", [](const Where& where, IntArray start, IntArray end, FloatArray size, IntArray order,
                           Int begin, Int most, FloatArray budget, FloatArray share, FloatArray history,
                           double pressure, double free_cost, FilledPaths table, FilledFloats load) {
    const Pricing pricing = pricing_of(where);
    const Ints starts = indices(start, ends(where), "start");
    const Int chunks = std::ssize(starts);
    const Ints goals = indices(end, chunks, ends(where), "end"), turns = indices(order, chunks, "order");
    const Floats sizes = amounts(sized(size, chunks, "size"), "size");
    require(begin >= 0, "begin", "at least 0");
    require(most >= 0, "most", "at least 0");
    amount(free_cost, "free_cost");
    BudgetPrice price = checked_budgets(pricing.count, budget, share, history, 0.0, pressure, load);
    Placing<BudgetPrice> placing(pricing, sizes, checked_paths(where, table, chunks), price);
    return unlocked([&] {
      auto finder = finder_of(where);
      return reroute(finder, starts, goals, turns, begin, most, free_cost, placing);
    });
  }, "where"_a, "start"_a, "end"_a, "size"_a, "order"_a, "begin"_a, "most"_a, "budget"_a, "share"_a, "history"_a,
             "pressure"_a, "free_cost"_a, "table"_a.noconvert(), "load"_a.noconvert());
}

Int choose_within(IntArray path_start, IntArray link, IntArray low, IntArray high, Int links, Int phases,
                  FloatArray size, IntArray order, Int begin, Int most, FloatArray budget, FloatArray share,
                  FloatArray history, double fill, double pressure, FilledFloats load, FilledInts path,
                  FilledInts phase) {
  const Int chunks = std::ssize(size);
  require(links >= 0 && links < most_ints && phases >= 1 && phases < most_ints, "phases", "at least 1");
  const RowsView listed = rows(path_start, link, links, "path_start", "link");
  const ListedPaths paths{listed, indices(low, chunks, listed.count(), "low"),
                          ranged(sized(high, chunks, "high"), 1, listed.count() + 1, "high"), links, phases};
  for (Int chunk = 0; chunk < chunks; ++chunk)
    require(paths.low[chunk] < paths.high[chunk], "high", "a path for every chunk");
  const Choice choice{ranged(sized(path, chunks, "path"), 0, listed.count(), "path"),
                      ranged(sized(phase, chunks, "phase"), none, phases, "phase")};
  const Ints turns = indices(order, chunks, "order");
  require(begin >= 0, "begin", "at least 0");
  require(most >= 0, "most", "at least 0");
  BudgetPrice price = checked_budgets(links * phases, budget, share, history, fill, pressure, load);
  return unlocked([&] { return choose(paths, all(size), turns, begin, most, price, choice); });
}

}  // namespace

NB_MODULE(_core, module) {
  nb::class_<Graph>(module, "Graph").def(nb::new_(&make_graph), "nodes"_a, "tail"_a, "head"_a);
  nb::class_<LinkOrder>(module, "LinkOrder")
      .def("__init__", &start_order, "graph"_a, "order"_a, "blocks"_a, "settled"_a, "priced"_a, "priced_links"_a,
           "copies"_a, nb::keep_alive<1, 2>());
  define_placing<Graph>(module);
  define_placing<LinkOrder>(module);
  module.def("choose_within", &choose_within, "path_start"_a, "link"_a, "low"_a, "high"_a, "links"_a, "phases"_a,
             "size"_a, "order"_a, "begin"_a, "most"_a, "budget"_a, "share"_a, "history"_a, "fill"_a, "pressure"_a,
             "load"_a.noconvert(), "path"_a.noconvert(), "phase"_a.noconvert());
  bind_flows(module);
  bind_routes(module);
  bind_schedules(module);
}

}  // namespace alltoall::border

// What Python sees. Arrays that a kernel fills are taken as they are, never converted: a converted
// copy would be filled instead. The GIL is released while a kernel runs.
#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.h"
#include "choose.h"
#include "graph_arrays.h"
#include "place.h"

using namespace nanobind::literals;

namespace alltoall::border {

void bind_paths(nb::module_& module);
void bind_flows(nb::module_& module);
void bind_designs(nb::module_& module);
void bind_schedules(nb::module_& module);
void bind_simulation(nb::module_& module);
void bind_routes(nb::module_& module);

namespace {

using TableArray = Array<std::int32_t, 2>;

// Links in an order that paths follow (see LinkOrder); it owns its arrays.
class OrderArrays {
 public:
  OrderArrays(Int nodes, IntArray tail, IntArray head, IntArray order, IntArray blocks, Int settled,
              IntArray priced, Int priced_links, Array<const Int, 2> copies)
      : nodes_(nodes), settled_(settled), priced_links_(priced_links), tail_(copy(view(tail))),
        head_(copy(view(head))), order_(copy(view(order))), blocks_(copy(view(blocks))),
        priced_(copy(view(priced))), copies_(copies.data(), copies.data() + copies.size()),
        ends_(static_cast<Int>(copies.shape(1))) {
    require(nodes >= 1, "nodes", "at least 1");
    require(priced_links >= 0, "priced_links", "at least 0");
    require(copies.shape(0) >= 1, "copies", "at least one row");
    require_size(head_, tail_.size(), "head");
    require_size(priced_, tail_.size(), "priced");
    require_range(tail_, 0, nodes, "tail");
    require_range(head_, 0, nodes, "head");
    require_range(order_, 0, links(), "order");
    require_range(priced_, 0, priced_links + 1, "priced");
    require_range(copies_, 0, nodes, "copies");
    require_bounds(blocks_, static_cast<Int>(order_.size()), "blocks");
  }

  OrderFinder finder() const {
    const Int rows = static_cast<Int>(copies_.size()) / std::max<Int>(ends_, 1);
    return OrderFinder({order_, blocks_, settled_, tail_, head_, priced_,
                        Matrix<const Int>(copies_.data(), rows, ends_), nodes_});
  }
  Pricing pricing() const { return {priced_, priced_links_}; }
  Int links() const { return static_cast<Int>(tail_.size()); }
  Int ends() const { return ends_; }
  Int longest_path() const { return static_cast<Int>(order_.size()); }

 private:
  Int nodes_, settled_, priced_links_;
  std::vector<Int> tail_, head_, order_, blocks_, priced_, copies_;
  Int ends_;
};

template <class Where>
Sources checked_sources(const Where& where, IntArray start, IntArray first, IntArray end) {
  require_size(view(first), start.shape(0) + 1, "first");
  require_bounds(view(first), static_cast<Int>(end.shape(0)), "first");
  require_range(view(start), 0, where.ends(), "start");
  require_range(view(end), 0, where.ends(), "end");
  return {view(start), view(first)};
}

template <class Where>
Int py_most_hops(const Where& where, IntArray start, IntArray first, IntArray end) {
  const Sources sources = checked_sources(where, start, first, end);
  return unlocked([&] {
    auto finder = where.finder();
    return most_hops(finder, sources, view(end), where.pricing().count, where.longest_path());
  });
}

void require_paths(const TableArray& table, std::size_t chunks, Int links) {
  require(table.shape(0) == chunks, "table", "a row per chunk");
  const std::span<const std::int32_t> entries(table.data(), table.size());
  require_range(entries, none, links, "table");
}

// Without a scale every link costs 1.
template <class Where>
Int py_respond(const Where& where, IntArray start, IntArray first, IntArray end, FloatArray size,
               FloatArray mean_size, std::optional<FloatArray> scale, double steepness,
               TableArray table, Array<double, 1> load, Int together, int threads) {
  const Sources sources = checked_sources(where, start, first, end);
  const Int priced = where.pricing().count;
  require_size(view(size), end.shape(0), "size");
  require_size(view(mean_size), start.shape(0), "mean_size");
  require_size(view(load), priced, "load");
  require(together >= 1, "together", "at least 1");
  require_paths(table, end.shape(0), where.links());
  if (scale) require_size(view(*scale), priced, "scale");
  return unlocked([&] {
    const auto respond_at = [&]<Price P>(P price) {
      std::vector finders(std::min<std::size_t>(together, std::max<std::size_t>(1, start.shape(0))),
                          where.finder());
      Placing<P> placing(where.pricing(), view(size), view(table), price);
      return respond(finders, sources, view(end), view(mean_size), priced, placing, threads);
    };
    return scale ? respond_at(ExponentialPrice(view(*scale), steepness, view(load)))
                 : respond_at(HopPrice(view(load)));
  });
}

template <class Where>
Int py_reroute(const Where& where, IntArray start, IntArray end, FloatArray size, IntArray order,
               Int begin, Int most, FloatArray budget, FloatArray share, FloatArray history,
               double pressure, double free_cost, TableArray table, Array<double, 1> load) {
  const Int priced = where.pricing().count;
  const std::size_t chunks = end.shape(0);
  require_size(view(start), chunks, "start");
  require_size(view(size), chunks, "size");
  require_range(view(start), 0, where.ends(), "start");
  require_range(view(end), 0, where.ends(), "end");
  require_range(view(order), 0, static_cast<Int>(chunks), "order");
  require(begin >= 0, "begin", "at least 0");
  for (const auto& each : {budget, share, history}) require_size(view(each), priced, "budget, share, history");
  require_size(view(load), priced, "load");
  require_paths(table, chunks, where.links());
  return unlocked([&] {
    auto finder = where.finder();
    BudgetPrice price(view(budget), view(share), view(history), 0.0, pressure, view(load));
    Placing<BudgetPrice> placing(where.pricing(), view(size), view(table), price);
    return reroute(finder, view(start), view(end), view(order), begin, most, priced, free_cost, placing);
  });
}

// Add chunks on their paths to the loads of priced links.
template <class Where>
void py_add_loads(const Where& where, FloatArray size, FloatArray share, TableArray table,
                  Array<double, 1> load) {
  const Pricing pricing = where.pricing();
  require_paths(table, size.shape(0), where.links());
  require_size(view(load), pricing.count, "load");
  require_size(view(share), pricing.count, "share");
  const auto rows = view(table);
  for (Int chunk = 0; chunk < rows.rows(); ++chunk)
    for (const Int link : path_of(rows[chunk])) {
      const Int each = pricing.of(link);
      if (each < pricing.count) load.data()[each] += size.data()[chunk] * share.data()[each];
    }
}

ListedPaths checked_paths(IntArray start, IntArray link, IntArray low, IntArray high, Int links, Int phases,
                          std::size_t chunks) {
  require(links >= 0 && phases >= 1, "phases", "at least 1");
  require_bounds(view(start), static_cast<Int>(link.shape(0)), "path_start");
  require_range(view(link), 0, links, "link");
  require_size(view(low), chunks, "low");
  require_size(view(high), chunks, "high");
  const Int paths = static_cast<Int>(start.shape(0)) - 1;
  require_range(view(low), 0, paths, "low");
  require_range(view(high), 1, paths + 1, "high");
  for (std::size_t chunk = 0; chunk < chunks; ++chunk)
    require(view(low)[chunk] < view(high)[chunk], "high", "a path for every chunk");
  return {view(start), view(link), view(low), view(high), links, phases};
}

Choice checked_choice(const ListedPaths& paths, Array<Int, 1> path, Array<Int, 1> phase, std::size_t chunks) {
  require_size(view(path), chunks, "path");
  require_size(view(phase), chunks, "phase");
  require_range(view(path), 0, static_cast<Int>(paths.start.size()) - 1, "path");
  require_range(view(phase), none, paths.phases, "phase");
  return {view(path), view(phase)};
}

Int py_choose(IntArray path_start, IntArray link, IntArray low, IntArray high, Int links, Int phases,
              FloatArray size, IntArray order, Int begin, Int most, FloatArray scale, double steepness,
              Array<double, 1> load, Array<Int, 1> path, Array<Int, 1> phase) {
  const std::size_t chunks = size.shape(0);
  const ListedPaths paths = checked_paths(path_start, link, low, high, links, phases, chunks);
  const Choice choice = checked_choice(paths, path, phase, chunks);
  require_range(view(order), 0, static_cast<Int>(chunks), "order");
  require(begin >= 0, "begin", "at least 0");
  require_size(view(load), links * phases, "load");
  require_size(view(scale), links * phases, "scale");
  return unlocked([&] {
    ExponentialPrice price(view(scale), steepness, view(load));
    return choose(paths, view(size), view(order), begin, most, price, choice);
  });
}

Int py_choose_within(IntArray path_start, IntArray link, IntArray low, IntArray high, Int links,
                     Int phases, FloatArray size, IntArray order, Int begin, Int most,
                     FloatArray budget, FloatArray share, FloatArray history, double fill,
                     double pressure, Array<double, 1> load, Array<Int, 1> path, Array<Int, 1> phase) {
  const std::size_t chunks = size.shape(0);
  const ListedPaths paths = checked_paths(path_start, link, low, high, links, phases, chunks);
  const Choice choice = checked_choice(paths, path, phase, chunks);
  require_range(view(order), 0, static_cast<Int>(chunks), "order");
  require(begin >= 0, "begin", "at least 0");
  for (const auto& each : {budget, share, history})
    require_size(view(each), links * phases, "budget, share, history");
  require_size(view(load), links * phases, "load");
  return unlocked([&] {
    BudgetPrice price(view(budget), view(share), view(history), fill, pressure, view(load));
    return choose(paths, view(size), view(order), begin, most, price, choice);
  });
}

template <class Where>
void define_placing(nb::module_& module) {
  module.def("most_hops", &py_most_hops<Where>, "where"_a, "start"_a, "first"_a, "end"_a);
  module.def("respond", &py_respond<Where>, "where"_a, "start"_a, "first"_a, "end"_a, "size"_a,
             "mean_size"_a, "scale"_a.none(), "steepness"_a, "table"_a.noconvert(),
             "load"_a.noconvert(), "together"_a = 1, "threads"_a = 1);
  module.def("reroute", &py_reroute<Where>, "where"_a, "start"_a, "end"_a, "size"_a, "order"_a,
             "begin"_a, "most"_a, "budget"_a, "share"_a, "history"_a, "pressure"_a, "free_cost"_a,
             "table"_a.noconvert(), "load"_a.noconvert());
  module.def("add_loads", &py_add_loads<Where>, "where"_a, "size"_a, "share"_a,
             "table"_a.noconvert(), "load"_a.noconvert());
}

}  // namespace

NB_MODULE(_core, module) {
  nb::class_<GraphArrays>(module, "Graph")
      .def(nb::init<Int, IntArray, IntArray>(), "nodes"_a, "tail"_a, "head"_a);
  nb::class_<OrderArrays>(module, "LinkOrder")
      .def(nb::init<Int, IntArray, IntArray, IntArray, IntArray, Int, IntArray, Int, Array<const Int, 2>>(),
           "nodes"_a, "tail"_a, "head"_a, "order"_a, "blocks"_a, "settled"_a, "priced"_a,
           "priced_links"_a, "copies"_a);
  define_placing<GraphArrays>(module);
  define_placing<OrderArrays>(module);
  bind_paths(module);
  bind_flows(module);
  bind_designs(module);
  bind_schedules(module);
  bind_simulation(module);
  bind_routes(module);
  module.def("choose", &py_choose, "path_start"_a, "link"_a, "low"_a, "high"_a, "links"_a,
             "phases"_a, "size"_a, "order"_a, "begin"_a, "most"_a, "scale"_a, "steepness"_a,
             "load"_a.noconvert(), "path"_a.noconvert(), "phase"_a.noconvert());
  module.def("choose_within", &py_choose_within, "path_start"_a, "link"_a, "low"_a, "high"_a,
             "links"_a, "phases"_a, "size"_a, "order"_a, "begin"_a, "most"_a, "budget"_a,
             "share"_a, "history"_a, "fill"_a, "pressure"_a, "load"_a.noconvert(),
             "path"_a.noconvert(), "phase"_a.noconvert());
}

}  // namespace alltoall::border

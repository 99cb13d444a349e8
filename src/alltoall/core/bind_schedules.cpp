// What Python sees of designs, schedules and simulated time: searches for wirings, list scheduling, max-min
// fair flows and messages.
#include <nanobind/stl/optional.h>

#include <optional>

#include "anneal.h"
#include "arrays.h"
#include "fair.h"
#include "lifts.h"
#include "list_scheduling.h"

namespace alltoall::border {
namespace {

constexpr Int most_nodes = Int{1} << 16;  // distances are kept as bits of all pairs

// The rows of a table whose columns are the fields of a structure of numbers.
template <class Row>
std::vector<Row> to_rows(const IntTable& table, const char* name, const char* expected) {
  require(table.shape(1) * sizeof(Int) == sizeof(Row), name, expected);
  std::vector<Row> rows(table.shape(0));
  std::ranges::copy(all(table), reinterpret_cast<Int*>(rows.data()));
  return rows;
}

Ends checked_ends(const IntTable& pairs, Int nodes, const char* name) {
  ranged(all(pairs), 0, nodes, name);
  return to_rows<Ends::value_type>(pairs, name, "two columns");
}

std::vector<double> checked_square(const std::optional<FloatTable>& given, Int nodes, const char* name) {
  if (!given) return {};
  require(static_cast<Int>(given->shape(0)) == nodes && static_cast<Int>(given->shape(1)) == nodes, name,
          "a row and a column per node");
  return copy(finite(all(*given), name));
}

Annealing make_annealing(Int nodes, IntTable fixed, IntTable ends, bool directed, bool turns, IntArray panel,
                         std::optional<FloatTable> price, double budget, double fine, FloatArray weight,
                         std::optional<FloatTable> demand, bool failures, bool even, std::uint64_t seed) {
  require(nodes >= 1 && nodes <= most_nodes, "nodes", "at least 1, at most 2^16");
  require(weight.size() >= 1, "weight", "at least one entry");
  Aim aim{copy(finite(all(weight), "weight")), checked_square(demand, nodes, "demand"), failures, even};
  const Int cables = static_cast<Int>(ends.shape(0));
  Cabling cabling{directed, turns, copy(indices(panel, cables, cables, "panel")),
                  checked_square(price, nodes, "price"), budget, fine};
  return {nodes, checked_ends(fixed, nodes, "fixed"), checked_ends(ends, nodes, "ends"), std::move(aim),
          std::move(cabling), seed};
}

LiftAnnealing make_lift(Int bases, Int ports, Int m, Int k, IntArray power, IntArray involutions, IntTable arcs,
                        IntTable places, IntArray single, std::uint64_t seed) {
  require(bases >= 1 && ports >= 1 && m >= 1 && k >= 1, "bases, ports, m, k", "at least 1");
  require(bases <= most_ints / ports / m / k, "bases", "fewer places than 2^31");
  require(arcs.shape(0) >= 1, "arcs", "at least one row");
  std::vector<Arc> rows = to_rows<Arc>(arcs, "arcs", "rows of tail, head and voltage");
  auto where = to_rows<std::array<Int, 2>>(places, "places", "two for every arc");
  require(where.size() == rows.size(), "places", "two for every arc");
  const Ints is_single = sized(single, std::ssize(rows), "single");
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto [tail, head, voltage] = rows[row];
    const auto in_row = [&](Int at, Int base) { return at >= base * ports && at < (base + 1) * ports; };
    require(std::min(tail, head) >= 0 && std::max(tail, head) < bases, "arcs", "nodes of the base");
    require(voltage >= 0 && voltage < m * k, "arcs", "elements of the group");
    require(in_row(where[row][0], tail), "places", "a place of the tail first");
    require(where[row][1] == none || in_row(where[row][1], head), "places",
            "a place of the head second, or -1");
    require(!is_single[row] || involutions.size() >= 1, "involutions", "one for single arcs");
  }
  return {bases, ports, {m, k, copy(indices(power, k, m, "power"))}, copy(indices(involutions, m * k, "involutions")),
          std::move(rows), std::move(where), copy(is_single), seed};
}

// The best rows as an array of their own.
template <class Search>
auto best_of(const Search& search) {
  const auto& rows = search.best();
  constexpr Int columns = sizeof(rows[0]) / sizeof(Int);
  const Int* const numbers = reinterpret_cast<const Int*>(rows.data());
  const Int count = std::ssize(rows);
  return to_numpy(std::vector<Int>(numbers, numbers + count * columns), {count, columns});
}

template <class Search>
void run(Search& search, FloatArray temperatures) {
  require(temperatures.size() == 0 || !search.best().empty(), "ends", "a cable to move");
  unlocked([&] { search.run(all(temperatures)); });
}

template <class Search, class Make, class... Arguments>
nb::class_<Search> define_search(nb::module_& module, const char* name, Make make, const Arguments&... arguments) {
  return nb::class_<Search>(module, name)
      .def(nb::new_(make), arguments...)
      .def("run", &run<Search>, "temperatures"_a)
      .def("best", &best_of<Search>)
      .def_prop_ro("least", &Search::least);
}

SharedFlows checked_flows(IntArray start, IntArray resource, FloatArray capacity, FloatArray weight) {
  sized(start, std::ssize(weight) + 1, "start");
  const RowsView uses = rows(start, resource, std::ssize(capacity), "start", "resource");
  require_no_empty_row(uses, "start", "a resource for every flow");
  return {copy(uses), copy(positive(all(capacity), "capacity")), copy(positive(all(weight), "weight"))};
}

std::vector<Int> at_least_one(IntArray values, Int size, const char* name) {
  return copy(ranged(sized(values, size, name), 1, std::numeric_limits<Int>::max(), name));
}

std::vector<double> checked_amounts(FloatArray values, Int size, const char* name) {
  return copy(amounts(sized(values, size, name), name));
}

ListScheduler make_scheduler(FloatArray size, IntArray first, IntArray begin, IntArray link, FloatArray pace,
                             double quota, double shortest) {
  const RowsView legs = rows(begin, link, std::ssize(pace), "begin", "link");
  sized(first, std::ssize(size) + 1, "first");
  const RowsView of_chunk{bounds(first, legs.count(), "first"), {}};
  require_no_empty_row(of_chunk, "first", "a leg for every chunk");
  require(pace.size() >= 1, "pace", "at least one link");
  require(quota > 0.0, "quota", "a number above 0");
  require(shortest >= 0.0, "shortest", "a number of at least 0");
  return {{copy(positive(all(size), "size")), copy(of_chunk.first), copy(legs)},
          copy(positive(all(pace), "pace")), quota, shortest};
}

FluidFlows make_fluid(IntArray start, IntArray resource, FloatArray capacity, FloatArray weight, FloatArray part,
                      IntArray rounds, FloatArray begin, double pause, double window) {
  const Int count = std::ssize(weight);
  return {checked_flows(start, resource, capacity, weight), checked_amounts(part, count, "part"),
          at_least_one(rounds, count, "rounds"), checked_amounts(begin, count, "begin"), amount(pause, "pause"),
          lengths(Floats(&window, 1), "window")[0]};
}

FairMessages make_messages(IntArray start, IntArray resource, FloatArray capacity, FloatArray weight,
                           FloatArray size, IntArray first, IntArray waits, IntArray follower_start,
                           IntArray follower, IntArray successor, IntArray sender, FloatArray latency,
                           FloatArray overhead, FloatArray sender_free) {
  const Int count = std::ssize(waits), parts = std::ssize(weight), senders = std::ssize(sender_free);
  sized(first, count + 1, "first"), sized(follower_start, count + 1, "follower_start");
  Messages messages{copy(bounds(first, parts, "first")), at_least_one(waits, count, "waits"),
                    copy(rows(follower_start, follower, count, "follower_start", "follower")),
                    copy(ranged(sized(successor, count, "successor"), none, count, "successor")),
                    copy(indices(sender, count, senders, "sender")), checked_amounts(latency, count, "latency"),
                    checked_amounts(overhead, count, "overhead")};
  return {checked_flows(start, resource, capacity, weight), copy(positive(sized(size, parts, "size"), "size")),
          std::move(messages), checked_amounts(sender_free, senders, "sender_free")};
}

}  // namespace

void bind_schedules(nb::module_& module) {
  define_search<Annealing>(module, "Annealing", &make_annealing, "nodes"_a, "fixed"_a, "ends"_a, "directed"_a,
                           "turns"_a, "panel"_a, "price"_a.none(), "budget"_a, "fine"_a, "weight"_a,
                           "demand"_a.none(), "failures"_a, "even"_a, "seed"_a);
  define_search<LiftAnnealing>(module, "LiftAnnealing", &make_lift, "bases"_a, "ports"_a, "m"_a, "k"_a, "power"_a,
                               "involutions"_a, "arcs"_a, "places"_a, "single"_a, "seed"_a)
      .def_prop_ro("is_simple", [](const LiftAnnealing& self) { return self.is_simple(); });
  nb::class_<ListScheduler>(module, "ListScheduler")
      .def(nb::new_(&make_scheduler), "size"_a, "first"_a, "begin"_a, "link"_a, "pace"_a, "quota"_a, "shortest"_a)
      .def("step", [](ListScheduler& self) {
        if (!self.done()) unlocked([&] { self.step(); });
      })
      .def_prop_ro("done", &ListScheduler::done)
      .def_prop_ro("steps", &ListScheduler::steps)
      .def_prop_ro("time", &ListScheduler::time)
      .def_prop_ro("step_of_leg", copied(&ListScheduler::step_of_leg));
  nb::class_<FluidFlows>(module, "FluidFlows")
      .def(nb::new_(&make_fluid), "start"_a, "resource"_a, "capacity"_a, "weight"_a, "part"_a, "rounds"_a,
           "begin"_a, "pause"_a, "window"_a)
      .def("advance", &FluidFlows::advance, "events"_a, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("alive", &FluidFlows::alive)
      .def_prop_ro("now", &FluidFlows::now)
      .def_prop_ro("ends", copied(&FluidFlows::ends));
  nb::class_<FairMessages>(module, "FairMessages")
      .def(nb::new_(&make_messages), "start"_a, "resource"_a, "capacity"_a, "weight"_a, "size"_a, "first"_a,
           "waits"_a, "follower_start"_a, "follower"_a, "successor"_a, "sender"_a, "latency"_a, "overhead"_a,
           "sender_free"_a)
      .def("advance", &FairMessages::advance, "events"_a, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("now", &FairMessages::now);
}

}  // namespace alltoall::border

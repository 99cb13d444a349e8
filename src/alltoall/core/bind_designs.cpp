// What Python sees of the searches for wirings.
#include <nanobind/stl/optional.h>

#include <optional>

#include "anneal.h"
#include "arrays.h"
#include "lifts.h"

using namespace nanobind::literals;

namespace alltoall::border {
namespace {

using IntTable = Array<const Int, 2>;
using FloatTable = Array<const double, 2>;

constexpr Int most_places = std::numeric_limits<std::int32_t>::max();

Ends checked_ends(const IntTable& pairs, Int nodes, const char* name) {
  require(pairs.shape(1) == 2, name, "two columns");
  require_range(std::span(pairs.data(), pairs.size()), 0, nodes, name);
  Ends ends;
  for (std::size_t row = 0; row < pairs.shape(0); ++row)
    ends.push_back({pairs.data()[2 * row], pairs.data()[2 * row + 1]});
  return ends;
}

std::vector<double> checked_square(const std::optional<FloatTable>& given, std::size_t nodes, const char* name) {
  if (!given) return {};
  require(given->shape(0) == nodes && given->shape(1) == nodes, name, "a row and a column per node");
  return {given->data(), given->data() + given->size()};
}

void start_annealing(Annealing* self, Int nodes, IntTable fixed, IntTable ends, bool directed, bool turns,
                     IntArray panel, std::optional<FloatTable> price, double budget, double fine,
                     FloatArray weight, std::optional<FloatTable> demand, bool failures, bool even,
                     std::uint64_t seed) {
  require(nodes >= 1 && nodes < most_places, "nodes", "at least 1");
  require_size(view(panel), ends.shape(0), "panel");
  require(weight.shape(0) >= 1, "weight", "at least one entry");
  Aim aim{{weight.data(), weight.data() + weight.size()}, checked_square(demand, nodes, "demand"), failures, even};
  Cabling cabling{directed, turns, copy(view(panel)), checked_square(price, nodes, "price"), budget, fine};
  new (self) Annealing(nodes, checked_ends(fixed, nodes, "fixed"), checked_ends(ends, nodes, "ends"),
                       std::move(aim), std::move(cabling), seed);
}

void start_lift(LiftAnnealing* self, Int bases, Int ports, Int m, Int k, IntArray power, IntArray involutions,
                IntTable arcs, IntTable places, IntArray single, std::uint64_t seed) {
  require(bases >= 1 && ports >= 1 && m >= 1 && k >= 1, "bases, ports, m, k", "at least 1");
  require(bases <= most_places / ports / m / k, "bases", "fewer places than 2^31");
  require_size(view(power), k, "power");
  require_range(view(power), 0, m, "power");
  require_range(view(involutions), 0, m * k, "involutions");
  require(arcs.shape(0) >= 1 && arcs.shape(1) == 3, "arcs", "rows of tail, head and voltage");
  require(places.shape(0) == arcs.shape(0) && places.shape(1) == 2, "places", "two for every arc");
  require_size(view(single), arcs.shape(0), "single");
  std::vector<Arc> rows;
  std::vector<std::array<Int, 2>> where;
  for (std::size_t row = 0; row < arcs.shape(0); ++row) {
    const Arc arc{arcs.data()[3 * row], arcs.data()[3 * row + 1], arcs.data()[3 * row + 2]};
    const std::array<Int, 2> place{places.data()[2 * row], places.data()[2 * row + 1]};
    const auto in_row = [&](Int at, Int base) { return at >= base * ports && at < (base + 1) * ports; };
    require(std::min(arc.tail, arc.head) >= 0 && std::max(arc.tail, arc.head) < bases, "arcs", "nodes of the base");
    require(arc.voltage >= 0 && arc.voltage < m * k, "arcs", "elements of the group");
    require(in_row(place[0], arc.tail), "places", "a place of the tail first");
    require(place[1] == none || in_row(place[1], arc.head), "places", "a place of the head second, or -1");
    require(!view(single)[row] || involutions.shape(0) >= 1, "involutions", "one for single arcs");
    rows.push_back(arc);
    where.push_back(place);
  }
  new (self) LiftAnnealing(bases, ports, {m, k, copy(view(power))}, copy(view(involutions)), std::move(rows),
                           std::move(where), copy(view(single)), seed);
}

// The best rows as an array of their own.
template <class Search>
nb::ndarray<nb::numpy, Int, nb::ndim<2>> best_of(const Search& search) {
  using Row = typename std::decay_t<decltype(search.best())>::value_type;
  constexpr std::size_t columns = sizeof(Row) / sizeof(Int);
  const auto& best = search.best();
  auto* const rows = new std::vector<Row>(best);
  const nb::capsule owner(rows, [](void* data) noexcept { delete static_cast<std::vector<Row>*>(data); });
  return {reinterpret_cast<Int*>(rows->data()), {best.size(), columns}, owner};
}

void run_annealing(Annealing& annealing, FloatArray temperatures) {
  require(temperatures.shape(0) == 0 || !annealing.best().empty(), "ends", "a cable to move");
  unlocked([&] { annealing.run(view(temperatures)); });
}

void run_lift(LiftAnnealing& annealing, FloatArray temperatures) {
  unlocked([&] { annealing.run(view(temperatures)); });
}

}  // namespace

void bind_designs(nb::module_& module) {
  nb::class_<Annealing>(module, "Annealing")
      .def("__init__", &start_annealing, "nodes"_a, "fixed"_a, "ends"_a, "directed"_a, "turns"_a, "panel"_a,
           "price"_a.none(), "budget"_a, "fine"_a, "weight"_a, "demand"_a.none(), "failures"_a, "even"_a,
           "seed"_a)
      .def("run", &run_annealing, "temperatures"_a)
      .def("best", &best_of<Annealing>)
      .def_prop_ro("least", &Annealing::least);
  nb::class_<LiftAnnealing>(module, "LiftAnnealing")
      .def("__init__", &start_lift, "bases"_a, "ports"_a, "m"_a, "k"_a, "power"_a, "involutions"_a, "arcs"_a,
           "places"_a, "single"_a, "seed"_a)
      .def("run", &run_lift, "temperatures"_a)
      .def("best", &best_of<LiftAnnealing>)
      .def_prop_ro("least", &LiftAnnealing::least)
      .def_prop_ro("is_simple", [](const LiftAnnealing& self) { return self.is_simple(); });
}

}  // namespace alltoall::border

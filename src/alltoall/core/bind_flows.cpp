// Flows of many groups, as Python sees them: exact repair, sweeps, primal-dual steps.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "exact.h"
#include "graph_arrays.h"
#include "owned.h"
#include "primal_dual.h"
#include "sweeps.h"

using namespace nanobind::literals;

namespace alltoall::border {
namespace {

void require_groups(const GraphArrays& graph, IntArray source, Array<const double, 2> wanted) {
  require_range(view(source), 0, graph.nodes(), "source");
  require_shape(wanted, source.shape(0), graph.nodes(), "wanted");
}

void py_make_exact(const GraphArrays& graph, FloatArray lengths, IntArray source,
                   Array<const double, 2> wanted, Array<double, 2> flows, int threads) {
  require_lengths(graph, view(lengths));
  require_groups(graph, source, wanted);
  require_shape(flows, source.shape(0), graph.links(), "flows");
  unlocked([&] {
    make_exact(graph.graph(), view(lengths), view(source), view(wanted), view(flows), threads);
  });
}

double py_find_level(FloatArray target, FloatArray slope, FloatArray width) {
  require_size(view(slope), target.shape(0), "slope");
  require_size(view(width), target.shape(0), "width");
  return find_level(view(target), view(slope), view(width));
}

auto py_update_batch(const GraphArrays& graph, IntArray link_class, FloatArray unit_cost,
                     FloatArray multiplier, FloatArray slope, IntArray source, FloatArray weight,
                     Array<const double, 2> wanted, Array<double, 2> flows, FloatArray time,
                     IntArray cuts, double damping, int threads) {
  const std::size_t classes = multiplier.shape(0), groups = source.shape(0);
  require_size(view(link_class), graph.links(), "link_class");
  require(std::ranges::all_of(view(link_class), [](Int each) { return each >= 0; }), "link_class",
          "at least 0");
  require_size(view(unit_cost), graph.links(), "unit_cost");
  require_size(view(slope), classes, "slope");
  require_size(view(time), classes, "time");
  require_groups(graph, source, wanted);
  require_size(view(weight), groups, "weight");
  require_shape(flows, groups, graph.links(), "flows");
  require(cuts.shape(0) >= 1 && std::ranges::is_sorted(view(cuts)), "cuts", "bounds in order");
  require_range(view(cuts), 0, static_cast<Int>(groups) + 1, "cuts");
  require(damping > 0.0, "damping", "a number above 0");
  const std::size_t parts = cuts.shape(0) - 1;
  std::vector<double> change(parts * (classes + 1));
  unlocked([&] {
    update_batch(graph.graph(), {view(link_class), view(unit_cost)}, {view(multiplier), view(slope)},
                 {view(source), view(weight), view(wanted)}, view(flows), view(time), view(cuts), damping,
                 {change.data(), static_cast<Int>(parts), static_cast<Int>(classes) + 1}, threads);
  });
  return to_numpy(std::move(change), {parts, classes + 1});
}

// The iterates of the primal-dual method, which stay in C++.
class Iterates {
 public:
  Iterates(const GraphArrays& graph, IntArray link_class, IntArray first, FloatArray size, FloatArray capacity,
           IntArray source, Array<const double, 2> wanted, FloatArray share, Array<const double, 2> flow,
           Array<const double, 2> potential, FloatArray price)
      : method_(checked(graph, link_class, first, size, capacity, source, wanted, share, flow, potential, price)) {}

  void set_steps(FloatArray flow, FloatArray potential, FloatArray price) {
    require_size(view(flow), method_.links(), "flow");
    require_size(view(potential), method_.nodes(), "potential");
    require_size(view(price), method_.classes(), "price");
    method_.set_steps(view(flow), view(potential), view(price));
    ready_ = true;
  }

  void restart() { method_.restart(); }

  auto step_flows(double keep, int threads) {
    require(ready_, "step_flows", "step sizes, by set_steps");
    std::vector<double> load(method_.links() + 1);
    unlocked([&] { method_.step_flows(keep, load, threads); });
    return to_numpy(std::move(load));
  }

  double step_prices(FloatArray load, double keep) {
    require(ready_, "step_prices", "step sizes, by set_steps");
    require_size(view(load), method_.links() + 1, "load");
    return method_.step_prices(view(load), keep);
  }

  auto price() const { return to_numpy(copy(method_.prices())); }

  void write_flows(Array<double, 2> rows) const {
    require_shape(rows, method_.groups(), method_.links(), "rows");
    method_.write_flows(view(rows));
  }

  void write_potentials(Array<double, 2> rows) const {
    require_shape(rows, method_.groups(), method_.nodes(), "rows");
    method_.write_potentials(view(rows));
  }

 private:

  static PrimalDual checked(const GraphArrays& graph, IntArray link_class, IntArray first, FloatArray size,
                            FloatArray capacity, IntArray source, Array<const double, 2> wanted,
                            FloatArray share, Array<const double, 2> flow, Array<const double, 2> potential,
                            FloatArray price) {
    const std::size_t classes = size.shape(0), groups = source.shape(0);
    require_size(view(link_class), graph.links(), "link_class");
    require(std::ranges::all_of(view(link_class), [](Int each) { return each >= 0; }), "link_class",
            "at least 0");
    require_bounds(view(first), static_cast<Int>(classes), "first");
    require_size(view(capacity), classes, "capacity");
    require_size(view(price), classes, "price");
    require_groups(graph, source, wanted);
    require_size(view(share), groups, "share");
    require_shape(flow, groups, graph.links(), "flow");
    require_shape(potential, groups, graph.nodes(), "potential");
    return PrimalDual(graph.graph(),
                      {copy(view(link_class)), copy(view(first)), copy(view(size)), copy(view(capacity))},
                      {view(source), view(wanted), view(share)}, view(flow), view(potential), view(price));
  }

  PrimalDual method_;
  bool ready_ = false;
};

}  // namespace

void bind_flows(nb::module_& module) {
  module.def("make_exact", &py_make_exact, "graph"_a, "lengths"_a, "source"_a, "wanted"_a,
             "flows"_a.noconvert(), "threads"_a = 1);
  module.def("find_level", &py_find_level, "target"_a, "slope"_a, "width"_a);
  module.def("update_batch", &py_update_batch, "graph"_a, "link_class"_a, "unit_cost"_a, "multiplier"_a,
             "slope"_a, "source"_a, "weight"_a, "wanted"_a, "flows"_a.noconvert(), "time"_a, "cuts"_a,
             "damping"_a, "threads"_a = 1);
  nb::class_<Iterates>(module, "PrimalDual")
      .def(nb::init<const GraphArrays&, IntArray, IntArray, FloatArray, FloatArray, IntArray,
                    Array<const double, 2>, FloatArray, Array<const double, 2>, Array<const double, 2>,
                    FloatArray>(),
           "graph"_a, "link_class"_a, "first"_a, "size"_a, "capacity"_a, "source"_a, "wanted"_a, "share"_a,
           "flow"_a, "potential"_a, "price"_a)
      .def("set_steps", &Iterates::set_steps, "flow"_a, "potential"_a, "price"_a)
      .def("restart", &Iterates::restart)
      .def("step_flows", &Iterates::step_flows, "keep"_a, "threads"_a = 1)
      .def("step_prices", &Iterates::step_prices, "load"_a, "keep"_a)
      .def("write_flows", &Iterates::write_flows, "rows"_a.noconvert())
      .def("write_potentials", &Iterates::write_potentials, "rows"_a.noconvert())
      .def_prop_ro("price", &Iterates::price, nb::rv_policy::move);
}

}  // namespace alltoall::border

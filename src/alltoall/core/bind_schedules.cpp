// List scheduling and paths without detours, as Python sees them.
#include "list_scheduling.h"
#include "owned.h"

using namespace nanobind::literals;

namespace alltoall::border {
namespace {

bool is_positive(double value) { return value > 0.0 && value < infinity; }

ListScheduler checked_scheduler(FloatArray size, IntArray first, IntArray begin, IntArray link,
                                FloatArray pace, double quota, double shortest) {
  const Int chunks = static_cast<Int>(size.shape(0));
  require(begin.shape(0) >= 1, "begin", "bounds of legs");
  require_size(view(first), chunks + 1, "first");
  require_bounds(view(first), static_cast<Int>(begin.shape(0)) - 1, "first");
  require(std::ranges::adjacent_find(view(first)) == view(first).end(), "first", "a leg for every chunk");
  require_bounds(view(begin), static_cast<Int>(link.shape(0)), "begin");
  require_range(view(link), 0, static_cast<Int>(pace.shape(0)), "link");
  require(pace.shape(0) >= 1, "pace", "at least one link");
  require(std::ranges::all_of(view(size), is_positive), "size", "positive numbers");
  require(std::ranges::all_of(view(pace), is_positive), "pace", "positive numbers");
  require(quota > 0.0, "quota", "a number above 0");
  require(shortest >= 0.0, "shortest", "a number of at least 0");
  LegPaths paths{copy(view(size)), copy(view(first)), copy(view(begin)), copy(view(link))};
  return ListScheduler(std::move(paths), copy(view(pace)), quota, shortest);
}

auto py_skip_detours(Array<const Int, 2> paths, IntArray tail, IntArray head, Int places) {
  const Int links = static_cast<Int>(tail.shape(0));
  require(places >= 0, "places", "at least 0");
  require_size(view(head), tail.shape(0), "head");
  require_range(view(tail), 0, places, "tail");
  require_range(view(head), 0, places, "head");
  require_range(Ints(paths.data(), paths.size()), none, links, "paths");
  std::vector<Int> shorter(paths.size());
  const std::size_t rows = paths.shape(0), columns = paths.shape(1);
  unlocked([&] {
    skip_detours(view(paths), view(tail), view(head), places,
                 {shorter.data(), static_cast<Int>(rows), static_cast<Int>(columns)});
  });
  return to_numpy(std::move(shorter), {rows, columns});
}

}  // namespace

void bind_schedules(nb::module_& module) {
  nb::class_<ListScheduler>(module, "ListScheduler")
      .def("__init__", [](ListScheduler* self, FloatArray size, IntArray first, IntArray begin, IntArray link,
              FloatArray pace, double quota, double shortest) {
             new (self) ListScheduler(checked_scheduler(size, first, begin, link, pace, quota, shortest));
           }, "size"_a, "first"_a, "begin"_a, "link"_a, "pace"_a, "quota"_a, "shortest"_a)
      .def("step", [](ListScheduler& self) {
        if (!self.done()) unlocked([&] { self.step(); });
      })
      .def_prop_ro("done", &ListScheduler::done)
      .def_prop_ro("steps", &ListScheduler::steps)
      .def_prop_ro("time", &ListScheduler::time)
      .def_prop_ro("step_of_leg", [](const ListScheduler& self) { return to_numpy(std::vector(self.step_of_leg())); },
                   nb::rv_policy::move);
  module.def("skip_detours", &py_skip_detours, "paths"_a, "tail"_a, "head"_a, "places"_a);
}

}  // namespace alltoall::border

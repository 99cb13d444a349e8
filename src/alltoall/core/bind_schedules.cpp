// What Python sees of schedules and simulated time: list scheduling, max-min fair flows and messages.
#include "arrays.h"
#include "fair.h"
#include "list_scheduling.h"

namespace alltoall::border {
namespace {

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

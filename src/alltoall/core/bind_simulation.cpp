// Max-min fair flows and messages, as Python sees them.
#include "fair.h"
#include "owned.h"

using namespace nanobind::literals;

namespace alltoall::border {
namespace {

void require_numbers(Floats values, std::size_t size, bool positive, const char* name) {
  require_size(values, size, name);
  const auto holds = [&](double value) { return value < infinity && (positive ? value > 0.0 : value >= 0.0); };
  require(std::ranges::all_of(values, holds), name, positive ? "positive numbers" : "numbers of at least 0");
}

SharedFlows checked_flows(IntArray start, IntArray resource, FloatArray capacity, FloatArray weight) {
  require_size(view(start), weight.shape(0) + 1, "start");
  require_bounds(view(start), static_cast<Int>(resource.shape(0)), "start");
  require(std::ranges::adjacent_find(view(start)) == view(start).end(), "start", "a resource for every flow");
  require_range(view(resource), 0, static_cast<Int>(capacity.shape(0)), "resource");
  require_numbers(view(capacity), capacity.shape(0), true, "capacity");
  require_numbers(view(weight), weight.shape(0), true, "weight");
  return {copy(view(start)), copy(view(resource)), copy(view(capacity)), copy(view(weight))};
}

FluidFlows checked_fluid(IntArray start, IntArray resource, FloatArray capacity, FloatArray weight,
                         FloatArray part, IntArray rounds, FloatArray begin, double pause, double window) {
  const std::size_t count = weight.shape(0);
  SharedFlows flows = checked_flows(start, resource, capacity, weight);
  require_numbers(view(part), count, false, "part");
  require_size(view(rounds), count, "rounds");
  require(std::ranges::all_of(view(rounds), [](Int each) { return each >= 1; }), "rounds", "at least 1");
  require_numbers(view(begin), count, false, "begin");
  require(pause >= 0.0, "pause", "at least 0");
  require(window >= 0.0, "window", "at least 0");
  return FluidFlows(std::move(flows), copy(view(part)), copy(view(rounds)), copy(view(begin)),
                    pause, window);
}

FairMessages checked_messages(IntArray start, IntArray resource, FloatArray capacity, FloatArray weight,
                              FloatArray size, IntArray first, IntArray waits, IntArray follower_start,
                              IntArray follower, IntArray successor, IntArray sender, FloatArray latency,
                              FloatArray overhead, FloatArray sender_free) {
  const Int count = static_cast<Int>(waits.shape(0));
  SharedFlows parts = checked_flows(start, resource, capacity, weight);
  require_numbers(view(size), weight.shape(0), true, "size");
  require_size(view(first), count + 1, "first");
  require_bounds(view(first), static_cast<Int>(size.shape(0)), "first");
  require_size(view(follower_start), count + 1, "follower_start");
  require_bounds(view(follower_start), static_cast<Int>(follower.shape(0)), "follower_start");
  require_range(view(follower), 0, count, "follower");
  require_size(view(successor), count, "successor");
  require_range(view(successor), none, count, "successor");
  require_size(view(sender), count, "sender");
  require_range(view(sender), 0, static_cast<Int>(sender_free.shape(0)), "sender");
  require(std::ranges::all_of(view(waits), [](Int each) { return each >= 1; }), "waits", "at least 1");
  require_numbers(view(latency), count, false, "latency");
  require_numbers(view(overhead), count, false, "overhead");
  require_numbers(view(sender_free), sender_free.shape(0), false, "sender_free");
  Messages messages{copy(view(first)),      copy(view(waits)),         copy(view(follower_start)),
                    copy(view(follower)),   copy(view(successor)),     copy(view(sender)),
                    copy(view(latency)), copy(view(overhead))};
  return FairMessages(std::move(parts), copy(view(size)), std::move(messages), copy(view(sender_free)));
}

}  // namespace

void bind_simulation(nb::module_& module) {
  nb::class_<FluidFlows>(module, "FluidFlows")
      .def("__init__", [](FluidFlows* self, IntArray start, IntArray resource, FloatArray capacity, FloatArray weight,
              FloatArray part, IntArray rounds, FloatArray begin, double pause, double window) {
             new (self) FluidFlows(
                 checked_fluid(start, resource, capacity, weight, part, rounds, begin, pause, window));
           }, "start"_a, "resource"_a, "capacity"_a, "weight"_a, "part"_a, "rounds"_a, "begin"_a, "pause"_a,
           "window"_a)
      .def("advance", [](FluidFlows& self, Int events) { unlocked([&] { self.advance(events); }); }, "events"_a)
      .def_prop_ro("alive", &FluidFlows::alive)
      .def_prop_ro("now", &FluidFlows::now)
      .def_prop_ro("ends", [](const FluidFlows& self) { return to_numpy(std::vector(self.ends())); },
                   nb::rv_policy::move);
  nb::class_<FairMessages>(module, "FairMessages")
      .def("__init__", [](FairMessages* self, IntArray start, IntArray resource, FloatArray capacity, FloatArray weight,
              FloatArray size, IntArray first, IntArray waits, IntArray follower_start, IntArray follower,
              IntArray successor, IntArray sender, FloatArray latency, FloatArray overhead, FloatArray sender_free) {
             new (self) FairMessages(checked_messages(start, resource, capacity, weight, size, first, waits,
                                                      follower_start, follower, successor, sender, latency,
                                                      overhead, sender_free));
           }, "start"_a, "resource"_a, "capacity"_a, "weight"_a, "size"_a, "first"_a, "waits"_a,
           "follower_start"_a, "follower"_a, "successor"_a, "sender"_a, "latency"_a, "overhead"_a,
           "sender_free"_a)
      .def("advance", [](FairMessages& self, Int events) { return unlocked([&] { return self.advance(events); }); },
           "events"_a)
      .def_prop_ro("now", &FairMessages::now);
}

}  // namespace alltoall::border

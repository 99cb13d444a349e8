// Max-min fair rates by progressive filling, and the events between which they stay the same.
//
// All flows grow together, each at its weight, until a resource is full: the flows on it keep the
// level that they have reached, and the others grow on. The rate of a flow is weight times level.
#pragma once

#include <queue>
#include <tuple>
#include <vector>

#include "graph.h"

namespace alltoall {

// Times and levels that differ by this share are one: sums in another order give the same.
inline constexpr double same_moment = 1e-9;

// Flows that share resources: flow f uses resource[start[f]] to resource[start[f + 1] - 1].
struct SharedFlows {
  std::vector<Int> start, resource;
  std::vector<double> capacity, weight;

  Int count() const { return static_cast<Int>(start.size()) - 1; }
  Ints uses(Int flow) const {
    return Ints(resource).subspan(start[flow], start[flow + 1] - start[flow]);
  }
};

// Set the levels of the chosen flows, which share the free capacity, and take it away from that.
void fill(const SharedFlows& flows, Ints chosen, std::span<double> level, std::span<double> free);

// Flows that send in rounds, `part` bytes in each, with a pause in between.
//
// When flows end, only levels at or above the lowest of theirs can change: a flow is on no resource
// that fills below its own level. Events within a window count as one, at its end.
class FluidFlows {
 public:
  FluidFlows(SharedFlows flows, std::vector<double> part, std::vector<Int> rounds,
             std::vector<double> begin, double pause, double window);

  void advance(Int events);
  Int alive() const { return static_cast<Int>(live_.size()); }
  double now() const { return now_; }
  const std::vector<double>& ends() const { return when_; }

 private:
  enum class State : char { waiting, active, done };

  double begin_and_end();
  void choose(double lowest);
  void release_chosen(double lowest);

  SharedFlows flows_;
  std::vector<double> part_;
  std::vector<Int> rounds_;
  std::vector<double> when_;  // when a flow begins or ends
  double pause_, window_, now_ = 0.0;
  std::vector<double> level_, rate_, free_;
  std::vector<State> state_;
  std::vector<Int> live_, chosen_;
};

// Messages that wait for others; each has parts, which are flows with fair rates.
//
// Message m has the parts first[m] to first[m + 1] - 1. It begins after `waits` releases, once its
// sender has spent the overhead on it. What follows it is released when it arrives, its successor
// when it has left.
struct Messages {
  std::vector<Int> first, waits, follower_start, follower, successor, sender;
  std::vector<double> latency, overhead;
};

class FairMessages {
 public:
  FairMessages(SharedFlows parts, std::vector<double> size, Messages messages,
               std::vector<double> sender_free);

  // Go on for some events; return whether the last message has arrived.
  bool advance(Int events);
  double now() const { return now_; }

 private:
  enum Kind : int { begins, arrives };
  using Event = std::tuple<double, Kind, Int>;

  bool next_event();
  void release(Int message, double now);
  void move_parts(double seconds);
  void handle_due();

  SharedFlows parts_;
  std::vector<double> size_, left_, rate_, level_;
  Messages messages_;
  std::vector<double> sender_free_;
  std::vector<Int> message_of_, remaining_, active_, gone_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0.0;
};

}  // namespace alltoall

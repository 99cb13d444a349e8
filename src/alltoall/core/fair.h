// Max-min fair rates by progressive filling, and the events between which they stay the same.
//
// All flows grow together, each at its weight, until a resource is full: the flows on it keep the
// level that they have reached, and the others grow on. The rate of a flow is weight times level.
#pragma once

#include <queue>
#include <tuple>

#include "graph.h"

namespace alltoall {

// Times and levels that differ by this share are one: sums in another order give the same.
inline constexpr double same_moment = 1e-9;

// Flows that share resources: row f of `uses` are those of flow f.
struct SharedFlows {
  Rows uses;
  std::vector<double> capacity, weight;
};

// Set the levels of the chosen flows, which share the free capacity, and take it away from that.
inline void fill(const SharedFlows& flows, Ints chosen, std::span<double> level, std::span<double> free) {
  std::vector<Int> left(free.size(), 0);
  std::vector<double> heavy(free.size(), 0.0);
  std::vector<Int> used, user;  // resources, and the place in `chosen` of the flow that uses each
  for (std::size_t index = 0; index < chosen.size(); ++index)
    for (const Int resource : flows.uses[chosen[index]]) {
      ++left[resource];
      heavy[resource] += flows.weight[chosen[index]];
      used.push_back(resource);
      user.push_back(static_cast<Int>(index));
    }
  const Rows at = by_key(std::ssize(free), used);
  using Entry = std::pair<double, Int>;
  std::vector<Entry> shares;
  for (std::size_t each = 0; each < free.size(); ++each)
    if (left[each]) shares.emplace_back(free[each] / heavy[each], static_cast<Int>(each));
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap({}, std::move(shares));
  std::vector<char> settled(chosen.size(), 0);
  while (!heap.empty()) {
    const auto [share, fullest] = heap.top();
    heap.pop();
    if (left[fullest] == 0) continue;
    // Settled flows leave others a larger share: look again before it counts.
    const double fair = free[fullest] / heavy[fullest];
    if (fair > share * (1 + 1e-12)) {
      heap.emplace(fair, fullest);
      continue;
    }
    for (const Int place : at[fullest]) {
      const Int index = user[place];
      if (settled[index]) continue;
      settled[index] = 1;
      const Int flow = chosen[index];
      level[flow] = fair;
      for (const Int resource : flows.uses[flow]) {
        free[resource] -= flows.weight[flow] * fair;
        heavy[resource] -= flows.weight[flow];
        --left[resource];
      }
    }
  }
}

// Flows that send in rounds, `part` bytes in each, with a pause in between.
//
// When flows end, only levels at or above the lowest of theirs can change: a flow is on no resource
// that fills below its own level. Events within a window count as one, at its end.
class FluidFlows {
 public:
  FluidFlows(SharedFlows flows, std::vector<double> part, std::vector<Int> rounds, std::vector<double> begin,
             double pause, double window)
      : flows_(std::move(flows)), part_(std::move(part)), rounds_(std::move(rounds)),
        when_(std::move(begin)), pause_(pause), window_(window), level_(part_.size(), 0.0),
        rate_(part_.size(), 0.0), free_(flows_.capacity), state_(part_.size(), State::waiting),
        live_(part_.size()) {
    std::iota(live_.begin(), live_.end(), 0);
  }

  void advance(Int events) {
    for (; events > 0 && !live_.empty(); --events) {
      const double lowest = begin_and_end();
      choose(lowest);
      release_chosen(lowest);
      if (!chosen_.empty()) fill(flows_, chosen_, level_, free_);
      for (const Int flow : chosen_) {
        rate_[flow] = flows_.weight[flow] * level_[flow];
        when_[flow] = now_ + when_[flow] / rate_[flow];
      }
    }
  }

  Int alive() const { return std::ssize(live_); }
  double now() const { return now_; }
  Floats ends() const { return when_; }

 private:
  enum class State : char { waiting, active, done };

  // Let flows begin and end whose time has come; return the lowest level that changes. It is 0 if any
  // begins, whose level is not known yet.
  double begin_and_end() {
    double first = infinity, lowest = infinity;
    for (const Int flow : live_) first = std::min(first, when_[flow]);
    now_ = std::max(now_, first);
    const double limit = now_ + std::max(window_, same_moment * now_);
    for (const Int flow : live_) {
      if (when_[flow] > limit) continue;
      now_ = std::max(now_, when_[flow]);
      if (state_[flow] == State::waiting) {
        state_[flow] = State::active;
        rate_[flow] = lowest = 0.0;
        continue;
      }
      lowest = std::min(lowest, level_[flow]);
      for (const Int resource : flows_.uses[flow]) free_[resource] += rate_[flow];
      const bool more = --rounds_[flow] > 0;
      state_[flow] = more ? State::waiting : State::done;
      when_[flow] += more ? pause_ : 0.0;
    }
    return lowest;
  }

  // Drop flows that are done, and choose those whose level changes.
  void choose(double lowest) {
    std::erase_if(live_, [&](Int flow) { return state_[flow] == State::done; });
    chosen_.clear();
    std::ranges::copy_if(live_, std::back_inserter(chosen_), [&](Int flow) {
      return state_[flow] == State::active && level_[flow] >= lowest * (1 - same_moment);
    });
  }

  // Free the capacity of the chosen flows; their `when` becomes the bytes that each has left.
  void release_chosen(double lowest) {
    for (const Int flow : chosen_) {
      if (rate_[flow] == 0.0) {
        when_[flow] = part_[flow];
        continue;
      }
      when_[flow] = std::max(0.0, when_[flow] - now_) * rate_[flow];
      for (const Int resource : flows_.uses[flow]) free_[resource] += rate_[flow];
    }
    if (lowest == 0.0) free_ = flows_.capacity;  // all is free again, without rounding errors
  }

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
// sender has spent the overhead on it. Its row of followers is released when it arrives, its
// successor when it has left.
struct Messages {
  std::vector<Int> first, waits;
  Rows followers;
  std::vector<Int> successor, sender;
  std::vector<double> latency, overhead;
};

class FairMessages {
 public:
  FairMessages(SharedFlows parts, std::vector<double> size, Messages messages,
               std::vector<double> sender_free)
      : parts_(std::move(parts)), size_(std::move(size)), left_(size_), rate_(size_.size(), 0.0),
        level_(size_.size(), 0.0), messages_(std::move(messages)), sender_free_(std::move(sender_free)) {
    const Int count = std::ssize(messages_.waits);
    for (Int message = 0; message < count; ++message) {
      remaining_.push_back(messages_.first[message + 1] - messages_.first[message]);
      message_of_.insert(message_of_.end(), remaining_.back(), message);
    }
    for (Int message = 0; message < count; ++message) release(message, 0.0);
  }

  // Go on for some events; return whether the last message has arrived.
  bool advance(Int events) {
    for (; events > 0; --events)
      if (!next_event()) return true;
    return false;
  }

  double now() const { return now_; }

 private:
  enum Kind : int { begins, arrives };
  using Event = std::tuple<double, Kind, Int>;

  bool next_event() {
    double moment = events_.empty() ? infinity : std::get<0>(events_.top());
    for (const Int part : active_) moment = std::min(moment, now_ + left_[part] / rate_[part]);
    if (moment == infinity) return false;
    move_parts(moment - now_);
    now_ = moment;
    for (const Int part : gone_) {
      const Int message = message_of_[part];
      if (--remaining_[message] > 0) continue;
      events_.emplace(now_ + messages_.latency[message], arrives, message);
      if (messages_.successor[message] != none) release(messages_.successor[message], now_);
    }
    handle_due();
    std::vector<double> free(parts_.capacity);
    fill(parts_, active_, level_, free);
    for (const Int part : active_) rate_[part] = parts_.weight[part] * level_[part];
    return true;
  }

  // Let a message wait for one release less; after the last it begins, once its sender is free.
  void release(Int message, double now) {
    if (--messages_.waits[message] != 0) return;
    double& free = sender_free_[messages_.sender[message]];
    free = std::max(now, free) + messages_.overhead[message];
    events_.emplace(free, begins, message);
  }

  // Move the active parts; those that have left go to `gone_`.
  void move_parts(double seconds) {
    gone_.clear();
    std::erase_if(active_, [&](Int part) {
      left_[part] -= rate_[part] * seconds;
      const bool done = !(left_[part] > same_moment * size_[part]);
      if (done) gone_.push_back(part);
      return done;
    });
  }

  // Let messages begin and arrive whose time has come; one without parts arrives as it begins.
  void handle_due() {
    while (!events_.empty() && std::get<0>(events_.top()) <= now_ * (1 + same_moment)) {
      const auto [time, kind, message] = events_.top();
      events_.pop();
      if (kind == begins)
        for (Int part = messages_.first[message]; part < messages_.first[message + 1]; ++part)
          active_.push_back(part);
      if (kind == begins && remaining_[message] > 0) continue;
      for (const Int follower : messages_.followers[message]) release(follower, now_);
    }
  }

  SharedFlows parts_;
  std::vector<double> size_, left_, rate_, level_;
  Messages messages_;
  std::vector<double> sender_free_;
  std::vector<Int> message_of_, remaining_, active_, gone_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  double now_ = 0.0;
};

}  // namespace alltoall

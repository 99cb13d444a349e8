// List scheduling of chunks on paths.
#pragma once

#include "graph.h"

namespace alltoall {

// Chunks on paths, which are rows of legs: the links that a chunk passes within one step.
//
// Chunk c has the legs first[c] to first[c + 1] - 1, which are rows of links.
struct LegPaths {
  std::vector<double> size;
  std::vector<Int> first;
  Rows links;
};

// The share of the quota by which a link counts as nearer to running dry, per leg before it.
inline constexpr double leg_discount = 0.1;
// The share of the quota that a further leg counts, among equally urgent chunks.
inline constexpr double longer_path = 1e-3;
// The share by which sums of sizes may be off.
inline constexpr double rounding = 1e-9;

// Sends chunks step by step, the most urgent first; schedules/orders.py has the rules. A step takes
// at most `quota`, and at least `shortest` unless the chunks that wait fill less.
class ListScheduler {
 public:
  ListScheduler(LegPaths chunks, std::vector<double> pace, double quota, double shortest)
      : chunks_(std::move(chunks)), pace_(std::move(pace)), quota_(quota), shortest_(shortest),
        at_(chunks_.first.begin(), chunks_.first.end() - 1), step_of_leg_(chunks_.links.count(), none),
        left_(pace_.size(), 0.0), load_(pace_.size(), 0.0), urgency_(at_.size()) {
    for (std::size_t chunk = 0; chunk < at_.size(); ++chunk)
      for (Int leg = at_[chunk]; leg < last_leg(chunk); ++leg)
        for (const Int link : chunks_.links[leg]) left_[link] += cost(chunk, link);
    // Where all else is equal, large chunks come first: small ones fill the rest.
    waiting_ = count_up(std::ssize(at_));
    std::ranges::stable_sort(waiting_, std::greater<>{}, [&](Int chunk) { return chunks_.size[chunk]; });
  }

  void step() {
    std::ranges::fill(load_, 0.0);
    for (const Int chunk : waiting_)
      for (const Int link : next_links(chunk)) load_[link] += cost(chunk, link);
    const auto busiest = std::ranges::max_element(left_);
    std::vector<double> slack(left_.size());
    double dry = quota_;
    for (std::size_t link = 0; link < left_.size(); ++link) {
      slack[link] = *busiest - left_[link] + load_[link];
      if (load_[link] < left_[link] * (1 - rounding)) dry = std::min(dry, slack[link]);
    }
    const std::vector<Int> order = by_urgency(slack);
    send(order, duration(order, std::max(dry, shortest_), busiest - left_.begin()));
    for (std::size_t link = 0; link < left_.size(); ++link) left_[link] -= load_[link];
    time_ += *std::ranges::max_element(load_);
    ++steps_;
    std::erase_if(waiting_, [&](Int chunk) { return at_[chunk] == last_leg(chunk); });
  }

  bool done() const { return waiting_.empty(); }
  Int steps() const { return steps_; }
  double time() const { return time_; }
  Ints step_of_leg() const { return step_of_leg_; }

 private:
  double cost(Int chunk, Int link) const { return chunks_.size[chunk] * pace_[link]; }
  Int last_leg(Int chunk) const { return chunks_.first[chunk + 1]; }
  Ints next_links(Int chunk) const { return chunks_.links[at_[chunk]]; }
  // Return when a chunk is needed further on; on its last leg, at the end.
  double urgency(Int chunk, Floats slack) const {
    double least = quota_;
    for (Int leg = at_[chunk] + 1; leg < last_leg(chunk); ++leg) {
      const double ahead = leg_discount * quota_ * static_cast<double>(leg - at_[chunk] - 1);
      for (const Int link : chunks_.links[leg]) least = std::min(least, slack[link] - ahead);
    }
    return least - longer_path * quota_ * static_cast<double>(last_leg(chunk) - at_[chunk]);
  }

  std::vector<Int> by_urgency(Floats slack) {
    for (const Int chunk : waiting_) urgency_[chunk] = urgency(chunk, slack);
    std::vector<Int> order = waiting_;
    std::ranges::stable_sort(order, {}, [&](Int chunk) { return urgency_[chunk]; });
    return order;
  }

  // Return how long the step takes: as long as the chunks that the busiest link sends, if any, so that
  // other links do not make it longer.
  double duration(Ints order, double most, Int busiest) const {
    double largest = 0.0, sent = 0.0;
    for (const Int chunk : order)
      for (const Int link : next_links(chunk)) largest = std::max(largest, cost(chunk, link));
    most = std::max(most, largest);
    for (const Int chunk : order)
      for (const Int link : next_links(chunk))
        if (link == busiest && sent + cost(chunk, busiest) <= most * (1 + rounding))
          sent += cost(chunk, busiest);
    return sent > 0 ? std::max(sent, largest) : most;
  }

  // Send each chunk for which there is room on all links of its leg, in order.
  void send(Ints order, double duration) {
    const double most = duration * (1 + rounding);
    std::ranges::fill(load_, 0.0);
    for (const Int chunk : order) {
      const Ints links = next_links(chunk);
      if (!std::ranges::all_of(links, [&](Int link) { return load_[link] + cost(chunk, link) <= most; }))
        continue;
      for (const Int link : links) load_[link] += cost(chunk, link);
      step_of_leg_[at_[chunk]++] = steps_;
    }
  }

  LegPaths chunks_;
  std::vector<double> pace_;
  double quota_, shortest_, time_ = 0.0;
  Int steps_ = 0;
  std::vector<Int> at_, step_of_leg_, waiting_;
  std::vector<double> left_, load_, urgency_;
};

}  // namespace alltoall

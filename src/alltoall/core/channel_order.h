// Better orders of channels: take one out, and put it back where the paths of all pairs gain most.
//
// The worth of an order is the sum over pairs of demand times the shortest path forward. For a
// channel from u to v that is taken out, paths over it are a path to u before its place and a path
// from v after it. Only the places right before another channel out of v matter, so one reading of
// the order forward and one backward price them all. Numbers are of single precision, so that more
// fit in a vector.
#pragma once

#include "parallel.h"
#include "random.h"

namespace alltoall {

inline constexpr Int lanes = 16;

ALLTOALL_VERSIONS void relax(const float* near, float* far, float length, Int width) {
  for (Int each = 0; each < width; ++each) far[each] = std::min(far[each], near[each] + length);
}

// Sums have a lane per column modulo 16, so that all versions round alike.
ALLTOALL_VERSIONS void add_gain(const float* now, const float* wanted, const float* to_tail, float rest,
                                Int width, float* sum) {
  for (Int low = 0; low < width; low += lanes)
    for (Int lane = 0; lane < lanes; ++lane) {
      const float gained = now[low + lane] - (to_tail[low + lane] + rest);
      sum[lane] += wanted[low + lane] * std::max(0.0f, gained);
    }
}

// Channels between copies of nodes; terminal t is at the nodes terminals[k, t].
struct Channels {
  const Graph& graph;
  Matrix<const Int> terminals;
  std::span<const float> lengths;
  Matrix<const float> wanted;  // by destination and source
};

class OrderImprovement {
 public:
  explicit OrderImprovement(const Channels& channels)
      : channels_(channels), width_((channels.terminals.columns() + lanes - 1) / lanes * lanes),
        far_(2.0f * std::accumulate(channels.lengths.begin(), channels.lengths.end(), 0.0f)),
        ahead_(channels.graph.nodes() * width_), back_(ahead_.size()),
        now_(channels.terminals.columns() * width_), wanted_(now_.size()) {
    for (Int row = 0; row < channels.wanted.rows(); ++row)
      std::ranges::copy(channels.wanted[row], wanted_.begin() + row * width_);
  }

  // Return the sum of demand times shortest path forward.
  double total_distance(Ints order) {
    places_.clear();
    begin(ahead_);
    read_forward(order, none, 0);
    find_nearest();
    double total = 0.0;
    for (Int row = 0; row < channels_.terminals.columns(); ++row)
      for (Int column = 0; column < channels_.terminals.columns(); ++column)
        total += static_cast<double>(now_[row * width_ + column]) * wanted_[row * width_ + column];
    return total;
  }

  // Give some channels, drawn at random, their best place. Of equally good places any is taken.
  void improve(std::span<Int> order, Int moves, std::uint64_t seed) {
    Random random(seed);
    for (; moves > 0; --moves) {
      const Int taken = random.below(order.size()), channel = order[taken];
      list_places(order, taken);
      begin(ahead_);
      begin(back_);
      read_forward(order, taken, channels_.graph.tail[channel]);
      read_backward(order, taken, channels_.graph.head[channel]);
      find_nearest();
      float best = -1.0f;
      Int place = taken;
      for (std::size_t each = 0; each < places_.size(); ++each) {
        const float gained = gain(static_cast<Int>(each), channels_.lengths[channel]);
        if (gained > best || (gained == best && random.next() >> 63)) best = gained, place = places_[each];
      }
      const auto from = order.begin() + taken, to = order.begin() + place;
      if (place > taken) std::rotate(from, from + 1, to);
      else std::rotate(to, from, from + 1);
    }
  }

 private:
  // List the places before each other channel out of the head, and the end.
  void list_places(Ints order, Int taken) {
    const Int head = channels_.graph.head[order[taken]], count = std::ssize(order);
    places_.clear();
    for (Int place = 0; place < count; ++place)
      if (place != taken && channels_.graph.tail[order[place]] == head) places_.push_back(place);
    places_.push_back(count);
    to_tail_.resize(places_.size() * width_);
    from_head_.resize(places_.size() * width_);
  }

  // Set all distances to more than any path is long, and those of the terminals to 0.
  void begin(std::vector<float>& distance) const {
    std::ranges::fill(distance, far_);
    const auto& terminals = channels_.terminals;
    for (Int copy = 0; copy < terminals.rows(); ++copy)
      for (Int each = 0; each < terminals.columns(); ++each)
        distance[terminals.at(copy, each) * width_ + each] = 0.0f;
  }

  // Find the distances of all nodes from the terminals; note those of one node at all places.
  void read_forward(Ints order, Int taken, Int node) {
    std::size_t noted = 0;
    const auto note = [&] { std::copy_n(&ahead_[node * width_], width_, &to_tail_[noted++ * width_]); };
    for (Int place = 0; place < std::ssize(order); ++place) {
      if (noted < places_.size() && place == places_[noted]) note();
      if (place == taken) continue;
      const Int channel = order[place];
      relax(&ahead_[channels_.graph.tail[channel] * width_], &ahead_[channels_.graph.head[channel] * width_],
            channels_.lengths[channel], width_);
    }
    if (noted < places_.size()) note();
  }

  // The same for distances to the terminals.
  void read_backward(Ints order, Int taken, Int node) {
    std::size_t left = places_.size();
    const auto note = [&] { std::copy_n(&back_[node * width_], width_, &from_head_[--left * width_]); };
    note();
    for (Int place = std::ssize(order); place-- > 0;) {
      if (place != taken) {
        const Int channel = order[place];
        relax(&back_[channels_.graph.head[channel] * width_], &back_[channels_.graph.tail[channel] * width_],
              channels_.lengths[channel], width_);
      }
      if (left > 0 && place == places_[left - 1]) note();
    }
  }

  // Find the distance between all terminals, in the best of the copies.
  void find_nearest() {
    const auto& terminals = channels_.terminals;
    for (Int row = 0; row < terminals.columns(); ++row) {
      float* now = &now_[row * width_];
      std::copy_n(&ahead_[terminals.at(0, row) * width_], width_, now);
      for (Int copy = 1; copy < terminals.rows(); ++copy)
        relax(&ahead_[terminals.at(copy, row) * width_], now, 0.0f, width_);
    }
  }

  float gain(Int place, float length) const {
    float sum[lanes] = {};
    for (Int row = 0; row < channels_.terminals.columns(); ++row)
      add_gain(&now_[row * width_], &wanted_[row * width_], &to_tail_[place * width_],
               from_head_[place * width_ + row] + length, width_, sum);
    return std::accumulate(sum, sum + lanes, 0.0f);
  }

  Channels channels_;
  Int width_;  // terminals, rounded up to whole vectors
  float far_;
  std::vector<float> ahead_, back_;  // [nodes, width]: distances from and to the terminals
  std::vector<float> now_, wanted_;  // [terminals, width], by destination
  std::vector<float> to_tail_, from_head_;  // [places, width]
  std::vector<Int> places_;
};

}  // namespace alltoall

// Better orders of channels: take one out, and put it back where the paths of all pairs gain most.
//
// The worth of an order is the sum over pairs of demand times the shortest path forward. For a
// channel from u to v that is taken out, paths over it are a path to u before its place and a path
// from v after it. Only the places right before another channel out of v matter, so one reading of
// the order forward and one backward price them all. Numbers are of single precision, so that more
// fit in a vector.
#pragma once

#include <vector>

#include "graph.h"
#include "random.h"

namespace alltoall {

// Channels between copies of nodes; terminal t is at the nodes terminals[k, t].
struct Channels {
  Ints tail, head;
  Matrix<const Int> terminals;
  std::span<const float> lengths;
  Matrix<const float> wanted;  // by destination and source
  Int nodes;
};

class OrderImprovement {
 public:
  explicit OrderImprovement(const Channels& channels);

  // Return the sum of demand times shortest path forward.
  double total_distance(Ints order);
  // Give some channels, drawn at random, their best place. Of equally good places any is taken.
  void improve(std::span<Int> order, Int moves, Random& random);

 private:
  void list_places(Ints order, Int taken);
  void begin(std::vector<float>& distance) const;
  void read_forward(Ints order, Int taken, Int node);
  void read_backward(Ints order, Int taken, Int node);
  void find_nearest();
  float gain(Int place, float length) const;

  Channels channels_;
  Int width_;  // terminals, rounded up to whole vectors
  float far_;
  std::vector<float> ahead_, back_;  // [nodes, width]: distances from and to the terminals
  std::vector<float> now_, wanted_;  // [terminals, width], by destination
  std::vector<float> to_tail_, from_head_;  // [places, width]
  std::vector<Int> places_;
};

}  // namespace alltoall

// List scheduling of chunks on paths, and paths without detours.
#pragma once

#include <vector>

#include "graph.h"

namespace alltoall {

// Chunks on paths, which are rows of legs: the links that a chunk passes within one step.
//
// Chunk c has the legs first[c] to first[c + 1] - 1, leg g the links at begin[g] to begin[g + 1] - 1.
struct LegPaths {
  std::vector<double> size;
  std::vector<Int> first, begin, link;

  Ints links(Int leg) const { return Ints(link).subspan(begin[leg], begin[leg + 1] - begin[leg]); }
};

// Sends chunks step by step, the most urgent first; schedules/orders.py has the rules. A step takes
// at most `quota`, and at least `shortest` unless the chunks that wait fill less.
class ListScheduler {
 public:
  ListScheduler(LegPaths chunks, std::vector<double> pace, double quota, double shortest);

  void step();
  bool done() const { return waiting_.empty(); }
  Int steps() const { return steps_; }
  double time() const { return time_; }
  const std::vector<Int>& step_of_leg() const { return step_of_leg_; }

 private:
  double cost(Int chunk, Int link) const { return chunks_.size[chunk] * pace_[link]; }
  Int last_leg(Int chunk) const { return chunks_.first[chunk + 1]; }
  Ints next_links(Int chunk) const { return chunks_.links(at_[chunk]); }
  double urgency(Int chunk, Floats slack) const;
  std::vector<Int> by_urgency(Floats slack) const;
  double duration(Ints order, double most, Int busiest) const;
  void send(Ints order, double duration);

  LegPaths chunks_;
  std::vector<double> pace_;
  double quota_, shortest_, time_ = 0.0;
  Int steps_ = 0;
  std::vector<Int> at_, step_of_leg_, waiting_;
  std::vector<double> left_, load_;
};

// Write paths without what leads back to a place where the chunk has been, or stays there. Link l
// leads from place tail[l] to place head[l]; rows end with `none`.
void skip_detours(Matrix<const Int> paths, Ints tail, Ints head, Int places, Matrix<Int> shorter);

}  // namespace alltoall

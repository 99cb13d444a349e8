// The loops of sweeps: sources move flow from expensive paths to cheap ones.
//
// A node that a source reaches over several links gets its flow over paths of different cost. The
// most expensive one in use and the cheapest one there is part somewhere upstream. Flow moves from
// one branch to the other until both cost the same, by Newton's rule. Prices follow every move.
#pragma once

#include "graph.h"

namespace alltoall {

// Classes of links: which one each link has, and what a unit of flow on a link adds to its time.
// Links of class `classes` or above share no capacity and cost next to nothing.
struct LinkClasses {
  Ints of_link;
  Floats unit_cost;
};

// By class: the multiplier, and how fast the price rises with the class's time. Prices are
// max(0, multiplier + slope * (time - level)), at the level at which they sum to 1.
struct PenaltyParams {
  Floats multiplier;
  Floats slope;

  Int classes() const { return static_cast<Int>(multiplier.size()); }
};

// By group: its source, its weight, and the demand of each node.
struct Commodities {
  Ints source;
  Floats weight;
  Matrix<const double> wanted;
};

// Return the level at which the sum of width * max(0, target - slope * level) is 1.
double find_level(Floats target, Floats slope, Floats width);

// Let parts of the groups respond to prices at once; part i has groups cuts[i] to cuts[i + 1] - 1.
// Each part prices its own moves `damping` times, because other parts do the same. Fill, by part,
// how the times of classes change, and last the sum of demand times distance.
void update_batch(const Graph& graph, const LinkClasses& classes, const PenaltyParams& params,
                  const Commodities& groups, Matrix<double> flows, Floats time, Ints cuts,
                  double damping, Matrix<double> change, int threads);

}  // namespace alltoall

// Sifting: a link is taken out of an order and put back where the routes over it gain most.
//
// A route that goes backward at k places counts powers[k] of its weight. Only the place of a link
// among the links before and after it on these routes matters, so one look at the routes prices all
// places.
#pragma once

#include "turns.h"

namespace alltoall {

class LinkSifting {
 public:
  // Each of the routes `which` makes a turn at least.
  LinkSifting(const RouteTurns& routes, Ints which, Floats weight, Floats rank);

  // Put some links where their routes gain most, one after the other.
  void place(Ints links, Floats powers);
  // Number the links from 0 again, before halving the distances runs out of digits.
  void renumber();
  Floats rank() const { return rank_; }
  Int most_turns() const { return most_turns_; }

 private:
  // A route over a link: the slots of its turns into and out of the link, `none` at its ends.
  struct Visit {
    std::int32_t route, in, out;
  };

  std::span<const Visit> visits(Int link) const {
    return std::span(visits_).subspan(first_[link], first_[link + 1] - first_[link]);
  }
  void list_visits(Ints which);
  void fill_tally(Int link, Floats powers);
  double best_place(double here, double backward);
  void move(Int link, double there);

  const RouteTurns& routes_;
  std::vector<double> weight_, rank_;
  std::vector<std::int32_t> backward_;  // at how many places each route goes backward
  std::vector<Int> first_;
  std::vector<Visit> visits_;
  Int most_turns_ = 0;
  // Of the link that is placed: ranks of the links before and after it, and weights by turns.
  std::vector<double> before_, after_, tally_, entering_, leaving_, steps_;
  std::vector<Int> order_;
};

}  // namespace alltoall

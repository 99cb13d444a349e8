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
  LinkSifting(const RouteTurns& routes, Ints which, Floats weight, Floats rank)
      : routes_(routes), weight_(weight.begin(), weight.end()), rank_(rank.begin(), rank.end()) {
    for (const Int route : which) {
      const Ints turns = routes.routes[route];
      most_turns_ = std::max<Int>(most_turns_, std::ssize(turns));
      backward_.push_back(static_cast<std::int32_t>(std::ranges::count_if(turns, [&](Int turn) {
        return !(rank_[routes.turns.tail[turn]] < rank_[routes.turns.head[turn]]);
      })));
    }
    list_visits(which);
  }

  // Put some links where their routes gain most, one after the other.
  void place(Ints links, Floats powers) {
    const Graph& turns = routes_.turns;
    for (const Int link : links) {
      if (first_[link] == first_[link + 1]) continue;
      before_.clear(), after_.clear();
      for (const Int turn : turns.in[link]) before_.push_back(rank_[turns.tail[turn]]);
      for (const Int turn : turns.out[link]) after_.push_back(rank_[turns.head[turn]]);
      fill_tally(link, powers);
      const double there = best_place(rank_[link], powers[1]);
      if (there != rank_[link]) move(link, there);
    }
  }

  // Number the links from 0 again, before halving the distances runs out of digits.
  void renumber() {
    std::vector<Int> order = count_up(std::ssize(rank_));
    std::ranges::stable_sort(order, {}, [&](Int link) { return rank_[link]; });
    for (std::size_t place = 0; place < order.size(); ++place) rank_[order[place]] = static_cast<double>(place);
  }

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

  void list_visits(Ints which) {
    const Graph& turns = routes_.turns;
    std::vector<Int> slot(turns.links());
    for (Int place = 0; place < turns.links(); ++place)
      slot[turns.in.item[place]] = place - turns.in.first[turns.head[turns.in.item[place]]];
    first_.assign(turns.nodes() + 1, 0);
    for (const Int route : which) {
      ++first_[turns.tail[routes_.routes[route].front()] + 1];
      for (const Int turn : routes_.routes[route]) ++first_[turns.head[turn] + 1];
    }
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<Int> next(first_.begin(), first_.end() - 1);
    visits_.resize(first_.back());
    const auto out_slot = [&](Int turn) { return static_cast<std::int32_t>(turn - turns.out.first[turns.tail[turn]]); };
    for (std::size_t each = 0; each < which.size(); ++each) {
      const Ints mine = routes_.routes[which[each]];
      const auto route = static_cast<std::int32_t>(each);
      visits_[next[turns.tail[mine.front()]]++] = {route, none, out_slot(mine.front())};
      for (std::size_t place = 0; place < mine.size(); ++place) {
        const bool is_last = place + 1 == mine.size();
        visits_[next[turns.head[mine[place]]]++] = {route, static_cast<std::int32_t>(slot[mine[place]]),
                                                      is_last ? std::int32_t{none} : out_slot(mine[place + 1])};
      }
    }
  }

  // Add up the weights of the routes by their turns into and out of the link; the last row and column
  // are for routes that begin and end there. Backward places at this link do not count.
  void fill_tally(Int link, Floats powers) {
    const double here = rank_[link];
    const Int columns = std::ssize(after_) + 1;
    tally_.assign((before_.size() + 1) * columns, 0.0);
    for (const auto& [route, in, out] : visits(link)) {
      Int others = backward_[route];
      if (in >= 0 && before_[in] >= here) --others;
      if (out >= 0 && after_[out] <= here) --others;
      const Int row = in >= 0 ? in : std::ssize(before_);
      tally_[row * columns + (out >= 0 ? out : columns - 1)] += weight_[route] * powers[others];
    }
  }

  // Return the place in which the routes weigh most, the present one unless another is better.
  double best_place(double here, double backward) {
    const Int rows = std::ssize(before_) + 1, columns = std::ssize(after_) + 1;
    entering_.assign(rows, backward), leaving_.assign(columns, 1.0);
    entering_.back() = 1.0;
    steps_ = before_;
    steps_.insert(steps_.end(), after_.begin(), after_.end());
    order_ = count_up(std::ssize(steps_));
    std::ranges::stable_sort(order_, {}, [&](Int step) { return steps_[step]; });
    double value = 0.0;
    for (Int row = 0; row < rows; ++row)
      for (Int column = 0; column < columns; ++column) value += entering_[row] * tally_[row * columns + column];
    double best = value, present = value;
    std::size_t gap = 0;
    for (std::size_t passed = 1; passed <= order_.size(); ++passed) {
      const Int step = order_[passed - 1];
      double sum = 0.0;
      if (step < rows - 1) {
        for (Int column = 0; column < columns; ++column) sum += tally_[step * columns + column] * leaving_[column];
        value += (1.0 - backward) * sum;
        entering_[step] = 1.0;
      } else {
        const Int column = step - (rows - 1);
        for (Int row = 0; row < rows; ++row) sum += tally_[row * columns + column] * entering_[row];
        value -= (1.0 - backward) * sum;
        leaving_[column] = backward;
      }
      if (steps_[step] < here) present = value;
      if (value > best) best = value, gap = passed;
    }
    if (best <= present * (1.0 + 1e-9)) return here;
    if (gap == 0) return steps_[order_.front()] - 1.0;
    if (gap == order_.size()) return steps_[order_.back()] + 1.0;
    const double low = steps_[order_[gap - 1]], high = steps_[order_[gap]], middle = 0.5 * (low + high);
    return low < middle && middle < high ? middle : here;
  }

  void move(Int link, double there) {
    const double here = rank_[link];
    for (const auto& [route, in, out] : visits(link)) {
      if (in >= 0) backward_[route] += (before_[in] >= there) - (before_[in] >= here);
      if (out >= 0) backward_[route] += (after_[out] <= there) - (after_[out] <= here);
    }
    rank_[link] = there;
  }

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

// Turns of routes: a route that takes link a and then link b holds a while it waits for b. Routes of
// one virtual layer cannot deadlock if their turns have no cycle.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "graph.h"

namespace alltoall {

// Distinct turns, sorted by the held link.
struct Turns {
  Turns(Int links, std::vector<Int> held_links, std::vector<Int> wanted_links)
      : held(std::move(held_links)), wanted(std::move(wanted_links)), out(by_key(links, held)),
        into(by_key(links, wanted)) {}

  Int links() const { return into.count(); }
  Int count() const { return static_cast<Int>(held.size()); }

  std::vector<Int> held, wanted;
  Rows out, into;  // turns by held link, and by wanted link
};

// Turns and the routes that make them, each a row of turns.
struct RouteTurns {
  Turns turns;
  Rows routes;
};

// An order of the links in which all present turns go forward. Pearce and Kelly, "A dynamic
// topological sort algorithm for directed acyclic graphs", JEA 2006: a new turn that points backward
// looks only at the links between its ends.
class TurnOrder {
 public:
  TurnOrder(const Turns& turns, std::vector<Int> rank)
      : turns_(turns), present(turns.count()), rank_(std::move(rank)), seen_(turns.links()) {}

  // Reorder the links so that one more turn goes forward; false if that closes a cycle.
  bool fit(Int turn) {
    const Int wanted = turns_.wanted[turn], held = turns_.held[turn];
    const Int lowest = rank_[wanted], highest = rank_[held];
    if (lowest > highest) return true;
    reach(wanted, turns_.out, turns_.wanted, after_, [&](Int rank) { return rank > highest; });
    const bool is_cycle = seen_[held];
    for (const Int link : after_) seen_[link] = false;
    if (is_cycle) return false;
    reach(held, turns_.into, turns_.held, before_, [&](Int rank) { return rank < lowest; });
    for (const Int link : before_) seen_[link] = false;
    const auto by_rank = [&](Int one, Int other) { return rank_[one] < rank_[other]; };
    std::ranges::sort(before_, by_rank);
    std::ranges::sort(after_, by_rank);
    before_.insert(before_.end(), after_.begin(), after_.end());
    places_.clear();
    for (const Int link : before_) places_.push_back(rank_[link]);
    std::ranges::sort(places_);
    for (std::size_t each = 0; each < before_.size(); ++each) rank_[before_[each]] = places_[each];
    return true;
  }

  Ints rank() const { return rank_; }

 private:
  const Turns& turns_;

 public:
  std::vector<char> present;

 private:
  // List the links that a link reaches by present turns, at ranks that are not beyond a limit.
  template <class Beyond>
  void reach(Int begin, const Rows& turns, const std::vector<Int>& next, std::vector<Int>& reached,
             const Beyond& beyond) {
    reached.assign(1, begin);
    seen_[begin] = true;
    for (std::size_t done = 0; done < reached.size(); ++done)
      for (const Int turn : turns[reached[done]]) {
        const Int link = next[turn];
        if (!present[turn] || seen_[link] || beyond(rank_[link])) continue;
        seen_[link] = true;
        reached.push_back(link);
      }
  }

  std::vector<Int> rank_, after_, before_, places_;
  std::vector<char> seen_;
};

// One layer that is filled with routes.
class LayerFilling {
 public:
  explicit LayerFilling(const RouteTurns& routes)
      : routes_(routes), order_(routes.turns, count_up(routes.turns.links())), closed_(routes.turns.count()) {}

  // Take a route unless it closes a cycle; return whether it was taken.
  bool offer(Int route) {
    const Ints mine = routes_.routes[route];
    if (std::ranges::any_of(mine, [&](Int turn) { return closed_[turn]; })) return false;
    before_.clear();
    for (const Int turn : mine) before_.push_back(order_.present[turn]);
    for (const Int turn : mine) {
      if (!order_.present[turn] && !order_.fit(turn)) {
        for (std::size_t each = 0; each < mine.size(); ++each) order_.present[mine[each]] = before_[each];
        closed_[turn] = !order_.fit(turn);
        return false;
      }
      order_.present[turn] = true;
    }
    return true;
  }

  Ints rank() const { return order_.rank(); }
  Int routes() const { return routes_.routes.count(); }

 private:
  const RouteTurns& routes_;
  TurnOrder order_;
  std::vector<char> closed_;  // turns that close a cycle with those that are present
  std::vector<char> before_;
};

// Layers by moving routes off cycles: of a cycle's turns, the one that fewest routes make is broken,
// and these routes move to the next layer. Domke, Hoefler and Nagel, IPDPS 2011.
class CycleBreaking {
 public:
  explicit CycleBreaking(const RouteTurns& routes)
      : routes_(routes), users_(by_key(routes.turns.count(), routes.routes.item)),
        layer_(routes.routes.count()), place_(routes.turns.links()),
        path_(routes.turns.links() + 1), taken_(routes.turns.links() + 1), state_(routes.turns.links()) {
    std::vector<Int> owner;
    for (Int route = 0; route < routes.routes.count(); ++route) owner.resize(routes.routes.first[route + 1], route);
    for (Int& place : users_.item) place = owner[place];
    begin_layer(0);
  }

  void begin_layer(Int level) {
    level_ = level, root_ = 0, depth_ = -1;
    count_.assign(routes_.turns.count(), 0);
    for (Int route = 0; route < routes_.routes.count(); ++route)
      if (layer_[route] == level)
        for (const Int turn : routes_.routes[route]) ++count_[turn];
    next_.assign(routes_.turns.out.first.begin(), routes_.turns.out.first.end() - 1);
    std::ranges::fill(state_, unseen);
  }

  // Break up to `most` cycles; return whether the layer has none left.
  bool run(Int most) {
    const Turns& turns = routes_.turns;
    for (; root_ < turns.links(); ++root_) {
      if (depth_ < 0) {
        if (state_[root_] != unseen) continue;
        depth_ = 0, path_[0] = root_, place_[root_] = 0, state_[root_] = on_path;
      }
      while (depth_ >= 0) {
        if (most == 0) return false;
        const Int link = path_[depth_], turn = next_[link];
        if (turn == turns.out.first[link + 1]) {
          state_[link] = finished;
          --depth_;
        } else if (const Int to = turns.wanted[turn]; count_[turn] == 0 || state_[to] == finished) {
          ++next_[link];
        } else {
          taken_[depth_] = turn;
          if (state_[to] == unseen) {
            path_[++depth_] = to;
            place_[to] = depth_, state_[to] = on_path;
          } else {
            break_cycle(place_[to]);
            --most;
          }
        }
      }
    }
    return true;
  }

  Ints layer() const { return layer_; }

 private:
  enum State : char { unseen, on_path, finished };

  // Move the routes of the rarest turn of the cycle to the next layer, and go back to where the path
  // still holds.
  void break_cycle(Int bottom) {
    Int rarest = taken_[bottom];
    for (Int depth = bottom + 1; depth <= depth_; ++depth)
      if (count_[taken_[depth]] < count_[rarest]) rarest = taken_[depth];
    for (const Int route : users_[rarest]) {
      if (layer_[route] != level_) continue;
      ++layer_[route];
      for (const Int turn : routes_.routes[route]) --count_[turn];
    }
    Int depth = 0;
    while (count_[taken_[depth]] > 0) ++depth;
    for (; depth_ > depth; --depth_) state_[path_[depth_]] = unseen;
  }

  const RouteTurns& routes_;
  Rows users_;  // routes by turn
  std::vector<Int> layer_, count_, next_, place_, path_, taken_;
  std::vector<State> state_;
  Int level_ = 0, root_ = 0, depth_ = -1;
};

}  // namespace alltoall

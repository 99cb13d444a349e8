// Turns of routes: a route that takes link a and then link b holds a while it waits for b. Routes of
// one virtual layer cannot deadlock if their turns have no cycle.
#pragma once

#include "graph.h"

namespace alltoall {

// Distinct turns as a graph, whose nodes are links: from the held link to the wanted one, sorted by the
// former. A route makes a row of turns.
struct RouteTurns {
  Graph turns;
  Rows routes;
};

// An order of the links in which all present turns go forward. Pearce and Kelly, "A dynamic
// topological sort algorithm for directed acyclic graphs", JEA 2006: a new turn that points backward
// looks only at the links between its ends.
class TurnOrder {
 public:
  TurnOrder(const Graph& turns, std::vector<Int> rank)
      : present(turns.links()), turns_(turns), rank_(std::move(rank)), seen_(turns.nodes()) {}

  // Reorder the links so that one more turn goes forward; false if that closes a cycle.
  bool fit(Int turn) {
    const Int wanted = turns_.head[turn], held = turns_.tail[turn];
    const Int lowest = rank_[wanted], highest = rank_[held];
    if (lowest > highest) return true;
    reach(wanted, turns_.out, turns_.head, after_, [&](Int rank) { return rank > highest; });
    const bool is_cycle = seen_[held];
    for (const Int link : after_) seen_[link] = false;
    if (is_cycle) return false;
    reach(held, turns_.in, turns_.tail, before_, [&](Int rank) { return rank < lowest; });
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

  const Graph& turns_;
  std::vector<Int> rank_, after_, before_, places_;
  std::vector<char> seen_;
};

// One layer that is filled with routes.
class LayerFilling {
 public:
  explicit LayerFilling(const RouteTurns& routes)
      : routes_(routes), order_(routes.turns, count_up(routes.turns.nodes())), closed_(routes.turns.links()) {}

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
      : routes_(routes), users_(by_key(routes.turns.links(), routes.routes.item)), layer_(routes.routes.count()),
        search_(routes.turns) {
    std::vector<Int> owner;
    for (Int route = 0; route < routes.routes.count(); ++route) owner.resize(routes.routes.first[route + 1], route);
    for (Int& place : users_.item) place = owner[place];
    begin_layer(0);
  }

  void begin_layer(Int level) {
    level_ = level, root_ = 0;
    count_.assign(routes_.turns.links(), 0);
    for (Int route = 0; route < routes_.routes.count(); ++route)
      if (layer_[route] == level)
        for (const Int turn : routes_.routes[route]) ++count_[turn];
    search_.restart();
  }

  // Break up to `most` cycles; return whether the layer has none left.
  bool run(Int most) {
    const auto is_used = [&](Int turn) { return count_[turn] > 0; };
    const auto break_it = [&](Ints path, Int begin) { return break_cycle(path, begin); };
    while (root_ < routes_.turns.nodes() && search_.run(root_, most, is_used, break_it)) ++root_;
    return root_ == routes_.turns.nodes();
  }

  Ints layer() const { return layer_; }

 private:
  // Move the routes of the rarest turn of the cycle to the next layer; return where the path is broken.
  Int break_cycle(Ints path, Int begin) {
    const Int rarest = *std::ranges::min_element(path.subspan(begin), {}, [&](Int turn) { return count_[turn]; });
    for (const Int route : users_[rarest]) {
      if (layer_[route] != level_) continue;
      ++layer_[route];
      for (const Int turn : routes_.routes[route]) --count_[turn];
    }
    return std::ranges::find_if(path, [&](Int turn) { return count_[turn] == 0; }) - path.begin();
  }

  const RouteTurns& routes_;
  Rows users_;  // routes by turn
  std::vector<Int> layer_, count_;
  CycleSearch search_;
  Int level_ = 0, root_ = 0;
};

}  // namespace alltoall

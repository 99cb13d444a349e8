// Turns of routes: a route that takes link a and then link b holds a while it waits for b. Routes of
// one virtual layer cannot deadlock if their turns have no cycle.
#pragma once

#include <utility>
#include <vector>

#include "graph.h"

namespace alltoall {

// Distinct turns, sorted by the held link.
struct Turns {
  Turns(Int links, std::vector<Int> held, std::vector<Int> wanted);

  Int links() const { return static_cast<Int>(first.size()) - 1; }
  Int count() const { return static_cast<Int>(held.size()); }
  Ints into_of(Int link) const { return Ints(into).subspan(into_first[link], into_first[link + 1] - into_first[link]); }

  std::vector<Int> held, wanted;
  std::vector<Int> first;       // the first turn of each held link
  std::vector<Int> into_first;  // the first place in `into` of each wanted link
  std::vector<Int> into;        // turns by wanted link
};

// Turns of routes: route r makes turn[start[r]] to turn[start[r + 1] - 1].
struct RouteTurns {
  Turns turns;
  std::vector<Int> start, turn;

  Int routes() const { return static_cast<Int>(start.size()) - 1; }
  Ints of(Int route) const { return Ints(turn).subspan(start[route], start[route + 1] - start[route]); }
};

// An order of the links in which all present turns go forward. Pearce and Kelly, "A dynamic
// topological sort algorithm for directed acyclic graphs", JEA 2006: a new turn that points backward
// looks only at the links between its ends.
class TurnOrder {
 public:
  TurnOrder(const Turns& turns, std::vector<Int> rank)
      : turns_(turns), present(turns.count()), rank_(std::move(rank)), seen_(turns.links()) {}

  // Reorder the links so that one more turn goes forward; false if that closes a cycle.
  bool fit(Int turn);
  Ints rank() const { return rank_; }

 private:
  const Turns& turns_;

 public:
  std::vector<char> present;

 private:
  void reach_forward(Int begin, Int highest);
  void reach_back(Int begin, Int lowest);

  std::vector<Int> rank_, after_, before_, places_;
  std::vector<char> seen_;
};

// One layer that is filled with routes.
class LayerFilling {
 public:
  explicit LayerFilling(const RouteTurns& routes);

  // Take a route unless it closes a cycle; return whether it was taken.
  bool offer(Int route);
  Ints rank() const { return order_.rank(); }

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
  explicit CycleBreaking(const RouteTurns& routes);

  void begin_layer(Int level);
  // Break up to `most` cycles; return whether the layer has none left.
  bool run(Int most);
  Ints layer() const { return layer_; }

 private:
  enum State : char { unseen, on_path, finished };

  void break_cycle(Int bottom);

  const RouteTurns& routes_;
  std::vector<Int> users_first_, users_;  // routes by turn
  std::vector<Int> layer_, count_, next_, place_, path_, taken_;
  std::vector<State> state_;
  Int level_ = 0, root_ = 0, depth_ = -1;
};

}  // namespace alltoall

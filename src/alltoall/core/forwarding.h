// Forwarding tables: the link by which each node sends on to each terminal.
//
// A node that sends anything to a terminal makes one turn, from its own link to that of the next
// node. A new link changes the turns of the node, of its predecessors, and of nodes that begin or
// cease to carry traffic. Tables that must be free of deadlocks in one layer count their turns and
// keep an order of the links in which all of them go forward; a link that closes a cycle is not taken.
#pragma once

#include <memory>
#include <vector>

#include "prices.h"
#include "turns.h"

namespace alltoall {

// Return tables [terminals, nodes] whose paths go forward in an order; `none` where there is none.
// A node takes the last link of the order that leads on, and then a shorter one while no other node
// sends over it.
std::vector<Int> find_tables(const Graph& graph, Ints terminals, Ints order);

class ForwardingTables {
 public:
  // The table leads every pair with demand [sources, destinations] to its terminal.
  ForwardingTables(const Graph& graph, Ints terminals, Matrix<const Int> table, Matrix<const double> demand);

  // Keep the turns free of cycles from now on; false if some turn goes backward in the order.
  bool keep_order(Ints order);
  // Let nodes take the cheapest links to some terminals if that lowers the potential.
  void respond(Ints terminals, Ints nodes, Floats scale, double steepness);

  Ints table() const { return link_; }
  Floats load() const { return load_; }
  Int terminals() const { return static_cast<Int>(terminals_.size()); }
  Int nodes() const { return graph_.nodes(); }
  Int links() const { return graph_.links(); }

 private:
  // All turns of a graph, how many entries make each, and an order in which these go forward.
  struct CountedTurns {
    CountedTurns(const Graph& graph, std::vector<Int> rank);

    Turns turns;
    TurnOrder order;
    std::vector<Int> slot, uses;
  };

  // The entries of one terminal.
  struct Row {
    Int end;
    std::span<Int> link;
    std::span<double> amount;
    std::span<Int> pairs;
  };

  Row row(Int terminal);
  Int turn(const Row& row, Int link) const;
  void respond(const Row& row, Int node, ExponentialPrice& price);
  double cost(const Row& row, Int node, Int link, const ExponentialPrice& price) const;
  void shift(const Row& row, Int node, int sign, ExponentialPrice& price);
  void find_turns(const Row& row, Int node);
  void take_off(const Row& row, Int node, ExponentialPrice& price);
  bool put_on(const Row& row, Int node, ExponentialPrice& price);
  void drop_turns(std::size_t count);

  Graph graph_;
  std::vector<Int> terminals_, link_, pairs_;
  std::vector<double> amount_, load_, cost_;
  std::unique_ptr<CountedTurns> turns_;
  std::vector<Int> found_;  // turns of an entry
};

}  // namespace alltoall

// Forwarding tables: the link by which each node sends on to each terminal.
//
// A node that sends anything to a terminal makes one turn, from its own link to that of the next
// node. A new link changes the turns of the node, of its predecessors, and of nodes that begin or
// cease to carry traffic. Tables that must be free of deadlocks in one layer count their turns and
// keep an order of the links in which all of them go forward; a link that closes a cycle is not taken.
#pragma once

#include <memory>

#include "prices.h"
#include "turns.h"

namespace alltoall {

// Return every turn from a link to one that leaves its head.
inline Graph all_turns(const Graph& graph) {
  std::vector<Int> held, wanted;
  for (Int link = 0; link < graph.links(); ++link) {
    const Ints next = graph.out[graph.head[link]];
    held.insert(held.end(), next.size(), link);
    wanted.insert(wanted.end(), next.begin(), next.end());
  }
  return {graph.links(), std::move(held), std::move(wanted)};
}

class ForwardingTables {
 public:
  // The table leads every pair with demand [sources, destinations] to its terminal.
  ForwardingTables(const Graph& graph, Ints terminals, Matrix<const Int> table, Matrix<const double> demand)
      : graph_(graph), terminals_(terminals.begin(), terminals.end()),
        link_(table[0].data(), table[table.rows()].data()), pairs_(link_.size()),
        amount_(link_.size()), load_(graph.links()) {
    for (Int to = 0; to < this->terminals(); ++to)
      for (Int from = 0; from < this->terminals(); ++from) {
        const Row mine = row(to);
        const double amount = demand.at(from, to);
        if (!(amount > 0)) continue;
        for (Int at = terminals_[from]; at != mine.end; at = graph_.head[mine.link[at]]) {
          mine.amount[at] += amount;
          ++mine.pairs[at];
          load_[mine.link[at]] += amount;
        }
      }
  }

  // Keep the turns free of cycles from now on; false if some turn goes backward in the order.
  bool keep_order(Ints order) {
    std::vector<Int> rank(order.size());
    for (std::size_t place = 0; place < order.size(); ++place) rank[order[place]] = static_cast<Int>(place);
    turns_ = std::make_unique<CountedTurns>(graph_, std::move(rank));
    const Ints ranks = turns_->order.rank();
    bool is_forward = true;
    for (Int to = 0; to < terminals(); ++to) {
      const Row mine = row(to);
      for (Int node = 0; node < nodes(); ++node) {
        if (mine.pairs[node] == 0 || graph_.head[mine.link[node]] == mine.end) continue;
        const Int each = turn(mine, mine.link[node]);
        ++turns_->uses[each];
        turns_->order.present[each] = true;
        is_forward &= ranks[turns_->turns.tail[each]] < ranks[turns_->turns.head[each]];
      }
    }
    return is_forward;
  }

  // Let nodes take the cheapest links to some terminals if that lowers the potential.
  void respond(Ints terminals, Ints nodes, Floats scale, double steepness) {
    ExponentialPrice price(scale, steepness, load_);
    for (const Int to : terminals)
      for (const Int node : nodes) {
        const Row mine = row(to);
        if (node != mine.end && mine.pairs[node] > 0) respond(mine, node, price);
      }
  }

  Ints table() const { return link_; }
  Floats load() const { return load_; }
  Int terminals() const { return std::ssize(terminals_); }
  Int nodes() const { return graph_.nodes(); }
  Int links() const { return graph_.links(); }

 private:
  // All turns of a graph, how many entries make each, and an order in which these go forward.
  struct CountedTurns {
    CountedTurns(const Graph& graph, std::vector<Int> rank)
        : turns(all_turns(graph)), order(turns, std::move(rank)),
          slot(graph.links()), uses(turns.links()) {
      for (Int node = 0; node < graph.nodes(); ++node)
        for (Int place = 0; const Int link : graph.out[node]) slot[link] = place++;
    }

    Graph turns;
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

  Row row(Int terminal) {
    const Int low = terminal * nodes();
    const auto part = [&](auto& values) { return std::span(values).subspan(low, nodes()); };
    return {terminals_[terminal], part(link_), part(amount_), part(pairs_)};
  }

  // The turn from a link to that by which its head sends on.
  Int turn(const Row& row, Int link) const {
    return turns_->turns.out.first[link] + turns_->slot[row.link[graph_.head[link]]];
  }

  // Give a node the cheapest link that closes no cycle.
  void respond(const Row& row, Int node, ExponentialPrice& price) {
    const Ints links = graph_.out[node];
    const Int before = row.link[node];
    take_off(row, node, price);
    cost_.clear();
    for (const Int link : links) cost_.push_back(cost(row, node, link, price));
    const double most = cost(row, node, before, price) * (1 - 1e-9);
    while (true) {
      const auto least = std::ranges::min_element(cost_);
      if (!(*least < most)) break;
      row.link[node] = links[least - cost_.begin()];
      *least = infinity;
      if (put_on(row, node, price)) return;
    }
    row.link[node] = before;
    put_on(row, node, price);
  }

  // The rise of the potential if a node sends by a link; infinite if that does not lead on.
  double cost(const Row& row, Int node, Int link, const ExponentialPrice& price) const {
    double total = 0.0;
    while (true) {
      total += price.join(link, row.amount[node]);
      const Int at = graph_.head[link];
      if (at == row.end) return total;
      if (at == node || row.link[at] == none) return infinity;
      link = row.link[at];
    }
  }

  // Add what passes a node to its path, or take it off.
  void shift(const Row& row, Int node, int sign, ExponentialPrice& price) {
    const double amount = sign * row.amount[node];
    const Int pairs = sign * row.pairs[node];
    for (Int at = node; at != row.end;) {
      price.add(row.link[at], amount);
      at = graph_.head[row.link[at]];
      row.amount[at] += amount;
      row.pairs[at] += pairs;
    }
  }

  // Find the turns that the entry of a node makes while its traffic is on no link behind it.
  void find_turns(const Row& row, Int node) {
    found_.clear();
    for (const Int link : graph_.in[node]) {
      const Int before = graph_.tail[link];
      if (before != row.end && row.link[before] == link && row.pairs[before] > 0)
        found_.push_back(turn(row, link));
    }
    for (Int at = node; graph_.head[row.link[at]] != row.end; at = graph_.head[row.link[at]])
      if (at == node || row.pairs[at] == 0) found_.push_back(turn(row, row.link[at]));
  }

  void take_off(const Row& row, Int node, ExponentialPrice& price) {
    shift(row, node, -1, price);
    if (!turns_) return;
    find_turns(row, node);
    drop_turns(found_.size());
  }

  // Send what passes a node by its link; change nothing, and return false, if that closes a cycle.
  bool put_on(const Row& row, Int node, ExponentialPrice& price) {
    if (turns_) {
      find_turns(row, node);
      for (std::size_t done = 0; done < found_.size(); ++done) {
        const Int each = found_[done];
        if (turns_->uses[each] == 0 && !turns_->order.fit(each)) {
          drop_turns(done);
          return false;
        }
        ++turns_->uses[each];
        turns_->order.present[each] = true;
      }
    }
    shift(row, node, 1, price);
    return true;
  }

  void drop_turns(std::size_t count) {
    for (std::size_t place = 0; place < count; ++place)
      turns_->order.present[found_[place]] = --turns_->uses[found_[place]] > 0;
  }

  const Graph& graph_;
  std::vector<Int> terminals_, link_, pairs_;
  std::vector<double> amount_, load_, cost_;
  std::unique_ptr<CountedTurns> turns_;
  std::vector<Int> found_;  // turns of an entry
};

}  // namespace alltoall

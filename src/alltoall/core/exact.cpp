#include "exact.h"

#include <algorithm>
#include <cmath>

#include "parallel.h"
#include "shortest.h"

namespace alltoall {
namespace {

constexpr double negligible_flow = 1e-10;   // share of the group's largest demand
constexpr double balance_rounding = 1e-13;  // share of what passes a node
// The first round does the work; a demand drowned by a large cycle's rounding needs another.
constexpr int repair_rounds = 4;
constexpr Int block_groups = 8;  // groups that share the memory of one repair

Int largest_degree(const Adjacency& at) {
  std::size_t most = 0;
  for (Int node = 0; node < at.nodes(); ++node) most = std::max(most, at.at(node).size());
  return static_cast<Int>(most);
}

// Makes the flows of single groups exact, one after the other.
class Repair {
 public:
  Repair(const Graph& graph, Floats lengths)
      : graph_(graph), lengths_(lengths), search_(graph.out, graph.head), cycles_(graph),
        parent_(graph.nodes(), none), largest_first_(largest_degree(graph.in)),
        distance_(graph.nodes()), lacking_(graph.nodes()), gross_(graph.nodes()) {}

  void run(Int root, Floats wanted, std::span<double> flow) {
    search_.run(lengths_, root, distance_, parent_);
    drop_noise(flow, negligible_flow * std::ranges::max(wanted));
    for (int round = 0; round < repair_rounds; ++round) {
      const bool unbalanced = fill_deficits(flow, wanted);
      if (round > 0 && !unbalanced) break;
      trim_surplus(flow, wanted, cycles_.cancel(flow, root), root);
    }
  }

 private:
  void drop_noise(std::span<double> flow, double threshold) const {
    for (Int link = 0; link < graph_.links(); ++link)
      if (!(flow[link] > threshold) || distance_[graph_.tail[link]] == infinity) flow[link] = 0.0;
  }

  // Send what each node lacks down the tree, gathered from the leaves towards the root; return
  // whether any node was out of balance by more than rounding.
  bool fill_deficits(std::span<double> flow, Floats wanted) {
    std::ranges::copy(wanted, lacking_.begin());
    std::ranges::copy(wanted, gross_.begin());
    for (Int link = 0; link < graph_.links(); ++link) {
      const Int head = graph_.head[link], tail = graph_.tail[link];
      lacking_[head] -= flow[link];
      lacking_[tail] += flow[link];
      gross_[head] += flow[link];
      gross_[tail] += flow[link];
    }
    bool unbalanced = false;
    const Ints nearest_first = search_.order();
    for (std::size_t place = nearest_first.size(); place-- > 1;) {
      const Int node = nearest_first[place];
      const double rounding = balance_rounding * gross_[node];
      unbalanced |= std::abs(lacking_[node]) > rounding;
      if (lacking_[node] > rounding) {
        flow[parent_[node]] += lacking_[node];
        lacking_[graph_.tail[parent_[node]]] += lacking_[node];
      }
    }
    return unbalanced;
  }

  // Make each node receive what it needs, sinks first; its smallest inflows are given up first.
  void trim_surplus(std::span<double> flow, Floats wanted, Ints sinks_first, Int root) {
    for (const Int node : sinks_first) {
      if (node == root) continue;
      double need = wanted[node];
      for (const Int link : graph_.out.at(node)) need += flow[link];
      const Ints links = graph_.in.at(node);
      const Int used = sort_inflows(flow, links);
      for (const Int link : Ints(largest_first_).first(used)) {
        flow[link] = std::min(flow[link], need);
        need -= flow[link];
      }
      // What rounding left uncovered is a last digit of the largest inflow.
      flow[used > 0 ? largest_first_[0] : links[0]] += need;
    }
  }

  // Sort the links that carry flow, which are few, by insertion; return their number.
  Int sort_inflows(Floats flow, Ints links) {
    Int used = 0;
    for (const Int link : links) {
      if (!(flow[link] > 0.0)) continue;
      Int place = used++;
      for (; place > 0 && flow[largest_first_[place - 1]] < flow[link]; --place)
        largest_first_[place] = largest_first_[place - 1];
      largest_first_[place] = link;
    }
    return used;
  }

  const Graph& graph_;
  Floats lengths_;
  Dijkstra search_;
  CycleCanceller cycles_;
  std::vector<Int> parent_, largest_first_;
  std::vector<double> distance_, lacking_, gross_;
};

}  // namespace

CycleCanceller::CycleCanceller(const Graph& graph)
    : graph_(graph), state_(graph.nodes()), finished_(graph.nodes()), place_(graph.nodes()),
      cursor_(graph.nodes()), path_node_(graph.nodes() + 1), path_link_(graph.nodes() + 1) {}

Ints CycleCanceller::cancel(std::span<double> flow, Int start) {
  const Adjacency out = graph_.out;
  std::ranges::fill(state_, State::unseen);
  std::copy_n(out.first.begin(), graph_.nodes(), cursor_.begin());
  std::size_t count = 0;
  Int depth = 0;
  path_node_[0] = start;
  place_[start] = 0;
  state_[start] = State::on_path;
  while (depth >= 0) {
    const Int node = path_node_[depth];
    if (cursor_[node] == out.first[node + 1]) {
      state_[node] = State::finished;
      finished_[count++] = node;
      if (--depth >= 0) ++cursor_[path_node_[depth]];
      continue;
    }
    const Int link = out.link[cursor_[node]];
    const Int target = graph_.head[link];
    if (flow[link] <= 0.0 || state_[target] == State::finished) {
      ++cursor_[node];
    } else if (state_[target] == State::unseen) {
      path_link_[depth++] = link;
      path_node_[depth] = target;
      state_[target] = State::on_path;
      place_[target] = depth;
    } else {
      path_link_[depth] = link;
      depth = cancel_one(flow, place_[target], depth);
    }
  }
  // Flow that no path from the start reaches is a circulation of its own.
  for (Int node = 0; node < graph_.nodes(); ++node)
    if (state_[node] != State::finished)
      for (const Int link : out.at(node)) flow[link] = 0.0;
  return {finished_.data(), count};
}

// Cancel the cycle path_link[bottom..top]; return the depth at which the path is broken.
Int CycleCanceller::cancel_one(std::span<double> flow, Int bottom, Int top) {
  double smallest = flow[path_link_[bottom]];
  for (Int depth = bottom + 1; depth <= top; ++depth)
    smallest = std::min(smallest, flow[path_link_[depth]]);
  Int broken = none;
  for (Int depth = bottom; depth <= top; ++depth) {
    flow[path_link_[depth]] -= smallest;
    if (broken == none && flow[path_link_[depth]] <= 0.0) broken = depth;
  }
  for (Int depth = broken + 1; depth <= top; ++depth) state_[path_node_[depth]] = State::unseen;
  return broken;
}

void make_exact(const Graph& graph, Floats lengths, Ints start, Matrix<const double> wanted,
                Matrix<double> flows, int threads) {
  const Int groups = flows.rows();
  in_parallel((groups + block_groups - 1) / block_groups, threads, [&](Int block) {
    Repair repair(graph, lengths);
    for (Int group = block * block_groups; group < std::min((block + 1) * block_groups, groups); ++group)
      repair.run(start[group], wanted[group], flows[group]);
  });
}

}  // namespace alltoall

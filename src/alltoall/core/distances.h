// What a wiring costs: sums of distances by sets of nodes as bits, and the norm of link loads.
//
// The ball of radius k around v is the set of nodes that v reaches in k hops. One more hop is the
// union of the balls of its successors, so a level costs links x nodes / 64 operations whatever is
// reached. A pair outside the ball of radius k is farther than k: the sum of distances is the sum,
// over all k, of the pairs that are outside.
#pragma once

#include "parallel.h"

namespace alltoall {

using Word = std::uint64_t;

// The cost of a pair without a path, for each node: more than any distance that a search accepts.
inline constexpr double unreached = 1000.0;

// The successors of every node, and the balls of radius 1, kept up to date.
class Successors {
 public:
  // An unused port leads to its own node. Behind all rows is a row for the ways back that one-way
  // links do not have.
  Successors(Int nodes, Int ports)
      : nodes(nodes), ports(ports), words((nodes + 63) / 64), out((nodes + 1) * ports),
        near(nodes * words) {
    for (Int node = 0; node < nodes; ++node) {
      std::fill_n(out.begin() + node * ports, ports, static_cast<std::int32_t>(node));
      set_near(node);
    }
  }

  void set(Int place, Int head) {
    out[place] = static_cast<std::int32_t>(head);
    set_near(place / ports);
  }

  bool has_link(Int tail, Int head) const {
    const auto row = out.begin() + tail * ports;
    return std::find(row, row + ports, head) != row + ports;
  }

  Int nodes, ports, words;
  std::vector<std::int32_t> out;
  std::vector<Word> near;
  Int near_pairs = 0;  // How many nodes the balls have together.

 private:
  void set_near(Int node) {
    if (node == nodes) return;
    Word* const row = near.data() + node * words;
    for (Int word = 0; word < words; ++word) near_pairs -= std::popcount(row[word]);
    std::fill_n(row, words, 0);
    add(row, node);
    for (Int port = 0; port < ports; ++port) add(row, out[node * ports + port]);
    for (Int word = 0; word < words; ++word) near_pairs += std::popcount(row[word]);
  }

  static void add(Word* set, Int node) { set[node >> 6] |= Word{1} << (node & 63); }
};

// Grow all balls by one hop; return how many nodes all have together. The number of words is known
// to the compiler where it is small, and `any` means that it is not.
inline constexpr int any = 0;

template <int known_words>
[[gnu::always_inline]] inline Int grow(const Successors& wires, const Word* now, Word* then) {
  const Int words = known_words == any ? wires.words : known_words;
  Int count = 0;
  for (Int node = 0; node < wires.nodes; ++node) {
    Word* const row = then + node * words;
    std::copy_n(now + node * words, words, row);
    const std::int32_t* const successors = wires.out.data() + node * wires.ports;
    for (Int port = 0; port < wires.ports; ++port) {
      const Word* const other = now + successors[port] * words;
      for (Int word = 0; word < words; ++word) row[word] |= other[word];
    }
    for (Int word = 0; word < words; ++word) count += std::popcount(row[word]);
  }
  return count;
}

ALLTOALL_VERSIONS inline Int grow_balls(const Successors& wires, const Word* now, Word* then) {
  switch (wires.words) {
    case 1: return grow<1>(wires, now, then);
    case 2: return grow<2>(wires, now, then);
    case 3: return grow<3>(wires, now, then);
    case 4: return grow<4>(wires, now, then);
    default: return grow<any>(wires, now, then);
  }
}

// Sums over all pairs, with the memory they work in. Above `limit`, any number above it will do.
class Distances {
 public:
  explicit Distances(const Successors& wires)
      : now_(wires.nodes * wires.words), then_(now_.size()), queue_(wires.nodes + 1), depth_(wires.nodes),
        paths_(wires.nodes), behind_(wires.nodes), load_(wires.nodes * wires.ports) {}

  // A pair at distance k costs the sum of the first k weights, the last of which goes on.
  double sum(const Successors& wires, Floats weight, double limit) {
    const Int every = wires.nodes * wires.nodes;
    const Word* now = wires.near.data();
    Int missing = every - wires.nodes;
    double cost = weight[0] * static_cast<double>(missing);
    Int fewer = every - wires.near_pairs;
    for (std::size_t level = 1; fewer > 0 && cost <= limit; ++level) {
      if (fewer == missing) return cost + cut_off(wires, missing);
      missing = fewer;
      cost += weight[std::min(level, weight.size() - 1)] * static_cast<double>(missing);
      if (cost > limit) break;
      fewer = every - grow_balls(wires, now, then_.data());
      now_.swap(then_);
      now = now_.data();
    }
    return cost;
  }

  // Each pair costs its distance times its demand.
  double sum(const Successors& wires, Matrix<const double> demand, double limit) {
    double cost = 0.0;
    Int left = wires.nodes * wires.nodes - wires.nodes;
    for (Int node = 0; node < wires.nodes; ++node) {
      std::fill_n(now_.begin() + node * wires.words, wires.words, 0);
      now_[node * wires.words + (node >> 6)] |= Word{1} << (node & 63);
    }
    for (double depth = 1.0; left > 0; ++depth) {
      const Int before = left;
      if (depth == 1.0)
        std::copy_n(wires.near.begin(), then_.size(), then_.begin());
      else
        grow_balls(wires, now_.data(), then_.data());
      for (std::size_t at = 0; at < then_.size(); ++at)
        for (Word fresh = then_[at] & ~now_[at]; fresh; fresh &= fresh - 1, --left) {
          const Int node = static_cast<Int>(at) / wires.words, word = static_cast<Int>(at) % wires.words;
          cost += depth * demand.at(node, word * 64 + std::countr_zero(fresh));
        }
      now_.swap(then_);
      if (cost > limit) return cost;
      if (left == before) return cost + cut_off(wires, left);
    }
    return cost;
  }

  // The mean sum over all failures of one link, or of one cable if links go both ways.
  double mean_after_failure(Successors& wires, bool both, Floats weight) {
    double total = 0.0, failures = 0.0;
    for (Int node = 0; node < wires.nodes; ++node)
      for (Int place = node * wires.ports; place < (node + 1) * wires.ports; ++place) {
        const Int other = wires.out[place];
        if (other == node || (both && other < node)) continue;
        Int back = wires.nodes * wires.ports;
        if (both) back = std::find(&wires.out[other * wires.ports], &wires.out[back], node) - wires.out.data();
        wires.set(place, node);
        wires.set(back, other);
        total += sum(wires, weight, infinity);
        wires.set(place, other);
        wires.set(back, node);
        ++failures;
      }
    return failures > 0 ? total / failures : 0.0;
  }

  // The Euclidean norm of the link loads when all shortest paths of a pair share its traffic,
  // scaled so that equal loads give their sum, which is the sum of distances. Higher norms see
  // only the fullest links, which a solver relieves by longer paths, and lead to slower networks.
  double load_norm(const Successors& wires) {
    std::ranges::fill(load_, 0.0);
    for (Int source = 0; source < wires.nodes; ++source) add_loads(wires, source);
    double links = 0.0, squares = 0.0;
    for (std::size_t place = 0; place < load_.size(); ++place) {
      links += wires.out[place] != static_cast<Int>(place) / wires.ports;
      squares += load_[place] * load_[place];
    }
    return std::sqrt(links * squares);
  }

 private:
  static double cut_off(const Successors& wires, Int pairs) {
    return unreached * static_cast<double>(wires.nodes) * static_cast<double>(pairs);
  }

  // Brandes, "A faster algorithm for betweenness centrality", 2001. Conditions are sums and
  // choices of values: no processor can foresee which links are on shortest paths.
  void add_loads(const Successors& wires, Int source) {
    std::ranges::fill(depth_, std::int32_t{-1});
    std::ranges::fill(paths_, 0.0);
    queue_[0] = static_cast<std::int32_t>(source);
    depth_[source] = 0;
    paths_[source] = 1.0;
    Int end = 1;
    for (Int at = 0; at < end; ++at) {
      const Int node = queue_[at];
      const std::int32_t deeper = depth_[node] + 1;
      for (Int port = 0; port < wires.ports; ++port) {
        const std::int32_t other = wires.out[node * wires.ports + port];
        const bool fresh = depth_[other] < 0;
        depth_[other] = fresh ? deeper : depth_[other];
        queue_[end] = other;
        end += fresh;
        paths_[other] += depth_[other] == deeper ? paths_[node] : 0.0;
      }
    }
    // `behind_` is the traffic to a node and all behind it, for each shortest path to the node.
    while (end-- > 0) {
      const Int node = queue_[end];
      const std::int32_t deeper = depth_[node] + 1;
      double traffic = 1.0;
      for (Int place = node * wires.ports; place < (node + 1) * wires.ports; ++place) {
        const Int other = wires.out[place];
        const double share = depth_[other] == deeper ? paths_[node] * behind_[other] : 0.0;
        load_[place] += share;
        traffic += share;
      }
      behind_[node] = traffic / paths_[node];
    }
  }

  std::vector<Word> now_, then_;
  std::vector<std::int32_t> queue_, depth_;
  std::vector<double> paths_, behind_, load_;
};

}  // namespace alltoall

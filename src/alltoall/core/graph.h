// Views of arrays, the links at each node, and cycles: the vocabulary of all kernels.
#pragma once

// These standard headers come with it.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace alltoall {

using Int = std::int64_t;
using Ints = std::span<const Int>;
using Floats = std::span<const double>;
using Path = std::span<const std::int32_t>;

inline constexpr Int none = -1;
inline constexpr double infinity = std::numeric_limits<double>::infinity();

// A matrix whose rows follow each other in memory.
template <class Number>
class Matrix {
 public:
  Matrix(Number* data, Int rows, Int columns) : data_(data), rows_(rows), columns_(columns) {}

  Int rows() const { return rows_; }
  Int columns() const { return columns_; }

  std::span<Number> operator[](Int row) const {
    return {data_ + row * columns_, static_cast<std::size_t>(columns_)};
  }

  Number& at(Int row, Int column) const { return data_[row * columns_ + column]; }
  std::span<Number> all() const { return {data_, static_cast<std::size_t>(rows_ * columns_)}; }
  Matrix part(Int low, Int high) const { return {data_ + low * columns_, high - low, columns_}; }

 private:
  Number* data_;
  Int rows_;
  Int columns_;
};

// Rows of numbers: those of row i are item[first[i]] to item[first[i + 1] - 1].
template <class Numbers>
struct RowsOf {
  Numbers first, item;

  Int count() const { return std::ssize(first) - 1; }
  Ints operator[](Int row) const { return Ints(item).subspan(first[row], first[row + 1] - first[row]); }
};
using Rows = RowsOf<std::vector<Int>>;
using RowsView = RowsOf<Ints>;

inline std::vector<Int> count_up(Int count) {
  std::vector<Int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), Int{0});
  return numbers;
}

// Return the places of each key, in order.
inline Rows by_key(Int keys, Ints key) {
  Rows rows{std::vector<Int>(keys + 1), std::vector<Int>(key.size())};
  for (const Int each : key) ++rows.first[each + 1];
  std::partial_sum(rows.first.begin(), rows.first.end(), rows.first.begin());
  std::vector<Int> next(rows.first.begin(), rows.first.end() - 1);
  for (std::size_t place = 0; place < key.size(); ++place)
    rows.item[next[key[place]]++] = static_cast<Int>(place);
  return rows;
}

// A directed graph; the link index is the key of all arrays over links.
struct Graph {
  Graph(Int nodes, std::vector<Int> tails, std::vector<Int> heads)
      : tail(std::move(tails)), head(std::move(heads)), out(by_key(nodes, tail)), in(by_key(nodes, head)) {}

  Int nodes() const { return out.count(); }
  Int links() const { return std::ssize(tail); }

  std::vector<Int> tail, head;
  Rows out, in;  // the links at each node
};

// Depth-first search for cycles of links that are in use; it keeps its memory.
class CycleSearch {
 public:
  explicit CycleSearch(const Graph& graph)
      : graph_(graph), state_(graph.nodes()), finished_(graph.nodes()), place_(graph.nodes()),
        cursor_(graph.nodes()), path_node_(graph.nodes() + 1), path_link_(graph.nodes() + 1) {}

  // Forget all that was searched.
  void restart() {
    std::ranges::fill(state_, State::unseen);
    std::copy_n(graph_.out.first.begin(), graph_.nodes(), cursor_.begin());
    depth_ = none;
    count_ = 0;
  }

  // Search from a node, or go on where the last search stopped; return false after `most` cycles.
  // `break_cycle` gets the links of the path so far and where on it the cycle begins. It takes links
  // out of use, and returns the place of the first of them: there the path ends.
  template <class IsUsed, class BreakCycle>
  bool run(Int start, Int& most, const IsUsed& is_used, const BreakCycle& break_cycle) {
    Int depth = depth_;
    if (depth == none && state_[start] == State::unseen) enter(start, ++depth);
    while (depth >= 0) {
      const Int node = path_node_[depth];
      if (cursor_[node] == graph_.out.first[node + 1]) {
        state_[node] = State::finished;
        finished_[count_++] = node;
        if (--depth >= 0) ++cursor_[path_node_[depth]];
        continue;
      }
      const Int link = graph_.out.item[cursor_[node]], target = graph_.head[link];
      if (!is_used(link) || state_[target] == State::finished) {
        ++cursor_[node];
        continue;
      }
      path_link_[depth] = link;
      if (state_[target] == State::unseen) {
        enter(target, ++depth);
        continue;
      }
      const Int broken = break_cycle(Ints(path_link_).first(depth + 1), place_[target]);
      for (; depth > broken; --depth) state_[path_node_[depth]] = State::unseen;
      if (--most == 0) break;
    }
    depth_ = depth;
    return depth < 0;
  }

  bool is_finished(Int node) const { return state_[node] == State::finished; }

  // All nodes that are finished, each after those that it leads to.
  Ints sinks_first() const { return Ints(finished_).first(count_); }

 private:
  enum class State : char { unseen, on_path, finished };

  void enter(Int node, Int depth) {
    path_node_[depth] = node;
    place_[node] = depth;
    state_[node] = State::on_path;
  }

  const Graph& graph_;
  std::vector<State> state_;
  std::vector<Int> finished_, place_, cursor_, path_node_, path_link_;
  Int depth_ = none, count_ = 0;
};

}  // namespace alltoall

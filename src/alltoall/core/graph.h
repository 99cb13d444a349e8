// Views of arrays, and the links at each node: the vocabulary of all kernels.
#pragma once

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

  Int count() const { return static_cast<Int>(first.size()) - 1; }
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
  Int links() const { return static_cast<Int>(tail.size()); }

  std::vector<Int> tail, head;
  Rows out, in;  // the links at each node
};

}  // namespace alltoall

// Views of arrays, and the links at each node: the vocabulary of all kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

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
  Matrix part(Int low, Int high) const { return {data_ + low * columns_, high - low, columns_}; }

 private:
  Number* data_;
  Int rows_;
  Int columns_;
};

// The links at each node: those of node v are link[first[v]] to link[first[v + 1] - 1].
struct Adjacency {
  Ints first;
  Ints link;

  Int nodes() const { return static_cast<Int>(first.size()) - 1; }
  Ints at(Int node) const { return link.subspan(first[node], first[node + 1] - first[node]); }
};

// A directed graph; the link index is the key of all arrays over links.
struct Graph {
  Adjacency out;
  Ints tail;
  Ints head;
  Adjacency in = {};

  Int nodes() const { return out.nodes(); }
  Int links() const { return static_cast<Int>(tail.size()); }
};

}  // namespace alltoall

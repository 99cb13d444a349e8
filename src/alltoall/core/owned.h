// Arrays that kernels return, and checks that several wrappers share.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>

#include "graph_arrays.h"

namespace alltoall::border {

// Hand a vector over to numpy, without a copy.
template <class Number>
nb::ndarray<nb::numpy, Number> to_numpy(std::vector<Number> values,
                                        std::initializer_list<std::size_t> shape = {}) {
  auto owned = std::make_unique<std::vector<Number>>(std::move(values));
  Number* data = owned->data();
  const std::size_t size = owned->size();
  nb::capsule owner(owned.release(),
                    [](void* vector) noexcept { delete static_cast<std::vector<Number>*>(vector); });
  if (shape.size() == 0) return {data, {size}, owner};
  return {data, shape, owner};
}

template <class Table>
void require_shape(const Table& table, std::size_t rows, Int columns, const char* name) {
  require(table.shape(0) == rows && table.shape(1) == static_cast<std::size_t>(columns), name,
          "shape [" + std::to_string(rows) + ", " + std::to_string(columns) + "]");
}

// A length per link, none of them negative: shortest paths would never settle.
inline void require_lengths(const GraphArrays& graph, Floats lengths) {
  require_size(lengths, graph.links(), "lengths");
  require(std::ranges::all_of(lengths, [](double length) { return length >= 0.0; }), "lengths",
          "numbers of at least 0");
}

}  // namespace alltoall::border

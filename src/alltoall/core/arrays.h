// The border between numpy and the kernels: every array is checked here, once per call.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph.h"

namespace alltoall::border {

namespace nb = nanobind;

template <class Number, int dimensions>
using Array = nb::ndarray<Number, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using IntArray = Array<const Int, 1>;
using FloatArray = Array<const double, 1>;

template <class Number>
std::span<Number> view(const Array<Number, 1>& array) {
  return {array.data(), array.shape(0)};
}

template <class Number>
Matrix<Number> view(const Array<Number, 2>& array) {
  return {array.data(), static_cast<Int>(array.shape(0)), static_cast<Int>(array.shape(1))};
}

// Raise ValueError in Python unless a statement about an argument holds.
inline void require(bool holds, const char* name, const std::string& expected) {
  if (!holds) throw std::invalid_argument(std::string(name) + ": expected " + expected);
}

template <class Numbers>
void require_size(const Numbers& values, std::size_t size, const char* name) {
  require(values.size() == size, name,
          std::to_string(size) + " entries, found " + std::to_string(values.size()));
}

// Every value is an index from `low` to `high` - 1.
template <class Numbers>
void require_range(const Numbers& values, Int low, Int high, const char* name) {
  if (values.empty()) return;
  const auto [least, most] = std::ranges::minmax(values);
  require(least >= low && most < high, name,
          "values from " + std::to_string(low) + " to " + std::to_string(high - 1) + ", found " +
              std::to_string(least) + " to " + std::to_string(most));
}

// Bounds of consecutive parts of `count` entries.
inline void require_bounds(Ints bounds, Int count, const char* name) {
  require(!bounds.empty() && bounds.front() == 0 && bounds.back() == count &&
              std::ranges::is_sorted(bounds),
          name, "increasing bounds from 0 to " + std::to_string(count));
}

inline std::vector<Int> copy(Ints values) { return {values.begin(), values.end()}; }
inline std::vector<double> copy(Floats values) { return {values.begin(), values.end()}; }

template <class Work>
auto unlocked(const Work& work) {
  const nb::gil_scoped_release release;
  return work();
}

}  // namespace alltoall::border

// The border between numpy and the kernels: every array is checked here, once per call.
//
// A checked view takes the name of the argument and what is expected of it; what does not hold is a
// ValueError in Python. Arrays that a kernel fills are exported with `.noconvert()`, or nanobind
// would fill a silent copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>

#include "graph.h"

namespace alltoall::border {

namespace nb = nanobind;
using namespace nanobind::literals;

template <class Number, int dimensions>
using Array = nb::ndarray<Number, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using IntArray = Array<const Int, 1>;
using IntTable = Array<const Int, 2>;
using FloatArray = Array<const double, 1>;
using FloatTable = Array<const double, 2>;
using FilledInts = Array<Int, 1>;
using FilledFloats = Array<double, 1>;
using FilledTable = Array<double, 2>;

constexpr Int most_ints = std::numeric_limits<std::int32_t>::max();

inline void require(bool holds, const char* name, const std::string& expected) {
  if (!holds) throw std::invalid_argument(std::string(name) + ": expected " + expected);
}

template <class Number, class... Shape>
std::span<Number> all(const nb::ndarray<Number, Shape...>& array) {
  return {array.data(), array.size()};
}

template <class Number>
std::span<Number> sized(const Array<Number, 1>& values, Int size, const char* name) {
  require(std::ssize(values) == size, name,
          std::to_string(size) + " entries, found " + std::to_string(values.size()));
  return all(values);
}

template <class Number>
Matrix<Number> sized(const Array<Number, 2>& table, Int rows, Int columns, const char* name) {
  require(static_cast<Int>(table.shape(0)) == rows && static_cast<Int>(table.shape(1)) == columns, name,
          "shape [" + std::to_string(rows) + ", " + std::to_string(columns) + "]");
  return {table.data(), rows, columns};
}

// Numbers from `low` to `high` - 1.
template <class Numbers>
Numbers ranged(Numbers values, Int low, Int high, const char* name) {
  if (values.empty()) return values;
  const auto [least, most] = std::ranges::minmax(values);
  require(least >= low && most < high, name,
          "values from " + std::to_string(low) + " to " + std::to_string(high - 1) + ", found " +
              std::to_string(least) + " to " + std::to_string(most));
  return values;
}

inline Int ranged(Int value, Int low, Int high, const char* name) {
  return ranged(Ints(&value, 1), low, high, name)[0];
}

inline Ints indices(const IntArray& values, Int count, const char* name) {
  return ranged(all(values), 0, count, name);
}

inline Ints indices(const IntArray& values, Int size, Int count, const char* name) {
  return ranged(sized(values, size, name), 0, count, name);
}

// Bounds of consecutive parts of `count` entries.
inline Ints bounds(const IntArray& values, Int count, const char* name) {
  const Ints bounds = all(values);
  require(!bounds.empty() && bounds.front() == 0 && bounds.back() == count && std::ranges::is_sorted(bounds),
          name, "increasing bounds from 0 to " + std::to_string(count));
  return bounds;
}

// Rows of indices of `count` things.
inline RowsView rows(const IntArray& first, const IntArray& item, Int count, const char* first_name,
                     const char* item_name) {
  return {bounds(first, std::ssize(item), first_name), indices(item, count, item_name)};
}

inline void require_no_empty_row(RowsView rows, const char* name, const char* expected) {
  require(std::ranges::adjacent_find(rows.first) == rows.first.end(), name, expected);
}

// Numbers that are all of a kind, none of them NaN.
template <class Numbers, class Holds>
Numbers each(Numbers values, const Holds& holds, const char* name, const char* expected) {
  if constexpr (requires { values.rows(); })
    require(std::ranges::all_of(values.all(), holds), name, expected);
  else
    require(std::ranges::all_of(values, holds), name, expected);
  return values;
}

template <class Numbers>
Numbers finite(Numbers values, const char* name) {
  return each(values, [](double value) { return std::isfinite(value); }, name, "finite numbers");
}

template <class Numbers>
Numbers amounts(Numbers values, const char* name) {
  return each(values, [](double value) { return value >= 0.0 && value < infinity; }, name,
              "finite numbers of at least 0");
}

template <class Numbers>
Numbers positive(Numbers values, const char* name) {
  return each(values, [](double value) { return value > 0.0 && value < infinity; }, name, "finite numbers above 0");
}

// Lengths may be infinite, but never negative: shortest paths would not settle.
inline Floats lengths(Floats values, const char* name) {
  return each(values, [](double value) { return value >= 0.0; }, name, "numbers of at least 0");
}

inline Floats lengths(const Graph& graph, const FloatArray& values, const char* name = "lengths") {
  return lengths(sized(values, graph.links(), name), name);
}

inline double amount(double value, const char* name) { return amounts(Floats(&value, 1), name)[0]; }

template <class Number>
std::vector<std::remove_const_t<Number>> copy(std::span<Number> values) {
  return {values.begin(), values.end()};
}

inline Rows copy(RowsView rows) { return {copy(rows.first), copy(rows.item)}; }

// Hand a vector over to numpy, without a copy.
template <class Number>
nb::ndarray<nb::numpy, Number> to_numpy(std::vector<Number> values, std::initializer_list<Int> shape = {}) {
  auto owned = std::make_unique<std::vector<Number>>(std::move(values));
  Number* const data = owned->data();
  std::vector<std::size_t> sizes(shape.begin(), shape.end());
  if (sizes.empty()) sizes.push_back(owned->size());
  const nb::capsule owner(owned.release(),
                          [](void* vector) noexcept { delete static_cast<std::vector<Number>*>(vector); });
  return {data, sizes.size(), sizes.data(), owner};
}

// A property that is a copy of what a kernel holds.
template <class Kernel, class Number>
auto copied(std::span<Number> (Kernel::*get)() const) {
  return [get](const Kernel& self) { return nb::cast(to_numpy(copy((self.*get)())), nb::rv_policy::move); };
}

// Run a kernel without the GIL.
template <class Work>
auto unlocked(const Work& work) {
  const nb::gil_scoped_release release;
  return work();
}

}  // namespace alltoall::border

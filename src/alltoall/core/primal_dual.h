// Primal-dual steps over the flows of all groups (r2HPDHG, see flows/first_order.py).
//
// Groups stand in blocks of `width` lanes, so that the flows of many groups on one link are
// neighbours: nothing is gathered from single nodes, and vector units are always full. Lanes that
// no group fills carry nothing.
#pragma once

#include <vector>

#include "graph.h"

namespace alltoall {

// Classes of links in the order of their budgets: those of budget b are first[b] to first[b + 1] - 1.
struct PriceClasses {
  std::vector<Int> of_link, first;
  std::vector<double> size, capacity;

  Int count() const { return static_cast<Int>(size.size()); }
};

// The groups: their sources, the demand of each node [groups, nodes], and shares in the loads.
struct StepGroups {
  Ints source;
  Matrix<const double> wanted;
  Floats share;
};

class PrimalDual {
 public:
  PrimalDual(const Graph& graph, PriceClasses classes, const StepGroups& groups,
             Matrix<const double> flow, Matrix<const double> potential, Floats price);

  Int groups() const { return groups_; }
  Int links() const { return static_cast<Int>(tail_.size()); }
  Int nodes() const { return nodes_; }
  Int classes() const { return classes_.count(); }
  Floats prices() const { return price_; }

  // Set the step sizes: of flows per link, of potentials per node, of prices per class.
  void set_steps(Floats flow, Floats potential, Floats price);

  // Make the present iterate the anchor.
  void restart();

  // Step all flows and potentials: z becomes keep * (2 T(z) - z) + (1 - keep) * anchor. Fill the
  // loads of the reflected flows by link and, last, the squared length of the step.
  void step_flows(double keep, std::span<double> load, int threads);

  // Step the prices towards loaded classes, within their budgets; return the squared length.
  double step_prices(Floats load, double keep);

  // Write the flows [groups, links] or the potentials [groups, nodes].
  void write_flows(Matrix<double> rows) const { to_rows(flow_, rows); }
  void write_potentials(Matrix<double> rows) const { to_rows(potential_, rows); }

 private:
  template <Int width>
  void step_part(Int part, double keep, std::span<double> load, double& moved);
  void step_part_4(Int part, double keep, std::span<double> load, double& moved);
  void step_part_8(Int part, double keep, std::span<double> load, double& moved);
  void step_part_16(Int part, double keep, std::span<double> load, double& moved);
  void step_part_32(Int part, double keep, std::span<double> load, double& moved);

  std::vector<double> to_lanes(Matrix<const double> rows) const;
  void to_rows(const std::vector<double>& lanes, Matrix<double> rows) const;

  Int nodes_, groups_, width_, blocks_;
  std::vector<std::int32_t> tail_, head_;
  PriceClasses classes_;
  std::vector<Int> root_;                                     // [blocks, width]
  std::vector<double> share_;                                 // [blocks, width]
  std::vector<double> wanted_, potential_, potential_anchor_;  // [blocks, nodes, width]
  std::vector<double> flow_, flow_anchor_;                    // [blocks, links, width]
  std::vector<double> price_, price_anchor_;                  // [classes]
  std::vector<double> flow_step_, inverse_step_, potential_step_, price_step_, length_;
};

}  // namespace alltoall

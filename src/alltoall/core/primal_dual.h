// Primal-dual steps over the flows of all groups (r2HPDHG, see flows/first_order.py).
//
// Groups stand in blocks of `width` lanes, so that the flows of many groups on one link are
// neighbours: nothing is gathered from single nodes, and vector units are always full. Lanes that
// no group fills carry nothing.
#pragma once

#include "sweeps.h"

namespace alltoall {

inline constexpr Int parts = 16;  // a constant, so that sums do not depend on the number of threads

// From 4 to 32 lanes, as many as the groups fill.
inline Int lanes_for(Int groups) {
  return std::clamp<Int>(static_cast<Int>(std::bit_ceil(static_cast<std::uint64_t>(groups))), 4, 32);
}

// Sum up lanes in a fixed order that vectors of any length follow.
template <Int width>
[[gnu::always_inline]] inline double sum_lanes(std::array<double, width>& lanes) {
  for (Int half = width / 2; half > 0; half /= 2)
    for (Int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

// Classes of links in the order of their budgets: those of budget b are first[b] to first[b + 1] - 1.
struct PriceClasses {
  std::vector<Int> of_link, first;
  std::vector<double> size, capacity;

  Int count() const { return std::ssize(size); }
};

class PrimalDual {
 public:
  PrimalDual(const Graph& graph, PriceClasses classes, const Commodities& groups, Matrix<const double> flow,
             Matrix<const double> potential, Floats price)
      : nodes_(graph.nodes()), groups_(std::ssize(groups.source)),
        width_(lanes_for(groups_)), blocks_((groups_ + width_ - 1) / width_),
        tail_(graph.tail.begin(), graph.tail.end()), head_(graph.head.begin(), graph.head.end()),
        classes_(std::move(classes)), root_(blocks_ * width_, 0), share_(blocks_ * width_, 0.0),
        wanted_(to_lanes(groups.wanted)), potential_(to_lanes(potential)), potential_anchor_(potential_),
        flow_(to_lanes(flow)), flow_anchor_(flow_), price_(price.begin(), price.end()),
        price_anchor_(price_), length_(graph.links()) {
    std::ranges::copy(groups.source, root_.begin());
    std::ranges::copy(groups.weight, share_.begin());
  }

  Int groups() const { return groups_; }
  Int links() const { return std::ssize(tail_); }
  Int nodes() const { return nodes_; }
  Int classes() const { return classes_.count(); }
  Floats prices() const { return price_; }
  bool has_steps() const { return !potential_step_.empty(); }

  // Set the step sizes: of flows per link, of potentials per node, of prices per class.
  void set_steps(Floats flow, Floats potential, Floats price) {
    flow_step_.assign(flow.begin(), flow.end());
    potential_step_.assign(potential.begin(), potential.end());
    price_step_.assign(price.begin(), price.end());
    inverse_step_.resize(flow.size());
    std::ranges::transform(flow, inverse_step_.begin(), [](double step) { return 1.0 / step; });
  }

  // Make the present iterate the anchor.
  void restart() {
    flow_anchor_ = flow_;
    potential_anchor_ = potential_;
    price_anchor_ = price_;
  }

  // Step all flows and potentials: z becomes keep * (2 T(z) - z) + (1 - keep) * anchor. Fill the
  // loads of the reflected flows by link and, last, the squared length of the step.
  void step_flows(double keep, std::span<double> load, int threads) {
    const Int count = links();
    for (Int link = 0; link < count; ++link) {
      const Int each = classes_.of_link[link];
      length_[link] = each < classes_.count() ? price_[each] : 0.0;
    }
    const Int used = std::min(parts, blocks_);
    std::vector<double> loads(used * count), moved(used);
    in_parallel(used, threads, [&](Int part) {
      const std::span<double> mine(loads.data() + part * count, count);
      step_part(part, keep, mine, moved[part]);
    });
    std::ranges::fill(load, 0.0);
    for (Int part = 0; part < used; ++part) {
      for (Int link = 0; link < count; ++link) load[link] += loads[part * count + link];
      load[count] += moved[part];
    }
  }

  // Step the prices towards loaded classes, within their budgets; return the squared length.
  double step_prices(Floats load, double keep) {
    const Int count = classes_.count();
    std::vector<double> raised(count), target(count), slope(count), width(count);
    for (Int link = 0; link < links(); ++link)
      if (classes_.of_link[link] < count) raised[classes_.of_link[link]] += load[link];
    for (Int each = 0; each < count; ++each) {
      target[each] = price_[each] + price_step_[each] * raised[each] / classes_.size[each];
      slope[each] = price_step_[each] * classes_.capacity[each];
      width[each] = classes_.size[each] * classes_.capacity[each];
    }
    double moved = 0.0;
    for (std::size_t budget = 0; budget + 1 < classes_.first.size(); ++budget) {
      const Int low = classes_.first[budget], high = classes_.first[budget + 1], size = high - low;
      const double level = find_level(Floats(target).subspan(low, size), Floats(slope).subspan(low, size),
                                      Floats(width).subspan(low, size));
      for (Int each = low; each < high; ++each) {
        const double next = std::max(0.0, target[each] - slope[each] * level), step = next - price_[each];
        moved += classes_.size[each] * step * step / price_step_[each];
        price_[each] = keep * (next + step) + (1.0 - keep) * price_anchor_[each];
      }
    }
    return moved;
  }

  // Write the flows [groups, links] or the potentials [groups, nodes].
  void write_flows(Matrix<double> rows) const { to_rows(flow_, rows); }
  void write_potentials(Matrix<double> rows) const { to_rows(potential_, rows); }

 private:
  // Loops over lanes are short and apart, because each then touches few arrays: arrays that might
  // overlap would keep the compiler from using vectors.
  template <Int width>
  [[gnu::always_inline]] inline void step_lanes(Int part, double keep, std::span<double> load,
                                                double& moved) {
    const Int used = std::min(parts, blocks_), count = links();
    const double a = keep, b = 1.0 - keep;
    std::vector<double> missing(nodes_ * width);
    for (Int block = blocks_ * part / used; block < blocks_ * (part + 1) / used; ++block) {
      double* __restrict potential = potential_.data() + block * nodes_ * width;
      const double* __restrict share = share_.data() + block * width;
      std::copy_n(wanted_.begin() + block * nodes_ * width, nodes_ * width, missing.begin());
      std::array<double, width> change{}, passed, weighted;
      for (Int link = 0; link < count; ++link) {
        double* __restrict flow = flow_.data() + (block * count + link) * width;
        const double* __restrict anchor = flow_anchor_.data() + (block * count + link) * width;
        const double* before = potential + tail_[link] * width;
        const double* behind = potential + head_[link] * width;
        const double step = flow_step_[link], inverse = inverse_step_[link], length = length_[link];
        for (Int lane = 0; lane < width; ++lane) {
          const double target = flow[lane] - step * (length + before[lane] - behind[lane]);
          passed[lane] = target > 0.0 ? target : 0.0;
        }
        for (Int lane = 0; lane < width; ++lane) {
          const double move = passed[lane] - flow[lane];
          change[lane] += move * move * inverse;
          passed[lane] += move;
          flow[lane] = a * passed[lane] + b * anchor[lane];
          weighted[lane] = share[lane] * passed[lane];
        }
        load[link] += sum_lanes<width>(weighted);
        double* lacking = missing.data() + head_[link] * width;
        double* giving = missing.data() + tail_[link] * width;
        for (Int lane = 0; lane < width; ++lane) lacking[lane] -= passed[lane];
        for (Int lane = 0; lane < width; ++lane) giving[lane] += passed[lane];
      }
      for (Int lane = 0; lane < width; ++lane) missing[root_[block * width + lane] * width + lane] = 0.0;
      const double* __restrict anchor = potential_anchor_.data() + block * nodes_ * width;
      for (Int node = 0; node < nodes_; ++node) {
        const double step = potential_step_[node];
        double* __restrict here = potential + node * width;
        const double* __restrict there = anchor + node * width;
        const double* __restrict lacking = missing.data() + node * width;
        for (Int lane = 0; lane < width; ++lane) {
          change[lane] += step * lacking[lane] * lacking[lane];
          here[lane] = a * (here[lane] + 2.0 * step * lacking[lane]) + b * there[lane];
        }
      }
      for (Int lane = 0; lane < width; ++lane) change[lane] *= share[lane];
      moved += sum_lanes<width>(change);
    }
  }

  ALLTOALL_VERSIONS void step_part(Int part, double keep, std::span<double> load, double& moved) {
    switch (width_) {
      case 4: return step_lanes<4>(part, keep, load, moved);
      case 8: return step_lanes<8>(part, keep, load, moved);
      case 16: return step_lanes<16>(part, keep, load, moved);
      default: return step_lanes<32>(part, keep, load, moved);
    }
  }

  std::vector<double> to_lanes(Matrix<const double> rows) const {
    std::vector<double> lanes(blocks_ * rows.columns() * width_, 0.0);
    for (Int group = 0; group < rows.rows(); ++group)
      for (Int column = 0; column < rows.columns(); ++column)
        lanes[((group / width_) * rows.columns() + column) * width_ + group % width_] = rows.at(group, column);
    return lanes;
  }

  void to_rows(const std::vector<double>& lanes, Matrix<double> rows) const {
    for (Int group = 0; group < rows.rows(); ++group)
      for (Int column = 0; column < rows.columns(); ++column)
        rows.at(group, column) = lanes[((group / width_) * rows.columns() + column) * width_ + group % width_];
  }

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

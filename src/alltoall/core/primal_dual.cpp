#include "primal_dual.h"

#include <algorithm>
#include <array>

#include "parallel.h"
#include "sweeps.h"
#include "versions.h"

namespace alltoall {
namespace {

constexpr Int parts = 16;  // a constant, so that sums do not depend on the number of threads
constexpr std::array<Int, 4> widths{4, 8, 16, 32};

Int lanes_for(Int groups) {
  for (const Int width : widths)
    if (groups <= width) return width;
  return widths.back();
}

// Sum up lanes in a fixed order that vectors of any length follow.
template <Int width>
[[gnu::always_inline]] inline double sum_lanes(std::array<double, width>& lanes) {
  for (Int half = width / 2; half > 0; half /= 2)
    for (Int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

}  // namespace

PrimalDual::PrimalDual(const Graph& graph, PriceClasses classes, const StepGroups& groups,
                       Matrix<const double> flow, Matrix<const double> potential, Floats price)
    : nodes_(graph.nodes()), groups_(static_cast<Int>(groups.source.size())),
      width_(lanes_for(groups_)), blocks_((groups_ + width_ - 1) / width_),
      tail_(graph.tail.begin(), graph.tail.end()), head_(graph.head.begin(), graph.head.end()),
      classes_(std::move(classes)), root_(blocks_ * width_, 0), share_(blocks_ * width_, 0.0),
      wanted_(to_lanes(groups.wanted)), potential_(to_lanes(potential)), potential_anchor_(potential_),
      flow_(to_lanes(flow)), flow_anchor_(flow_), price_(price.begin(), price.end()),
      price_anchor_(price_), length_(graph.links()) {
  std::ranges::copy(groups.source, root_.begin());
  std::ranges::copy(groups.share, share_.begin());
}

std::vector<double> PrimalDual::to_lanes(Matrix<const double> rows) const {
  std::vector<double> lanes(blocks_ * rows.columns() * width_, 0.0);
  for (Int group = 0; group < rows.rows(); ++group)
    for (Int column = 0; column < rows.columns(); ++column)
      lanes[((group / width_) * rows.columns() + column) * width_ + group % width_] = rows.at(group, column);
  return lanes;
}

void PrimalDual::to_rows(const std::vector<double>& lanes, Matrix<double> rows) const {
  for (Int group = 0; group < rows.rows(); ++group)
    for (Int column = 0; column < rows.columns(); ++column)
      rows.at(group, column) = lanes[((group / width_) * rows.columns() + column) * width_ + group % width_];
}

void PrimalDual::set_steps(Floats flow, Floats potential, Floats price) {
  flow_step_.assign(flow.begin(), flow.end());
  potential_step_.assign(potential.begin(), potential.end());
  price_step_.assign(price.begin(), price.end());
  inverse_step_.resize(flow.size());
  std::ranges::transform(flow, inverse_step_.begin(), [](double step) { return 1.0 / step; });
}

void PrimalDual::restart() {
  flow_anchor_ = flow_;
  potential_anchor_ = potential_;
  price_anchor_ = price_;
}

void PrimalDual::step_flows(double keep, std::span<double> load, int threads) {
  const Int count = links();
  for (Int link = 0; link < count; ++link) {
    const Int each = classes_.of_link[link];
    length_[link] = each < classes_.count() ? price_[each] : 0.0;
  }
  const Int used = std::min(parts, blocks_);
  std::vector<double> loads(used * count), moved(used);
  in_parallel(used, threads, [&](Int part) {
    const std::span<double> mine(loads.data() + part * count, count);
    switch (width_) {
      case 4: return step_part_4(part, keep, mine, moved[part]);
      case 8: return step_part_8(part, keep, mine, moved[part]);
      case 16: return step_part_16(part, keep, mine, moved[part]);
      default: return step_part_32(part, keep, mine, moved[part]);
    }
  });
  std::ranges::fill(load, 0.0);
  for (Int part = 0; part < used; ++part) {
    for (Int link = 0; link < count; ++link) load[link] += loads[part * count + link];
    load[count] += moved[part];
  }
}

// Loops over lanes are short and apart, because each then touches few arrays: arrays that might
// overlap would keep the compiler from using vectors.
template <Int width>
[[gnu::always_inline]] inline void PrimalDual::step_part(Int part, double keep, std::span<double> load,
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

ALLTOALL_VERSIONS void PrimalDual::step_part_4(Int part, double keep, std::span<double> load, double& moved) {
  step_part<4>(part, keep, load, moved);
}
ALLTOALL_VERSIONS void PrimalDual::step_part_8(Int part, double keep, std::span<double> load, double& moved) {
  step_part<8>(part, keep, load, moved);
}
ALLTOALL_VERSIONS void PrimalDual::step_part_16(Int part, double keep, std::span<double> load, double& moved) {
  step_part<16>(part, keep, load, moved);
}
ALLTOALL_VERSIONS void PrimalDual::step_part_32(Int part, double keep, std::span<double> load, double& moved) {
  step_part<32>(part, keep, load, moved);
}

double PrimalDual::step_prices(Floats load, double keep) {
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

}  // namespace alltoall

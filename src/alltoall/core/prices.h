// The price of a link for a chunk, in two forms that the placement loops use alike.
#pragma once

#include <concepts>

#include "graph.h"

namespace alltoall {

// Prices links for chunks and keeps their loads.
template <class P>
concept Price = requires(P price, const P fixed, Int link, double size) {
  { fixed.join(link, size) } -> std::same_as<double>;  // the cost of a chunk that comes
  { fixed.stay(link, size) } -> std::same_as<double>;  // the cost of a chunk that is there
  { price.add(link, size) };                           // change the load
};

// Every link costs 1: cheapest paths have the fewest hops.
class HopPrice {
 public:
  explicit HopPrice(std::span<double> load) : load_(load) {}
  double join(Int, double) const { return 1.0; }
  double stay(Int, double) const { return 1.0; }
  void add(Int link, double size) { load_[link] += size; }

 private:
  std::span<double> load_;
};

// The rise of the potential, the sum over links of exp(scale * load - steepness).
class ExponentialPrice {
 public:
  ExponentialPrice(Floats scale, double steepness, std::span<double> load)
      : scale_(scale), steepness_(steepness), load_(load), term_(load.size()) {
    for (std::size_t link = 0; link < load.size(); ++link) refresh(link);
  }
  double join(Int link, double size) const {
    return term_[link] * growth(scale_[link] * size, rising_);
  }
  double stay(Int link, double size) const {
    return -term_[link] * growth(-scale_[link] * size, falling_);
  }
  void add(Int link, double size) {
    load_[link] += size;
    refresh(link);
  }
 private:
  // Beyond this exponent a link is out of the question, and sums must not overflow.
  static constexpr double largest_exponent = 300.0;

  void refresh(Int link) {
    const double exponent = scale_[link] * load_[link] - steepness_;
    term_[link] = std::exp(std::min(exponent, largest_exponent));
  }
  struct Memory {
    double step = 0.0;
    double value = 0.0;
  };

  // exp(step) - 1, remembered because mostly all links have the same capacity.
  static double growth(double step, Memory& memory) {
    if (step != memory.step) memory = {step, std::expm1(std::min(step, largest_exponent))};
    return memory.value;
  }
  Floats scale_;
  double steepness_;
  std::span<double> load_;
  std::vector<double> term_;
  mutable Memory rising_, falling_;
};

// Negotiated congestion: 1 for a hop, more for load near the budget of a link and much more above
// it, times what the link has learnt in earlier rounds. A chunk of size s loads a link by s * share.
class BudgetPrice {
 public:
  BudgetPrice(Floats budget, Floats share, Floats history, double fill, double pressure,
              std::span<double> load)
      : budget_(budget), share_(share), history_(history), fill_(fill), pressure_(pressure),
        load_(load) {}

  double join(Int link, double size) const { return price(link, size * share_[link], load_[link]); }

  double stay(Int link, double size) const {
    const double mine = size * share_[link];
    return price(link, mine, load_[link] - mine);
  }
  void add(Int link, double size) { load_[link] += size * share_[link]; }

  bool is_over(Int link) const { return excess(link, budget_, load_) > 0.0; }

  // The load above the budget, 0 within rounding of it.
  static double excess(Int link, Floats budget, Floats load) {
    const double over = load[link] - budget[link];
    return over > rounding * std::max(1.0, budget[link]) ? over : 0.0;
  }
 private:
  static constexpr double rounding = 1e-9;
  static constexpr double least_budget = 1e-12;

  // Excess counts in chunks, and in budgets where not even one chunk fits: a link that is a million
  // times too narrow delays its step a million times.
  double price(Int link, double mine, double others) const {
    const double filled = others + mine;
    const double unit = std::max(std::min(mine, budget_[link]), least_budget * mine);
    const double over = std::max(0.0, filled - budget_[link]) / unit;
    const double full = fill_ > 0.0 ? filled / std::max(budget_[link], mine) : 0.0;
    return (1.0 + history_[link]) * (1.0 + fill_ * full + pressure_ * over);
  }
  Floats budget_, share_, history_;
  double fill_, pressure_;
  std::span<double> load_;
};

}  // namespace alltoall

// Chunks on paths: every chunk moves to a cheaper path, or off links that are over their budgets.
// Chunks that choose from listed paths do so in one of some phases.
#pragma once

#include <ranges>

#include "finders.h"
#include "parallel.h"
#include "prices.h"

namespace alltoall {

// Chunks sorted by their start: a row of ends for each source.
struct Sources {
  Ints start;
  RowsView chunks;
};

// A path per chunk, a row each: links in order, then `none`; an empty row is no path.
using PathTable = Matrix<std::int32_t>;

inline Path path_of(std::span<const std::int32_t> row) {
  std::size_t hops = 0;
  while (hops < row.size() && row[hops] != none) ++hops;
  return row.first(hops);
}

// Maps a link to the one whose load and price it shares; links from `count` on are free.
struct Pricing {
  Ints priced;  // empty if every link has its own
  Int count;

  Int of(Int link) const { return priced.empty() ? link : priced[link]; }
};

// Where chunks go: on all paths of a graph, or on those that follow an order of links.
inline TreeFinder finder_of(const Graph& graph) { return TreeFinder(graph); }
inline OrderFinder finder_of(const LinkOrder& order) { return OrderFinder(order); }
inline Pricing pricing_of(const Graph& graph) { return {{}, graph.links()}; }
inline Pricing pricing_of(const LinkOrder& order) { return {order.priced, order.priced_links}; }
inline Int ends(const Graph& graph) { return graph.nodes(); }
inline Int ends(const LinkOrder& order) { return order.ends; }
inline Int longest_path(const Graph& graph) { return graph.nodes(); }
inline Int longest_path(const LinkOrder& order) { return std::ssize(order.order); }

// Chunks, their sizes and paths, and the prices that they see.
template <Price P>
class Placing {
 public:
  Placing(Pricing pricing, Floats size, PathTable table, P& price)
      : pricing_(pricing), size_(size), table_(table), price_(price), mark_(pricing.count, none) {}

  Path path(Int chunk) const { return path_of(table_[chunk]); }
  double size(Int chunk) const { return size_[chunk]; }
  Int width() const { return table_.columns(); }
  Int priced_links() const { return pricing_.count; }

  // Fill the cost of every priced link for a chunk of a size.
  void fill_cost(double size, std::span<double> cost) const {
    for (Int link = 0; link < pricing_.count; ++link) cost[link] = price_.join(link, size);
  }

  // Bring the cost of the links of a path up to date, for a chunk on it or for others of its size.
  void update_cost(Path path, double size, bool is_on_it, std::span<double> cost) const {
    for (const Int link : path) {
      if (!is_priced(link)) continue;
      const Int each = pricing_.of(link);
      cost[each] = is_on_it ? price_.stay(each, size) : price_.join(each, size);
    }
  }

  bool is_over_budget(Int chunk) const
    requires std::same_as<P, BudgetPrice>
  {
    return std::ranges::any_of(path(chunk), [&](Int link) {
      return is_priced(link) && price_.is_over(pricing_.of(link));
    });
  }

  // Whether a new path is cheaper than that of the chunk; a tie, or a last digit, is not.
  bool is_cheaper(Int chunk, Path path) {
    const Path old = this->path(chunk);
    if (old.empty()) return true;
    if (std::ranges::equal(old, path)) return false;
    for (const Int link : old)
      if (is_priced(link)) mark_[pricing_.of(link)] = chunk;
    return cost(chunk, path) < (1 - 1e-9) * cost(chunk, old);
  }

  void move(Int chunk, Path path) {
    add(chunk, -size_[chunk]);
    const auto row = table_[chunk];
    std::fill(std::ranges::copy(path, row.begin()).out, row.end(), std::int32_t{none});
    add(chunk, size_[chunk]);
  }

  void add(Int chunk, double size) {
    for (const Int link : path(chunk))
      if (is_priced(link)) price_.add(pricing_.of(link), size);
  }

 private:
  bool is_priced(Int link) const { return pricing_.of(link) < pricing_.count; }

  // The cost of a path for a chunk whose own path is marked.
  double cost(Int chunk, Path path) const {
    double total = 0.0;
    for (const Int link : path) {
      if (!is_priced(link)) continue;
      const Int each = pricing_.of(link);
      total += mark_[each] == chunk ? price_.stay(each, size_[chunk]) : price_.join(each, size_[chunk]);
    }
    return total;
  }

  Pricing pricing_;
  Floats size_;
  PathTable table_;
  P& price_;
  std::vector<Int> mark_;
};

// Return the most hops that a chunk needs, `none` if some chunk has no path at all.
template <Finder F>
Int most_hops(F& finder, Sources sources, Int priced, Int room) {
  const std::vector<double> cost(priced + 1, 1.0);
  std::vector<std::int32_t> path(room);
  Int most = 0;
  for (std::size_t source = 0; source < sources.start.size(); ++source) {
    finder.search(sources.start[source], cost);
    for (const Int end : sources.chunks[source]) {
      if (!finder.reaches(end)) return none;
      most = std::max(most, finder.walk(end, path));
    }
  }
  return most;
}

// Let the chunks of a source respond in turn to the paths that its finder found.
template <Finder F, Price P>
Int respond_in_turn(const F& finder, Sources sources, Int source, Placing<P>& placing,
                    std::span<std::int32_t> walk) {
  Int moved = 0, hops = 0, to = none;
  for (Int chunk = sources.chunks.first[source]; chunk < sources.chunks.first[source + 1]; ++chunk) {
    if (sources.chunks.item[chunk] != to) {  // chunks of a pair stand together
      to = sources.chunks.item[chunk];
      hops = finder.reaches(to) ? finder.walk(to, walk) : 0;
    }
    const Path path = walk.first(hops);
    if (hops > 0 && placing.is_cheaper(chunk, path)) {
      placing.move(chunk, path);
      ++moved;
    }
  }
  return moved;
}

// Let the chunks of every source move to cheaper paths; return how many did.
//
// As many sources as there are finders search at the same prices, on several threads; their chunks
// answer in order, so the number of threads changes nothing.
template <Finder F, Price P>
Int respond(std::vector<F>& finders, Sources sources, Floats mean_size, Placing<P>& placing, int threads) {
  const Int count = std::ssize(sources.start), block = std::ssize(finders);
  std::vector<std::vector<double>> cost(block, std::vector<double>(placing.priced_links() + 1));
  std::vector<std::int32_t> walk(placing.width());
  Int moved = 0;
  for (Int low = 0; low < count; low += block) {
    const Int high = std::min(low + block, count);
    for (Int source = low; source < high; ++source)
      placing.fill_cost(mean_size[source], cost[source - low]);
    in_parallel(high - low, threads, [&](Int each) {
      finders[each].search(sources.start[low + each], cost[each]);
    });
    for (Int source = low; source < high; ++source)
      moved += respond_in_turn(finders[source - low], sources, source, placing, walk);
  }
  return moved;
}

// Reroute chunks over a budget, from order[begin] on; return the place at which it stopped.
//
// It stops after `most` chunks or at the end, or at `none` minus the place of a chunk that has no
// path. A path that is too long for its row leaves the row empty.
template <Finder F>
Int reroute(F& finder, Ints start, Ints end, Ints order, Int begin, Int most, double free_cost,
            Placing<BudgetPrice>& placing) {
  std::vector<double> cost(placing.priced_links() + 1);
  std::vector<std::int32_t> walk(placing.width());
  double size = 0.0;
  Int rerouted = 0;
  for (Int place = begin; place < std::ssize(order); ++place) {
    const Int chunk = order[place];
    if (!placing.path(chunk).empty() && !placing.is_over_budget(chunk)) continue;
    if (rerouted++ == most) return place;
    if (placing.size(chunk) != size) {
      size = placing.size(chunk);
      placing.fill_cost(size, cost);
      cost.back() = free_cost;
    }
    const std::vector<std::int32_t> old(placing.path(chunk).begin(), placing.path(chunk).end());
    placing.update_cost(old, size, true, cost);
    finder.search(start[chunk], cost);
    if (!finder.reaches(end[chunk])) return none - place;
    placing.move(chunk, Path(walk).first(finder.walk(end[chunk], walk)));
    placing.update_cost(old, size, false, cost);
    placing.update_cost(placing.path(chunk), size, false, cost);
  }
  return std::ssize(order);
}

// Paths to choose from, rows of links: chunk i takes one of low[i] to high[i] - 1. Each phase has
// its own copy of every link.
struct ListedPaths {
  RowsView paths;
  Ints low, high;
  Int links, phases;
};

// The path and the phase of each chunk, `none` if it has no phase yet.
struct Choice {
  std::span<Int> path, phase;
};

// Let chunks over a budget choose anew, from order[begin] on, and price about `most` choices; return
// where it stopped.
inline Int choose(const ListedPaths& paths, Floats size, Ints order, Int begin, Int most, BudgetPrice& price,
                  Choice choice) {
  const auto links_of = [&](Int path, Int phase) {
    return std::views::transform(paths.paths[path], [&, phase](Int link) { return phase * paths.links + link; });
  };
  // The cost of a choice, or more than `enough`.
  const auto cost_of = [&](Int path, Int phase, double size, double enough) {
    double total = 0.0;
    for (const Int link : links_of(path, phase))
      if ((total += price.join(link, size)) >= enough) break;
    return total;
  };
  for (Int place = begin; place < std::ssize(order); ++place) {
    const Int chunk = order[place];
    Int &path = choice.path[chunk], &phase = choice.phase[chunk];
    double least = infinity;
    if (phase != none) {
      if (std::ranges::none_of(links_of(path, phase), [&](Int link) { return price.is_over(link); })) continue;
      for (const Int link : links_of(path, phase)) price.add(link, -size[chunk]);
      least = cost_of(path, phase, size[chunk], infinity);
    } else {  // some place, even if all are infinitely expensive
      path = paths.low[chunk], phase = 0;
    }
    // A tie, or a last digit, is no reason to change.
    for (Int other = paths.low[chunk]; other < paths.high[chunk]; ++other)
      for (Int in = 0; in < paths.phases; ++in)
        if (const double cost = cost_of(other, in, size[chunk], least); cost < least * (1 - 1e-12))
          path = other, phase = in, least = cost;
    for (const Int link : links_of(path, phase)) price.add(link, size[chunk]);
    most -= (paths.high[chunk] - paths.low[chunk]) * paths.phases;
    if (most < 0) return place + 1;
  }
  return std::ssize(order);
}

}  // namespace alltoall

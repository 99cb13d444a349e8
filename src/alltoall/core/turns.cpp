#include "turns.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace alltoall {

namespace {

// Where the items of each key begin, and all items, by key and in their order.
std::pair<std::vector<Int>, std::vector<Int>> sort_by_key(Int keys, Ints key) {
  std::vector<Int> first(keys + 1, 0), item(key.size());
  for (const Int each : key) ++first[each + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<Int> next(first.begin(), first.end() - 1);
  for (std::size_t each = 0; each < key.size(); ++each) item[next[key[each]]++] = static_cast<Int>(each);
  return {std::move(first), std::move(item)};
}

std::vector<Int> count_up(Int count) {
  std::vector<Int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), Int{0});
  return numbers;
}

}  // namespace

Turns::Turns(Int links, std::vector<Int> held_links, std::vector<Int> wanted_links)
    : held(std::move(held_links)), wanted(std::move(wanted_links)), first(sort_by_key(links, held).first) {
  std::tie(into_first, into) = sort_by_key(links, wanted);
}

bool TurnOrder::fit(Int turn) {
  const Int wanted = turns_.wanted[turn], held = turns_.held[turn];
  const Int lowest = rank_[wanted], highest = rank_[held];
  if (lowest > highest) return true;
  reach_forward(wanted, highest);
  const bool is_cycle = seen_[held];
  for (const Int link : after_) seen_[link] = false;
  if (is_cycle) return false;
  reach_back(held, lowest);
  for (const Int link : before_) seen_[link] = false;
  const auto by_rank = [&](Int one, Int other) { return rank_[one] < rank_[other]; };
  std::ranges::sort(before_, by_rank);
  std::ranges::sort(after_, by_rank);
  before_.insert(before_.end(), after_.begin(), after_.end());
  places_.clear();
  for (const Int link : before_) places_.push_back(rank_[link]);
  std::ranges::sort(places_);
  for (std::size_t each = 0; each < before_.size(); ++each) rank_[before_[each]] = places_[each];
  return true;
}

void TurnOrder::reach_forward(Int begin, Int highest) {
  after_.assign(1, begin);
  seen_[begin] = true;
  for (std::size_t done = 0; done < after_.size(); ++done)
    for (Int turn = turns_.first[after_[done]]; turn < turns_.first[after_[done] + 1]; ++turn) {
      const Int link = turns_.wanted[turn];
      if (!present[turn] || seen_[link] || rank_[link] > highest) continue;
      seen_[link] = true;
      after_.push_back(link);
    }
}

void TurnOrder::reach_back(Int begin, Int lowest) {
  before_.assign(1, begin);
  seen_[begin] = true;
  for (std::size_t done = 0; done < before_.size(); ++done)
    for (const Int turn : turns_.into_of(before_[done])) {
      const Int link = turns_.held[turn];
      if (!present[turn] || seen_[link] || rank_[link] < lowest) continue;
      seen_[link] = true;
      before_.push_back(link);
    }
}

LayerFilling::LayerFilling(const RouteTurns& routes)
    : routes_(routes), order_(routes.turns, count_up(routes.turns.links())), closed_(routes.turns.count()) {}

bool LayerFilling::offer(Int route) {
  const Ints mine = routes_.of(route);
  if (std::ranges::any_of(mine, [&](Int turn) { return closed_[turn]; })) return false;
  before_.clear();
  for (const Int turn : mine) before_.push_back(order_.present[turn]);
  for (const Int turn : mine) {
    if (!order_.present[turn] && !order_.fit(turn)) {
      for (std::size_t each = 0; each < mine.size(); ++each) order_.present[mine[each]] = before_[each];
      closed_[turn] = !order_.fit(turn);
      return false;
    }
    order_.present[turn] = true;
  }
  return true;
}

CycleBreaking::CycleBreaking(const RouteTurns& routes)
    : routes_(routes), layer_(routes.routes()), place_(routes.turns.links()),
      path_(routes.turns.links() + 1), taken_(routes.turns.links() + 1), state_(routes.turns.links()) {
  std::tie(users_first_, users_) = sort_by_key(routes.turns.count(), routes.turn);
  std::vector<Int> owner;
  for (Int route = 0; route < routes.routes(); ++route) owner.resize(routes.start[route + 1], route);
  for (Int& place : users_) place = owner[place];
  begin_layer(0);
}

void CycleBreaking::begin_layer(Int level) {
  level_ = level, root_ = 0, depth_ = -1;
  count_.assign(routes_.turns.count(), 0);
  for (Int route = 0; route < routes_.routes(); ++route)
    if (layer_[route] == level)
      for (const Int turn : routes_.of(route)) ++count_[turn];
  next_.assign(routes_.turns.first.begin(), routes_.turns.first.end() - 1);
  std::ranges::fill(state_, unseen);
}

bool CycleBreaking::run(Int most) {
  const Turns& turns = routes_.turns;
  for (; root_ < turns.links(); ++root_) {
    if (depth_ < 0) {
      if (state_[root_] != unseen) continue;
      depth_ = 0, path_[0] = root_, place_[root_] = 0, state_[root_] = on_path;
    }
    while (depth_ >= 0) {
      if (most == 0) return false;
      const Int link = path_[depth_], turn = next_[link];
      if (turn == turns.first[link + 1]) {
        state_[link] = finished;
        --depth_;
      } else if (const Int to = turns.wanted[turn]; count_[turn] == 0 || state_[to] == finished) {
        ++next_[link];
      } else {
        taken_[depth_] = turn;
        if (state_[to] == unseen) {
          path_[++depth_] = to;
          place_[to] = depth_, state_[to] = on_path;
        } else {
          break_cycle(place_[to]);
          --most;
        }
      }
    }
  }
  return true;
}

// Move the routes of the rarest turn of the cycle to the next layer, and go back to where the path
// still holds.
void CycleBreaking::break_cycle(Int bottom) {
  Int rarest = taken_[bottom];
  for (Int depth = bottom + 1; depth <= depth_; ++depth)
    if (count_[taken_[depth]] < count_[rarest]) rarest = taken_[depth];
  for (Int place = users_first_[rarest]; place < users_first_[rarest + 1]; ++place) {
    const Int route = users_[place];
    if (layer_[route] != level_) continue;
    ++layer_[route];
    for (const Int turn : routes_.of(route)) --count_[turn];
  }
  Int depth = 0;
  while (count_[taken_[depth]] > 0) ++depth;
  for (; depth_ > depth; --depth_) state_[path_[depth_]] = unseen;
}

}  // namespace alltoall

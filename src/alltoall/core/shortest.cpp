#include "shortest.h"

#include <algorithm>

namespace alltoall {

Dijkstra::Dijkstra(Adjacency out, Ints head)
    : out_(out), head_(head), heap_(out.link.size() + 1), settled_(out.nodes()) {
  order_.reserve(out.nodes());
}

void Dijkstra::run(Floats lengths, Int start, std::span<double> distance, std::span<Int> parent) {
  std::ranges::fill(settled_, false);
  order_.clear();
  std::ranges::fill(distance, infinity);
  distance[start] = 0.0;
  size_ = 0;
  push({0.0, start});
  while (size_ > 0) {
    const Int node = pop();
    if (settled_[node]) continue;
    settled_[node] = true;
    order_.push_back(node);
    for (const Int link : out_.at(node)) {
      const Int end = head_[link];
      const double reach = distance[node] + lengths[link];
      if (reach < distance[end]) {
        distance[end] = reach;
        parent[end] = link;
        push({reach, end});
      }
    }
  }
}

void Dijkstra::push(Entry entry) {
  Int hole = size_++;
  while (hole > 0 && heap_[(hole - 1) / 2].key > entry.key) {
    heap_[hole] = heap_[(hole - 1) / 2];
    hole = (hole - 1) / 2;
  }
  heap_[hole] = entry;
}

Int Dijkstra::pop() {
  const Int node = heap_[0].node;
  const Entry last = heap_[--size_];
  Int hole = 0;
  for (Int child = 1; child < size_; child = 2 * hole + 1) {
    if (child + 1 < size_ && heap_[child + 1].key < heap_[child].key) ++child;
    if (heap_[child].key >= last.key) break;
    heap_[hole] = heap_[child];
    hole = child;
  }
  heap_[hole] = last;
  return node;
}

}  // namespace alltoall

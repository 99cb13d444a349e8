// Shortest paths from one node: Dijkstra's algorithm over arrays.
#pragma once

#include <vector>

#include "graph.h"

namespace alltoall {

// A search that keeps its memory, so that many starts can use it one after the other.
class Dijkstra {
 public:
  Dijkstra(Adjacency out, Ints head);

  // Fill the distances and the link into each node. `parent` is set for reached nodes other than
  // the start. Links may have length 0.
  void run(Floats lengths, Int start, std::span<double> distance, std::span<Int> parent);

  // The nodes that the last run reached, nearest first.
  Ints order() const { return order_; }

 private:
  struct Entry {
    double key;
    Int node;
  };

  void push(Entry entry);
  Int pop();

  Adjacency out_;
  Ints head_;
  std::vector<Entry> heap_;
  std::vector<char> settled_;
  std::vector<Int> order_;
  Int size_ = 0;
};

}  // namespace alltoall

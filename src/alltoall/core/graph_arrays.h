// The graph that Python holds: links by node, in arrays of its own.
#pragma once

#include <numeric>

#include "arrays.h"
#include "finders.h"
#include "place.h"

namespace alltoall::border {

class GraphArrays {
 public:
  GraphArrays(Int nodes, IntArray tail, IntArray head)
      : tail_(copy(view(tail))), head_(copy(view(head))) {
    require(nodes >= 1, "nodes", "at least 1");
    require_size(head_, tail_.size(), "head");
    require_range(tail_, 0, nodes, "tail");
    require_range(head_, 0, nodes, "head");
    out_ = ByNode(nodes, tail_);
    in_ = ByNode(nodes, head_);
  }

  Graph graph() const { return {out_.view(), tail_, head_, in_.view()}; }
  TreeFinder finder() const { return TreeFinder(graph()); }
  Pricing pricing() const { return {{}, links()}; }
  Int nodes() const { return static_cast<Int>(out_.first.size()) - 1; }
  Int links() const { return static_cast<Int>(tail_.size()); }
  Int ends() const { return nodes(); }
  Int longest_path() const { return nodes(); }

 private:
  // Links sorted by one of their ends, in the order of their indices.
  struct ByNode {
    std::vector<Int> first, link;

    ByNode() = default;
    ByNode(Int nodes, Ints end) : first(nodes + 1, 0), link(end.size()) {
      for (const Int node : end) ++first[node + 1];
      std::partial_sum(first.begin(), first.end(), first.begin());
      std::vector<Int> next(first.begin(), first.end() - 1);
      for (std::size_t each = 0; each < end.size(); ++each)
        link[next[end[each]]++] = static_cast<Int>(each);
    }
    Adjacency view() const { return {first, link}; }
  };

  std::vector<Int> tail_, head_;
  ByNode out_, in_;
};

}  // namespace alltoall::border

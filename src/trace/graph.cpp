#include "trace/graph.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace weir::rt::trace {

namespace {

/// Finds entries by their ids.
class Positions {
 public:
  explicit Positions(const std::vector<Entry>& entries) {
    places_.reserve(entries.size());
    for (const Entry& entry : entries) {
      places_.push_back({entry.id, static_cast<std::uint32_t>(places_.size())});
    }
    std::ranges::sort(places_, {}, &Place::id);
  }

  std::optional<std::uint32_t> find(std::uint64_t id) const noexcept {
    const auto at = std::ranges::lower_bound(places_, id, {}, &Place::id);
    return at != places_.end() && at->id == id ? std::optional(at->position) : std::nullopt;
  }

 private:
  struct Place {
    std::uint64_t id;
    std::uint32_t position;
  };
  std::vector<Place> places_;
};

}  // namespace

Graph::Graph(const Recording& recording) {
  find_arrows(recording);
  find_leaving(recording.entries.size());
  find_order(recording.entries.size());
}

void Graph::find_arrows(const Recording& recording) {
  const Positions positions(recording.entries);
  arrows_.reserve(recording.dependences.size());
  first_arriving_.reserve(recording.entries.size() + 1);
  for (const Entry& entry : recording.entries) {
    const auto later = static_cast<std::uint32_t>(first_arriving_.size());
    first_arriving_.push_back(static_cast<std::uint32_t>(arrows_.size()));
    const std::span waited_for(recording.dependences.data() + entry.first_dependence,
                               entry.dependence_count);
    for (const std::uint64_t id : waited_for) {
      if (const auto earlier = positions.find(id)) arrows_.push_back({*earlier, later});
    }
  }
  first_arriving_.push_back(static_cast<std::uint32_t>(arrows_.size()));
}

void Graph::find_leaving(std::size_t entries) {
  first_leaving_.assign(entries + 1, 0);
  for (const Arrow& arrow : arrows_) ++first_leaving_[arrow.earlier + 1];
  std::partial_sum(first_leaving_.begin(), first_leaving_.end(), first_leaving_.begin());
  leaving_.resize(arrows_.size());
  std::vector<std::uint32_t> next(first_leaving_.begin(), first_leaving_.end() - 1);
  for (std::uint32_t number = 0; number < arrows_.size(); ++number) {
    leaving_[next[arrows_[number].earlier]++] = number;
  }
}

void Graph::find_order(std::size_t entries) {
  std::vector<std::size_t> missing(entries);
  order_.reserve(entries);
  for (std::uint32_t position = 0; position < entries; ++position) {
    missing[position] = arriving(position).size();
    if (missing[position] == 0) order_.push_back(position);
  }
  for (std::size_t done = 0; done < order_.size(); ++done) {
    for (const std::uint32_t number : leaving(order_[done])) {
      const std::uint32_t later = arrows_[number].later;
      if (--missing[later] == 0) order_.push_back(later);
    }
  }
  for (std::uint32_t position = 0; position < entries; ++position) {
    if (missing[position] != 0) order_.push_back(position);
  }
}

}  // namespace weir::rt::trace

#include "sparse_cholesky/front_owners.hpp"

#include <algorithm>

namespace weir::apps {

namespace {

constexpr std::size_t kSubtreesPerPlace = 4;

class Dealing {
 public:
  Dealing(const AssemblyTree& tree, const AppStreams& app_streams)
      : fronts_(tree.fronts),
        streams_(app_streams),
        load_(app_streams.places()),
        owners_(fronts_.size()) {
    for (const Front& front : fronts_) {
      double sum = front.operations();
      for (const std::size_t child : front.children) sum += work_[child];
      work_.push_back(sum);
    }
  }

  std::vector<std::size_t> deal() {
    std::vector<std::size_t> subtrees = {fronts_.size() - 1}, above;
    while (subtrees.size() < kSubtreesPerPlace * streams_.places()) {
      const auto heaviest = std::max_element(
          subtrees.begin(), subtrees.end(),
          [&](std::size_t a, std::size_t b) { return divisible_work(a) < divisible_work(b); });
      if (fronts_[*heaviest].children.empty()) break;
      above.push_back(*heaviest);
      subtrees.erase(heaviest);
      const auto& children = fronts_[above.back()].children;
      subtrees.insert(subtrees.end(), children.begin(), children.end());
    }
    std::sort(subtrees.begin(), subtrees.end(),
              [&](std::size_t a, std::size_t b) { return work_[a] > work_[b]; });
    for (const std::size_t root : subtrees) own_subtree(root, least_loaded(work_[root]));
    std::sort(above.begin(), above.end());
    for (const std::size_t front : above) own_above(front);
    return std::move(owners_);
  }

 private:
  double divisible_work(std::size_t root) const {
    return fronts_[root].children.empty() ? 0 : work_[root];
  }
  double time_of(std::size_t place, double more) const {
    return (load_[place] + more) / static_cast<double>(streams_.cores(place));
  }
  std::size_t least_loaded(double more) const {
    std::size_t best = 0;
    for (std::size_t place = 1; place < load_.size(); ++place) {
      if (time_of(place, more) < time_of(best, more)) best = place;
    }
    return best;
  }
  void own_subtree(std::size_t root, std::size_t place) {
    load_[place] += fronts_[root].operations();
    owners_[root] = place;
    for (const std::size_t child : fronts_[root].children) own_subtree(child, place);
  }
  void own_above(std::size_t front) {
    const auto& children = fronts_[front].children;
    const double more = fronts_[front].operations();
    owners_[front] = owners_[children.front()];
    for (const std::size_t child : children) {
      if (time_of(owners_[child], more) < time_of(owners_[front], more)) {
        owners_[front] = owners_[child];
      }
    }
    load_[owners_[front]] += more;
  }

  const std::vector<Front>& fronts_;
  const AppStreams& streams_;
  std::vector<double> work_;  ///< of each front and all below it
  std::vector<double> load_;  ///< of each place
  std::vector<std::size_t> owners_;
};

}  // namespace

std::vector<std::size_t> deal_fronts(const AssemblyTree& tree, const AppStreams& app_streams) {
  return Dealing(tree, app_streams).deal();
}

}  // namespace weir::apps

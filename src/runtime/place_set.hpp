// The places of a queue or a share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <weir/place.h>

namespace weir::rt {

class Registry;

/// Places of the program, or one of its own per domain with all free cores there, which the
/// destructor destroys.
class PlaceSet {
 public:
  static constexpr std::size_t kMost = 64;

  /// `user`, as "queue 'q'", is for messages. Without `places` it creates its own. Throws Error.
  PlaceSet(Registry& registry, const std::string& user, weir_place* const* places,
           std::size_t count);
  PlaceSet(const PlaceSet&) = delete;
  PlaceSet& operator=(const PlaceSet&) = delete;
  ~PlaceSet();

  const std::vector<weir_place*>& all() const noexcept { return places_; }

 private:
  void make_own();
  void destroy_own() noexcept;

  Registry& registry_;
  std::vector<weir_place*> places_;
  const bool owns_;
};

}  // namespace weir::rt

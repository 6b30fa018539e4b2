// The places of a queue or a share.
#pragma once

#include <cstddef>
#include <memory>
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

  const std::vector<weir_place*>& all() const noexcept { return places_; }

 private:
  struct Destroy {
    void operator()(weir_place* place) const noexcept;
  };

  std::vector<weir_place*> places_;
  std::vector<std::unique_ptr<weir_place, Destroy>> own_;
};

}  // namespace weir::rt

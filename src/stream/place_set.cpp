#include "stream/place_set.hpp"

#include "base/counted.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

PlaceSet::PlaceSet(Registry& registry, const std::string& user, weir_place* const* places,
                   std::size_t count) {
  if (places == nullptr && count > 0) {
    fail_argument("{} {} given as NULL", counted(count, "place"), is_or_are(count));
  }
  if (count > kMost) {
    fail_argument("{} places are too many for {}: at most {}", count, user, kMost);
  }
  for (std::size_t i = 0; i < count; ++i) {
    weir_place& place = weir_place::check(places[i]);
    if (&place.domain().context() != &registry) {
      fail_argument("place '{}' belongs to another runtime than {}", place.name(), user);
    }
    places_.push_back(&place);
  }
  if (count > 0) return;
  own_.reserve(registry.domain_count());
  for (std::size_t i = 0; i < registry.domain_count(); ++i) {
    own_.emplace_back(registry.create_place(*registry.domain(i), WEIR_PLACE_OPTIONS_INIT));
    places_.push_back(own_.back().get());
  }
  if (own_.size() > kMost) {
    fail_argument("{} domains are too many for {}: at most {}", own_.size(), user, kMost);
  }
}

void PlaceSet::Destroy::operator()(weir_place* place) const noexcept {
  Registry::of(place->domain().context()).destroy_place(place);
}

}  // namespace weir::rt

#include "runtime/place_set.hpp"

#include "base/counted.hpp"
#include "runtime/registry.hpp"

namespace weir::rt {

PlaceSet::PlaceSet(Registry& registry, const std::string& user, weir_place* const* places,
                   std::size_t count)
    : registry_(registry), owns_(count == 0) {
  if (places == nullptr && count > 0) {
    fail_argument("{} {} given as NULL", counted(count, "place"), is_or_are(count));
  }
  if (count > kMost) {
    fail_argument("{} places are too many for {}: at most {}", count, user, kMost);
  }
  for (std::size_t i = 0; i < count; ++i) {
    weir_place& place = weir_place::check(places[i]);
    if (&place.domain().context() != &registry_) {
      fail_argument("place '{}' belongs to another runtime than {}", place.name(), user);
    }
    places_.push_back(&place);
  }
  if (owns_) make_own();
  if (places_.size() > kMost) {
    destroy_own();
    fail_argument("{} domains are too many for {}: at most {}", places_.size(), user, kMost);
  }
}

PlaceSet::~PlaceSet() {
  if (owns_) destroy_own();
}

void PlaceSet::make_own() {
  places_.reserve(registry_.domain_count());
  try {
    for (std::size_t i = 0; i < registry_.domain_count(); ++i) {
      places_.push_back(registry_.create_place(*registry_.domain(i), WEIR_PLACE_OPTIONS_INIT));
    }
  } catch (...) {
    destroy_own();
    throw;
  }
}

void PlaceSet::destroy_own() noexcept {
  for (weir_place* const place : places_) registry_.destroy_place(place);
}

}  // namespace weir::rt

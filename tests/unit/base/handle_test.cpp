#include "base/handle.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "thrown.hpp"

namespace weir::rt {
namespace {

struct Thing final : Handle<Thing> {
  static constexpr const char* kNoun = "thing";
  explicit Thing(std::string given) : name_(std::move(given)) {}
  const std::string& name() const { return name_; }
  std::string name_;
};

std::string refusal(Thing* thing) {
  return thrown_by<Error>([&] { Thing::check(thing); }, WEIR_STATUS_INVALID_ARGUMENT);
}

TEST(Handle, DestroyedOrNullHandle_IsRefused) {
  auto* thing = new Thing("alpha");
  EXPECT_EQ(&Thing::check(thing), thing);
  Thing::bury(thing);
  EXPECT_EQ(refusal(thing), "thing 'alpha' has been destroyed");
  EXPECT_EQ(refusal(nullptr), "the thing is NULL");
}

TEST(Handle, HandleDestroyedBefore200Others_IsRefusedByName) {
  auto* first = new Thing("first of many with a long name");
  Thing::bury(first);
  for (int i = 0; i < 200; ++i) Thing::bury(new Thing("later"));
  EXPECT_EQ(refusal(first), "thing 'first of many with ' has been destroyed");
}

TEST(Handle, ManyCreatedAndDestroyed_ReuseTheirMemory) {
  std::set<Thing*> blocks;
  for (int i = 0; i < 10'000; ++i) {
    auto* thing = new Thing("x");
    blocks.insert(thing);
    Thing::bury(thing);
  }
  EXPECT_LT(blocks.size(), 600u);
}

}  // namespace
}  // namespace weir::rt

// Places: parts of a device's cores.
#include <algorithm>
#include <string>

#include "suite.hpp"

namespace weir::conformance {
namespace {

/// A Rig whose cores are all free.
struct Empty : Rig {
  explicit Empty(const Subject& subject) : Rig(subject) {
    stream = {};
    place = {};
  }
  std::size_t cores() const { return domain.info().cores; }
};

/// Runs something on all places at once.
void use(const Rig& rig, const std::vector<Place>& places) {
  const Buffer x = rig.numbers(places.size());
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < places.size(); ++i) {
    streams.push_back(places[i].stream());
    const Region cell = x.elements<std::int64_t>(i, 1);
    for (int j = 0; j < 50; ++j) streams[i].compute(rig.kernels.add, {readwrite(cell)}, {i + 1});
    streams[i].compute(rig.kernels.parallel, {readwrite(cell)});
    streams[i].download(cell);
  }
  rig.runtime.synchronize();
  for (std::size_t i = 0; i < places.size(); ++i) {
    EXPECT_EQ(x.data<std::size_t>()[i], 50 * (i + 1)) << "of place " << i;
  }
}

CONFORMANCE_TEST(Places, PartitionIntoUpTo8Places_DividesAllCoresEvenly) {
  const Empty rig(subject);
  for (std::size_t count = 1; count <= std::min<std::size_t>(rig.cores(), 8); ++count) {
    const std::vector<Place> places = rig.domain.partition(count);
    std::size_t sum = 0;
    for (const Place& place : places) sum += place.cores();
    EXPECT_EQ(sum, rig.cores());
    EXPECT_LE(places.front().cores() - places.back().cores(), 1u);
    use(rig, places);
  }
}

CONFORMANCE_TEST(Places, OversubscribedPartition_RunsKernelsOnAllPlaces) {
  const Empty rig(subject);
  use(rig, rig.domain.partition(rig.cores() + 2, true));
}

CONFORMANCE_TEST(Places, PlaceWithMoreCoresThanFree_IsRejected) {
  const Empty rig(subject);
  try {
    rig.domain.place(rig.cores() + 1);
    FAIL() << "a place of " << rig.cores() + 1 << " cores";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'" + rig.domain.name() + "'"), std::string::npos)
        << error.what();
  }
  const Place all = rig.domain.place();
  EXPECT_EQ(all.cores(), rig.cores());
  EXPECT_NE(status_of([&] { rig.domain.place(1); }), WEIR_STATUS_OK);
}

CONFORMANCE_TEST(Places, DestroyedPlaces_ReleaseTheirCores) {
  const Empty rig(subject);
  for (int round = 0; round < 20; ++round) {
    std::vector<Place> places;
    for (std::size_t i = 0; i < std::min<std::size_t>(rig.cores(), 8); ++i) {
      places.push_back(rig.domain.place(1));
    }
    if (round == 19) use(rig, places);
  }
}

}  // namespace
}  // namespace weir::conformance

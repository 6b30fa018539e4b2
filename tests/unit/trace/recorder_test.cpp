#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "trace/recorder.hpp"

namespace weir::rt::trace {
namespace {

Entry entry(std::uint64_t id, std::int64_t ended) { return {.id = id, .ended = ended}; }

std::vector<std::uint64_t> ids(const Recording& recording) {
  std::vector<std::uint64_t> found;
  for (const Entry& entry : recording.entries) found.push_back(entry.id);
  return found;
}

std::vector<std::uint64_t> dependences(const Recording& recording, std::uint64_t id) {
  for (const Entry& entry : recording.entries) {
    if (entry.id != id) continue;
    const auto first = recording.dependences.begin() + entry.first_dependence;
    return {first, first + entry.dependence_count};
  }
  return {};
}

TEST(Recorder, IsOffUntilStarted) {
  Recorder recorder;
  EXPECT_FALSE(recorder.on());
  recorder.start(0);
  EXPECT_TRUE(recorder.on());
  recorder.stop();
  EXPECT_FALSE(recorder.on());
}

TEST(Recorder, SortsByEndThenId) {
  Recorder recorder;
  recorder.start(0);
  recorder.record(entry(3, 20));
  recorder.record(entry(1, 30));
  recorder.record(entry(4, 10));
  recorder.record(entry(2, 20));
  EXPECT_EQ(ids(recorder.recording()), (std::vector<std::uint64_t>{4, 2, 3, 1}));
}

TEST(Recorder, TracksAndStreams_AreNumberedInOrderAndKeepTheirNames) {
  Recorder recorder;
  EXPECT_EQ(recorder.add_track({.name = "host/p0", .domain = "host", .width = 4}), 0u);
  EXPECT_EQ(recorder.add_track({.name = "sim:0 in", .domain = "sim:0", .kind = Kind::transfer}),
            1u);
  EXPECT_EQ(recorder.add_stream("a"), 0u);
  EXPECT_EQ(recorder.add_stream("b"), 1u);
  const Recording recording = recorder.recording();
  ASSERT_EQ(recording.tracks.size(), 2u);
  EXPECT_EQ(recording.tracks[0].width, 4u);
  EXPECT_EQ(recording.tracks[1].name, "sim:0 in");
  ASSERT_EQ(recording.streams.size(), 2u);
  EXPECT_EQ(recording.streams[1].name, "b");
}

TEST(Recorder, Dependences_AreJoinedToEntriesWithoutDuplicates) {
  Recorder recorder;
  recorder.start(0);
  const std::array<std::uint64_t, 3> repeated{2, 1, 2};
  recorder.record_dependences(3, repeated);
  recorder.record_dependences(9, repeated);
  recorder.record_dependences(3, std::array<std::uint64_t, 1>{7});
  for (std::uint64_t id = 1; id <= 3; ++id) recorder.record(entry(id, static_cast<int>(id)));
  const Recording recording = recorder.recording();
  EXPECT_EQ(dependences(recording, 1), std::vector<std::uint64_t>{});
  EXPECT_EQ(dependences(recording, 3), (std::vector<std::uint64_t>{1, 2, 7}));
  EXPECT_EQ(recording.dependences.size(), 3u);
}

TEST(Recorder, Restart_DiscardsEntriesAndKeepsTracks) {
  Recorder recorder;
  recorder.add_track({.name = "host/p0", .domain = "host"});
  recorder.add_stream("a");
  recorder.start(1);
  recorder.record(entry(1, 1));
  EXPECT_EQ(recorder.recording().dropped, 1u);
  recorder.start(0);
  recorder.record_dependences(2, std::array<std::uint64_t, 1>{1});
  recorder.record(entry(2, 2));
  recorder.start(0);
  recorder.record(entry(2, 3));
  const Recording recording = recorder.recording();
  EXPECT_EQ(recording.dropped, 0u);
  ASSERT_EQ(recording.entries.size(), 1u);
  EXPECT_EQ(recording.entries[0].ended, 3);
  EXPECT_EQ(recording.entries[0].dependence_count, 0u);
  EXPECT_EQ(recording.tracks.size(), 1u);
  EXPECT_EQ(recording.streams.size(), 1u);
}

TEST(Recorder, StopKeepsTheRecording) {
  Recorder recorder;
  recorder.start(0);
  recorder.record(entry(1, 1));
  recorder.stop();
  EXPECT_EQ(ids(recorder.recording()), ids(recorder.recording()));
  EXPECT_EQ(recorder.recording().entries.size(), 1u);
}

TEST(Recorder, FullMemory_DropsAndCountsTheNewestEntries) {
  constexpr std::size_t kBytes = 2 << 20;
  constexpr std::uint64_t kActions = 50'000;
  Recorder recorder;
  recorder.start(kBytes);
  for (std::uint64_t id = 1; id <= kActions; ++id) {
    recorder.record(entry(id, static_cast<std::int64_t>(id)));
  }
  const Recording recording = recorder.recording();
  EXPECT_EQ(recording.entries.size() + recording.dropped, kActions);
  EXPECT_GT(recording.dropped, 0u);
  EXPECT_LE(recording.entries.size() * sizeof(Entry), kBytes);
  EXPECT_GT(recording.entries.size() * sizeof(Entry), kBytes / 2);
  EXPECT_EQ(recording.entries.back().id, recording.entries.size());
}

TEST(Recorder, OneThreadAlternatingBetweenBoundedRecorders_LosesNothing) {
  constexpr std::uint64_t kActions = 100;
  Recorder one, other;
  one.start(1 << 20);
  other.start(1 << 20);
  for (std::uint64_t id = 1; id <= kActions; ++id) {
    one.record(entry(id, static_cast<std::int64_t>(id)));
    other.record(entry(id, static_cast<std::int64_t>(id)));
  }
  EXPECT_EQ(one.recording().entries.size(), kActions);
  EXPECT_EQ(other.recording().entries.size(), kActions);
}

TEST(Recorder, ConcurrentRecording_KeepsAllEntriesAndDependences) {
  constexpr std::uint64_t kThreads = 4, kEach = 20'000;
  Recorder recorder;
  recorder.start(0);
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&recorder, thread] {
        for (std::uint64_t index = 0; index < kEach; ++index) {
          const std::uint64_t id = 1 + index * kThreads + thread;
          recorder.record_dependences(id, std::array<std::uint64_t, 1>{id - 1});
          recorder.record(entry(id, static_cast<std::int64_t>(id)));
        }
      });
    }
  }
  const Recording recording = recorder.recording();
  ASSERT_EQ(recording.entries.size(), kThreads * kEach);
  EXPECT_EQ(recording.dropped, 0u);
  for (std::uint64_t index = 0; index < recording.entries.size(); ++index) {
    const Entry& found = recording.entries[index];
    ASSERT_EQ(found.id, index + 1);
    ASSERT_EQ(found.dependence_count, 1u);
    ASSERT_EQ(recording.dependences[found.first_dependence], index);
  }
}

TEST(Recorder, ReadDuringRecording_SeesAGrowingPrefix) {
  constexpr std::uint64_t kActions = 50'000;
  Recorder recorder;
  recorder.start(0);
  std::jthread writer([&recorder] {
    for (std::uint64_t id = 1; id <= kActions; ++id) {
      recorder.record(entry(id, static_cast<std::int64_t>(id)));
    }
  });
  std::size_t before = 0;
  while (before < kActions) {
    const Recording recording = recorder.recording();
    ASSERT_GE(recording.entries.size(), before);
    before = recording.entries.size();
    ASSERT_TRUE(recording.entries.empty() || recording.entries.back().id == before);
  }
}

TEST(Recorder, OneThreadUsingTwoRecorders_KeepsTheirEntriesSeparate) {
  Recorder one, two;
  one.start(0);
  two.start(0);
  for (std::uint64_t id = 1; id <= 10; ++id) {
    (id % 2 ? one : two).record(entry(id, static_cast<std::int64_t>(id)));
  }
  EXPECT_EQ(ids(one.recording()), (std::vector<std::uint64_t>{1, 3, 5, 7, 9}));
  EXPECT_EQ(ids(two.recording()), (std::vector<std::uint64_t>{2, 4, 6, 8, 10}));
}

}  // namespace
}  // namespace weir::rt::trace

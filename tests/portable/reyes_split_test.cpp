// The kernel by which `reyes` splits patches on a GPU, on threads of the host: by itself, and
// in the application on the driver for tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <weir/portable.h>
#include <nlohmann/json.hpp>
#include <weir/pipeline.hpp>
#include <weir/weir.hpp>

#include "common/app_streams.hpp"
#include "common/workload.hpp"
#include "fake_cuda.h"
#include "reyes/dice.wk"
#include "reyes/patch_stages.hpp"
#include "reyes/reyes.hpp"
#include "reyes/split_walk.hpp"
#include "team_threads.hpp"

namespace weir::apps {
namespace {

using weir::device::Count;
using weir::device::HostMemory;

/// What is made of patches, in an order of its own.
struct Made {
  std::vector<std::string> small;  ///< as bytes
  Count tasks = 0;
};

std::string bytes_of(const SmallPatch& patch) {
  return {reinterpret_cast<const char*>(&patch), sizeof patch};
}

void split_serially(const Patch& patch, const ReyesCamera& camera, Made& made) {
  ++made.tasks;
  const PatchSize size = size_of(patch, camera);
  if (is_small(patch, size)) return made.small.push_back(bytes_of(small_patch(patch, size)));
  for (const Patch& half : halves_of(patch, size)) split_serially(half, camera, made);
}

/// Batches of all patches, of those that had no room, and so on.
Made split_by_groups(const ReyesCamera& camera, unsigned teams, unsigned team_size, Count most) {
  Made made;
  std::vector<Patch> patches = teapot();
  while (!patches.empty()) {
    const Count room = patches.size() * most;
    std::vector<Count> scratch(reyes::scratch_bytes(room) / sizeof(Count) + 1);
    std::vector<SmallPatch> small(room);
    std::vector<Patch> again(room);
    const auto work = reyes::splitting<HostMemory>(
        scratch.data(), {camera.width, camera.height, camera.scale_x, camera.scale_y},
        patches.size(), room, reinterpret_cast<const reyes::Bezier*>(patches.data()),
        reinterpret_cast<reyes::SmallBezier*>(small.data()),
        reinterpret_cast<reyes::Bezier*>(again.data()), teams);
    device::run_team_threads(teams, team_size, [&](const auto& group, unsigned thread) {
      reyes::run_group(work, group, thread / team_size, teams, thread, teams * team_size);
    });
    unsigned smalls = 0, agains = 0, told = 0;
    Count tasks = 0;
    reyes::report_counts(work, teams, &smalls, &agains, &tasks, &told);
    EXPECT_EQ(told, 1U);
    EXPECT_EQ(tasks, patches.size() + 2 * (smalls + agains - patches.size()) - agains);
    for (unsigned i = 0; i < smalls; ++i) made.small.push_back(bytes_of(small[i]));
    made.tasks += tasks;
    patches.assign(again.begin(), again.begin() + agains);
  }
  return made;
}

TEST(ReyesSplit, SplitByGroups_MakesTheSamePatchesAsSerialSplit) {
  const ReyesCamera camera(160, 120);
  Made expected;
  for (const Patch& patch : teapot()) split_serially(patch, camera, expected);
  std::sort(expected.small.begin(), expected.small.end());
  ASSERT_GT(expected.small.size(), 500U);
  for (const auto& [teams, team_size, most] :
       {std::tuple{1U, 1U, 64U}, {3U, 1U, 4U}, {1U, 4U, 8U}, {2U, 2U, 2U}, {2U, 3U, 64U}}) {
    SCOPED_TRACE(std::to_string(teams) + " x " + std::to_string(team_size) + ", " +
                 std::to_string(most));
    Made made = split_by_groups(camera, teams, team_size, most);
    std::sort(made.small.begin(), made.small.end());
    EXPECT_EQ(made.tasks, expected.tasks);
    EXPECT_EQ(made.small.size(), expected.small.size());
    EXPECT_TRUE(made.small == expected.small);
  }
}

/// One thread of the host for each group, as the driver for tests runs a resident kernel.
void run_split(const std::uint32_t groups[3], std::uint64_t begin, std::uint64_t,
               void* const* arguments) {
  const auto value = [&]<class T>(std::size_t i, T) {
    T found;
    std::memcpy(&found, arguments[i], sizeof found);
    return found;
  };
  const auto pointer = [&]<class T>(std::size_t i, T*) {
    return value(i, static_cast<T*>(nullptr));
  };
  constexpr unsigned* kNumbers = nullptr;
  constexpr Count* kCounts = nullptr;
  const auto count = static_cast<Count>(value(8, std::int64_t{}));
  const auto most = static_cast<Count>(value(9, std::int64_t{}));
  const auto work = reyes::splitting<HostMemory>(
      pointer(7, kCounts), {value(10, 0.0F), value(11, 0.0F), value(12, 0.0F), value(13, 0.0F)},
      count, count * most, pointer(0, static_cast<reyes::Bezier*>(nullptr)),
      pointer(3, static_cast<reyes::SmallBezier*>(nullptr)),
      pointer(1, static_cast<reyes::Bezier*>(nullptr)), groups[0]);
  const auto group = static_cast<unsigned>(begin);
  reyes::run_group(work, device::Thread(), group, groups[0], group, groups[0]);
  if (group == 0) {
    reyes::report_counts(work, groups[0], pointer(4, kNumbers), pointer(2, kNumbers),
                         pointer(5, kCounts), pointer(6, kNumbers));
  }
}

/// What `weir run reyes` tells of a run.
nlohmann::json drawn(const std::string& domains) {
  const weir::Runtime runtime(domains);
  const AppStreams streams(runtime, {.places = 1, .streams = 1});
  const std::unique_ptr<Application> application = make_reyes();
  const std::unique_ptr<Workload> workload = application->prepare({}, runtime, streams);
  workload->reset();
  workload->enqueue();
  workload->await(std::chrono::minutes(5));
  nlohmann::json told = nlohmann::json::parse(workload->details());
  told["covered"] = workload->figures().at(0).value;
  return told;
}

TEST(ReyesSplit, SplitOnDevice_MatchesHostAndUsesCooperativeLaunch) {
  setenv("WEIR_CUDA_DRIVER", WEIR_TEST_FAKE_CUDA, 1);
  setenv("WEIR_NVRTC", WEIR_TEST_FAKE_CUDA, 1);
  fake_cuda_reset();
  fake_cuda_register_kernel("reyes_split", "ppppppppllffffi", run_split);
  fake_cuda_register_kernel("reyes_dice", reyes_dice.parameters, reyes_dice.run);
  const nlohmann::json host = drawn("host:cores=1"), card = drawn("host:cores=1,cuda:0");
  for (const char* stage : {"split", "dice", "shade"}) {
    EXPECT_EQ(card["stages"][stage], host["stages"][stage]) << stage;
  }
  EXPECT_EQ(card["stages"]["split"], 79'990);
  EXPECT_EQ(card["covered"], host["covered"]);
  EXPECT_GT(fake_cuda_calls("cuLaunchCooperativeKernel"), 1U);  // what had no room came again
  EXPECT_EQ(fake_cuda_misuses(), 0U);
}

std::string refusal(const std::function<void()>& code) {
  try {
    code();
  } catch (const weir::Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ResidentKernels, HostCodeMissingSourceOrOtherDevice_IsRejected) {
  const weir::Runtime runtime("host:cores=1,sim:cores=1");
  const auto add = [&](const weir_portable_kernel& kernel, const char* source) {
    return runtime.portable_kernel({.kernel = &kernel, .source = source, .resident = true},
                                   [](const weir::Call&) { return weir::Groups{1}; });
  };
  weir_portable_kernel text = {"stay", {32, 1, 1}, "pppl", nullptr, nullptr};
  EXPECT_NE(refusal([&] { add(text, nullptr); }).find("neither code for the host nor a source"),
            std::string::npos);
  text.run = reyes_dice.run;
  EXPECT_NE(refusal([&] { add(text, "..."); }).find("it is source in CUDA, and nothing else"),
            std::string::npos);
  text.run = nullptr;
  const weir::Kernel stay = add(text, "...");
  const weir::Pipeline pipeline(runtime);
  const auto from = pipeline.tunnel<int>("from"), to = pipeline.tunnel<int>("to");
  const weir::Place place = runtime.domain(1).place();
  EXPECT_NE(refusal([&] {
              pipeline.kernel("stay", from, weir::into(to), stay, place);
            }).find("has no code for domain"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::apps

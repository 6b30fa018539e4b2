#include "core/portable.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <weir/portable.h>

#include "backend/portable_text.hpp"
#include "backend/team.hpp"
#include "core/kernel.hpp"
#include "surroundings.hpp"
#include "thrown.hpp"

namespace weir::rt {
namespace {

#define ITEMS 8

WEIR_KERNEL(order, ITEMS, 2, 1, WEIR_GLOBAL weir_i32* seen, WEIR_GLOBAL weir_i32* count) {
  WEIR_ITEMS {
    seen[ITEMS * (2 * WEIR_GROUP_X + WEIR_LOCAL_Y) + WEIR_LOCAL_X] = weir_atomic_add(count, 1);
  }
}

WEIR_KERNEL(square_root, 4, 1, 1, WEIR_GLOBAL float* x, float scale) {
  WEIR_ITEMS { x[WEIR_LOCAL_X] = sqrt(x[WEIR_LOCAL_X]) * scale; }
}

const std::vector<std::string> kBackends = {"host", "sim", "opencl"};

weir_portable_options options_of(const weir_portable_kernel& kernel) {
  weir_portable_options options = WEIR_PORTABLE_OPTIONS_INIT;
  options.kernel = &kernel;
  options.grid = [](const weir_call*, std::uint32_t out_groups[3]) { out_groups[0] = 3; };
  return options;
}

/// The order in which items run.
std::vector<int> order_of_items() {
  const Portable portable(options_of(order));
  std::vector<int> seen(3 * 2 * ITEMS), count(1);
  const std::vector<weir_view> views = {{seen.data(), {1, 1, 1}, {}, WEIR_ACCESS_WRITE},
                                        {count.data(), {1, 1, 1}, {}, WEIR_ACCESS_READ_WRITE}};
  weir_call call{};
  call.operands = views.data();
  call.operand_count = views.size();
  call.payload = const_cast<Portable*>(&portable);
  EXPECT_EQ(Portable::run(&call), WEIR_STATUS_OK);
  return seen;
}

TEST(Portable, BackwardsSetting_ReversesTheOrderOfItems) {
  const std::vector<int> forwards = order_of_items();
  for (int i = 0; i < 3 * 2 * ITEMS; ++i) EXPECT_EQ(forwards[static_cast<std::size_t>(i)], i);
  const EnvironmentVariable variable("WEIR_PORTABLE_BACKWARDS", "1");
  const std::vector<int> backwards = order_of_items();
  EXPECT_EQ(std::vector<int>(backwards.rbegin(), backwards.rend()), forwards);
}

/// A team that records how a loop is divided, and runs nothing.
class DividedTeam final : public weir_team {
 public:
  explicit DividedTeam(std::size_t size) : size_(size) {}

  std::size_t size() const noexcept override { return size_; }
  void for_each(std::size_t, std::size_t grain, weir_team_body, void*) override { grain_ = grain; }
  void run(weir_team_function, void*) override {}
  void barrier() override {}

  std::size_t grain() const { return grain_; }

 private:
  const std::size_t size_;
  std::size_t grain_ = 0;
};

/// Returns how many groups of 2 * ITEMS items a thread of a team takes at least.
template <std::uint32_t groups>
std::size_t grain_on_team_of(std::size_t threads) {
  weir_portable_options options = options_of(order);
  options.grid = [](const weir_call*, std::uint32_t out_groups[3]) { out_groups[0] = groups; };
  const Portable portable(options);
  DividedTeam team(threads);
  const std::vector<weir_view> views(2);
  weir_call call{};
  call.operands = views.data();
  call.operand_count = views.size();
  call.payload = const_cast<Portable*>(&portable);
  call.team = &team;
  EXPECT_EQ(Portable::run(&call), WEIR_STATUS_OK);
  return team.grain();
}

TEST(Portable, FewGroups_EveryThreadOfATeamGetsSome) {
  EXPECT_EQ(grain_on_team_of<8>(4), 2u);
  EXPECT_EQ(grain_on_team_of<7>(4), 2u);
  EXPECT_EQ(grain_on_team_of<3>(4), 1u);
}

TEST(Portable, ManyGroups_AThreadTakesSeveralThousandItemsAtOnce) {
  const std::size_t grain = grain_on_team_of<60'000>(2);
  EXPECT_GT(grain * 2 * ITEMS, 2000u);
  EXPECT_LE(grain * 2 * ITEMS, 4096u);
}

TEST(Portable, ParameterTypes_AreRecordedAndChecked) {
  EXPECT_STREQ(order.parameters, "pp");
  EXPECT_STREQ(square_root.parameters, "pf");
  EXPECT_EQ(order.group[0], ITEMS);
  EXPECT_EQ(order.group[1], 2u);
  const Portable portable(options_of(square_root));
  const weir_scalar wrong = weir_scalar_f64(1e300);
  EXPECT_EQ(thrown_by<Error>(
                [&] {
                  portable.check("root", 1, {&wrong, 1});
                },
                WEIR_STATUS_INVALID_ARGUMENT),
            "kernel 'root': parameter 1 (scalar 0) is a float, which cannot hold 1e+300");
}

TEST(Portable, GridDimensionOver65535_IsRefused) {
  weir_portable_options options = options_of(order);
  options.grid = [](const weir_call*, std::uint32_t out_groups[3]) { out_groups[2] = 65'536; };
  EXPECT_THROW(Portable(options).groups_of({}), Error);
  options.grid = [](const weir_call*, std::uint32_t out_groups[3]) { out_groups[1] = 65'535; };
  EXPECT_EQ(Portable(options).groups_of({}), (std::array<std::uint32_t, 3>{1, 65'535, 1}));
}

/// What is wrong with a description.
std::string complaint(const weir_portable_options& options) {
  KernelTable table;
  return thrown_by<Error>([&] { table.add(options, kBackends); }, WEIR_STATUS_INVALID_ARGUMENT);
}

TEST(Portable, IncompleteOrInvalidDescription_IsRefusedWithTheReason) {
  const weir_portable_kernel good = {"good", {4, 1, 1}, "p", nullptr, nullptr};
  weir_portable_options options = options_of(good);
  EXPECT_EQ(complaint(options),
            "portable kernel 'good' has neither code for the host nor a source");
  options.source = "text";
  EXPECT_EQ(complaint(options), "");
  options.grid = nullptr;
  EXPECT_EQ(complaint(options), "portable kernel 'good' has no grid");
  options = options_of(good);
  options.kernel = nullptr;
  EXPECT_EQ(complaint(options), "portable kernel '' has no kernel");

  const auto complaint_of = [](const weir_portable_kernel& kernel) {
    weir_portable_options given = options_of(kernel);
    given.source = "text";
    return complaint(given);
  };
  EXPECT_EQ(complaint_of({nullptr, {4, 1, 1}, "p", nullptr, nullptr}),
            "portable kernel '' lacks its name in the text");
  EXPECT_EQ(complaint_of({"k", {4, 1, 1}, nullptr, nullptr, nullptr}),
            "portable kernel '' lacks its parameters");
  EXPECT_EQ(complaint_of({"k", {4, 0, 1}, "p", nullptr, nullptr}),
            "portable kernel 'k' has groups of 4 x 0 x 1 items: none may be 0");
  EXPECT_EQ(complaint_of({"k", {4, 1, 1}, "pq", nullptr, nullptr}),
            "portable kernel 'k' has a parameter 'q'; the letters are p i u l m f d");
  const std::string many(65, 'i');
  EXPECT_EQ(complaint_of({"k", {4, 1, 1}, many.c_str(), nullptr, nullptr}),
            "portable kernel 'k' has 65 parameters: at most 64");
}

const KernelCode* code_on(const Kernel& kernel, const char* backend, bool host, bool source) {
  DeviceInfo device;
  device.backend = backend;
  device.runs_host_code = host;
  device.compiles_source = source;
  return kernel.code_for(device);
}

TEST(Portable, NativeImplementation_TakesPrecedenceOnItsBackend) {
  static int released;
  const auto native = [](const weir_call*) { return WEIR_STATUS_OK; };
  int payload = 0;
  const weir_implementation own = {"opencl", native, &payload};
  weir_portable_options options = options_of(order);
  options.source = "text";
  options.name = "named";
  {
    KernelTable table;
    const Kernel& portable = table.add(options, kBackends);
    EXPECT_EQ(portable.name(), "named");
    EXPECT_EQ(portable.backends(), "host, source");
    EXPECT_TRUE(portable.parallel());
    EXPECT_EQ(code_on(portable, "host", true, false)->function, Portable::run);
    EXPECT_EQ(code_on(portable, "sim", true, false)->function, Portable::run);
    EXPECT_EQ(code_on(portable, "opencl", true, true)->source->text, "text");
    EXPECT_EQ(code_on(portable, "cuda", false, true)->source->entry, "order");
    EXPECT_EQ(code_on(portable, "null", false, false), nullptr);

    options.name = "with_native";
    options.implementations = &own;
    options.implementation_count = 1;
    options.release = [](void*) { ++released; };
    const Kernel& mixed = table.add(options, kBackends);
    EXPECT_EQ(code_on(mixed, "opencl", true, true)->payload, &payload);
    EXPECT_EQ(code_on(mixed, "opencl", true, true)->source, nullptr);
    EXPECT_NE(code_on(mixed, "opencl", true, true)->portable, nullptr);
    EXPECT_EQ(code_on(mixed, "host", true, false)->function, Portable::run);
  }
  EXPECT_EQ(released, 1);  // only what was given
}

TEST(Portable, SourceText_GetsTheDialectInPlaceOfItsInclude) {
  weir_portable_options options = options_of(order);
  options.source =
      "#include <weir/portable.h>\n  # include \"weir/portable.h\"\n#include <other.h>\nlast";
  options.source_name = "my \"file\"";
  const Portable portable(options);
  EXPECT_EQ(portable.source().text, "\n\n#include <other.h>\nlast");
  const std::string text = portable_text(portable.source());
  EXPECT_TRUE(text.ends_with("\n#line 1 \"my _file_\"\n\n\n#include <other.h>\nlast"));
  EXPECT_NE(text.find("#define WEIR_KERNEL(name, X, Y, Z, ...)"), std::string::npos);
}

}  // namespace
}  // namespace weir::rt

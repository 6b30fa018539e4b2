// What a runtime says about itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <weir/weir.hpp>

#include "surroundings.hpp"

namespace weir {
namespace {

using Json = nlohmann::json;

TEST(Describe, IsOneJsonObjectOfAKnownSchema) {
  const Runtime runtime("host,sim:cores=1,gbps=3,latency_us=7,duplex=half,memory=1MiB");
  const Json json = Json::parse(runtime.describe());
  EXPECT_EQ(json.at("schema"), "weir.info/1");
  EXPECT_EQ(json.at("version"), WEIR_VERSION_STRING);
  EXPECT_GT(json.at("machine").at("cores"), 0);
  EXPECT_GT(json.at("machine").at("memory_bytes"), 0);
  ASSERT_EQ(json.at("domains").size(), 2u);
  const Json& card = json.at("domains").at(1);
  EXPECT_EQ(card.at("backend"), "sim");
  EXPECT_EQ(card.at("memory_bytes"), 1 << 20);
  EXPECT_EQ(card.at("link").at("gbps"), 3);
  EXPECT_EQ(card.at("link").at("latency_us"), 7);
  EXPECT_EQ(card.at("link").at("duplex"), "half");
  EXPECT_EQ(json.at("backends").size(), 6u);
}

TEST(Describe, ListsTheKernelsOfTheRuntime) {
  const Runtime runtime("null");
  runtime.kernel("mine.alone", [](const Call&) {});
  const Json names = Json::parse(runtime.describe()).at("kernels");
  for (const char* name : {"blas.dgemm", "lapack.spotrf.team", "mem.copy", "mine.alone"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(Describe, ThousandKernels_AreAllListed) {
  const Runtime runtime("null");
  const std::size_t before = Json::parse(runtime.describe()).at("kernels").size();
  const std::string long_name(200, 'k');
  for (int i = 0; i < 1000; ++i) {
    runtime.kernel((long_name + std::to_string(i)).c_str(), [](const Call&) {});
  }
  EXPECT_EQ(Json::parse(runtime.describe()).at("kernels").size(), before + 1000);
}

TEST(Describe, ListsThePoliciesOfTheRuntime) {
  const Runtime runtime("null");
  weir_policy_options options = WEIR_POLICY_OPTIONS_INIT;
  options.name = "mine";
  options.summary = "the first";
  options.choose = [](const char*, const weir_candidate*, std::size_t, void*) {
    return std::size_t{0};
  };
  check(weir_policy_register(runtime.handle(), &options));
  const Json policies = Json::parse(runtime.describe()).at("policies");
  ASSERT_EQ(policies.size(), 6u);
  EXPECT_EQ(policies.at(0).at("name"), "finish");
  EXPECT_EQ(policies.at(5).at("name"), "mine");
  EXPECT_EQ(policies.at(5).at("summary"), "the first");
}

TEST(Describe, CountsTheMemoryInUse) {
  const Runtime runtime("sim");
  const Buffer buffer = runtime.buffer(12345);
  const Place place = runtime.domain(0).place();
  const Stream stream = place.stream();
  stream.upload(buffer.all());
  stream.synchronize();
  EXPECT_EQ(Json::parse(runtime.describe()).at("domains").at(0).at("memory_used"), 12345);
}

TEST(Describe, NamesUnknownVariablesOfTheEnvironment) {
  const EnvironmentVariable variable("WEIR_BLSA", "openblas");
  const Runtime runtime("null");
  const Json json = Json::parse(runtime.describe());
  EXPECT_EQ(json.at("unknown_environment").at(0), "WEIR_BLSA (did you mean 'WEIR_BLAS'?)");
}

TEST(Describe, ReportsItsSizeAndNeverWritesBeyondTheBuffer) {
  const Runtime runtime("null");
  std::size_t size = 0;
  ASSERT_EQ(weir_runtime_describe(runtime.handle(), nullptr, 0, &size), WEIR_STATUS_OK);
  std::string text(size + 8, '#');
  ASSERT_EQ(weir_runtime_describe(runtime.handle(), text.data(), size, nullptr), WEIR_STATUS_OK);
  EXPECT_EQ(text[size - 1], '\0');
  EXPECT_EQ(text.substr(size), "########");
  std::string part(16, '#');
  weir_runtime_describe(runtime.handle(), part.data(), 8, &size);
  EXPECT_EQ(part.substr(8), "########");
}

}  // namespace
}  // namespace weir

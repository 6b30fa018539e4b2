#include "backend/settings.hpp"

#include <gtest/gtest.h>

#include "thrown.hpp"

namespace weir::rt {
namespace {

DomainSpec spec_with(const std::string& key, const std::string& value) {
  return {"device", {{key, value}}, "device:" + key + "=" + value};
}

/// The message of the error that reading throws.
template <class Read>
std::string refusal(const std::string& key, const std::string& value, Read read) {
  const DomainSpec spec = spec_with(key, value);
  return thrown_by<Error>(
      [&] {
        read(Settings(spec, {"cores", "gbps", "memory", "duplex"}));
      },
      WEIR_STATUS_INVALID_ARGUMENT);
}

TEST(Settings, MissingKey_GivesTheDefault) {
  const DomainSpec spec{"device", {}, "device"};
  const Settings settings(spec, {"cores"});
  EXPECT_EQ(settings.count("cores", 0, 8), 0u);
  EXPECT_EQ(settings.real("gbps", 6, 0, 10), 6);
  EXPECT_EQ(settings.size("memory", 77), 77u);
  EXPECT_EQ(settings.choice("duplex", {"full", "half"}), 0u);
}

TEST(Settings, ReadsCountsNumbersSizesAndChoices) {
  const DomainSpec spec{"device",
                        {{"cores", "8"}, {"gbps", "2.5"}, {"memory", "64MiB"}, {"duplex", "half"}},
                        "device"};
  const Settings settings(spec, {"cores", "gbps", "memory", "duplex"});
  EXPECT_EQ(settings.count("cores", 0, 8), 8u);
  EXPECT_EQ(settings.real("gbps", 6, 0, 10), 2.5);
  EXPECT_EQ(settings.size("memory", 77), std::uint64_t{64} << 20);
  EXPECT_EQ(settings.choice("duplex", {"full", "half"}), 1u);
}

TEST(Settings, RefusesUnknownKeysAndNamesTheNearest) {
  const auto nothing = [](const Settings&) {};
  EXPECT_EQ(refusal("memroy", "1", nothing),
            "domain 'device:memroy=1' has no setting 'memroy' (did you mean 'memory'?); known: "
            "cores, gbps, memory, duplex");
  EXPECT_EQ(refusal("xyzzy", "1", nothing),
            "domain 'device:xyzzy=1' has no setting 'xyzzy'; known: cores, gbps, memory, duplex");
}

TEST(Settings, RefusesAKeyThatIsSetTwice) {
  const DomainSpec spec{"device", {{"cores", "1"}, {"cores", "2"}}, "device:cores=1,cores=2"};
  EXPECT_EQ(thrown_by<Error>([&] { Settings(spec, {"cores"}); }),
            "domain 'device:cores=1,cores=2' sets 'cores' twice");
}

TEST(Settings, RefusesCountsOutsideTheirLimits) {
  const auto count = [](const Settings& settings) { settings.count("cores", 1, 8); };
  EXPECT_EQ(refusal("cores", "9", count),
            "domain 'device:cores=9': cores=9 is not between 1 and 8");
  for (const char* bad : {"0", "-1", "two", "", "1.5", "99999999999999999999", " 1"}) {
    EXPECT_NE(refusal("cores", bad, count), "") << bad;
  }
}

TEST(Settings, RefusesNumbersOutsideTheirLimits) {
  const auto real = [](const Settings& settings) { settings.real("gbps", 6, 0.5, 100); };
  EXPECT_EQ(refusal("gbps", "0", real),
            "domain 'device:gbps=0': gbps=0 is not a number between 0.5 and 100");
  for (const char* bad : {"101", "fast", "", "-6", "6x"}) EXPECT_NE(refusal("gbps", bad, real), "");
}

TEST(Settings, NanOrInfinity_IsRefused) {
  const auto real = [](const Settings& settings) { settings.real("gbps", 6, 0.5, 100); };
  for (const char* bad : {"nan", "inf", "-inf"}) EXPECT_NE(refusal("gbps", bad, real), "") << bad;
}

TEST(Settings, ZeroOrMalformedSize_IsRefused) {
  const auto size = [](const Settings& settings) { settings.size("memory", 1); };
  EXPECT_EQ(refusal("memory", "0", size),
            "domain 'device:memory=0': memory=0 is not a size such as 64MiB or 2GB");
  for (const char* bad : {"lots", "", "1XB", "-1", "99999999999GiB"}) {
    EXPECT_NE(refusal("memory", bad, size), "") << bad;
  }
}

TEST(Settings, UnknownChoice_IsRefusedWithTheValidOnes) {
  const auto choice = [](const Settings& settings) { settings.choice("duplex", {"full", "half"}); };
  EXPECT_EQ(refusal("duplex", "quarter", choice),
            "domain 'device:duplex=quarter': duplex=quarter is not one of full, half");
}

}  // namespace
}  // namespace weir::rt

// Numbers, tables and suggestions of the tool.
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "suggest.hpp"
#include "terminal.hpp"

namespace weir::cli {
namespace {

TEST(Format, Bytes_UseTheLargestUnitWithAtMostFourDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(std::uint64_t{5} << 30), "5 GiB");
  EXPECT_EQ(format_bytes((std::uint64_t{1} << 30) - 1), "1 GiB");
  EXPECT_EQ(format_bytes(std::uint64_t{9} << 40), "9 TiB");
}

TEST(Format, SecondsHaveThreeDigits) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(-1), "0 s");
  EXPECT_EQ(format_seconds(2.345), "2.35 s");
  EXPECT_EQ(format_seconds(0.01406), "14.1 ms");
  EXPECT_EQ(format_seconds(0.99999), "1.00 s");
  EXPECT_EQ(format_seconds(3.2e-6), "3.20 us");
  EXPECT_EQ(format_seconds(85e-9), "85.0 ns");
  EXPECT_EQ(format_seconds(123), "123 s");
}

TEST(Format, CountsAreGroupedByThree) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
}

TEST(Table, CellsWithColoursOrUtf8_ColumnsStillAlign) {
  Table table;
  table.add({"a", "12", "x"});
  table.add({"\x1b[31mlong\x1b[0m", "3"});
  table.add({"\xC3\xA9", "456", ""});
  EXPECT_EQ(table.text(2, {1}),
            "  a      12  x\n"
            "  \x1b[31mlong\x1b[0m    3\n"
            "  \xC3\xA9     456\n");
}

/// Variables of a rank, while it lives.
class Environment {
 public:
  Environment(const char* rank, const char* ranks) {
    setenv("OMPI_COMM_WORLD_RANK", rank, 1);
    setenv("OMPI_COMM_WORLD_SIZE", ranks, 1);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("OMPI_COMM_WORLD_SIZE");
  }
};

std::string told(Speaker speaker) {
  testing::internal::CaptureStderr();
  print_message(Tone::bad, "it failed", speaker);
  return testing::internal::GetCapturedStderr();
}

TEST(Tell, SeveralRanks_MessageNamesItsRank) {
  EXPECT_EQ(told(Speaker::rank), "weir: it failed\n");
  {
    const Environment several("3", "4");
    EXPECT_EQ(told(Speaker::rank), "weir: rank 3: it failed\n");
    EXPECT_EQ(told(Speaker::all), "weir: it failed\n");
    testing::internal::CaptureStderr();
    Progress(0).update(3, 12, "measuring");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "weir: rank 3:  25 %  3/12  measuring\n");
  }
  const Environment one("0", "1");
  EXPECT_EQ(told(Speaker::rank), "weir: it failed\n");
}

TEST(Progress, WithoutTerminal_WritesAtMostOneLinePerInterval) {
  testing::internal::CaptureStderr();
  {
    Progress progress(0);
    progress.update(3, 12, "measuring");
    progress.update(0, 0, "looking");
    Progress(std::int64_t{1} << 60).update(1, 2, "too early");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weir:  25 %  3/12  measuring\nweir: looking\n");
}

TEST(DidYouMean, NearWord_IsSuggestedAndFarWordIsNot) {
  const std::vector<std::string> words = {"--tile", "--trace", "--places"};
  EXPECT_EQ(did_you_mean("--tlie", words), " (did you mean '--tile'?)");
  EXPECT_EQ(did_you_mean("--place", words), " (did you mean '--places'?)");
  EXPECT_EQ(did_you_mean("--wobble", words), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
}

}  // namespace
}  // namespace weir::cli

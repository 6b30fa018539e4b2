#include "suite.hpp"

#include <gtest/gtest-spi.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

namespace weir::conformance {

namespace {

struct Registered {
  std::string group, name;
  const char* file;
  int line;
  Test::Body body;
};

std::vector<Subject>& subjects() {
  static std::vector<Subject> all;
  return all;
}
std::vector<Registered>& tests() {
  static std::vector<Registered> all;
  return all;
}

/// Whether "Group.Name" or "Group.*" means the test.
bool means(const std::string& pattern, const Registered& test) {
  return pattern == test.group + "." + test.name || pattern == test.group + ".*";
}

/// Runs a test; returns what went wrong, "" if nothing did.
std::string trouble_of(const Registered& test, const Subject& subject) {
  testing::TestPartResultArray results;
  std::string trouble;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
    try {
      test.body(subject);
    } catch (const std::exception& error) {
      trouble = error.what();
    }
  }
  for (int i = 0; i < results.size() && trouble.empty(); ++i) {
    if (results.GetTestPartResult(i).failed()) trouble = results.GetTestPartResult(i).message();
  }
  return trouble;
}

class OneTest : public testing::Test {
 public:
  OneTest(const Registered& test, const Subject& subject) : test_(test), subject_(subject) {}

  void TestBody() override {
    const std::string missing = subject_.missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
    for (const Exception& exception : subject_.exceptions) {
      if (means(exception.tests, test_)) return expect_trouble(exception);
    }
    test_.body(subject_);
  }

 private:
  void expect_trouble(const Exception& exception) {
    const std::string trouble = trouble_of(test_, subject_);
    if (trouble.empty()) {
      if (exception.may_pass) return;
      FAIL() << subject_.name << " passes: take '" << exception.tests
             << "' out of its exceptions, whose reason was: " << exception.reason;
    }
    std::cout << "an exception: " << exception.reason << "\n";
  }

  const Registered& test_;
  const Subject& subject_;
};

/// The exceptions of all subjects name tests.
class ExceptionsAreOfTests : public testing::Test {
 public:
  void TestBody() override {
    for (const Subject& subject : subjects()) {
      for (const Exception& exception : subject.exceptions) {
        EXPECT_TRUE(
            std::any_of(tests().begin(), tests().end(),
                        [&](const Registered& test) { return means(exception.tests, test); }))
            << subject.name << ": no test is called '" << exception.tests << "'";
      }
    }
  }
};

void register_all() {
  for (const Subject& subject : subjects()) {
    for (const Registered& test : tests()) {
      testing::RegisterTest((subject.name + "/" + test.group).c_str(), test.name.c_str(), nullptr,
                            nullptr, test.file, test.line,
                            [&]() -> testing::Test* { return new OneTest(test, subject); });
    }
  }
  testing::RegisterTest("suite", "ExceptionsAreOfTests", nullptr, nullptr, __FILE__, __LINE__,
                        []() -> testing::Test* { return new ExceptionsAreOfTests; });
}

}  // namespace

Registration::Registration(Subject subject) { subjects().push_back(std::move(subject)); }

Test::Test(const char* group, const char* name, const char* file, int line, Body body) {
  tests().push_back({group, name, file, line, body});
}

}  // namespace weir::conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  weir::conformance::register_all();
  return RUN_ALL_TESTS();
}

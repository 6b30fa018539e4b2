// What every kind of device must do. One takes part by a file like host.cpp.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <weir/weir.hpp>

#include "gate.hpp"

namespace weir::conformance {

/// Kernels that the tests call. Operands are int64 unless it says otherwise.
struct Kernels {
  Kernel fill;      ///< (value) x write: x[i] = value
  Kernel add;       ///< (value) x read-write: x[i] += value
  Kernel mix;       ///< (value) x read, y read-write: y[i] = 3 y[i] + x[i] + value
  Kernel number;    ///< () x write, a tile: element (r, c) = 1000 c + r
  Kernel scalars;   ///< (i64, u64, f32, f64) x write, doubles: x[k] = scalar k
  Kernel gather;    ///< () any number of x read, y write: y[k] = first element of the k-th x
  Kernel parallel;  ///< () x read-write, by the whole place: x[i] += i
  Kernel fail;      ///< () x read-write: fails with the message "tile 7 is broken"
  Kernel meet;      ///< () x read-write: returns when another call of it has begun as well
  Kernel held;      ///< () x read-write: returns when holding is false
};

/// What calls of `held` wait for.
inline std::atomic<bool> holding{false};

/// Tests that a device does not pass, "Group.Name" or "Group.*", and why.
struct Exception {
  std::string tests;
  std::string reason;
  bool may_pass = false;  ///< with some versions of a driver
};

/// A way to open one kind of device.
struct Subject {
  std::string name;
  std::string domain;  ///< one device for `--domains`, with at least two cores
  /// The same with 32 KiB of memory; "": its memory cannot be limited.
  std::string small;
  Kernels (*kernels)(const Runtime& runtime);
  std::vector<Exception> exceptions;
  /// Returns why there is no such device here, "": there is.
  std::string (*missing)() = [] { return std::string(); };
  /// Allocates memory of the device without weir, and frees it.
  void* (*allocate)(std::size_t bytes) = [](std::size_t bytes) { return std::malloc(bytes); };
  void (*release)(void* memory) = [](void* memory) { std::free(memory); };
  /// Returns the fabric that the device is in.
  weir_fabric* (*fabric)() = []() -> weir_fabric* { return nullptr; };

  /// How to open a runtime with domains.
  weir_runtime_options options(const std::string& domains) const {
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = domains.c_str();
    options.fabric = fabric();
    return options;
  }
};

/// Adds a subject; for a variable at namespace scope.
struct Registration {
  explicit Registration(Subject subject);
};

/// Kernels for devices that run code of the host. Calls of `meet` fail when none comes for so long.
Kernels host_code(const Runtime& runtime, std::chrono::milliseconds patience);
/// The same, with patience.
Kernels host_code(const Runtime& runtime);

/// Adds a test; see CONFORMANCE_TEST.
struct Test {
  using Body = void (*)(const Subject& subject);
  Test(const char* group, const char* name, const char* file, int line, Body body);
};

/// Defines a test that every subject must pass: CONFORMANCE_TEST(Group, Name) { ... subject ... }
#define CONFORMANCE_TEST(group, name)                                                           \
  static void group##_##name(const ::weir::conformance::Subject& subject);                      \
  static const ::weir::conformance::Test registered_##group##_##name(#group, #name, __FILE__,   \
                                                                     __LINE__, group##_##name); \
  static void group##_##name([[maybe_unused]] const ::weir::conformance::Subject& subject)

/// A runtime with the device, a place of all its cores and a stream.
class Rig {
 public:
  explicit Rig(const Subject& subject) : Rig(subject, subject.domain) {}
  Rig(const Subject& subject, const std::string& domains)
      : runtime(subject.options(domains)), kernels(subject.kernels(runtime)) {}

  Runtime runtime;
  Domain domain = runtime.domain(0);
  Place place = domain.place();
  Stream stream = place.stream({.name = "work"});
  Kernels kernels;

  /// A buffer of numbers with an instance of its own in the device.
  Buffer numbers(std::size_t count, const char* name = nullptr) const {
    return unaliased(count * sizeof(std::int64_t), name);
  }
  Buffer unaliased(std::size_t bytes, const char* name = nullptr) const {
    weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
    options.name = name;
    options.no_alias = true;
    return runtime.buffer(bytes, options);
  }
};

struct WithGate {
  Gate gate;
};

/// A Rig beside a core of the host, on which `gate` can hold actions of the device back.
class GatedRig : public WithGate, public Rig {
 public:
  explicit GatedRig(const Subject& subject) : Rig(subject, subject.domain + ",host:cores=1") {}
  ~GatedRig() { gate.open(); }

  /// An event of the host that comes after gate.open(). Once.
  Event closed() { return gate.close(runtime, host_stream); }

  Domain host = runtime.domain(1);
  Place desk = host.place();
  Stream host_stream = desk.stream({.name = "host"});
};

}  // namespace weir::conformance

// What the models of CUDA's and SYCL's runtimes share. A model only notes what a program enqueues;
// a wait of the program runs it, in an order that its streams and events permit, so that a
// dependence that is missing gives a wrong result. FORMS_SEED chooses the order: 0 takes what was
// enqueued last first. With FORMS_WAITS=0 dependences on events do nothing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <random>

namespace forms_model {

class Order {
 public:
  /// One of `count` things that can run.
  std::size_t choose(std::size_t count) {
    return seed_ == 0 ? count - 1 : static_cast<std::size_t>(random_() % count);
  }
  static bool waits_count() {
    const char* const given = std::getenv("FORMS_WAITS");
    return given == nullptr || std::strcmp(given, "0") != 0;
  }

 private:
  static unsigned given_seed() {
    const char* const given = std::getenv("FORMS_SEED");
    return given == nullptr ? 0 : static_cast<unsigned>(std::atoi(given));
  }

  unsigned seed_ = given_seed();
  std::mt19937 random_{seed_};
};

/// Memory of a device, of values that are not numbers.
inline void* device_memory(std::size_t bytes) {
  void* const made = std::malloc(bytes);
  if (made != nullptr) std::memset(made, 0xff, bytes);
  return made;
}

}  // namespace forms_model

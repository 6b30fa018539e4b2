// Lists of calls for tests, without a runtime.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "core/action.hpp"
#include "core/buffer.hpp"
#include "core/kernel.hpp"
#include "graph/call_list.hpp"

namespace weir::rt {

/// Calls of one kernel on buffers of 64 bytes, without a runtime.
class ListedCalls {
 public:
  struct Use {
    int buffer;
    std::uint64_t offset, bytes;
    weir_access access;
  };

  void add(const std::vector<Use>& uses, bool parallel = false) {
    Action action;
    action.reserve(uses.size(), 0, 0);
    action.code = parallel ? &parallel_code_ : &serial_code_;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      Operand& operand = action.operands()[i];
      operand = Operand{};
      operand.offset = uses[i].offset;
      operand.row = uses[i].bytes;
      operand.access = static_cast<std::uint8_t>(uses[i].access);
      operand.buffer = &buffer(uses[i].buffer);
    }
    list_.add(action, {});
  }
  /// The kernel of all calls added later; without one they must not run.
  void set_function(weir_host_function function) noexcept {
    serial_code_.function = parallel_code_.function = function;
  }
  const CallList& list() const noexcept { return list_; }

 private:
  static weir_kernel_options options_of(const char* name, weir_kernel_shape shape) {
    weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.shape = shape;
    return options;
  }
  Buffer& buffer(int number) {
    while (buffers_.size() <= static_cast<std::size_t>(number)) {
      buffers_.emplace_back(nullptr, buffers_.size() + 1, "b", nullptr, 64, true);
    }
    return buffers_[static_cast<std::size_t>(number)];
  }

  Kernel serial_{options_of("serial", WEIR_KERNEL_SHAPE_SERIAL), 1};
  Kernel parallel_{options_of("parallel", WEIR_KERNEL_SHAPE_PARALLEL), 2};
  KernelCode serial_code_{&serial_, "host", nullptr, nullptr};
  KernelCode parallel_code_{&parallel_, "host", nullptr, nullptr};
  std::deque<Buffer> buffers_;
  CallList list_;
};

/// Up to 60 calls with up to four operands in three buffers; a few of them are parallel.
class RandomCalls : public ListedCalls {
 public:
  explicit RandomCalls(std::mt19937& random, weir_host_function function = nullptr) {
    set_function(function);
    const std::size_t calls = 1 + random() % 60;
    for (std::size_t i = 0; i < calls; ++i) {
      std::vector<Use> uses(1 + random() % 4);
      for (Use& use : uses) {
        const std::uint64_t bytes = 8 * (1 + random() % 3);
        use = {static_cast<int>(random() % 3), 8 * (random() % (8 - bytes / 8 + 1)), bytes,
               static_cast<weir_access>(1 + random() % 3)};
      }
      add(uses, random() % 20 == 0);
    }
  }
};

}  // namespace weir::rt

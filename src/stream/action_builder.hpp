// Checks calls and makes actions of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <weir/stream.h>

#include "core/action.hpp"
#include "core/kernel.hpp"
#include "stream/action_recorder.hpp"

namespace weir::rt {

class Context;
class Domain;

/// Fills in the actions of one stream from what the program gives. The functions throw Error, or
/// std::bad_alloc, and name what is wrong; the action is then not enqueued. The thread that holds
/// the producer lock of the stream calls them.
class ActionBuilder {
 public:
  /// `stream` and `domain` outlive the builder.
  ActionBuilder(Context& context, const Domain& domain, const std::string& stream,
                std::uint64_t serial) noexcept
      : context_(context), domain_(domain), stream_(stream), serial_(serial) {}

  /// Returns false if another recorder is at work.
  bool begin_recording(ActionRecorder& recorder) noexcept {
    if (recorder_ != nullptr) return false;
    recorder_ = &recorder;
    return true;
  }
  void end_recording() noexcept { recorder_ = nullptr; }
  bool is_recorded() const noexcept { return recorder_ != nullptr; }
  /// Records a filled action, if there is a recorder. Returns whether the action is enqueued, too.
  bool record(const Action& action) const {
    return recorder_ == nullptr || recorder_->record(action);
  }

  void fill_compute(Action& action, const weir_compute& compute,
                    std::span<const weir_event> events);
  void fill_transfer(Action& action, const weir_transfer& transfer,
                     std::span<const weir_event> events) const;
  /// `on_host`: the operands are in host memory.
  void fill_external(Action& action, const weir_external& external, bool on_host) const;
  /// `enqueued` is the number of actions before this one.
  void fill_sync(Action& action, const weir_sync& sync, std::uint64_t enqueued) const;
  /// For an action whose only operand is this, in the memory of the stream's domain or the host's.
  void fill_operand(Action& action, const weir_operand& operand, bool on_host) const;

 private:
  static constexpr std::size_t kCodeCache = 8;
  struct CachedCode {
    const weir_kernel* kernel = nullptr;
    const KernelCode* code = nullptr;
  };

  static void fill_events(Action& action, std::span<const weir_event> events) noexcept;
  Operand make_operand(weir_buffer* handle, const weir_region& region, weir_access access,
                       const Domain* domain) const;
  const KernelCode& code_of(const weir_kernel& kernel) {
    CachedCode& cached = code_cache_[kernel.number() % kCodeCache];
    return cached.kernel == &kernel ? *cached.code : find_code(kernel, cached);
  }
  const KernelCode& find_code(const weir_kernel& kernel, CachedCode& cached);
  void check_route(const Operand& source, const Operand& target, const Domain* from,
                   const Domain* to) const;
  void check_not_later(const weir_event& event, std::uint64_t enqueued) const;

  Context& context_;
  const Domain& domain_;
  const std::string& stream_;
  const std::uint64_t serial_;
  std::array<CachedCode, kCodeCache> code_cache_;
  ActionRecorder* recorder_ = nullptr;
};

}  // namespace weir::rt

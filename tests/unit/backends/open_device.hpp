// Devices without a runtime: a machine made up by the test, and a sink that notes.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"

namespace weir::rt {

using KeyValues = std::vector<std::pair<std::string, std::string>>;

/// A machine of four cores with two hardware threads each. Threads are not pinned to them.
inline const Machine& test_machine() {
  static const Machine machine = [] {
    Machine made;
    made.processor = "test processor";
    for (unsigned i = 0; i < 4; ++i) made.cores.push_back({i, {i, i + 4}, 0, 0});
    made.own_cores = made.cores.size();
    made.hardware_threads = 8;
    made.memory_bytes = std::uint64_t{1} << 30;
    made.real = false;
    return made;
  }();
  return machine;
}

inline DomainSpec spec_of(const Backend& backend, KeyValues settings) {
  std::string text = backend.kind();
  for (const auto& [key, value] : settings) text += ":" + key + "=" + value;
  return {backend.kind(), std::move(settings), std::move(text)};
}

/// Opens a device with as many cores of the test machine as it wants.
inline std::unique_ptr<Device> open_device(Backend& backend, KeyValues settings) {
  const DomainSpec spec = spec_of(backend, std::move(settings));
  OpenContext context{&test_machine(), test_machine().cores, "test"};
  const unsigned wanted = backend.cores_wanted(spec, test_machine());
  if (wanted > 0) context.cores.resize(wanted);
  return backend.open(spec, std::move(context));
}

/// The status of the Error that code throws, OK without one.
template <class Code>
weir_status status_of(Code code) {
  try {
    code();
    return WEIR_STATUS_OK;
  } catch (const Error& error) {
    return error.status();
  }
}

/// Notes how copies end.
class Copies final : public CopySink {
 public:
  struct Ending {
    void* token;
    Outcome outcome;
    std::int64_t started_ns, ended_ns;
  };

  void copied(void* token, Outcome outcome, std::int64_t started_ns,
              std::int64_t ended_ns) noexcept override {
    std::lock_guard lock(mutex_);
    endings_.push_back({token, std::move(outcome), started_ns, ended_ns});
    changed_.notify_all();  // locked: the test may end as soon as it sees this
  }
  std::vector<Ending> endings() const {
    std::lock_guard lock(mutex_);
    return endings_;
  }
  std::vector<Ending> wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return endings_.size() >= count; });
    return endings_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Ending> endings_;
};

}  // namespace weir::rt

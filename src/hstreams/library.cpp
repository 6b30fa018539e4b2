#include "hstreams/library.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include <hstreams/hStreams_common.h>

#include "hstreams/log.hpp"

namespace weir::hs {

namespace {

void check_version(const char* version) {
  constexpr std::string_view kVersions[] = {"pre1.0.0", "1.0", "1.1", "1.2", HSTR_VERSION_STRING};
  if (version == nullptr) return;
  if (std::find(std::begin(kVersions), std::end(kVersions), version) != std::end(kVersions)) return;
  fail(HSTR_RESULT_OUT_OF_RANGE, "there is no version '{}' of the interface: 1.3 is the newest",
       version);
}

}  // namespace

Library& Library::get() {
  static Library& library = *new Library;
  return library;
}

void Library::fail_not_initialized() {
  fail(HSTR_RESULT_NOT_INITIALIZED, "hStreams_Init() comes first");
}

bool Library::initialized() {
  const std::shared_lock lock(gate_);
  return session_ != nullptr && !ending_;
}

void Library::init(const char* version) {
  const std::lock_guard life(life_);
  if (initialized()) return;
  check_version(version);
  auto session = std::make_unique<Session>(configuration_);
  const std::unique_lock lock(gate_);
  session_ = std::move(session);
  app_.emplace(*session_);
  last_error_ = HSTR_RESULT_SUCCESS;
}

void Library::fini() {
  const std::lock_guard life(life_);
  if (!initialized()) fail_not_initialized();
  end();
}

void Library::fini_if_open() noexcept {
  const std::lock_guard life(life_);
  if (initialized()) end();
}

/// Ends the session. Called by one thread at a time.
void Library::end() {
  ending_ = true;
  std::unique_ptr<Session> ended;
  {
    const std::unique_lock lock(gate_);
    app_.reset();
    ended = std::move(session_);
  }
  ended.reset();
  configuration_.reset();
  ending_ = false;
  std::fflush(stdout);
  log(HSTR_LOG_LEVEL_LOG, HSTR_INFO_TYPE_MISC, "closed");
}

}  // namespace weir::hs

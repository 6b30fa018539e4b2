// Domains and streams of the app interface.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "hstreams/session.hpp"

namespace weir::hs {

/// The logical domains and streams that hStreams_app_init() creates. The first call divides the
/// devices over domains; each call adds streams, with consecutive numbers. Ends
/// with the session. Any thread.
class AppPartition {
 public:
  explicit AppPartition(Session& session) noexcept : session_(session) {}

  /// Creates domains and streams like hStreams_app_init_domains(): all of them, or none.
  void create(std::span<const std::uint32_t> places, std::uint32_t oversubscription);

 private:
  void create_domains(std::size_t count);
  void create_streams(std::span<const std::uint32_t> places, std::uint32_t oversubscription);
  void undo(bool domains, HSTR_LOG_STR first_stream) noexcept;

  Session& session_;
  std::mutex mutex_;
  std::vector<HSTR_LOG_DOM> domains_;
  HSTR_LOG_STR next_stream_ = 0;
};

}  // namespace weir::hs

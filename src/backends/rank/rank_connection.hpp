// The connection of rank 0 to a device of another rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/rank/rank_client.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// A device that is open on its rank: sends messages and kernels to it, and describes ends of
/// copies. Any thread.
class RankConnection {
 public:
  /// Opens `specification` on the rank. Throws Error.
  RankConnection(std::shared_ptr<RankClient> client, Rank rank, const std::string& specification);
  /// Closes the device.
  ~RankConnection();

  RankClient& client() const noexcept { return *client_; }
  Port& port() const noexcept { return client_->port(); }
  Rank rank() const noexcept { return rank_; }
  std::uint32_t number() const noexcept { return number_; }
  const RankDeviceFacts& facts() const noexcept { return facts_; }

  /// See RankClient::post().
  void post(const WireWriter& message) const { client_->post(rank_, message); }
  /// Sends the kernel of a job to the rank, once per kernel. Throws Error.
  void define(const Job& job);
  /// Makes an end in host memory accessible to the rank through a window, which the caller
  /// withdraws. Throws Error.
  RankCopyEnd lend(const CopyEnd& end) const;
  /// Describes an end in the device's memory.
  RankCopyEnd near_end(const CopyEnd& end) const noexcept;

 private:
  const std::shared_ptr<RankClient> client_;
  const Rank rank_;
  const std::uint32_t number_;
  RankDeviceFacts facts_;

  // also held while sending, so that jobs follow the definition
  sys::Mutex defining_;
  std::vector<bool> defined_ WEIR_GUARDED_BY(defining_);  ///< by kernel number
};

}  // namespace weir::rt

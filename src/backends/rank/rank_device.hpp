// A device of another rank, as seen by rank 0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/rank/rank_connection.hpp"
#include "backends/rank/rank_place.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// Its memory, places and jobs are in the process of that rank, which resolves dependences.
/// Allocations are asynchronous: a job whose memory could not be allocated reports it.
class RankDevice final : public Device {
 public:
  /// Opens `specification` on the rank. Throws Error.
  RankDevice(std::string name, std::shared_ptr<RankClient> client, Rank rank,
             const std::string& specification);

  const RankConnection& connection() const noexcept { return connection_; }

  const DeviceInfo& info() const noexcept override { return info_; }
  // These do not wait for room to send their message: Residency calls them under its lock.
  Memory allocate(std::size_t bytes) override;
  void release(Memory& memory) noexcept override;
  /// Returns whether copies to and from `peer` are possible: it is the host, or a device of such a
  /// rank where one of the two has memory that other ranks can access.
  bool reaches(const Device* peer) const noexcept override;
  void copy(const CopyJob& job) noexcept override;
  std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) override;
  bool poll() noexcept override;
  void end_polling() noexcept override;

 private:
  /// Whether its memory can be accessed by other ranks.
  bool is_direct() const noexcept { return connection_.facts().direct; }
  std::uint32_t take_instance();
  void give_instance(std::uint32_t instance) noexcept;
  void start_copy(const CopyJob& job);
  RankCopyEnd end_of(const CopyEnd& end) const;

  RankConnection connection_;
  DeviceInfo info_;
  RankPlaces places_;

  sys::Mutex mutex_;  // not held while sending: a thread that waits for room may release memory
  std::vector<std::uint32_t> free_
      WEIR_GUARDED_BY(mutex_);  ///< numbers of freed instances; capacity for all
  std::uint32_t instances_ WEIR_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::rt

// A device of another rank, as seen by rank 0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/rank/rank_client.hpp"
#include "base/threads.hpp"

namespace weir::rt {

class RankPlace;

/// Its memory, places and jobs are in the process of that rank, which resolves dependences.
/// Allocations are asynchronous: a job whose memory could not be allocated reports it.
class RankDevice final : public Device {
 public:
  /// Opens `specification` on the rank. Throws Error.
  RankDevice(std::string name, std::shared_ptr<RankClient> client, Rank rank,
             const std::string& specification);
  ~RankDevice() override;

  RankClient& client() const noexcept { return *client_; }
  Rank rank() const noexcept { return rank_; }
  std::uint32_t number() const noexcept { return number_; }

  const DeviceInfo& info() const noexcept override { return facts_.info; }
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

  /// Adds a place for poll() to serve.
  void add_place(RankPlace& place);
  /// When it returns, no thread is in poll() of the place.
  void remove_place(RankPlace& place) noexcept;

  /// Sends the kernel of a job to the rank, once per kernel. Throws Error.
  void define(const Job& job);
  /// Makes an end in host memory accessible to the rank through a window, which the caller
  /// withdraws. Throws Error.
  RankCopyEnd lend(const CopyEnd& end) const;
  /// Describes an end in this device's memory.
  RankCopyEnd near_end(const CopyEnd& end) const noexcept;

 private:
  RankPlace* pin(std::size_t index) noexcept;
  std::uint32_t take_instance();
  void give_instance(std::uint32_t instance) noexcept;
  void start_copy(const CopyJob& job);
  RankCopyEnd end_of(const CopyEnd& end) const;

  const std::shared_ptr<RankClient> client_;
  const Rank rank_;
  const std::uint32_t number_;
  RankDeviceFacts facts_;

  sys::Mutex mutex_;  // not held while sending: a thread that waits for room may release memory
  std::vector<std::uint32_t> free_
      WEIR_GUARDED_BY(mutex_);  ///< numbers of freed instances; capacity for all
  std::uint32_t instances_ WEIR_GUARDED_BY(mutex_) = 0;

  sys::Mutex listing_;  // held briefly
  std::vector<RankPlace*> places_ WEIR_GUARDED_BY(listing_);

  // also held while sending, so that jobs follow the definition
  sys::Mutex defining_;
  std::vector<bool> defined_ WEIR_GUARDED_BY(defining_);  ///< by kernel number
};

}  // namespace weir::rt

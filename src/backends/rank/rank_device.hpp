// A device of another rank, as rank 0 has it.
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
  /// Has the rank open `specification`. Throws Error.
  RankDevice(std::string name, std::shared_ptr<RankClient> client, Rank rank,
             const std::string& specification);
  ~RankDevice() override;

  RankClient& client() const noexcept { return *client_; }
  Rank rank() const noexcept { return rank_; }
  std::uint32_t number() const noexcept { return number_; }

  const DeviceInfo& info() const noexcept override { return facts_.info; }
  // These do not wait for room to tell it: Residency calls them under its lock.
  Memory allocate(std::size_t bytes) override;
  void release(Memory& memory) noexcept override;
  /// Another device of such a rank is reached when one of the two has memory that others reach.
  bool reaches(const Device* peer) const noexcept override;
  void copy(const CopyJob& job) noexcept override;
  std::unique_ptr<PlaceDriver> open_place(const PlaceRequest& request, PlaceFeed& feed) override;
  std::int64_t now_ns() const noexcept override { return sys::now_ns(); }
  bool drive() noexcept override { return false; }
  bool poll() noexcept override;
  void end_polling() noexcept override;

  /// A place that poll() is to help.
  void add_place(RankPlace& place);
  /// Nobody helps it when this returns.
  void remove_place(RankPlace& place) noexcept;

  /// Tells the rank the kernel of a job, if it is new to it. Throws Error.
  void define(const Job& job);
  /// Lets the rank at an end in host memory, by a window that the caller withdraws. Throws Error.
  RankCopyEnd lend(const CopyEnd& end) const;
  /// Describes an end in the memory of this device.
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

  sys::Mutex mutex_;  // not while something is sent: whoever waits may release
  std::vector<std::uint32_t> free_
      WEIR_GUARDED_BY(mutex_);  ///< numbers of instances that were used; room for all
  std::uint32_t instances_ WEIR_GUARDED_BY(mutex_) = 0;

  sys::Mutex listing_;  // short
  std::vector<RankPlace*> places_ WEIR_GUARDED_BY(listing_);

  sys::Mutex defining_;                                   // also while it is sent: jobs follow
  std::vector<bool> defined_ WEIR_GUARDED_BY(defining_);  ///< by number of the kernel
};

}  // namespace weir::rt

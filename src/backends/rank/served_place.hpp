// A place that this rank serves to rank 0.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/job_queue.hpp"
#include "backends/rank/rank_wire.hpp"
#include "backends/rank/served_device.hpp"
#include "base/threads.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Runs the jobs of rank 0 in dependence order and reports completions in batches. It has no
/// thread: the thread that receives a message or completes a job serves, and polling workers
/// receive messages, so that a job needs no thread switch.
class ServedPlace final : private PlaceFeed {
 public:
  /// Throws Error.
  ServedPlace(Port& port, ServedDevice& device, std::uint32_t number, const PlaceRequest& request);
  ServedPlace(const ServedPlace&) = delete;
  ServedPlace& operator=(const ServedPlace&) = delete;
  /// Waits until all jobs are complete.
  ~ServedPlace();

  /// Takes the jobs of a message. Completions of brief jobs are reported in batches until a message
  /// without jobs requests all of them; from then on each is reported at once. Progress thread
  /// only. Throws Error{network_error}.
  void take(WireReader& message, const FindDevice& find);

 private:
  /// A job and everything that it points to.
  struct Entry {
    Job job;
    std::vector<std::uint64_t> waits;
    std::vector<weir_scalar> scalars;
    std::vector<weir_view> views;
    std::string name;
    std::array<ServedEnd, 2> ends;
    Outcome refused;  ///< why it cannot run
  };

  /// Resolves the dependences of jobs.
  class Queue final : public JobQueue {
   public:
    explicit Queue(ServedPlace& place) : JobQueue(place), place_(place) {}
    bool serve_once() noexcept { return serve(); }
    void poll() noexcept override;
    void about_to_block() noexcept override { place_.port_.about_to_block(); }

   private:
    void copy(const CopyJob& job) noexcept override;
    void notify(bool soon) noexcept override {
      if (!soon || place_.at_once_.load(std::memory_order_acquire)) place_.serve();
    }

    ServedPlace& place_;
  };

  Entry& entry_of(std::uint64_t number) noexcept { return entries_[number % JobQueue::kWindow]; }
  // The feed of the queue: the jobs of messages.
  bool next(Worker& worker, Job& job) noexcept override;
  void finish(Worker& worker, Job& job, Outcome outcome) noexcept override;
  bool has_work() const noexcept override {
    return taken_.load(std::memory_order_seq_cst) < arrived_.load(std::memory_order_seq_cst);
  }
  void take_one(WireReader& message, const FindDevice& find);
  void read(Entry& entry, WireReader& message, const FindDevice& find);
  void read_call(Entry& entry, WireReader& message, unsigned flags);
  void read_copy(Entry& entry, WireReader& message, const FindDevice& find);
  static void refuse(Entry& entry, Outcome why) noexcept;
  void serve() noexcept;
  void note_done(const Job& job, unsigned worker, const Outcome& outcome);
  void send_done() noexcept;

  Port& port_;
  ServedDevice& device_;
  std::vector<Entry> entries_;
  sys::Atomic<std::uint64_t> arrived_{0}, taken_{0}, given_back_{0};  ///< number of jobs

  sys::Atomic<bool> at_once_{false};     ///< rank 0 waits for each completion
  sys::Atomic<std::uint32_t> calls_{0};  ///< calls of serve() that are not handled yet
  WireWriter done_;                      ///< next report to rank 0; by the serving thread
  std::size_t done_start_ = 0, done_jobs_ = 0;
  std::uint64_t copied_bytes_ = 0;  ///< since the last report; by the serving thread

  Queue queue_{*this};
  std::unique_ptr<PlaceDriver> cores_;
};

}  // namespace weir::rt

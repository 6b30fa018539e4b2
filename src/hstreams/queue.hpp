// A physical stream, shared by the logical streams of one domain with the same mask.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <weir/weir.hpp>

#include "hstreams/physical_domain.hpp"
#include "hstreams/sink_call.hpp"

namespace weir::hs {

/// A weir stream with the order of hStreams: computes run one after the other, transfers where
/// their memory allows. Any thread may enqueue. Destroying it waits for its actions.
class Queue {
 public:
  /// openmp: threads to set before each call, 0: as many as there are cores.
  Queue(const weir::Runtime& runtime, const PhysicalDomain& physical, const CpuMask& mask,
        const std::string& name, int openmp);

  const PhysicalDomain& physical() const noexcept { return physical_; }
  const CpuMask& mask() const noexcept { return mask_; }

  weir_event compute(const SinkKernel& kernel, const SinkCall& call, HSTR_DEP_POLICY policy);
  weir_event transfer(const weir_endpoint& source, const weir_endpoint& target,
                      HSTR_DEP_POLICY policy);
  /// transfer() by the stream of another domain: `own` is the end that this stream orders, `far`
  /// the end in the memory of `device_queue`. Transfers of other parts of that memory neither wait
  /// for this one nor fail with it.
  weir_event transfer_by(Queue& device_queue, const weir_endpoint& source,
                         const weir_endpoint& target, const Region& own, const Region& far,
                         HSTR_DEP_POLICY policy);
  /// transfer_by() between two devices without a link, staged through host memory `stage` of the
  /// same size, which nothing else may use until the event is complete. Also orders this stream
  /// under policy NONE.
  weir_event transfer_staged(Queue& device_queue, const weir_endpoint& source,
                             const weir_endpoint& target, const weir_endpoint& stage,
                             const Region& own, const Region& far, HSTR_DEP_POLICY policy);
  /// Enqueues a call of a kernel of the layer.
  weir_event run(const weir::Kernel& kernel, std::span<const Operand> operands,
                 std::span<const Scalar> scalars, HSTR_DEP_POLICY policy);

  /// Enqueues a wait for events, or without any for all earlier actions; all later actions wait for
  /// it.
  weir_event barrier(std::vector<weir_event> events);
  /// Enqueues the same wait; only later actions that access the parts wait for it.
  weir_event wait(std::vector<weir_event> events, const std::vector<Operand>& parts);
  /// Returns an event for all earlier actions.
  weir_event mark();
  /// Returns an event that completes after other events.
  weir_event join(std::vector<weir_event> events);

  weir_status synchronize(std::int64_t timeout_ns) const {
    return weir_stream_synchronize(main_.handle(), timeout_ns);
  }

 private:
  weir_stream* stream_for(HSTR_DEP_POLICY policy);
  weir_stream* loose();

  const PhysicalDomain& physical_;
  const CpuMask mask_;
  const int openmp_;
  std::mutex mutex_;
  bool conservative_ = false;  // the last action was
  weir::Buffer order_;         // operand that all computes write, which serialises them
  weir::Place place_;
  weir::Stream main_;
  weir::Stream loose_;  // unordered; created on first use
};

/// A queue for each device, for transfers that streams of the host enqueue and for setting up
/// memory. Queues are created on first use and live as long as this object. Any thread.
class DeviceQueues {
 public:
  explicit DeviceQueues(const weir::Runtime& runtime) noexcept : runtime_(runtime) {}

  Queue& of(const PhysicalDomain& device);
  /// Synchronises the queues, which clears their failures: the host streams that enqueued the
  /// transfers have reported them. Also waits for other transfers.
  void clear_failures(std::int64_t timeout_ns);

 private:
  const weir::Runtime& runtime_;
  std::mutex mutex_;
  std::map<HSTR_PHYS_DOM, std::unique_ptr<Queue>> queues_;
};

}  // namespace weir::hs

// The state of the layer from its initialisation to its end.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include <weir/weir.hpp>

#include "hstreams/buffer_table.hpp"
#include "hstreams/checksums.hpp"
#include "hstreams/configuration.hpp"
#include "hstreams/environment.hpp"
#include "hstreams/openmp.hpp"
#include "hstreams/physical_domain.hpp"
#include "hstreams/queue.hpp"
#include "hstreams/setup_kernels.hpp"
#include "hstreams/sink_call.hpp"
#include "hstreams/sink_libraries.hpp"
#include "hstreams/staging.hpp"

namespace weir::hs {

struct LogicalDomain {
  const PhysicalDomain* physical;
  CpuMask mask;
  std::vector<HSTR_LOG_STR> streams;  ///< in the order of their creation
};

struct LogicalStream {
  HSTR_LOG_DOM domain;
  CpuMask mask;
  std::shared_ptr<Queue> queue;
  std::atomic<std::uint64_t> downloads{0};
};

/// The arguments of hStreams_EnqueueCompute().
struct ComputeRequest {
  const char* name;
  std::span<const std::uint64_t> scalars;
  std::span<const std::uint64_t> addresses;
  void* result;
  std::uint16_t result_bytes;
};

/// The arguments of hStreams_EnqueueDataXDomain1D().
struct TransferRequest {
  void* write;
  void* read;
  std::uint64_t bytes;
  HSTR_LOG_DOM target, source;
};

/// Domains, streams and buffers of one program. Any thread may call. Functions check their
/// arguments and throw Error with the result that the API's contract states.
class Session {
 public:
  /// Opens the machine. Throws Error.
  explicit Session(const Configuration& configuration);

  std::size_t card_count() const noexcept { return cards_.size(); }
  bool homogeneous() const;
  const PhysicalDomain& physical(HSTR_PHYS_DOM id) const;
  CpuMask available(HSTR_PHYS_DOM id) const;
  /// Physical streams on each thread.
  std::vector<std::uint32_t> oversubscription(HSTR_PHYS_DOM id) const;

  HSTR_LOG_DOM add_domain(HSTR_PHYS_DOM physical, const CpuMask& mask, HSTR_OVERLAP_TYPE& overlap);
  void remove_domain(HSTR_LOG_DOM id);
  std::vector<HSTR_LOG_DOM> domains_of(HSTR_PHYS_DOM physical) const;
  /// The mask of domain 0 is empty.
  LogicalDomain domain(HSTR_LOG_DOM id, HSTR_RESULT otherwise) const;

  void create_stream(HSTR_LOG_STR id, HSTR_LOG_DOM domain, const CpuMask& mask);
  void destroy_stream(HSTR_LOG_STR id);
  CpuMask stream_mask(HSTR_LOG_STR id) const;

  void allocate(void* base, std::uint64_t bytes, const HSTR_BUFFER_PROPS& props, std::int64_t count,
                const HSTR_LOG_DOM* domains);
  void deallocate(const void* address);
  void add_instances(const void* address, std::span<const HSTR_LOG_DOM> domains);
  /// Without a list: removes all instances, also the program's memory.
  void remove_instances(const void* address, const std::span<const HSTR_LOG_DOM>* domains);
  std::vector<HSTR_LOG_DOM> instances_of(const void* address);
  HSTR_BUFFER_PROPS props_of(const void* address);

  HSTR_EVENT compute(HSTR_LOG_STR stream, const ComputeRequest& request);
  HSTR_EVENT transfer(HSTR_LOG_STR stream, void* write, void* read, std::uint64_t bytes,
                      HSTR_XFER_DIRECTION direction);
  HSTR_EVENT transfer(HSTR_LOG_STR stream, const TransferRequest& request);
  /// count: the number of addresses, as the interface encodes it.
  HSTR_EVENT wait_in_stream(HSTR_LOG_STR stream, std::span<const HSTR_EVENT> events,
                            std::int32_t count, void* const* addresses);

  void synchronize(HSTR_LOG_STR stream);
  void synchronize_all();
  void wait(std::span<const HSTR_EVENT> events, bool all, std::int64_t timeout_ns);
  bool complete(const HSTR_EVENT& event) const;

  /// Creates domains and streams like hStreams_app_init_domains(): all of them, or none.
  void partition(std::span<const std::uint32_t> places, std::uint32_t oversubscription);

 private:
  const LogicalDomain& find_domain(HSTR_LOG_DOM id, HSTR_RESULT otherwise) const;
  const LogicalStream& find_stream(HSTR_LOG_STR id) const;
  LogicalStream& find_stream(HSTR_LOG_STR id);
  std::vector<const Queue*> queues_on(const PhysicalDomain& physical) const;
  std::shared_ptr<Queue> queue_for(HSTR_LOG_STR id, const LogicalDomain& domain,
                                   const CpuMask& mask);
  std::shared_ptr<Queue> make_queue(const PhysicalDomain& physical, const CpuMask& mask,
                                    const std::string& name);
  void wait_for(const weir_event& event) const;
  std::vector<std::shared_ptr<Queue>> all_queues() const;

  void check_new_instances(std::span<const HSTR_LOG_DOM> domains) const;
  void instantiate(Buffer& buffer, HSTR_LOG_DOM domain);
  void materialize(const Instance& instance, const PhysicalDomain& there,
                   const HSTR_BUFFER_PROPS& props);
  void touch(Queue& courier, const Instance& instance) const;
  Buffer& use_buffer(const void* address) { return *buffers_.find(address).buffer; }

  struct End {
    HSTR_LOG_DOM domain;
    const Instance* instance;
    weir::Region region;
    weir_endpoint endpoint() const { return {instance->domain, region.buffer, region.region}; }
  };
  End end_of(const void* address, std::uint64_t bytes, HSTR_LOG_DOM domain);
  weir_event copy(LogicalStream& stream, HSTR_LOG_STR id, const End& source, const End& target);
  weir_event copy_between_devices(Queue& queue, const End& source, const End& target,
                                  bool from_here);
  void inspect(Queue& queue, const Region& payload, std::span<const Scalar> numbers) const;
  Queue& courier_of(const PhysicalDomain& card);
  void renew_couriers();
  std::vector<weir_event> known(std::span<const HSTR_EVENT> events) const;

  void partition_cards(std::size_t count);
  void create_streams(std::span<const std::uint32_t> places, std::uint32_t oversubscription);
  void undo_partition(bool domains, HSTR_LOG_STR first_stream) noexcept;
  std::vector<CpuMask> places_in(HSTR_LOG_DOM domain, std::size_t count) const;

  const Configuration& configuration_;
  const Environment environment_;
  SinkLibraries libraries_;
  weir::Runtime runtime_;
  SinkKernel sink_;
  SetupKernels setup_;
  Checksums checksums_;
  OpenMpCensus census_;
  int default_openmp_;
  std::vector<PhysicalDomain> cards_;
  std::optional<PhysicalDomain> host_;  // once it is open

  mutable std::shared_mutex mutex_;  // guards the four below
  BufferTable buffers_;
  std::map<HSTR_LOG_DOM, LogicalDomain> domains_;
  std::map<HSTR_LOG_STR, LogicalStream> streams_;
  HSTR_LOG_DOM next_domain_ = 1;

  Staging staging_;

  std::mutex courier_mutex_;
  std::map<HSTR_PHYS_DOM, std::unique_ptr<Queue>> couriers_;

  std::mutex partition_mutex_;
  std::vector<HSTR_LOG_DOM> partitions_;  // of the app interface
  HSTR_LOG_STR next_stream_ = 0;
};

}  // namespace weir::hs

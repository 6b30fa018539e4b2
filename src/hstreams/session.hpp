// The state of the layer from its initialisation to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include <weir/weir.hpp>

#include "hstreams/checksums.hpp"
#include "hstreams/configuration.hpp"
#include "hstreams/environment.hpp"
#include "hstreams/logical_domains.hpp"
#include "hstreams/openmp.hpp"
#include "hstreams/program_buffers.hpp"
#include "hstreams/setup_kernels.hpp"
#include "hstreams/sink_libraries.hpp"
#include "hstreams/staging.hpp"

namespace weir::hs {

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

  const PhysicalDomains& physical() const noexcept { return physical_; }
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

 private:
  std::shared_ptr<Queue> make_queue(const PhysicalDomain& physical, const CpuMask& mask,
                                    const std::string& name);
  void wait_for(const weir_event& event) const;

  void check_new_instances(std::span<const HSTR_LOG_DOM> domains) const;
  void instantiate(Buffer& buffer, HSTR_LOG_DOM domain);
  void materialize(const Instance& instance, const PhysicalDomain& there,
                   const HSTR_BUFFER_PROPS& props);
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
  std::vector<weir_event> known(std::span<const HSTR_EVENT> events) const;

  const Configuration& configuration_;
  const Environment environment_;
  SinkLibraries libraries_;
  weir::Runtime runtime_;
  SinkKernel sink_;
  SetupKernels setup_;
  Checksums checksums_;
  OpenMpCensus census_;
  int default_openmp_;
  const PhysicalDomains physical_;

  mutable std::shared_mutex mutex_;  // guards the two below
  ProgramBuffers buffers_;
  LogicalDomains domains_;

  Staging staging_;
  DeviceQueues device_queues_;
};

}  // namespace weir::hs

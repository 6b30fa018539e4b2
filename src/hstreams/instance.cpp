#include "hstreams/instance.hpp"

#include <vector>

#include <hstreams/hStreams_common.h>
#include <sys/mman.h>

#include "hstreams/error.hpp"

namespace weir::hs {

namespace {

constexpr std::size_t kLine = 64;
constexpr int kMostTries = 64;

/// Reserves address space while it exists.
class Decoy {
 public:
  explicit Decoy(std::size_t bytes)
      : bytes_(bytes),
        address_(
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  Decoy(Decoy&& other) noexcept
      : bytes_(other.bytes_), address_(std::exchange(other.address_, MAP_FAILED)) {}
  Decoy& operator=(Decoy&&) = delete;
  ~Decoy() {
    if (address_ != MAP_FAILED) munmap(address_, bytes_);
  }

 private:
  std::size_t bytes_;
  void* address_;
};

/// Creates a weir buffer. A program may free memory that is still a buffer; the system then reuses
/// its addresses, and weir refuses them. Decoys reserve such addresses.
weir::Buffer make_buffer(const weir::Runtime& runtime, std::size_t bytes,
                         const weir_buffer_options& options) {
  std::vector<Decoy> decoys;
  for (int tries = 1;; ++tries) {
    try {
      return runtime.buffer(bytes, options);
    } catch (const weir::Error& error) {
      if (error.status() != WEIR_STATUS_INVALID_ARGUMENT || tries == kMostTries) throw;
      decoys.emplace_back(bytes);
    }
  }
}

weir_buffer_options options_for(const PhysicalDomain& physical, std::uint64_t bytes,
                                const HSTR_BUFFER_PROPS& props, std::size_t huge_from) {
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.no_alias = !physical.is_host();
  options.prefault = physical.is_host() && (props.flags & HSTR_BUF_PROP_AFFINITIZED) == 0;
  if (bytes > huge_from) options.kind = WEIR_MEMORY_KIND_HUGE_PAGE;
  if (props.mem_type == HSTR_MEM_TYPE_HBW) {
    options.kind = WEIR_MEMORY_KIND_HIGH_BANDWIDTH;
    options.strict = props.mem_alloc_policy == HSTR_MEM_ALLOC_STRICT;
  }
  return options;
}

}  // namespace

std::shared_ptr<Instance> wrap_instance(const weir::Runtime& runtime, void* base,
                                        std::uint64_t bytes) {
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.alignment = 1;
  try {
    return std::make_shared<Instance>(
        Instance{runtime.wrap(base, bytes, options), nullptr, HSTR_SRC_PHYS_DOMAIN, 0});
  } catch (const weir::Error& error) {
    if (error.status() != WEIR_STATUS_INVALID_ARGUMENT) throw;
    fail(HSTR_RESULT_OUT_OF_MEMORY, "that is not all memory of the program: {}", error.what());
  }
}

std::shared_ptr<Instance> make_instance(const weir::Runtime& runtime,
                                        const PhysicalDomain& physical, const void* base,
                                        std::uint64_t bytes, const HSTR_BUFFER_PROPS& props,
                                        std::size_t huge_from) {
  const std::size_t pad = reinterpret_cast<std::uintptr_t>(base) % kLine;
  if (bytes > physical.bytes || pad > physical.bytes - bytes) {
    fail(HSTR_RESULT_OUT_OF_MEMORY, "an instance of {} bytes does not fit into domain {} with {}",
         bytes, physical.id, physical.bytes);
  }
  const weir_buffer_options options = options_for(physical, bytes, props, huge_from);
  try {
    return std::make_shared<Instance>(Instance{make_buffer(runtime, pad + bytes, options),
                                               physical.is_host() ? nullptr : physical.domain,
                                               physical.id, pad});
  } catch (const weir::Error& error) {
    if (error.status() != WEIR_STATUS_UNAVAILABLE) throw;
    fail(HSTR_RESULT_OUT_OF_MEMORY, "{}", error.what());
  }
}

weir::Buffer make_host_memory(const weir::Runtime& runtime, std::uint64_t bytes) {
  return make_buffer(runtime, bytes, WEIR_BUFFER_OPTIONS_INIT);
}

}  // namespace weir::hs

// Portable kernels on an OpenCL device.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backends/opencl/opencl_platforms.hpp"
#include "base/cache.hpp"

namespace weir::rt {

/// Builds the sources of kernels for a device and enqueues their calls. Binaries are kept in the
/// user's cache folder. One thread at a time, because an OpenCL kernel object holds the arguments
/// of its next call.
///
/// Without shared virtual memory operands are buffers with offsets: the generated source takes a
/// buffer and an offset for each pointer parameter and adds them first.
class OpenClPrograms {
 public:
  /// For queues of this context and device; `facts` describe the device or its parent device.
  /// `takes_buffers`: operands are not addresses, but those that find_opencl_buffer() knows.
  OpenClPrograms(const OpenClDeviceInfo& facts, cl_context context, cl_device_id device,
                 bool takes_buffers);

  /// Enqueues a job that has a source; builds the source on its first job, and again after a build
  /// failed for lack of memory. The command waits for `waits`; out_event is its event, which the
  /// caller releases. Operands are host addresses. After a failure, and for a call without groups
  /// and without waits, nothing is enqueued and there is no event.
  Outcome enqueue(cl_command_queue queue, const Job& job, std::span<const cl_event> waits,
                  cl_event* out_event) noexcept;

 private:
  struct Built {
    OpenClKernel kernel;
    Outcome outcome;
    std::vector<std::uint64_t> arguments;  ///< of the last call, none before the first
    bool primed = false;
    OpenClEvent priming;  ///< the event of prime(), while it is in flight
  };

  void set_arguments(Built& built, const Job& job) const;
  void prime(cl_command_queue queue, Built& built, const KernelSource& source) const;
  std::span<const cl_event> with_priming(cl_command_queue queue, Built& built, const Job& job,
                                         std::span<const cl_event> waits);
  cl_int set_operand(cl_kernel kernel, cl_uint index, const void* operand) const;
  std::string text_of(const KernelSource& source) const;
  std::size_t parameters_of(const KernelSource& source) const noexcept;
  Built& built(const KernelSource& source);
  Built build(const KernelSource& source);
  cl_program program_of(const KernelSource& source);
  OpenClProgram compile(const KernelSource& source, const std::string& text) const;
  OpenClProgram load(const std::string& binary) const;
  void keep(cl_program program, const std::string& key) const;
  std::string log_of(cl_program program) const;
  void check_group(const KernelSource& source) const;
  void check_kernel(const KernelSource& source, cl_kernel kernel) const;
  void fail_launch(const KernelSource& source, cl_kernel kernel, cl_int code) const;

  const std::string device_name_;
  /// Sets all arguments of the next call again: a device may need this when new memory has the
  /// address of freed memory.
  const bool keeps_arguments_;
  const bool takes_buffers_;
  const bool confuses_sizes_;  ///< see OpenClDeviceInfo
  const bool keeps_binaries_;
  const cl_context context_;
  const cl_device_id device_;
  const std::string options_;  ///< of the compiler
  const Cache cache_;
  std::map<std::string, OpenClProgram> programs_;  ///< by hash of the source, which kernels share
  std::map<const KernelSource*, Built> built_;
  std::vector<cl_event> waits_;  ///< of the next call, while its kernel is being primed
};

}  // namespace weir::rt

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

class OpenClDevice;

/// Builds the sources of kernels for a device and enqueues their calls. Binaries are kept in the
/// user's cache folder. One thread at a time: a kernel of OpenCL holds the arguments of its next
/// call.
///
/// Without shared virtual memory operands are buffers with offsets: the generated source takes a
/// buffer and an offset for each pointer parameter and adds them first.
class OpenClPrograms {
 public:
  /// For queues of this context and device: `facts` are about it, or about what it is a part of.
  /// `discrete_device` is null where operands are addresses, otherwise it knows the buffers that
  /// they are in.
  OpenClPrograms(const OpenClDeviceInfo& facts, cl_context context, cl_device_id device,
                 const OpenClDevice* discrete_device);

  /// Enqueues a job that has a source; builds this when it is seen first, and again if there was no
  /// memory. The command waits for `waits`; out_event, the caller's to release, is its own.
  /// Operands are addresses of the host. After a failure nothing was enqueued, nor for a call of no
  /// groups that waits for nothing: then there is no event.
  Outcome enqueue(cl_command_queue queue, const Job& job, std::span<const cl_event> waits,
                  cl_event* out_event) noexcept;

 private:
  struct Built {
    OpenClKernel kernel;
    Outcome outcome;
    std::vector<std::uint64_t> arguments;  ///< of the last call, none before the first
  };

  void set_arguments(Built& built, const Job& job) const;
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
  template <class T>
  T limit(cl_device_info what) const noexcept;

  const std::string device_name_;
  /// A card may need to be told again of memory that is where other memory was.
  const bool keeps_arguments_;
  const OpenClDevice* const discrete_device_;  ///< null: operands are addresses
  const cl_context context_;
  const cl_device_id device_;
  const Cache cache_;
  std::map<std::string, OpenClProgram> programs_;  ///< by key of the text, which kernels share
  std::map<const KernelSource*, Built> built_;
};

}  // namespace weir::rt

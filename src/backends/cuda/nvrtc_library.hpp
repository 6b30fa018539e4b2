// NVRTC, the run-time compiler of CUDA C++, opened when the first kernel needs it.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace weir::rt {

// clang-format off
#define WEIR_NVRTC_FUNCTIONS(each)                                                                 \
  each(nvrtcVersion, int* major, int* minor)                                                       \
  each(nvrtcGetNumSupportedArchs, int* count)                                                      \
  each(nvrtcGetSupportedArchs, int* architectures)                                                 \
  each(nvrtcCreateProgram, Program* program, const char* text, const char* name, int headers,      \
       const char* const* contents, const char* const* names)                                      \
  each(nvrtcDestroyProgram, Program* program)                                                      \
  each(nvrtcCompileProgram, Program program, int count, const char* const* options)                \
  each(nvrtcGetProgramLogSize, Program program, std::size_t* bytes)                                \
  each(nvrtcGetProgramLog, Program program, char* log)                                             \
  each(nvrtcGetCUBINSize, Program program, std::size_t* bytes)                                     \
  each(nvrtcGetCUBIN, Program program, char* code)                                                 \
  each(nvrtcGetPTXSize, Program program, std::size_t* bytes)                                       \
  each(nvrtcGetPTX, Program program, char* code)
// clang-format on

/// NVRTC's functions, with weir's own prototypes: only the toolkit has its header.
struct NvrtcLibrary {
  using Program = void*;

// NOLINTNEXTLINE(bugprone-macro-parentheses): it is a member's name
#define WEIR_NVRTC_MEMBER(name, ...) int (*name)(__VA_ARGS__) = nullptr;
  WEIR_NVRTC_FUNCTIONS(WEIR_NVRTC_MEMBER)
#undef WEIR_NVRTC_MEMBER
  // NOLINTNEXTLINE(readability-identifier-naming): named like the others
  const char* (*nvrtcGetErrorString)(int result) = nullptr;

  std::string version;                  ///< "13.0"
  std::vector<unsigned> architectures;  ///< that it compiles for, ascending

  /// Opens NVRTC on first use: WEIR_NVRTC, or the newest known version. Throws Error{unavailable}
  /// that says what to install.
  static const NvrtcLibrary& get();
};

/// Compiles a text for an architecture; `file` is its name in messages. Returns the device's code,
/// or PTX for the driver when the compiler is older than the device. Throws Error{kernel_error}
/// with the compiler's messages, {unsupported} when the device is too old for it.
std::string compile_for_cuda(const std::string& text, const std::string& file,
                             unsigned architecture);

}  // namespace weir::rt

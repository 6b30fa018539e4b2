// NVRTC, the run-time compiler of CUDA C++, opened when the first kernel needs it.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"

namespace weir::rt {

/// NVRTC's functions, with weir's own prototypes: only the toolkit has its header.
struct NvrtcLibrary {
  using Program = void*;
  using Result = int;

  // NOLINTBEGIN(readability-identifier-naming): the library's names
  Result (*nvrtcVersion)(int* major, int* minor) = nullptr;
  Result (*nvrtcGetNumSupportedArchs)(int* count) = nullptr;
  Result (*nvrtcGetSupportedArchs)(int* architectures) = nullptr;
  Result (*nvrtcCreateProgram)(Program* program, const char* text, const char* name, int headers,
                               const char* const* contents, const char* const* names) = nullptr;
  Result (*nvrtcDestroyProgram)(Program* program) = nullptr;
  Result (*nvrtcCompileProgram)(Program program, int count, const char* const* options) = nullptr;
  Result (*nvrtcGetProgramLogSize)(Program program, std::size_t* bytes) = nullptr;
  Result (*nvrtcGetProgramLog)(Program program, char* log) = nullptr;
  Result (*nvrtcGetCUBINSize)(Program program, std::size_t* bytes) = nullptr;
  Result (*nvrtcGetCUBIN)(Program program, char* code) = nullptr;
  Result (*nvrtcGetPTXSize)(Program program, std::size_t* bytes) = nullptr;
  Result (*nvrtcGetPTX)(Program program, char* code) = nullptr;
  const char* (*nvrtcGetErrorString)(Result result) = nullptr;
  // NOLINTEND(readability-identifier-naming)

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

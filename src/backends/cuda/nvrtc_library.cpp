#include "backends/cuda/nvrtc_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "backend/portable_text.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

/// Opens the libraries in NVRTC's folder that NVRTC needs and does not find there itself.
void open_builtins(const std::filesystem::path& library) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(library.parent_path(), error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("libnvrtc-builtins.so.")) {
      dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
    }
  }
}

void* open_first() {
  const char* const chosen = sys::environment("WEIR_NVRTC");
  if (chosen != nullptr && *chosen != '\0') {
    open_builtins(chosen);
    return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  }
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
  }
  return nullptr;
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE, "NVRTC has no {}: version 12 or newer is needed", name);
  }
}

void read_facts(NvrtcLibrary& rtc) {
  int major = 0, minor = 0, count = 0;
  rtc.nvrtcVersion(&major, &minor);
  rtc.version = fmt::format("{}.{}", major, minor);
  rtc.nvrtcGetNumSupportedArchs(&count);
  std::vector<int> known(static_cast<std::size_t>(std::max(count, 0)));
  rtc.nvrtcGetSupportedArchs(known.data());
  for (const int one : known) rtc.architectures.push_back(static_cast<unsigned>(one));
  std::sort(rtc.architectures.begin(), rtc.architectures.end());
  if (rtc.architectures.empty()) {
    fail(WEIR_STATUS_UNAVAILABLE, "NVRTC {} compiles for no architecture", rtc.version);
  }
}

NvrtcLibrary open_library() {
  void* const library = open_first();
  if (library == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE,
         "there is no compiler for CUDA kernels: {}; install NVRTC (the package nvidia-cuda-nvrtc "
         "from PyPI, or the CUDA toolkit), or set WEIR_NVRTC to the path of its libnvrtc.so",
         dlerror());
  }
  NvrtcLibrary rtc;
#define WEIR_NVRTC_FIND(name, ...) find(library, #name, rtc.name);
  WEIR_NVRTC_FUNCTIONS(WEIR_NVRTC_FIND)
  find(library, "nvrtcGetErrorString", rtc.nvrtcGetErrorString);
#undef WEIR_NVRTC_FIND
  read_facts(rtc);
  return rtc;
}

/// Throws Error when NVRTC reports that it has no memory.
void check_memory(int code, const std::string& file) {
  constexpr int kOutOfMemory = 1;
  if (code == kOutOfMemory) fail(WEIR_STATUS_OUT_OF_MEMORY, "{}: no memory to compile it", file);
}

/// Owns an NVRTC program.
class Program {
 public:
  Program(const NvrtcLibrary& rtc, const std::string& text, const std::string& file) : rtc_(rtc) {
    const char* const header = device_tunnel_text();
    const char* const name = "weir/device_tunnel.hpp";
    const int code =
        rtc.nvrtcCreateProgram(&program_, text.c_str(), file.c_str(), 1, &header, &name);
    check_memory(code, file);
    if (code != 0) {
      fail(WEIR_STATUS_KERNEL_ERROR, "{}: NVRTC does not take it: {}", file,
           rtc.nvrtcGetErrorString(code));
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { rtc_.nvrtcDestroyProgram(&program_); }

  NvrtcLibrary::Program get() const noexcept { return program_; }
  std::string log() const { return read(rtc_.nvrtcGetProgramLogSize, rtc_.nvrtcGetProgramLog); }
  std::string code(bool native) const {
    return native ? read(rtc_.nvrtcGetCUBINSize, rtc_.nvrtcGetCUBIN)
                  : read(rtc_.nvrtcGetPTXSize, rtc_.nvrtcGetPTX);
  }

 private:
  template <class Size, class Get>
  std::string read(Size size, Get get) const {
    std::size_t bytes = 0;
    size(program_, &bytes);
    std::string text(bytes, '\0');
    if (bytes > 0) get(program_, text.data());
    return text;
  }

  const NvrtcLibrary& rtc_;
  NvrtcLibrary::Program program_ = nullptr;
};

/// The newest architecture that the compiler knows and whose code the device can run.
unsigned nearest_to(unsigned architecture, const NvrtcLibrary& rtc) {
  const auto& known = rtc.architectures;
  const auto newer = std::upper_bound(known.begin(), known.end(), architecture);
  if (newer != known.begin()) return *std::prev(newer);
  fail(WEIR_STATUS_UNSUPPORTED,
       "NVRTC {} compiles for compute capabilities from {}.{} on, and the device has {}.{}: "
       "install an older one",
       rtc.version, known.front() / 10, known.front() % 10, architecture / 10, architecture % 10);
}

/// Converts sizes that the assembler reports as "0xc000 max" to decimal.
std::string with_plain_sizes(std::string log) {
  for (std::size_t at = 0; (at = log.find("0x", at)) != std::string::npos; at += 2) {
    const char* const end = log.data() + log.size();
    std::uint64_t size = 0;
    const auto [rest, error] = std::from_chars(log.data() + at + 2, end, size, 16);
    const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    if (error != std::errc() || !(unit.starts_with(" bytes") || unit.starts_with(" max"))) continue;
    const auto digits = static_cast<std::size_t>(rest - log.data()) - at;
    log.replace(at, digits, std::to_string(size));
  }
  return log;
}

/// The messages of a compiler as one line, with single blanks.
std::string shortened(std::string log) {
  log = with_plain_sizes(one_line(std::move(log)));
  const auto both_blank = [](char a, char b) { return a == ' ' && b == ' '; };
  log.erase(std::unique(log.begin(), log.end(), both_blank), log.end());
  while (!log.empty() && log.back() == ' ') log.pop_back();
  constexpr std::size_t kMost = 1500;
  return log.size() > kMost ? log.substr(0, kMost) + " ..." : log;
}

}  // namespace

const NvrtcLibrary& NvrtcLibrary::get() {
  static const NvrtcLibrary library = open_library();
  return library;
}

std::string compile_for_cuda(const std::string& text, const std::string& file,
                             unsigned architecture) {
  const NvrtcLibrary& rtc = NvrtcLibrary::get();
  const unsigned nearest = nearest_to(architecture, rtc);
  const bool native = nearest == architecture;
  const std::string target =
      fmt::format("--gpu-architecture={}_{}", native ? "sm" : "compute", nearest);
  const std::array options = {target.c_str(), "--std=c++17", "--extra-device-vectorization"};
  const Program program(rtc, text, file);
  const int code =
      rtc.nvrtcCompileProgram(program.get(), static_cast<int>(options.size()), options.data());
  check_memory(code, file);
  if (code != 0) {
    fail(WEIR_STATUS_KERNEL_ERROR, "{} does not compile for CUDA: {}", file,
         shortened(program.log()));
  }
  return program.code(native);
}

}  // namespace weir::rt

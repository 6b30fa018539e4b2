#include "kernels/blas_library.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <optional>
#include <vector>

#include <weir/version.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "kernels/plain_blas.hpp"

namespace weir::kernels {

using rt::Error;
using rt::fail;
using rt::fail_argument;
namespace sys = rt::sys;

namespace {

constexpr const char* kAdvice =
    "apt install libopenblas0-pthread, pip install scipy-openblas32, or name another with "
    "WEIR_BLAS";
constexpr const char* kPlain = "plain";

struct KnownLibrary {
  std::string name;
  std::vector<std::string> files;
};

/// Where wheels of Python put a library, when weir is a wheel itself: `path` below the folder of
/// packages, in which weir's library is in weir/lib.
std::string in_wheel(const char* path) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&in_wheel), &info) == 0) return {};
  char* const whole = ::realpath(info.dli_fname, nullptr);
  if (whole == nullptr) return {};
  std::string folder = whole;
  ::free(whole);
  for (const char* const part : {"/", "/lib", "/weir"}) {
    const std::size_t slash = folder.rfind('/');
    if (slash == std::string::npos || !folder.substr(slash).starts_with(part)) return {};
    folder.erase(slash);
  }
  return folder + path;
}

/// In the order in which they are tried.
const std::vector<KnownLibrary>& known_libraries() {
  static const std::vector<KnownLibrary> known = {
      {"mkl",
       {"libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so", in_wheel("/../../libmkl_rt.so.2"),
        in_wheel("/../../libmkl_rt.so.3")}},
      {"openblas",
       {"libopenblas.so.0", "libopenblas.so",
        in_wheel("/scipy_openblas32/lib/libscipy_openblas.so")}},
      {"blis", {"libblis.so.4", "libblis.so"}},
      {"reference", {"libblas.so.3"}}};
  return known;
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.find(".so") != std::string::npos;
}

std::vector<std::string> files_of(const std::string& name) {
  for (const KnownLibrary& library : known_libraries()) {
    if (library.name == name) return library.files;
  }
  return {name};
}

void check_name(const std::string& name) {
  std::vector<std::string> names{kPlain};
  for (const KnownLibrary& library : known_libraries()) names.push_back(library.name);
  if (is_path(name) || std::find(names.begin(), names.end(), name) != names.end()) return;
  fail_argument(
      "unknown BLAS '{}'{}: expected openblas, blis, mkl, reference, plain or the path of a "
      "library",
      name, rt::did_you_mean(name, names));
}

/// The library that the process requested; null for none.
class Choice {
 public:
  void make(const char* name) {
    if (name == nullptr) name = sys::environment("WEIR_BLAS");
    if (name != nullptr && *name == '\0') name = nullptr;
    if (name != nullptr) check_name(name);
    const sys::Lock lock(mutex_);
    if (made_) {
      if (name != nullptr && name != name_) {
        rt::log::warning("BLAS '{}' is not used: this process has chosen {}", name,
                         name_ ? "'" + *name_ + "'" : "the best one installed");
      }
      return;
    }
    if (name != nullptr) name_ = name;
    made_ = true;
  }

  std::optional<std::string> get() {
    make(nullptr);
    const sys::Lock lock(mutex_);
    return name_;
  }

 private:
  sys::Mutex mutex_;
  bool made_ WEIR_GUARDED_BY(mutex_) = false;
  std::optional<std::string> name_ WEIR_GUARDED_BY(mutex_);
};

Choice& choice() {
  static Choice choice;
  return choice;
}

const BlasLibrary* open_best() {
  for (const KnownLibrary& library : known_libraries()) {
    try {
      return new BlasLibrary(library.name);
    } catch (const Error& error) {
      rt::log::debug("{}", error.what());
    }
  }
  return new BlasLibrary(kPlain);
}

/// Sets an environment variable while it lives, unless the user has set it.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    mine_ = sys::environment(name) == nullptr && ::setenv(name, value.c_str(), 1) == 0;
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    if (mine_) ::unsetenv(name_);
  }

 private:
  const char* name_;
  bool mine_;
};

enum Generation { kOld, kAvx2, kAvx512 };

Generation generation_of(std::string_view openblas_kernels) {
  const auto among = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), openblas_kernels) != names.end();
  };
  if (among({"Haswell", "Zen", "Excavator"})) return kAvx2;
  const bool old =
      among({"Unknown",   "Katmai",     "Coppermine",   "Northwood",  "Prescott", "Banias",
             "Atom",      "Core2",      "Penryn",       "Dunnington", "Nehalem",  "Sandybridge",
             "Athlon",    "Opteron",    "Opteron_SSE3", "Barcelona",  "Nano",     "Bobcat",
             "Bulldozer", "Piledriver", "Steamroller"});
  return old ? kOld : kAvx512;  // unknown names are newer processors
}

#if defined(__x86_64__)
Generation generation_of_processor() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd")) {
    return kAvx512;
  }
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? kAvx2 : kOld;
}
const char* openblas_kernels_for(Generation generation) {
  if (generation == kAvx512) return "SkylakeX";
  return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
}
#else
Generation generation_of_processor() { return kOld; }
const char* openblas_kernels_for(Generation) { return ""; }
#endif

}  // namespace

std::string better_openblas_kernels(std::string_view in_use) {
  const Generation offered = generation_of_processor();
  return generation_of(in_use) < offered ? openblas_kernels_for(offered) : "";
}

void SharedObject::open(const std::string& file) {
  void* const before = ::dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  was_loaded_ = before != nullptr;
  handle_ = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* const reason = handle_ == nullptr ? ::dlerror() : nullptr;
  if (before != nullptr) ::dlclose(before);
  if (handle_ == nullptr) fail(WEIR_STATUS_UNAVAILABLE, "{}", reason ? reason : file);
}

void SharedObject::close() noexcept {
  if (handle_ != nullptr) ::dlclose(handle_);
  handle_ = nullptr;
}

void* SharedObject::address_of(const char* symbol) const noexcept {
  void* const address = ::dlsym(handle_, symbol);
  if (address != nullptr) return address;
  std::array<char, 64> prefixed;  // the names in wheels of Python
  std::snprintf(prefixed.data(), prefixed.size(), "scipy_%s", symbol);
  return ::dlsym(handle_, prefixed.data());
}

std::string SharedObject::file_of(const char* symbol) const {
  Dl_info info{};
  void* const address = address_of(symbol);
  return address != nullptr && ::dladdr(address, &info) != 0 ? info.dli_fname : "";
}

void BlasLibrary::choose(const char* name) { choice().make(name); }

const BlasLibrary& BlasLibrary::instance() {
  static sys::Atomic<const BlasLibrary*> opened{nullptr};
  static sys::Mutex mutex;  // not call_once(), after whose first exception some systems hang
  const BlasLibrary* library = opened.load(std::memory_order_acquire);
  if (library != nullptr) return *library;
  const sys::Lock lock(mutex);
  library = opened.load(std::memory_order_relaxed);
  if (library != nullptr) return *library;
  const std::optional<std::string> name = choice().get();
  library = name ? new BlasLibrary(*name) : open_best();
  const BlasInfo& info = library->info();
  rt::log::info("BLAS: {} {} for {} from {}", info.name, info.version, info.kernels, info.library);
  opened.store(library, std::memory_order_release);
  return *library;
}

BlasLibrary::BlasLibrary(const std::string& name) {
  if (name == kPlain) {
    use_plain_loops();
    return;
  }
  open(name);
  identify();
  use_better_kernels();
  bind(single_, "s");
  bind(double_, "d");
  use_one_thread();
  info_.available = true;
}

void BlasLibrary::warn_once() const {
  static sys::Atomic<bool> warned{false};
  if (info_.problem.empty() || chosen_by_user_ || warned.exchange(true)) return;
  rt::log::warning("BLAS: {}", info_.problem);
}

void BlasLibrary::use_plain_loops() {
  single_ = plain_blas<float>();
  double_ = plain_blas<double>();
  info_.available = true;
  info_.name = kPlain;
  info_.library = "libweir";
  info_.version = WEIR_VERSION_STRING;
  info_.problem =
      fmt::format("without a BLAS weir uses plain loops, several times slower: {}", kAdvice);
}

void BlasLibrary::open(const std::string& name) {
  // An OpenBLAS that starts with one thread makes none.
  const Environment one_thread("OPENBLAS_NUM_THREADS", "1");
  std::string reason;
  for (const std::string& file : files_of(name)) {
    if (file.empty()) continue;
    try {
      object_.open(file);
      const std::string found = object_.file_of("cblas_dgemm");
      info_.library = found.empty() ? file : found;
      return;
    } catch (const Error& error) {
      if (reason.empty()) reason = error.what();
    }
  }
  fail(WEIR_STATUS_UNAVAILABLE, "cannot open BLAS '{}': {}; {}", name, reason, kAdvice);
}

void BlasLibrary::identify() {
  if (object_.find<char*()>("openblas_get_config") != nullptr) {
    identify_openblas();
  } else if (const auto version = object_.find<const char*()>("bli_info_get_version_str")) {
    info_.name = "blis";
    info_.version = version();
    const auto architecture = object_.find<int()>("bli_arch_query_id");
    const auto in_words = object_.find<const char*(int)>("bli_arch_string");
    if (architecture != nullptr && in_words != nullptr) info_.kernels = in_words(architecture());
  } else if (const auto mkl_version = object_.find<void(char*, int)>("MKL_Get_Version_String")) {
    info_.name = "mkl";
    std::array<char, 200> text{};
    mkl_version(text.data(), static_cast<int>(text.size()) - 1);
    info_.version = text.data();
  } else {
    info_.name = "reference";
  }
}

void BlasLibrary::identify_openblas() {
  const std::string config = object_.find<char*()>("openblas_get_config")();
  if (config.find("USE64BITINT") != std::string::npos) {
    fail(WEIR_STATUS_UNAVAILABLE, "BLAS '{}' counts in 64-bit integers: {}", info_.library,
         kAdvice);
  }
  const std::vector<std::string_view> words = rt::split(config, ' ');
  info_.name = "openblas";
  info_.version = words.size() > 1 ? words[1] : "";
  info_.kernels = object_.find<char*()>("openblas_get_corename")();
  small_products_ = info_.kernels == "SkylakeX" || info_.kernels == "Cooperlake" ||
                    info_.kernels == "SapphireRapids";
}

void BlasLibrary::use_better_kernels() {
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  if (info_.name != "openblas") return;
  const std::string better = better_openblas_kernels(info_.kernels);
  if (better.empty()) return;
  const char* const chosen = sys::environment(kVariable);
  if (chosen == nullptr && !object_.was_loaded()) {
    const std::string file = info_.library;
    const Environment kernels(kVariable, better);
    object_.close();
    open(file);
    identify();
    if (better_openblas_kernels(info_.kernels).empty()) return;
  }
  chosen_by_user_ = chosen != nullptr;
  info_.problem = fmt::format(
      "OpenBLAS uses its kernels for {} on a processor that can run those for {}: ", info_.kernels,
      better);
  info_.problem += chosen_by_user_ ? fmt::format("unset {}, which is '{}'", kVariable, chosen)
                                   : fmt::format("start the program with {}={}", kVariable, better);
}

template <class T>
void BlasLibrary::bind(Blas<T>& functions, const std::string& prefix) {
  const auto required = [&]<class Function>(Function*& function, const std::string& name) {
    function = object_.find<Function>(name.c_str());
    if (function == nullptr) {
      fail(WEIR_STATUS_UNAVAILABLE, "the BLAS '{}' has no {}: {}", info_.library, name, kAdvice);
    }
  };
  required(functions.gemm, "cblas_" + prefix + "gemm");
  required(functions.syrk, "cblas_" + prefix + "syrk");
  required(functions.trsm, "cblas_" + prefix + "trsm");
  const auto optional = [&]<class Function>(Function*& function, const std::string& name) {
    function = object_.find<Function>(name.c_str());
  };
  optional(functions.potrf, prefix + "potrf_");
  optional(functions.getrf, prefix + "getrf_");
}

void BlasLibrary::use_one_thread() {
  constexpr int kOpenMp = 2;
  const auto parallel = object_.find<int()>("openblas_get_parallel");
  if (parallel != nullptr && parallel() == kOpenMp) {
    openmp_threads_ = object_.find<int()>("omp_get_max_threads");
    set_openmp_threads_ = object_.find<void(int)>("omp_set_num_threads");
  } else if (const auto openblas = object_.find<void(int)>("openblas_set_num_threads")) {
    openblas(1);
  }
  if (const auto mkl = object_.find<void(int)>("MKL_Set_Num_Threads")) mkl(1);
  if (const auto blis = object_.find<void(long)>("bli_thread_set_num_threads")) blis(1);
}

int BlasLibrary::set_openmp_threads(int count) const noexcept {
  if (openmp_threads_ == nullptr || set_openmp_threads_ == nullptr) return 1;
  const int before = openmp_threads_();
  if (before != count) set_openmp_threads_(count);
  return before;
}

}  // namespace weir::kernels

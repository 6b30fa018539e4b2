#include "core/kernel.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

constexpr std::string_view kHost = "host", kSource = "source", kCuda = "cuda";

}  // namespace

Kernel::Kernel(const weir_kernel_options& options, std::size_t number)
    : Kernel(options, nullptr, number) {}

Kernel::Kernel(const weir_kernel_options& options, std::unique_ptr<const Portable> portable,
               std::size_t number)
    : portable_(std::move(portable)),
      number_(number),
      name_(options.name),
      shape_(options.shape),
      cost_(options.cost),
      release_(options.release) {
  for (std::size_t i = 0; i < options.implementation_count; ++i) {
    const weir_implementation& given = options.implementations[i];
    codes_.push_back({this, given.backend, given.function, given.payload, portable_.get()});
  }
  if (portable_ == nullptr) return;
  const auto is_host = [](const KernelCode& code) { return code.backend == kHost; };
  if (portable_->has_host_code() && std::none_of(codes_.begin(), codes_.end(), is_host)) {
    auto* const payload = const_cast<Portable*>(portable_.get());  // run() does not change it
    codes_.push_back({this, std::string(kHost), Portable::run, payload, portable_.get()});
  }
  if (portable_->has_source()) {
    const std::string_view where = portable_->source().resident ? kCuda : kSource;
    codes_.push_back(
        {this, std::string(where), nullptr, nullptr, portable_.get(), &portable_->source()});
  }
}

Kernel::~Kernel() {
  if (release_ == nullptr) return;
  for (auto code = codes_.begin(); code != codes_.end(); ++code) {
    const auto same = [&](const KernelCode& other) { return other.payload == code->payload; };
    const bool released = std::any_of(codes_.begin(), code, same);
    const bool given = code->payload != nullptr && code->payload != portable_.get();
    if (given && !released) release_(code->payload);
  }
}

const KernelCode* Kernel::code_for(const DeviceInfo& device) const noexcept {
  const KernelCode* host = nullptr;
  const KernelCode* source = nullptr;
  const std::string& own = device.code.empty() ? device.backend : device.code;
  for (const KernelCode& code : codes_) {
    if (code.backend == own) return &code;
    if (code.backend == kHost) host = &code;
    if (code.backend == kSource) source = &code;
  }
  if (source != nullptr && device.compiles_source) return source;
  return device.runs_host_code ? host : nullptr;
}

std::string Kernel::backends() const {
  std::string list;
  for (const KernelCode& code : codes_) {
    list.append(list.empty() ? "" : ", ").append(code.backend);
  }
  return list;
}

namespace {

void check_implementation(const weir_kernel_options& options, std::size_t index,
                          const std::vector<std::string>& backends) {
  const weir_implementation& implementation = options.implementations[index];
  if (implementation.backend == nullptr || implementation.function == nullptr) {
    fail_argument("implementation {} of kernel '{}' lacks its {}", index, options.name,
                  implementation.backend == nullptr ? "backend" : "function");
  }
  const std::string_view backend = implementation.backend;
  if (std::find(backends.begin(), backends.end(), backend) == backends.end()) {
    fail_argument("kernel '{}' has an implementation for the unknown backend '{}'{}", options.name,
                  backend, did_you_mean(backend, backends));
  }
  for (std::size_t other = 0; other < index; ++other) {
    if (options.implementations[other].backend == backend) {
      fail_argument("kernel '{}' has two implementations for backend '{}'", options.name, backend);
    }
  }
}

}  // namespace

weir_kernel& KernelTable::add(const weir_kernel_options& options,
                              const std::vector<std::string>& backends) {
  if (options.implementation_count == 0 && options.name != nullptr && *options.name != '\0') {
    fail_argument("kernel '{}' has no implementation", options.name);
  }
  return add(options, backends, nullptr);
}

weir_kernel& KernelTable::add(const weir_portable_options& options,
                              const std::vector<std::string>& backends) {
  auto portable = std::make_unique<const Portable>(options);
  weir_kernel_options native = WEIR_KERNEL_OPTIONS_INIT;
  native.name = options.name != nullptr ? options.name : options.kernel->name;
  native.shape = options.shape;
  native.cost = options.cost;
  native.implementations = options.implementations;
  native.implementation_count = options.implementation_count;
  native.release = options.release;
  return add(native, backends, std::move(portable));
}

weir_kernel& KernelTable::add(const weir_kernel_options& options,
                              const std::vector<std::string>& backends,
                              std::unique_ptr<const Portable> portable) {
  if (options.name == nullptr || *options.name == '\0') fail_argument("kernel has no name");
  if (options.implementation_count > 0 && options.implementations == nullptr) {
    fail_argument("kernel '{}' has no implementation", options.name);
  }
  if (options.shape != WEIR_KERNEL_SHAPE_SERIAL && options.shape != WEIR_KERNEL_SHAPE_PARALLEL) {
    fail_argument("kernel '{}' has unknown shape {}", options.name,
                  static_cast<int>(options.shape));
  }
  for (std::size_t i = 0; i < options.implementation_count; ++i) {
    check_implementation(options, i, backends);
  }
  sys::Lock lock(mutex_);
  const auto [position, added] = kernels_.try_emplace(options.name, nullptr);
  if (!added) {
    fail_argument(
        "kernel '{}' is registered already: choose another name, or find it by name instead of "
        "registering it again",
        options.name);
  }
  try {
    position->second =
        Owned<weir_kernel>(new weir_kernel(options, std::move(portable), kernels_.size()));
  } catch (...) {
    kernels_.erase(position);
    throw;
  }
  position->second->table_ = this;
  return *position->second;
}

weir_kernel& KernelTable::find(std::string_view name) const {
  sys::Lock lock(mutex_);
  const auto found = kernels_.find(name);
  if (found != kernels_.end()) return *found->second;
  std::vector<std::string> known;
  for (const auto& [key, kernel] : kernels_) known.push_back(key);
  fail(WEIR_STATUS_NOT_FOUND, "no kernel is registered as '{}'{}", name, did_you_mean(name, known));
}

std::vector<std::string> KernelTable::names() const {
  sys::Lock lock(mutex_);
  std::vector<std::string> known;
  for (const auto& [key, kernel] : kernels_) known.push_back(key);
  return known;
}

}  // namespace weir::rt

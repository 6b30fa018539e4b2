#include "backends/opencl/opencl_programs.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/launch_arguments.hpp"
#include "backend/portable_text.hpp"
#include "backends/opencl/opencl_memory.hpp"
#include "base/counted.hpp"

namespace weir::rt {

namespace {

template <class T>
T kernel_fact(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what) noexcept {
  T value{};
  OpenClLibrary::get().clGetKernelWorkGroupInfo(kernel, device, what, sizeof value, &value,
                                                nullptr);
  return value;
}

/// Returns a text of the same length with blanks for comments, so that matches are code.
std::string without_comments(std::string text) {
  for (std::size_t at = 0; (at = text.find('/', at)) != std::string::npos; ++at) {
    const bool line = text.compare(at, 2, "//") == 0;
    if (!line && text.compare(at, 2, "/*") != 0) continue;
    std::size_t end = text.find(line ? "\n" : "*/", at);
    end = end == std::string::npos ? text.size() : end + (line ? 0 : 2);
    std::replace_if(
        text.begin() + static_cast<std::ptrdiff_t>(at),
        text.begin() + static_cast<std::ptrdiff_t>(end), [](char c) { return c != '\n'; }, ' ');
  }
  return text;
}

/// The begin and end of each argument of a macro call whose parenthesis is at an offset; empty if
/// there is no call.
std::vector<std::pair<std::size_t, std::size_t>> macro_arguments(const std::string& code,
                                                                 std::size_t parenthesis) {
  std::vector<std::pair<std::size_t, std::size_t>> arguments;
  std::size_t begin = parenthesis + 1;
  int depth = 0;
  for (std::size_t at = parenthesis; at < code.size() && code[at] != '#'; ++at) {
    const char c = code[at];
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth > 1 || (c != ',' && depth > 0)) continue;
    arguments.emplace_back(begin, at);
    if (depth == 0) return arguments;
    begin = at + 1;
  }
  return {};
}

/// A word of a source.
struct Word {
  std::size_t begin = 0, end = 0;
};

bool is_of_word(char c) noexcept {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

Word last_word(const std::string& code, std::size_t begin, std::size_t end) {
  while (end > begin && !is_of_word(code[end - 1])) --end;
  std::size_t first = end;
  while (first > begin && is_of_word(code[first - 1])) --first;
  return {first, end};
}

/// Finds the arguments of the WEIR_KERNEL() that defines an entry; empty if there is none.
std::vector<std::pair<std::size_t, std::size_t>> find_kernel(const std::string& code,
                                                             const std::string& entry) {
  constexpr std::string_view kMacro = "WEIR_KERNEL";
  for (std::size_t at = 0; (at = code.find(kMacro, at)) != std::string::npos; ++at) {
    const std::size_t next = code.find_first_not_of(" \n", at + kMacro.size());
    if (next == std::string::npos || code[next] != '(') continue;
    auto arguments = macro_arguments(code, next);
    if (arguments.empty()) continue;
    const Word name = last_word(code, arguments[0].first, arguments[0].second);
    if (code.compare(name.begin, name.end - name.begin, entry) == 0) return arguments;
  }
  return {};
}

/// Returns a text whose kernel takes a buffer and an offset for each pointer: `T* x` becomes
/// `T* weir_at_x, ulong weir_by_x`, and its body begins with `T* x = weir_at_x + weir_by_x`, in
/// bytes. Line numbers do not change. Throws Error for a kernel that is not written out.
std::string with_offsets(const KernelSource& source) {
  const std::string code = without_comments(source.text);
  const auto arguments = find_kernel(code, source.entry);
  const std::size_t dimensions = 4;  // and the name
  const std::size_t body =
      arguments.empty() ? std::string::npos : code.find('{', arguments.back().second);
  if (arguments.size() != dimensions + source.parameters.size() || body == std::string::npos) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "kernel '{}' is not written out in {} as WEIR_KERNEL({}, X, Y, Z, and {} parameters), "
         "which a driver without shared virtual memory takes",
         source.entry, source.file, source.entry, source.parameters.size());
  }
  std::string pointers, text = source.text;
  std::size_t growth = 0;  // before the body
  for (std::size_t i = source.parameters.size(); i-- > 0;) {
    if (source.parameters[i] != 'p') continue;
    const auto [begin, end] = arguments[dimensions + i];
    const Word name = last_word(code, begin, end);
    const std::string word = code.substr(name.begin, name.end - name.begin);
    std::string pointer = code.substr(begin, name.end - begin);
    std::replace(pointer.begin(), pointer.end(), '\n', ' ');
    pointers += fmt::format("{} = (global void*)((global uchar*)weir_at_{} + weir_by_{});", pointer,
                            word, word);
    const std::string two = fmt::format("weir_at_{}, ulong weir_by_{}", word, word);
    text.replace(name.begin, word.size(), two);
    growth += two.size() - word.size();
  }
  text.insert(body + 1 + growth, pointers);
  return text;
}

constexpr std::int64_t kLongestPriming = 1'000'000'000, kPrimingPoll = 20'000;

/// Other drivers than PoCL refuse a kernel whose shared arrays are too large, and take the others
/// of its source.
std::string options_for(const OpenClDeviceInfo& facts, cl_device_id device) {
  std::string options = "-cl-std=CL1.2";
  if (facts.caches_kernels) {
    options += fmt::format(" -DWEIR_LOCAL_BYTES={}",
                           opencl_fact<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE));
  }
  return options;
}

}  // namespace

OpenClPrograms::OpenClPrograms(const OpenClDeviceInfo& facts, cl_context context,
                               cl_device_id device, bool takes_buffers)
    : device_name_(facts.description),
      keeps_arguments_(facts.native),
      takes_buffers_(takes_buffers),
      confuses_sizes_(facts.confuses_sizes),
      keeps_binaries_(!facts.caches_kernels),
      context_(context),
      device_(device),
      options_(options_for(facts, device)),
      cache_("kernels") {}

Outcome OpenClPrograms::enqueue(cl_command_queue queue, const Job& job,
                                std::span<const cl_event> waits, cl_event* out_event) noexcept {
  try {
    const OpenClLibrary& cl = OpenClLibrary::get();
    Built& found = built(*job.source);
    if (!found.outcome.ok()) return found.outcome;
    std::array<std::size_t, 3> local{}, items{};
    for (std::size_t i = 0; i < items.size(); ++i) {
      local[i] = job.source->group[i];
      items[i] = local[i] * job.groups[i];
    }
    if (items[0] == 0 || items[1] == 0 || items[2] == 0) {
      if (waits.empty()) return {};  // a marker would wait for all in the queue
      check_opencl(cl.clEnqueueMarkerWithWaitList(queue, static_cast<cl_uint>(waits.size()),
                                                  waits.data(), out_event),
                   "a call of no groups");
      return {};
    }
    if (!keeps_arguments_) found.arguments.clear();
    set_arguments(found, job);
    const std::span<const cl_event> all = with_priming(queue, found, job, waits);
    const cl_int code = cl.clEnqueueNDRangeKernel(
        queue, found.kernel.get(), 3, nullptr, items.data(), local.data(),
        static_cast<cl_uint>(all.size()), all.empty() ? nullptr : all.data(), out_event);
    if (code != CL_SUCCESS) fail_launch(*job.source, found.kernel.get(), code);
    return {};
  } catch (...) {
    return current_exception_outcome(WEIR_STATUS_DEVICE_ERROR);
  }
}

/// PoCL 3 compiles a kernel again for each larger grid and counts the calls of each version, but at
/// the end of a call it takes the newest version for the one that ran, and ends the process when a
/// count gets below zero. So the first call has the largest grid: of so many groups that their
/// number, modulo 2^64, is 0, and nothing runs. Waits until it is complete, as long as the driver
/// is not busy: PoCL 3 accesses commands that wait for it and for one that fails after their end.
void OpenClPrograms::prime(cl_command_queue queue, Built& built, const KernelSource& source) const {
  static_assert(sizeof(std::size_t) == 8);
  const OpenClLibrary& cl = OpenClLibrary::get();
  const std::array<std::size_t, 3> local{source.group[0], source.group[1], source.group[2]};
  const std::array<std::size_t, 3> items{local[0] << 32, local[1] << 32, local[2]};
  cl_event event = nullptr;
  const cl_int code = cl.clEnqueueNDRangeKernel(queue, built.kernel.get(), 3, nullptr, items.data(),
                                                local.data(), 0, nullptr, &event);
  if (code != CL_SUCCESS) fail_launch(source, built.kernel.get(), code);
  built.priming = OpenClEvent(event);
  built.primed = true;
  const std::int64_t deadline = sys::now_ns() + kLongestPriming;
  while (opencl_status(event) > CL_COMPLETE && sys::now_ns() < deadline) {
    sys::sleep_until(sys::now_ns() + kPrimingPoll);
  }
}

/// Returns what a call waits for: also prime(), until that is complete.
std::span<const cl_event> OpenClPrograms::with_priming(cl_command_queue queue, Built& built,
                                                       const Job& job,
                                                       std::span<const cl_event> waits) {
  if (!confuses_sizes_) return waits;
  if (!built.primed) prime(queue, built, *job.source);
  cl_event const priming = built.priming.get();
  if (priming == nullptr) return waits;
  if (opencl_status(priming) <= CL_COMPLETE) {
    built.priming = OpenClEvent();
    return waits;
  }
  waits_.assign(waits.begin(), waits.end());
  waits_.push_back(priming);
  return waits_;
}

/// Sets the arguments that differ from those of the previous call.
void OpenClPrograms::set_arguments(Built& built, const Job& job) const {
  const OpenClLibrary& cl = OpenClLibrary::get();
  std::vector<std::uint64_t>& last = built.arguments;
  LaunchArguments arguments(job.source->parameters, job.call);
  const bool first = last.empty();
  last.resize(arguments.count());
  cl_uint index = 0;
  for (std::size_t i = 0; i < arguments.count(); ++i) {
    const cl_uint mine = index;
    index += arguments.is_operand(i) && takes_buffers_ ? 2 : 1;
    std::uint64_t bits = 0;
    std::memcpy(&bits, arguments.addresses()[i], arguments.size(i));
    if (!first && last[i] == bits) continue;
    last[i] = bits;
    const cl_int code = arguments.is_operand(i)
                            ? set_operand(built.kernel.get(), mine, arguments.operand(i))
                            : cl.clSetKernelArg(built.kernel.get(), mine, arguments.size(i),
                                                arguments.addresses()[i]);
    if (code == CL_SUCCESS) continue;
    last.clear();
    check_opencl(code, fmt::format("parameter {} of kernel '{}'", i, job.source->entry));
  }
}

cl_int OpenClPrograms::set_operand(cl_kernel kernel, cl_uint index, const void* operand) const {
  const OpenClLibrary& cl = OpenClLibrary::get();
  if (!takes_buffers_) return cl.clSetKernelArgSVMPointer(kernel, index, operand);
  const auto [buffer, offset] = find_opencl_buffer(operand);
  const cl_int code = cl.clSetKernelArg(kernel, index, sizeof(cl_mem), &buffer);
  return code != CL_SUCCESS ? code : cl.clSetKernelArg(kernel, index + 1, sizeof offset, &offset);
}

std::string OpenClPrograms::text_of(const KernelSource& source) const {
  if (!takes_buffers_) return portable_text(source);
  KernelSource shifted = source;
  shifted.text = with_offsets(source);
  return portable_text(shifted);
}

std::size_t OpenClPrograms::parameters_of(const KernelSource& source) const noexcept {
  const std::string& letters = source.parameters;
  const auto operands = std::count(letters.begin(), letters.end(), 'p');
  return letters.size() + (takes_buffers_ ? static_cast<std::size_t>(operands) : 0);
}

OpenClPrograms::Built& OpenClPrograms::built(const KernelSource& source) {
  const auto [found, fresh] = built_.try_emplace(&source);
  Built& made = found->second;
  if (fresh || made.outcome.status == WEIR_STATUS_OUT_OF_MEMORY) made = build(source);
  return made;
}

OpenClPrograms::Built OpenClPrograms::build(const KernelSource& source) {
  Built made;
  try {
    check_group(source);
    cl_int code = CL_SUCCESS;
    made.kernel = OpenClKernel(
        OpenClLibrary::get().clCreateKernel(program_of(source), source.entry.c_str(), &code));
    check_opencl(code, fmt::format("no kernel '{}' in {}", source.entry, source.file));
    check_kernel(source, made.kernel.get());
  } catch (...) {
    made.outcome = current_exception_outcome(WEIR_STATUS_DEVICE_ERROR);
  }
  return made;
}

/// Returns a built program: a loaded one, from the cache, or built now. Throws Error.
cl_program OpenClPrograms::program_of(const KernelSource& source) {
  const std::string text = text_of(source);
  const std::string key = cache_key(fmt::format("{}\n{}\n{}", device_name_, options_, text));
  OpenClProgram& program = programs_[key];
  if (program.get() == nullptr) {
    const auto binary = keeps_binaries_ ? cache_.read(key) : std::nullopt;
    if (binary) program = load(*binary);
  }
  if (program.get() == nullptr) {
    program = compile(source, text);
    if (keeps_binaries_) keep(program.get(), key);
  }
  return program.get();
}

OpenClProgram OpenClPrograms::compile(const KernelSource& source, const std::string& text) const {
  const OpenClLibrary& cl = OpenClLibrary::get();
  const char* address = text.c_str();
  cl_int code = CL_SUCCESS;
  OpenClProgram program(cl.clCreateProgramWithSource(context_, 1, &address, nullptr, &code));
  check_opencl(code, fmt::format("no program for kernel '{}'", source.entry));
  code = cl.clBuildProgram(program.get(), 1, &device_, options_.c_str(), nullptr, nullptr);
  if (code == CL_OUT_OF_HOST_MEMORY) check_opencl(code, "compiling");
  if (code != CL_SUCCESS) {
    fail(WEIR_STATUS_KERNEL_ERROR, "kernel '{}' of {} does not compile for {}: {}", source.entry,
         source.file, device_name_, log_of(program.get()));
  }
  return program;
}

/// Returns an empty program when the driver rejects the binary.
OpenClProgram OpenClPrograms::load(const std::string& binary) const {
  const OpenClLibrary& cl = OpenClLibrary::get();
  const std::size_t bytes = binary.size();
  const auto* address = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int state = CL_SUCCESS, code = CL_SUCCESS;
  OpenClProgram program(
      cl.clCreateProgramWithBinary(context_, 1, &device_, &bytes, &address, &state, &code));
  if (code != CL_SUCCESS || state != CL_SUCCESS) return {};
  code = cl.clBuildProgram(program.get(), 1, &device_, options_.c_str(), nullptr, nullptr);
  return code == CL_SUCCESS ? std::move(program) : OpenClProgram();
}

void OpenClPrograms::keep(cl_program program, const std::string& key) const {
  const OpenClLibrary& cl = OpenClLibrary::get();
  std::size_t bytes = 0;
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) !=
          CL_SUCCESS ||
      bytes == 0) {
    return;
  }
  std::vector<unsigned char> binary(bytes);
  unsigned char* address = binary.data();
  if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof address, &address, nullptr) ==
      CL_SUCCESS) {
    cache_.write(key, {reinterpret_cast<const char*>(binary.data()), bytes});
  }
}

std::string OpenClPrograms::log_of(cl_program program) const {
  const OpenClLibrary& cl = OpenClLibrary::get();
  std::size_t bytes = 0;
  cl.clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string text(bytes, '\0');
  cl.clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, bytes, text.data(), nullptr);
  const std::size_t end = text.find_last_not_of(std::string_view(" \n\0", 3));
  text.resize(end == std::string::npos ? 0 : end + 1);
  // PoCL's Clang adds a place in a file of its cache to each place within a macro.
  for (std::size_t at = 0; (at = text.find(" <Spelling=", at)) != std::string::npos;) {
    text.erase(at, text.find('>', at) + 1 - at);
  }
  return text.empty() ? "its compiler does not say why" : text;
}

void OpenClPrograms::check_group(const KernelSource& source) const {
  const auto& [x, y, z] = source.group;
  const auto most = opencl_fact<std::size_t>(device_, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  const auto sides =
      opencl_fact<std::array<std::size_t, 3>>(device_, CL_DEVICE_MAX_WORK_ITEM_SIZES);
  if (std::size_t{x} * y * z <= most && x <= sides[0] && y <= sides[1] && z <= sides[2]) return;
  fail(WEIR_STATUS_UNSUPPORTED,
       "kernel '{}' has groups of {} x {} x {} items, but {} runs groups of {} at most, {} x {} x "
       "{}; use smaller ones",
       source.entry, x, y, z, device_name_, most, sides[0], sides[1], sides[2]);
}

void OpenClPrograms::check_kernel(const KernelSource& source, cl_kernel kernel) const {
  const OpenClLibrary& cl = OpenClLibrary::get();
  cl_uint parameters = 0;
  check_opencl(
      cl.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof parameters, &parameters, nullptr),
      fmt::format("kernel '{}'", source.entry));
  if (parameters != parameters_of(source)) {
    fail(WEIR_STATUS_KERNEL_ERROR, "kernel '{}' has {} in {}, but was registered with {}",
         source.entry, counted(parameters, "parameter"), source.file, source.parameters.size());
  }
  const auto shared = kernel_fact<cl_ulong>(kernel, device_, CL_KERNEL_LOCAL_MEM_SIZE);
  const auto most = opencl_fact<cl_ulong>(device_, CL_DEVICE_LOCAL_MEM_SIZE);
  if (shared > most) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "kernel '{}' wants {} bytes of shared memory, but {} has {}; use smaller groups",
         source.entry, shared, device_name_, most);
  }
}

/// Throws the reason for a refused launch. Not checked before the launch: rusticl reports its
/// vector width as the limit for every kernel, and runs larger groups.
void OpenClPrograms::fail_launch(const KernelSource& source, cl_kernel kernel, cl_int code) const {
  const auto items = std::size_t{source.group[0]} * source.group[1] * source.group[2];
  const auto fit = kernel_fact<std::size_t>(kernel, device_, CL_KERNEL_WORK_GROUP_SIZE);
  if (fit != 0 && items > fit && code != CL_OUT_OF_HOST_MEMORY) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "kernel '{}' has groups of {} items, but {} has the resources for {} of it; use smaller "
         "ones",
         source.entry, items, device_name_, fit);
  }
  check_opencl(code, fmt::format("kernel '{}'", source.entry));
}

}  // namespace weir::rt

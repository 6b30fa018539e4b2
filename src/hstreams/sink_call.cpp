#include "hstreams/sink_call.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <hstreams/hStreams_common.h>

#include "hstreams/openmp.hpp"

namespace weir::hs {

namespace {

constexpr std::size_t kMostWords = (HSTR_ARGS_SUPPORTED) + 2;
constexpr std::size_t kUsualWords = HSTR_ARGS_IMPLEMENTED + 2;

/// The scalars of an action: these, then the words of the call or their address.
enum Header : std::size_t { kFunction, kScalars, kResult, kResultBytes, kOpenMp, kParcel, kWords };
constexpr std::size_t kMostDirect = 255 - kWords;  // weir takes 255 scalars

using Words = std::vector<std::uint64_t>;

template <std::size_t>
using Word = std::uint64_t;

template <std::size_t... index>
void call(std::uint64_t function, const std::uint64_t* words, std::index_sequence<index...>) {
  reinterpret_cast<void (*)(Word<index>...)>(function)(words[index]...);
}

/// Calls a function with any number of words; it ignores words beyond its own parameters.
void call(std::uint64_t function, const std::uint64_t* words, std::size_t count) {
  if (count <= kUsualWords) {
    call(function, words, std::make_index_sequence<kUsualWords>());
  } else {
    call(function, words, std::make_index_sequence<kMostWords>());
  }
}

weir_status run(const weir_call* action) {
  const auto scalar = [action](std::size_t i) { return action->scalars[i].value.u64; };
  const auto* const parcel = reinterpret_cast<const Words*>(scalar(kParcel));
  const std::size_t heaps = action->operand_count - 1;
  const std::size_t scalars = scalar(kScalars);
  std::array<std::uint64_t, kMostWords> words{};
  for (std::size_t i = 0; i < scalars + heaps; ++i) {
    words[i] = parcel != nullptr ? (*parcel)[i] : scalar(kWords + i);
    if (i >= scalars) {
      words[i] += reinterpret_cast<std::uint64_t>(action->operands[i - scalars].address);
    }
  }
  const std::size_t result = std::max<std::size_t>(scalars + heaps, HSTR_ARGS_IMPLEMENTED);
  words[result] = scalar(kResult);
  words[result + 1] = scalar(kResultBytes);
  if (scalar(kOpenMp) != 0) set_openmp_threads(static_cast<int>(scalar(kOpenMp)));
  call(scalar(kFunction), words.data(), result + 2);
  return WEIR_STATUS_OK;
}

std::uint64_t word_of(const void* address) { return reinterpret_cast<std::uint64_t>(address); }

}  // namespace

SinkKernel::SinkKernel(const weir::Runtime& runtime) : runtime_(runtime.handle()) {
  const weir_implementation code = {"host", run, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "hstreams.sink";
  options.shape = WEIR_KERNEL_SHAPE_PARALLEL;
  options.implementations = &code;
  options.implementation_count = 1;
  check(weir_kernel_register(runtime_, &options, &kernel_));
}

weir_event SinkKernel::enqueue(weir_stream* stream, const SinkCall& call, const Operand& order,
                               int openmp) const {
  std::unique_ptr<Words> parcel;
  std::vector<Scalar> scalars = {
      word_of(call.function),           std::uint64_t{call.scalars.size()}, word_of(call.result),
      std::uint64_t{call.result_bytes}, static_cast<std::uint64_t>(openmp), std::uint64_t{0}};
  if (call.scalars.size() + call.offsets.size() <= kMostDirect) {
    scalars.insert(scalars.end(), call.scalars.begin(), call.scalars.end());
    scalars.insert(scalars.end(), call.offsets.begin(), call.offsets.end());
  } else {
    parcel = std::make_unique<Words>(call.scalars.begin(), call.scalars.end());
    parcel->insert(parcel->end(), call.offsets.begin(), call.offsets.end());
    scalars[kParcel] = word_of(parcel.get());
  }
  std::vector<Operand> operands = call.operands;
  operands.push_back(order);

  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = kernel_;
  compute.operands = operands.data();
  compute.operand_count = operands.size();
  compute.scalars = scalars.data();
  compute.scalar_count = scalars.size();
  compute.name = call.name;
  weir_event event;
  check(weir_stream_compute(stream, &compute, &event));
  if (parcel != nullptr) {
    const auto free = [](weir_status, const char*, void* words) {
      delete static_cast<Words*>(words);
    };
    check(weir_event_on_complete(runtime_, &event, free, parcel.release()));
  }
  return event;
}

}  // namespace weir::hs

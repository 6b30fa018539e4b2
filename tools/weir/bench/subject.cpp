#include "bench/subject.hpp"

#include <algorithm>

#include <weir/portable.h>

#include <hbench.wk.h>
#include "bench/hbench.wk"
#include "interruption.hpp"

namespace weir::cli::bench {

namespace {

/// The small integers in A: sums of them and thousands of alphas are exact.
constexpr std::size_t kValues = 1024;

weir_cost cost_of_add(const weir_call* handle) {
  const weir::Call call(handle);
  const double n = call.scalar<double>(2);
  return {n * call.scalar<double>(1), 2 * sizeof(float) * n};
}

weir::Kernel make_kernel(const weir::Runtime& runtime, const char* name, weir_kernel_shape shape) {
  return runtime.portable_kernel(
      {.kernel = &hbench_add,
       .source = hbench_wk,
       .source_name = "hbench.wk",
       .name = name,
       .shape = shape,
       .cost = cost_of_add},
      [](const weir::Call& call) {
        return weir::Groups{weir::group_count(call.scalar<std::size_t>(2), WIDTH)};
      });
}

}  // namespace

Kernels::Kernels(const weir::Runtime& runtime)
    : add(make_kernel(runtime, "hbench.add", WEIR_KERNEL_SHAPE_PARALLEL)),
      empty(make_kernel(runtime, "hbench.empty", WEIR_KERNEL_SHAPE_SERIAL)) {}

Arrays::Arrays(const weir::Runtime& runtime, const Kernels& kernels, std::size_t blocks,
               std::size_t block_bytes)
    : blocks_(blocks),
      elements_(block_bytes / sizeof(float)),
      kernels_(kernels),
      a_(runtime.buffer(blocks * elements_ * sizeof(float), "A")),
      b_(runtime.buffer(blocks * elements_ * sizeof(float), "B")) {
  float* const a = a_.data<float>();
  for (std::size_t i = 0; i < blocks_ * elements_; ++i) a[i] = static_cast<float>(i % kValues);
}

weir::Event Arrays::upload(const weir::Stream& stream, std::size_t block) const {
  return stream.upload(a_.elements<float>(block * elements_, elements_));
}

weir::Event Arrays::download(const weir::Stream& stream, std::size_t block) const {
  return stream.download(b_.elements<float>(block * elements_, elements_));
}

weir::Event Arrays::add(const weir::Stream& stream, int iterations, std::size_t block,
                        std::size_t count) const {
  const std::size_t first = block * elements_, n = count * elements_;
  return stream.compute(
      kernels_.add,
      {weir::write(b_.elements<float>(first, n)), weir::read(a_.elements<float>(first, n))},
      {kAlpha, iterations, n}, "add");
}

std::size_t Arrays::wrong(int iterations) const {
  const float* const b = b_.data<float>();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < blocks_ * elements_; ++i) {
    const float expected =
        static_cast<float>(i % kValues) + kAlpha * static_cast<float>(iterations);
    wrong += b[i] != expected ? 1 : 0;
  }
  return wrong;
}

std::size_t Subject::whole_cores() const {
  const weir_domain_info facts = info();
  return facts.cores / facts.threads_per_core;
}

double Subject::once(const std::function<void()>& work) const {
  Interruption::check();
  const auto start = runtime_.now();
  work();
  runtime_.synchronize();
  return std::chrono::duration<double>(runtime_.now() - start).count();
}

double Subject::seconds(const std::function<void()>& work) const {
  static_cast<void>(once(work));
  std::vector<double> samples;
  for (std::size_t i = 0; i < repeat_; ++i) samples.push_back(once(work));
  return median(std::move(samples));
}

Json Subject::facts() const {
  const weir_domain_info facts = info();
  return {{"domain", facts.name},
          {"description", facts.description},
          {"cores", facts.cores},
          {"threads_per_core", facts.threads_per_core},
          {"virtual_time", facts.virtual_time}};
}

Rig::Rig(const Subject& subject, std::size_t places, std::size_t streams_each)
    : places_(subject.domain().partition(places)) {
  for (std::size_t stream = 0; stream < streams_each; ++stream) {
    for (const weir::Place& place : places_) streams_.push_back(place.stream());
  }
}

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
}

}  // namespace weir::cli::bench

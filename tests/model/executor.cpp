#include "executor.hpp"

#include <cstring>
#include <sstream>
#include <stdexcept>

namespace weir::model {

namespace {

void check(weir_status status) {
  if (status != WEIR_STATUS_OK) {
    throw std::runtime_error(std::string(weir_status_name(status)) + ": " + weir_last_error());
  }
}

template <class Visit>
void each_word(const weir_view& view, Visit&& visit) {
  auto* const base = static_cast<std::byte*>(view.address);
  for (std::size_t p = 0; p < view.extent[2]; ++p) {
    for (std::size_t r = 0; r < view.extent[1]; ++r) {
      for (std::size_t b = 0; b < view.extent[0]; b += 8) {
        visit(
            *reinterpret_cast<std::uint64_t*>(base + p * view.stride[1] + r * view.stride[0] + b));
      }
    }
  }
}

/// Scalars: key, whether to fail, then for each operand the number of its first word and strides.
weir_status mix_kernel(const weir_call* call) {
  const std::uint64_t key = call->scalars[0].value.u64;
  if (call->scalars[1].value.u64 != 0) throw std::runtime_error("told to fail");
  std::uint64_t read = 0;
  for (std::size_t i = 0; i < call->operand_count; ++i) {
    if ((call->operands[i].access & WEIR_ACCESS_READ) == 0) continue;
    each_word(call->operands[i], [&](std::uint64_t& word) { read = mix(read, word, key); });
  }
  for (std::size_t i = 0; i < call->operand_count; ++i) {
    const weir_view& view = call->operands[i];
    if ((view.access & WEIR_ACCESS_WRITE) == 0) continue;
    const bool keeps = (view.access & WEIR_ACCESS_READ) != 0;
    const auto* const base = static_cast<const std::byte*>(view.address);
    const std::uint64_t first = call->scalars[2 + i].value.u64;
    each_word(view, [&](std::uint64_t& word) {
      const auto at =
          first + static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(&word) - base) / 8;
      word = mix(keeps ? word : 0, read, key + at);
    });
  }
  return WEIR_STATUS_OK;
}

weir_kernel* add_kernel(weir_runtime* runtime, const char* name, weir_kernel_shape shape) {
  const weir_implementation implementation = {"host", mix_kernel, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.shape = shape;
  options.implementations = &implementation;
  options.implementation_count = 1;
  weir_kernel* kernel = nullptr;
  check(weir_kernel_register(runtime, &options, &kernel));
  return kernel;
}

}  // namespace

Executor::Executor(const Platform& platform) : platform_(platform) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = platform.domains.c_str();
  check(weir_runtime_create(&options, &runtime_));
  mix_ = add_kernel(runtime_, "mix", WEIR_KERNEL_SHAPE_SERIAL);
  mix_team_ = add_kernel(runtime_, "mix.team", WEIR_KERNEL_SHAPE_PARALLEL);
  for (std::size_t i = 0; i < platform.places.size(); ++i) {
    weir_place_options place = WEIR_PLACE_OPTIONS_INIT;
    place.core_count = platform.cores[i];
    place.oversubscribe = true;
    weir_place* made = nullptr;
    check(weir_place_create(weir_runtime_get_domain(runtime_, platform.places[i]), &place, &made));
    places_.push_back(made);
  }
}

Executor::~Executor() { weir_runtime_destroy(runtime_); }

/// The objects of one program.
struct Executor::Run {
  Executor& executor;
  const Program& program;
  const Outcome& expected;
  std::vector<Words> memory;
  std::vector<weir_buffer*> buffers;
  std::vector<weir_stream*> streams;
  std::vector<weir_event> events;
  std::ostringstream wrong;

  Run(Executor& owner, const Program& planned, const Outcome& oracle)
      : executor(owner), program(planned), expected(oracle) {
    memory.resize(program.buffer_aliases.size());
    events.resize(program.steps.size());
    for (std::size_t buffer = 0; buffer < memory.size(); ++buffer) {
      for (std::size_t word = 0; word < kWords; ++word) {
        memory[buffer][word] = initial_word(buffer, word);
      }
      weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
      options.no_alias = !program.buffer_aliases[buffer];
      buffers.push_back(nullptr);
      check(weir_buffer_wrap(executor.runtime_, memory[buffer].data(), sizeof(Words), &options,
                             &buffers.back()));
    }
    for (const StreamPlan& plan : program.streams) {
      weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
      options.policy = plan.policy;
      options.priority = plan.priority;
      streams.push_back(nullptr);
      check(weir_stream_create(executor.places_[plan.place], &options, &streams.back()));
    }
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    for (weir_stream* stream : streams) weir_stream_destroy(stream);
    for (weir_buffer* buffer : buffers) weir_buffer_destroy(buffer);
  }

  weir_domain* domain_of_memory(std::size_t index) const {
    return index == 0 ? nullptr : weir_runtime_get_domain(executor.runtime_, index - 1);
  }

  void compute(const Step& step, weir_event* event) const {
    std::vector<weir_operand> operands;
    std::vector<weir_scalar> scalars = {weir_scalar_u64(step.key), weir_scalar_u64(step.fails)};
    for (const Part& part : step.parts) {
      operands.push_back({buffers[part.buffer], part.region(), part.access});
      scalars.push_back(weir_scalar_u64(part.offset));
    }
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel = step.parallel ? executor.mix_team_ : executor.mix_;
    compute.operands = operands.data();
    compute.operand_count = operands.size();
    compute.scalars = scalars.data();
    compute.scalar_count = scalars.size();
    check(weir_stream_compute(streams[step.stream], &compute, event));
  }

  void transfer(const Step& step, weir_event* event) const {
    const auto end = [&](const Part& part) {
      return weir_endpoint{domain_of_memory(part.memory), buffers[part.buffer], part.region()};
    };
    weir_transfer transfer = WEIR_TRANSFER_INIT;
    transfer.source = end(step.parts[0]);
    transfer.target = end(step.parts[1]);
    check(weir_stream_transfer(streams[step.stream], &transfer, event));
  }

  void sync(const Step& step, weir_event* event) const {
    std::vector<weir_event> waits;
    for (const std::size_t earlier : step.events) waits.push_back(events[earlier]);
    std::vector<weir_operand> operands;
    for (const Part& part : step.parts) {
      operands.push_back({buffers[part.buffer], part.region(), part.access});
    }
    weir_sync sync = WEIR_SYNC_INIT;
    sync.events = waits.data();
    sync.event_count = waits.size();
    sync.operands = operands.data();
    sync.operand_count = operands.size();
    sync.scope = step.scope;
    check(weir_stream_sync(streams[step.stream], &sync, event));
  }

  void host_wait(const Step& step) {
    std::vector<weir_event> waits;
    for (const std::size_t earlier : step.events) waits.push_back(events[earlier]);
    std::size_t index = 0;
    const weir_status status = weir_event_wait(
        executor.runtime_, waits.data(), waits.size(),
        step.wait_any ? WEIR_WAIT_MODE_ANY : WEIR_WAIT_MODE_ALL, WEIR_FOREVER, &index);
    weir_status wanted = WEIR_STATUS_OK;
    if (step.wait_any) {
      wanted = expected.status[step.events[index]];
    } else {
      for (const std::size_t event : step.events) {
        if (wanted == WEIR_STATUS_OK) wanted = expected.status[event];
      }
    }
    if (status != wanted) {
      wrong << "host wait: " << weir_status_name(status) << " instead of "
            << weir_status_name(wanted) << "\n";
    }
  }

  void run_step(std::size_t index) {
    const Step& step = program.steps[index];
    switch (step.kind) {
      case StepKind::compute: compute(step, &events[index]); break;
      case StepKind::transfer: transfer(step, &events[index]); break;
      case StepKind::sync: sync(step, &events[index]); break;
      case StepKind::host_wait: host_wait(step); break;
      case StepKind::host_synchronize: {
        const weir_status status = weir_stream_synchronize(streams[step.stream], WEIR_FOREVER);
        compare_status(index, status);
        break;
      }
    }
  }

  void compare_status(std::size_t index, weir_status status) {
    if (status == expected.status[index]) return;
    wrong << program.describe(index, executor.platform_) << ": " << weir_status_name(status)
          << " instead of " << weir_status_name(expected.status[index]) << "\n";
  }

  void compare_statuses() {
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      if (!program.steps[i].enqueues()) continue;
      weir_event_info info = WEIR_EVENT_INFO_INIT;
      check(weir_event_get_info(executor.runtime_, &events[i], &info));
      if (!info.complete) wrong << program.describe(i, executor.platform_) << ": not complete\n";
      compare_status(i, info.status);
    }
  }

  /// Contents of an instance, by a transfer to a buffer of its own.
  Words contents(std::size_t buffer, std::size_t memory_index) {
    if (memory_index == 0) return memory[buffer];
    weir_buffer* scratch = nullptr;
    check(weir_buffer_create(executor.runtime_, sizeof(Words), nullptr, &scratch));
    weir_stream* stream = nullptr;
    std::size_t place = 0;
    while (executor.platform_.places[place] != memory_index - 1) ++place;
    check(weir_stream_create(executor.places_[place], nullptr, &stream));
    weir_transfer transfer = WEIR_TRANSFER_INIT;
    const weir_region all = weir_region_range(0, sizeof(Words));
    transfer.source = {domain_of_memory(memory_index), buffers[buffer], all};
    transfer.target = {nullptr, scratch, all};
    check(weir_stream_transfer(stream, &transfer, nullptr));
    check(weir_stream_synchronize(stream, WEIR_FOREVER));
    weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
    check(weir_buffer_get_info(scratch, &info));
    Words words;
    std::memcpy(words.data(), info.address, sizeof words);
    weir_stream_destroy(stream);
    weir_buffer_destroy(scratch);
    return words;
  }

  void compare_memories() {
    for (const auto& [where, image] : expected.images) {
      const Words found = contents(where[0], where[1]);
      for (std::size_t word = 0; word < kWords; ++word) {
        if (found[word] == image.words[word]) continue;
        wrong << "buffer " << where[0] << " memory " << where[1] << " word " << word
              << " is wrong; last written by ";
        if (image.writer[word] == SIZE_MAX) {
          wrong << "nobody\n";
        } else {
          wrong << program.describe(image.writer[word], executor.platform_) << "\n";
        }
        break;
      }
    }
  }
};

std::string Executor::run(const Program& program, const Outcome& expected) {
  Run run(*this, program, expected);
  for (std::size_t i = 0; i < program.steps.size(); ++i) run.run_step(i);
  for (weir_stream* stream : run.streams) weir_stream_synchronize(stream, WEIR_FOREVER);
  run.compare_statuses();
  run.compare_memories();
  return run.wrong.str();
}

}  // namespace weir::model

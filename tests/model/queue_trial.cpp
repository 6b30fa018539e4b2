#include "queue_trial.hpp"

#include <cstdint>
#include <stdexcept>
#include <utility>

namespace weir::queue_model {

namespace {

constexpr std::uint64_t kThrows = 1, kBytewise = 2;

std::uint8_t& byte_at(const weir_view& view, std::size_t i) {
  return static_cast<std::uint8_t*>(
      view.address)[i / view.extent[0] * view.stride[0] + i % view.extent[0]];
}

void run_mix(const Call& call, const std::function<void()>& inside_kernel) {
  const auto flags = call.scalar<std::uint64_t>(1);
  if ((flags & kThrows) != 0) throw std::runtime_error("as planned");
  std::vector<std::uint64_t> kinds;
  std::vector<std::size_t> sizes;
  for (std::size_t k = 0; k < call.handle()->operand_count; ++k) {
    const weir_view& view = call.operand(k);
    kinds.push_back(call.scalar<std::uint64_t>(2 + k));
    sizes.push_back(view.extent[0] * view.extent[1]);
  }
  const auto get = [&](std::size_t k, std::size_t i) -> std::uint8_t& {
    return byte_at(call.operand(k), i);
  };
  mix(call.scalar<std::uint64_t>(0), (flags & kBytewise) != 0, kinds, sizes, get, inside_kernel);
}

void run_combine(const Call& call, const std::function<void()>& inside_kernel) {
  const weir_view &target = call.operand(0), &partial = call.operand(1);
  for (std::size_t i = 0; i < target.extent[0] * target.extent[1]; ++i) {
    const auto sum = static_cast<std::uint8_t>(byte_at(target, i) + byte_at(partial, i));
    if (i == 0) inside_kernel();
    byte_at(target, i) = sum;
  }
}

}  // namespace

Trial::Trial(const Plan& plan, std::function<void()> inside_kernel)
    : plan_(plan), runtime_(plan.platform->domains), oracle_(plan) {
  mix_ = runtime_.kernel("mix", [=](const Call& call) { run_mix(call, inside_kernel); });
  combine_ =
      runtime_.kernel("combine", [=](const Call& call) { run_combine(call, inside_kernel); });
  for (const std::size_t bytes : plan.buffers) memory_.emplace_back(bytes, 0);
  for (Bytes& bytes : memory_) buffers_.push_back(runtime_.wrap(bytes));
  open_queue();
}

void Trial::open_queue() {
  std::vector<weir_place*> handles;
  for (std::size_t i = 0; i < plan_.platform->count; ++i) {
    for (Place& place : runtime_.domain(i).partition(plan_.platform->places)) {
      handles.push_back(place.handle());
      places_.push_back(std::move(place));
    }
  }
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.places = handles.data();
  options.place_count = handles.size();
  options.policy = plan_.policy.c_str();
  options.no_models = true;
  queue_ = runtime_.queue(options);
}

std::string Trial::run() {
  std::string wrong;
  try {
    wrong = run_steps();
  } catch (const std::exception& error) {
    wrong = std::string("it throws: ") + error.what();
  }
  return wrong.empty() ? "" : plan_.describe() + ends() + wrong + "\n";
}

std::string Trial::run_steps() {
  for (const Step& step : plan_.steps) {
    const std::string wrong = perform(step);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

Region Trial::region(std::size_t part) const {
  const Part& bytes = plan_.parts[part];
  return {buffers_[bytes.buffer].handle(), bytes.region()};
}

std::string Trial::perform(const Step& step) {
  switch (step.kind) {
    case Step::Kind::task: submit(step); break;
    case Step::Kind::flush: queue_.flush(region(step.part)); break;
    case Step::Kind::acquire:
    case Step::Kind::change: acquire(step); break;
    case Step::Kind::cancel:
      queue_.cancel();
      done_.push_back({&step, {}});
      break;
    case Step::Kind::synchronize: return synchronize();
  }
  return "";
}

void Trial::submit(const Step& step) {
  const PlannedTask& task = step.task;
  std::vector<Operand> operands;
  std::vector<Scalar> scalars = {task.seed,
                                 (task.throws ? kThrows : 0) | (task.bytewise ? kBytewise : 0)};
  for (const Access& access : task.accesses) {
    operands.emplace_back(region(access.part), access.kind);
    scalars.emplace_back(std::uint64_t{access.kind});
  }
  TaskOptions options;
  options.priority = task.priority;
  options.domains = task.domain < 0 ? 0 : std::uint64_t{1} << task.domain;
  options.combine = combine_.handle();
  try {
    done_.push_back({&step, queue_.submit(mix_, operands, scalars, options)});
  } catch (const Error& error) {  // operands that overlap, or are too large, for all its places
    if (error.status() != WEIR_STATUS_UNSUPPORTED) throw;
  }
}

void Trial::acquire(const Step& step) {
  const bool changes = step.kind == Step::Kind::change;
  const Part& part = plan_.parts[step.part];
  const weir_status status =
      weir_queue_acquire(queue_.handle(), buffers_[part.buffer].handle(), part.region(),
                         changes ? WEIR_ACCESS_READ_WRITE : WEIR_ACCESS_READ, WEIR_FOREVER);
  Bytes seen;
  for (std::size_t i = 0; status == WEIR_STATUS_OK && i < part.size(); ++i) {
    std::uint8_t& byte = memory_[part.buffer][part.at(i)];
    seen.push_back(byte);
    if (changes) byte = Oracle::changed(byte);
  }
  done_.push_back({&step, {}, status, std::move(seen)});
}

std::string Trial::synchronize() {
  const weir_status status = weir_queue_synchronize(queue_.handle(), WEIR_FOREVER);
  weir_status first_failure = WEIR_STATUS_OK;
  const std::string wrong = follow(first_failure);
  if (!wrong.empty()) return wrong;
  if (status != first_failure) {
    return std::string("synchronize says ") + weir_status_name(status) + " and not " +
           weir_status_name(first_failure);
  }
  const std::string contents = oracle_.synchronized(memory_);
  if (contents.empty()) done_.clear();
  return contents;
}

std::string Trial::follow(weir_status& first_failure) {
  std::size_t last_cancel = 0;
  for (std::size_t i = 0; i < done_.size(); ++i) {
    if (done_[i].step->kind == Step::Kind::cancel) last_cancel = i;
  }
  for (std::size_t i = 0; i < done_.size(); ++i) {
    const std::string wrong = follow(done_[i], i < last_cancel, first_failure);
    if (!wrong.empty()) return std::to_string(i) + ": " + wrong;
  }
  return "";
}

std::string Trial::follow(const Done& done, bool cancellable, weir_status& first_failure) {
  const Step& step = *done.step;
  if (step.kind == Step::Kind::cancel) oracle_.cancelled();
  if (step.kind == Step::Kind::acquire || step.kind == Step::Kind::change) {
    const std::string wrong = oracle_.acquired(step.part, done.status, done.seen);
    if (!done.seen.empty() && step.kind == Step::Kind::change) oracle_.change(step.part);
    return wrong;
  }
  if (step.kind != Step::Kind::task) return "";
  const weir_event_info info = done.event.info();
  if (!info.complete) return "it is not complete";
  if (first_failure == WEIR_STATUS_OK && info.status != WEIR_STATUS_CANCELLED) {
    first_failure = info.status;
  }
  return oracle_.follow(step.task, info.status, cancellable);
}

/// Of what was done since the last synchronise.
std::string Trial::ends() const {
  std::string text = "since the last synchronise:\n";
  for (std::size_t i = 0; i < done_.size(); ++i) {
    text += std::to_string(i) + ": " + done_[i].step->describe();
    if (done_[i].step->kind == Step::Kind::task) {
      const weir_event_info info = done_[i].event.info();
      text += std::string(": ") + weir_status_name(info.status) + " " + info.message;
    } else {
      text += std::string(": ") + weir_status_name(done_[i].status);
    }
    text += "\n";
  }
  return text;
}

}  // namespace weir::queue_model

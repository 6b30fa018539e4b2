#include "queue_trial.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace weir::queue_model {

namespace {

constexpr std::uint64_t kThrows = 1, kBytewise = 2;
constexpr std::uint8_t kIdentity = 7;      ///< of tasks that reduce with one of their own
constexpr std::int64_t kBriefNs = 20'000;  ///< is hardly enough

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

/// Partial results began as the identity.
void run_combine(const Call& call, std::uint8_t identity,
                 const std::function<void()>& inside_kernel) {
  const weir_view &target = call.operand(0), &partial = call.operand(1);
  for (std::size_t i = 0; i < target.extent[0] * target.extent[1]; ++i) {
    const auto sum = static_cast<std::uint8_t>(byte_at(target, i) + byte_at(partial, i) - identity);
    if (i == 0) inside_kernel();
    byte_at(target, i) = sum;
  }
}

void run_init(const Call& call) {
  const weir_view& partial = call.operand(0);
  for (std::size_t i = 0; i < partial.extent[0] * partial.extent[1]; ++i) {
    byte_at(partial, i) = kIdentity;
  }
}

}  // namespace

Trial::Trial(const Plan& plan, Surroundings surroundings)
    : plan_(plan),
      surroundings_(std::move(surroundings)),
      whims_{plan.seed},
      runtime_(plan.platform->domains),
      oracle_(plan) {
  const auto& inside = surroundings_.inside_kernel;
  mix_ = runtime_.kernel("mix", [=](const Call& call) { run_mix(call, inside); });
  mix_on_all_cores_ = runtime_.kernel(
      "mix on all cores", [=](const Call& call) { run_mix(call, inside); },
      WEIR_KERNEL_SHAPE_PARALLEL);
  combine_ = runtime_.kernel("combine", [=](const Call& call) { run_combine(call, 0, inside); });
  combine_from_identity_ = runtime_.kernel(
      "combine from identity", [=](const Call& call) { run_combine(call, kIdentity, inside); });
  init_ = runtime_.kernel("init", run_init);
  register_policy();
  for (std::size_t i = 0; i < plan_.platform->count; ++i) {
    for (Place& place : runtime_.domain(i).partition(plan_.platform->places)) {
      places_.push_back(std::move(place));
    }
  }
  for (const std::size_t bytes : plan.buffers) memory_.emplace_back(bytes, 0);
  for (Bytes& bytes : memory_) buffers_.push_back(runtime_.wrap(bytes));
  open_queue();
}

/// Puts a task off, or chooses any place, unless all are idle: then it has to choose.
std::size_t Trial::choose_later(const char*, const weir_candidate* candidates, std::size_t count,
                                void* payload) {
  Whims& whims = *static_cast<Whims*>(payload);
  const std::uint64_t whim = mixed(whims.seed, ++whims.calls);
  const bool busy = std::any_of(candidates, candidates + count,
                                [](const weir_candidate& each) { return each.tasks > 0; });
  return busy && whim % 3 != 0 ? WEIR_POLICY_LATER : whim / 3 % count;
}

void Trial::register_policy() {
  weir_policy_options options = WEIR_POLICY_OPTIONS_INIT;
  options.name = "later";
  options.summary = "puts tasks off";
  options.choose = choose_later;
  options.payload = &whims_;
  if (weir_policy_register(runtime_.handle(), &options) != WEIR_STATUS_OK) {
    throw std::runtime_error("the policy is not registered");
  }
}

void Trial::open_queue() {
  std::vector<weir_place*> handles;
  for (const Place& place : places_) handles.push_back(place.handle());
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.places = handles.data();
  options.place_count = handles.size();
  options.policy = plan_.policy.c_str();
  options.no_models = true;
  if (plan_.seed % 3 == 0) options.max_in_flight = 1 + plan_.seed / 3 % 16;
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
  const auto& steps = plan_.steps;
  for (std::size_t i = 0; i < steps.size();) {
    std::size_t next = i;
    while (steps[next].kind < Step::Kind::cancel) ++next;
    perform_all(i, next);
    const std::string wrong = perform(steps[next]);
    if (!wrong.empty()) return wrong;
    i = next + 1;
  }
  return "";
}

/// Performs steps that concern some buffers only: each producer does its own, in order.
void Trial::perform_all(std::size_t first, std::size_t last) {
  const std::size_t before = done_.size();
  for (std::size_t i = first; i < last; ++i) done_.push_back({&plan_.steps[i]});
  const auto produce = [&](std::size_t producer) {
    for (std::size_t i = before; i < done_.size(); ++i) {
      if (plan_.producer_of(*done_[i].step) == producer) perform(done_[i]);
    }
  };
  if (plan_.producers == 1) return produce(0);
  surroundings_.both([&] { produce(0); }, [&] { produce(1); });
}

Region Trial::region(std::size_t part) const {
  const Part& bytes = plan_.parts[part];
  return {buffers_[bytes.buffer].handle(), bytes.region()};
}

std::string Trial::perform(const Step& step) {
  if (step.kind == Step::Kind::synchronize) return synchronize(step);
  if (step.kind == Step::Kind::reopen) return reopen();
  queue_.cancel();
  done_.push_back({&step});
  return "";
}

void Trial::perform(Done& done) {
  try {
    switch (done.step->kind) {
      case Step::Kind::task: return submit(done);
      case Step::Kind::release: return release(done);
      case Step::Kind::acquire:
      case Step::Kind::change: return acquire(done);
      default: return flush(done);
    }
  } catch (const std::exception& error) {
    done.wrong = std::string("it throws: ") + error.what();
  }
}

void Trial::submit(Done& done) {
  const PlannedTask& task = done.step->task;
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
  options.place = task.place < 0 ? nullptr : places_[static_cast<std::size_t>(task.place)].handle();
  options.combine = (task.init ? combine_from_identity_ : combine_).handle();
  options.init = task.init ? init_.handle() : nullptr;
  const bool parallel = task.seed % 8 == 0;
  try {
    done.event = queue_.submit(parallel ? mix_on_all_cores_ : mix_, operands, scalars, options);
  } catch (const Error& error) {  // operands that overlap, or are too large, for all its places
    done.status = error.status();
    if (error.status() != WEIR_STATUS_UNSUPPORTED) throw;
  }
}

void Trial::acquire(Done& done) {
  const Step& step = *done.step;
  const bool changes = step.kind == Step::Kind::change;
  const Part& part = plan_.parts[step.part];
  done.status = weir_queue_acquire(queue_.handle(), buffers_[part.buffer].handle(), part.region(),
                                   changes ? WEIR_ACCESS_READ_WRITE : WEIR_ACCESS_READ,
                                   step.brief ? kBriefNs : WEIR_FOREVER);
  if (done.status != WEIR_STATUS_OK) return;
  done.seen = read_part(step.part);
  for (std::size_t i = 0; changes && i < part.size(); ++i) {
    memory_[part.buffer][part.at(i)] = Oracle::changed(done.seen[i]);
  }
}

void Trial::flush(Done& done) {
  done.event = queue_.flush(region(done.step->part));
  if (done.step->kind == Step::Kind::flush) return;
  try {
    done.event.wait();
    done.seen = read_part(done.step->part);
  } catch (const Error& error) {
    done.status = error.status();
  }
}

void Trial::release(Done& done) {
  const std::size_t buffer = plan_.parts[done.step->part].buffer;
  buffers_[buffer] = {};
  done.seen = memory_[buffer];
  buffers_[buffer] = runtime_.wrap(memory_[buffer]);
}

Bytes Trial::read_part(std::size_t part) const {
  const Part& bytes = plan_.parts[part];
  Bytes seen;
  for (std::size_t i = 0; i < bytes.size(); ++i) seen.push_back(memory_[bytes.buffer][bytes.at(i)]);
  return seen;
}

/// The end of a queue synchronises it.
std::string Trial::reopen() {
  queue_ = {};
  weir_status first_failure = WEIR_STATUS_OK;
  std::string wrong = follow(first_failure);
  if (wrong.empty()) wrong = oracle_.synchronized(memory_);
  if (!wrong.empty()) return wrong;
  done_.clear();
  open_queue();
  return "";
}

std::string Trial::synchronize(const Step& step) {
  const weir_status status =
      weir_queue_synchronize(queue_.handle(), step.brief ? kBriefNs : WEIR_FOREVER);
  if (step.brief && status == WEIR_STATUS_TIMEOUT) {
    done_.push_back({&step, {}, status});
    return "";
  }
  weir_status first_failure = WEIR_STATUS_OK;
  const std::string wrong = follow(first_failure);
  if (!wrong.empty()) return wrong;
  const bool either = plan_.producers > 1 && status != WEIR_STATUS_OK;  // the order is not known
  if (status != first_failure && !(either && first_failure != WEIR_STATUS_OK)) {
    return std::string("synchronize says ") + weir_status_name(status) + " and not " +
           weir_status_name(first_failure);
  }
  const std::string contents = oracle_.synchronized(memory_);
  if (contents.empty()) done_.clear();
  return contents;
}

/// Whether it is a task, and neither well nor cancelled.
bool Trial::has_failed(const Done& done) {
  if (done.step->kind != Step::Kind::task || done.event.handle().opaque[1] == 0) return false;
  const weir_status status = done.event.info().status;
  return status != WEIR_STATUS_OK && status != WEIR_STATUS_CANCELLED;
}

std::string Trial::follow(weir_status& first_failure) {
  std::size_t last_cancel = 0;
  for (std::size_t i = 0; i < done_.size(); ++i) {
    if (done_[i].step->kind == Step::Kind::cancel) last_cancel = i;
    if (has_failed(done_[i])) oracle_.will_fail(done_[i].step->task);
  }
  for (std::size_t i = 0; i < done_.size(); ++i) {
    const std::string wrong = follow(done_[i], i < last_cancel, first_failure);
    if (!wrong.empty()) return std::to_string(i) + ": " + wrong;
  }
  return "";
}

std::string Trial::follow(const Done& done, bool cancellable, weir_status& first_failure) {
  const Step& step = *done.step;
  if (!done.wrong.empty()) return done.wrong;
  if (step.kind == Step::Kind::cancel) oracle_.cancelled();
  if (step.kind >= Step::Kind::cancel || done.status == WEIR_STATUS_UNSUPPORTED) return "";
  if (step.brief && done.status == WEIR_STATUS_TIMEOUT) return "";
  if (step.kind == Step::Kind::release) {
    return oracle_.released(plan_.parts[step.part].buffer, done.seen);
  }
  if (step.kind != Step::Kind::task && step.kind != Step::Kind::flush) {
    const std::string wrong = oracle_.acquired(step.part, done.status, done.seen);
    if (!done.seen.empty() && step.kind == Step::Kind::change) oracle_.change(step.part);
    return wrong;
  }
  const weir_event_info info = done.event.info();
  if (!info.complete) return "it is not complete";
  if (step.kind == Step::Kind::flush) {
    const bool cancelled = info.status == WEIR_STATUS_CANCELLED && cancellable;
    return cancelled ? "" : oracle_.flushed(step.part, info.status);
  }
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
    if (done_[i].event.handle().opaque[1] != 0) {
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

#include "backends/sim/sim_link.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <sys/prctl.h>

#include "backend/copy_bytes.hpp"
#include "base/thread_role.hpp"

namespace weir::rt {

SimLink::SimLink(const std::string& name, const SimModel& model, const SimFaults* faults)
    : model_(model), faults_(faults) {
  const std::size_t channels = model.link.full_duplex ? 2 : 1;
  try {
    for (std::size_t i = 0; i < channels; ++i) {
      Channel& channel = channels_[i];
      channel.thread.emplace(fmt::format("{}.link{}", name, i),
                             [this, &channel] { serve(channel); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

SimLink::~SimLink() { stop(); }

void SimLink::stop() noexcept {
  for (Channel& channel : channels_) {
    channel.queue.close();
    channel.thread.reset();
  }
}

void SimLink::submit(SimDirection direction, const CopyJob& job) noexcept {
  Channel& channel = channels_[model_.link.full_duplex ? static_cast<std::size_t>(direction) : 0];
  try {
    channel.queue.add({direction, job, sys::now_ns()});
  } catch (...) {
    job.fail(failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory to queue a transfer"));
  }
}

void SimLink::serve(Channel& channel) noexcept {
  const NoWaitScope no_wait;
  prctl(PR_SET_TIMERSLACK, 1);
  while (const std::optional<Request> request = channel.queue.next()) transfer(channel, *request);
}

/// A transfer occupies the link from its submission or the end of the transfer before, whichever is
/// later, so a late wake-up of this thread does not delay the link.
void SimLink::transfer(Channel& channel, const Request& request) noexcept {
  const CopyJob& job = request.job;
  const std::int64_t started = std::max(channel.free_at_ns, request.submitted_ns);
  if (!model_.skip_kernels) {
    copy_bytes(job.target.base, job.target.region, job.source.base, job.source.region);
  }
  const std::int64_t modelled =
      started + model_.link.transfer_ns(request.direction, job.source.region);
  const std::int64_t copied = sys::now_ns();
  channel.free_at_ns = std::max(modelled, copied);
  if (modelled > copied) sys::sleep_until(modelled);
  job.sink->copied(job.token, faults_ ? faults_->end() : Outcome{}, started, channel.free_at_ns);
}

}  // namespace weir::rt

#include "backends/host/host_device.hpp"

#include "backend/copy_bytes.hpp"
#include "backend/worker_team.hpp"
#include "base/sys.hpp"

namespace weir::rt {

HostDevice::HostDevice(std::string name, const Machine& machine, std::vector<unsigned> processors)
    : processors_(std::move(processors)), pin_(machine.real) {
  info_.name = std::move(name);
  info_.backend = "host";
  info_.description = machine.processor;
  info_.cores = static_cast<unsigned>(processors_.size());
  info_.memory_bytes = machine.memory_bytes;
  info_.runs_host_code = true;
  info_.aliases_host = true;
  info_.copies_by_worker = true;
}

void HostDevice::copy(const CopyJob& job) noexcept {
  const std::int64_t started = now_ns();
  copy_bytes(job.target.base, job.target.region, job.source.base, job.source.region);
  job.sink->copied(job.token, {}, started, now_ns());
}

std::unique_ptr<PlaceDriver> HostDevice::open_place(const PlaceRequest& request, PlaceFeed& feed) {
  WorkerTeamOptions options{
      .name = request.name, .processors = {}, .pin = pin_, .feed_calls = true};
  for (const unsigned core : request.cores) options.processors.push_back(processors_[core]);
  return std::make_unique<WorkerTeam>(std::move(options), feed);
}

}  // namespace weir::rt

#include "runtime/rank_service.hpp"

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/rank/rank_device.hpp"
#include "backends/rank/rank_server.hpp"
#include "backends/rank/rank_wire.hpp"
#include "kernels/builtin.hpp"
#include "runtime/backends.hpp"
#include "stream/context.hpp"

namespace weir::rt {

namespace {

class Host final : public RankHost {
 public:
  explicit Host(const Context& runtime) : runtime_(runtime), backends_(make_backends()) {}

  std::unique_ptr<Device> open(const std::string& specification) override {
    auto devices = open_devices(specification, runtime_.machine(), backends_);
    if (devices.size() != 1) {
      fail_argument("'{}' are {} domains: name them one by one, 'rank:1/host,rank:1/sim'",
                    specification, devices.size());
    }
    return std::move(devices.front());
  }

  ServedKernel find_kernel(const std::string& name, const DeviceInfo& device) override {
    const weir_kernel& kernel = runtime_.kernels().find(name);
    kernels::prepare(name.c_str());
    const KernelCode* const code = kernel.code_for(device);
    if (code == nullptr) {
      fail(WEIR_STATUS_UNSUPPORTED, "kernel '{}' has no implementation for backend {}; it has: {}",
           name, device.backend, kernel.backends());
    }
    return {.missing = {},
            .name = name,
            .function = code->function,
            .cost = kernel.cost(),
            .payload = code->payload,
            .source = code->source};
  }

  void expect_kernel(const std::string& name) override { runtime_.kernels().find(name); }

 private:
  const Context& runtime_;
  std::vector<std::unique_ptr<Backend>> backends_;
};

}  // namespace

void serve_rank(const Context& runtime, Port& port) {
  Host host(runtime);
  RankServer(port, host).serve();
}

void check_ranks_know(const Context& runtime) {
  const std::vector<std::string> names = runtime.kernels().names();
  std::set<Rank> asked;
  for (std::size_t i = 0; i < runtime.domain_count(); ++i) {
    const auto* const device = dynamic_cast<const RankDevice*>(&runtime.domain(i)->device());
    if (device == nullptr || !asked.insert(device->connection().rank()).second) continue;
    const auto fill = [&](WireWriter& message) {
      for (const std::string& name : names) message.put(std::string_view(name));
    };
    const RankConnection& connection = device->connection();
    connection.client().ask(connection.rank(), RankMessageKind::check_kernels, fill,
                            [](WireReader&) {});
  }
}

void dismiss_ranks(Port& port) noexcept {
  for (Rank rank = 1; rank < port.ranks(); ++rank) {
    try {
      port.send(rank, Channel::rank, WireWriter(RankMessageKind::leave).bytes());
    } catch (...) {  // a lost rank no longer serves; one without the message sees this rank leave
    }
  }
}

}  // namespace weir::rt

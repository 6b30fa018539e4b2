#include "backends/rank/rank_backend.hpp"

#include <charconv>
#include <utility>

#include "backend/settings.hpp"
#include "backends/rank/rank_client.hpp"
#include "backends/rank/rank_device.hpp"

namespace weir::rt {

namespace {

constexpr char kHowToStart[] =
    "start the program with 'mpirun -n 2' or more, or by 'weir run --ranks 2'";

class RankBackend final : public Backend {
 public:
  explicit RankBackend(Port* port) : port_(port) {}

  const char* kind() const noexcept override { return "rank"; }
  const char* settings_help() const noexcept override {
    return "N|*[/DOMAIN]  a domain of rank N, or one of each rank that serves (default host)";
  }

  unsigned cores_wanted(const DomainSpec&, const Machine&) const override { return 0; }

  std::vector<DomainSpec> expand(const DomainSpec& spec) const override {
    const Settings settings(spec, {"device", "domain"});
    if (port_ == nullptr) {
      fail(WEIR_STATUS_UNAVAILABLE,
           "domain '{}': the runtime is in no fabric; {}, and set "
           "weir_runtime_options.fabric",
           spec.text, kHowToStart);
    }
    if (port_->rank() != 0) return {{.kind = "null", .settings = {}, .text = "null"}};
    if (port_->progress_by() == ProgressBy::caller) {
      fail(WEIR_STATUS_UNSUPPORTED,
           "domain '{}': with the progress 'caller' the fabric moves in calls of the fabric only, "
           "and "
           "the runtime would wait for ever; set progress or WEIR_PROGRESS to 'hybrid' or 'thread'",
           spec.text);
    }
    const std::string* const which = spec.find("device");
    if (which == nullptr) {
      fail_argument("domain '{}' does not say which rank: 'rank:1', or 'rank:*' for all",
                    spec.text);
    }
    if (*which != "*") return {spec};
    if (port_->ranks() < 2) {
      fail(WEIR_STATUS_UNAVAILABLE, "domain '{}': rank 0 is the only one; {}", spec.text,
           kHowToStart);
    }
    std::vector<DomainSpec> all;
    for (Rank rank = 1; rank < port_->ranks(); ++rank) {
      DomainSpec& one = all.emplace_back(spec);
      for (auto& [key, value] : one.settings) {
        if (key == "device") value = std::to_string(rank);
      }
    }
    return all;
  }

  std::unique_ptr<Device> open(const DomainSpec& spec, OpenContext context) override {
    const std::string* const domain = spec.find("domain");
    return std::make_unique<RankDevice>(std::move(context.name), RankClient::of(*port_),
                                        rank_of(spec), domain != nullptr ? *domain : "host");
  }

 private:
  Rank rank_of(const DomainSpec& spec) const {
    const std::string& text = *spec.find("device");
    Rank rank = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, rank);
    if (error != std::errc() || stop != end) {
      fail_argument("domain '{}': '{}' is not the number of a rank, nor '*'", spec.text, text);
    }
    if (rank >= port_->ranks()) {
      fail(WEIR_STATUS_NOT_FOUND, "domain '{}': there is no rank {}: the fabric has {}, from 0",
           spec.text, rank, port_->ranks());
    }
    if (rank == 0) fail_argument("domain '{}': rank 0 is this process; use 'host'", spec.text);
    return rank;
  }

  Port* const port_;
};

}  // namespace

std::unique_ptr<Backend> make_rank_backend(Port* port) {
  return std::make_unique<RankBackend>(port);
}

}  // namespace weir::rt

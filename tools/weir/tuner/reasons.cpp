#include "tuner/reasons.hpp"

#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace weir::cli::tuner {

namespace {

class Explanation {
 public:
  Explanation(const Search& search, const Space& space)
      : search_(search), space_(space), best_(search.best()) {}

  std::vector<std::string> words() {
    if (best_.point == kDefault) {
      reasons_.push_back(space_.noisy ? "nothing was clearly faster than the default, so that stays"
                                      : "nothing was faster than the default, so that stays");
    }
    explain_pace();
    explain_places();
    if (space_.most_tiles > 0) explain_tiles();
    explain_streams();
    explain_shape();
    explain_policy();
    return std::move(reasons_);
  }

 private:
  std::string slower(const Evaluation& other) const {
    const double more = other.seconds() / best_.seconds() - 1;
    constexpr double kSame = 0.005;
    if (std::abs(more) < kSame) return "as long";
    return more > 0 ? fmt::format("{:.0f} % longer", std::max(1.0, 100 * more))
                    : fmt::format("{:.0f} % less", std::max(1.0, -100 * more));
  }

  void explain_pace() {
    const double kernels = best_.compute_s / static_cast<double>(space_.threads);
    const double seconds = best_.seconds();
    if (seconds <= 0) return;
    const auto share = [&](double part_s) { return 100 * part_s / seconds; };
    if (best_.link_s > kernels && best_.link_s > best_.critical_s) {
      reasons_.push_back(fmt::format("the link sets the pace: it is busy {:.0f} % of the time",
                                     share(best_.link_s)));
    } else if (best_.critical_s > kernels) {
      reasons_.push_back(fmt::format(
          "the longest chain of dependent actions sets the pace: it is {:.0f} % of the time",
          share(best_.critical_s)));
    } else {
      reasons_.push_back(fmt::format("kernels set the pace: they fill {:.0f} % of the cores' time",
                                     share(kernels)));
    }
  }

  /// The fastest one that was measured with another number in one place.
  template <class Differs>
  const Evaluation* rival(Differs differs) const {
    const Evaluation* found = nullptr;
    for (const Evaluation& each : search_.evaluations()) {
      if (!differs(each)) continue;
      if (found == nullptr || each.seconds() < found->seconds()) found = &each;
    }
    return found;
  }

  void explain_places() {
    const std::size_t places = best_.point.places;
    std::string text = fmt::format("{} place{} of each domain", places, places == 1 ? "" : "s");
    if (places > 1 && space_.cores % places == 0) {
      text += fmt::format(": a divisor of {} cores, so that no two places share one", space_.cores);
    }
    const Evaluation* const other =
        rival([&](const Evaluation& each) { return each.point.places != places; });
    if (other != nullptr) {
      text += fmt::format("; the best with another number, {}, takes {}", other->point.places,
                          slower(*other));
    }
    reasons_.push_back(text);
  }

  void explain_tiles() {
    std::string text = fmt::format("{} tile{}", best_.tiles, best_.tiles == 1 ? "" : "s");
    const std::size_t places = best_.point.places;
    if (places > 1 && best_.tiles % places == 0) {
      text += fmt::format(": {} times the places, so that they share evenly", best_.tiles / places);
    }
    const Evaluation* const fewer =
        rival([&](const Evaluation& each) { return 3 * each.tiles <= 2 * best_.tiles; });
    const Evaluation* const more =
        rival([&](const Evaluation& each) { return 2 * each.tiles >= 3 * best_.tiles; });
    if (fewer != nullptr) {
      text += fmt::format("; {} take {}, as less runs at a time", fewer->tiles, slower(*fewer));
    }
    if (more != nullptr) {
      text +=
          fmt::format("; {} take {}, as each action costs some time", more->tiles, slower(*more));
    }
    reasons_.push_back(text);
  }

  void explain_streams() {
    const Evaluation* const other = rival([&](const Evaluation& each) {
      return each.point.streams != best_.point.streams && each.point.places == best_.point.places &&
             each.tiles == best_.tiles;
    });
    if (other == nullptr) return;
    reasons_.push_back(fmt::format("{} stream{} of each place; {} take{} {}", best_.point.streams,
                                   best_.point.streams == 1 ? "" : "s", other->point.streams,
                                   other->point.streams == 1 ? "s" : "", slower(*other)));
  }

  void explain_shape() {
    const Evaluation* const other = rival([&](const Evaluation& each) {
      return each.point.aspect != best_.point.aspect && each.point.places == best_.point.places &&
             each.tiles == best_.tiles;
    });
    if (other == nullptr) return;
    const auto words = [](const Point& point) {
      return point.aspect == 1 ? std::string("square")
                               : fmt::format("{} times as wide as high", point.aspect);
    };
    reasons_.push_back(fmt::format("tiles are {}; {} ones take {}", words(best_.point),
                                   words(other->point), slower(*other)));
  }

  void explain_policy() {
    const Evaluation* const other = rival([&](const Evaluation& each) {
      return each.point.policy != best_.point.policy && each.point.places == best_.point.places &&
             each.tiles == best_.tiles;
    });
    if (other == nullptr) return;
    const auto words = [](const Point& point) {
      return point.policy.empty() ? std::string("streams")
                                  : fmt::format("a task queue with policy {}", point.policy);
    };
    reasons_.push_back(fmt::format("work goes to {}; by {} it takes {}", words(best_.point),
                                   words(other->point), slower(*other)));
  }

  const Search& search_;
  const Space& space_;
  const Evaluation& best_;
  std::vector<std::string> reasons_;
};

}  // namespace

std::vector<std::string> reasons(const Search& search, const Space& space) {
  return Explanation(search, space).words();
}

}  // namespace weir::cli::tuner

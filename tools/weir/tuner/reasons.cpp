#include "tuner/reasons.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "common/counted.hpp"

namespace weir::cli::tuner {

namespace {

using apps::counted;

class Explanation {
 public:
  Explanation(const Search& search, const Space& space)
      : search_(search), space_(space), best_(search.best()) {}

  std::vector<std::string> words() {
    if (best_.point == kDefault) {
      reasons_.push_back(space_.noisy
                             ? "no division was clearly faster than the default, which stays"
                             : "no division was faster than the default, which stays");
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
  /// Returns how long another point takes, and why it takes longer, as far as the recordings show
  /// it.
  std::string slower(const Evaluation& other) const {
    const double more = other.seconds() / best_.seconds() - 1;
    constexpr double kSame = 0.005;
    if (std::abs(more) < kSame) return "as long";
    return more > 0 ? fmt::format("{:.0f} % longer{}", std::max(1.0, 100 * more), cause(other))
                    : fmt::format("{:.0f} % less", std::max(1.0, -100 * more));
  }

  /// The part of the time that grew the most from the best one to another, if it explains most of
  /// the difference; "": the recordings do not tell.
  std::string cause(const Evaluation& other) const {
    const Account &mine = best_.account, &theirs = other.account;
    const double longer_s = theirs.seconds() - mine.seconds();
    if (mine.seconds() <= 0 || theirs.seconds() <= 0 || longer_s <= 0) return "";
    constexpr double Account::*kParts[] = {&Account::work_s, &Account::idle_s, &Account::exposed_s,
                                           &Account::nothing_s};
    const auto grown = [&](double Account::*part) { return theirs.*part - mine.*part; };
    const auto most = *std::max_element(std::begin(kParts), std::end(kParts),
                                        [&](auto a, auto b) { return grown(a) < grown(b); });
    if (2 * grown(most) < longer_s) return "";
    if (most == &Account::work_s) return more_work(theirs);
    if (most == &Account::idle_s) return more_idle(theirs);
    const double before = most == &Account::exposed_s ? mine.exposed_s : mine.nothing_s;
    const double now = most == &Account::exposed_s ? theirs.exposed_s : theirs.nothing_s;
    return fmt::format(
        ", as {} {:.0f} % of the time, {:.0f} % with the chosen division",
        most == &Account::exposed_s ? "copies that no kernel hides take" : "nothing runs for",
        100 * now / theirs.seconds(), 100 * before / mine.seconds());
  }

  std::string more_work(const Account& theirs) const {
    const Account& mine = best_.account;
    if (mine.work_s <= 0) return "";
    return fmt::format(
        ", as the kernels take {:.0f} % longer in all: {} of them, {} with the chosen division",
        std::max(1.0, 100 * (theirs.work_s / mine.work_s - 1)), theirs.kernels, mine.kernels);
  }

  std::string more_idle(const Account& theirs) const {
    const auto idle = [&](const Account& account) {
      return static_cast<double>(space_.threads) * account.idle_s /
             std::max(1e-12, account.work_s + account.idle_s);
    };
    return fmt::format(
        ", as on average {} of {} are idle while kernels run, {} with the chosen division",
        apps::two_digits(idle(theirs)), counted(space_.threads, "core"),
        apps::two_digits(idle(best_.account)));
  }

  void explain_pace() {
    const Account& account = best_.account;
    const double seconds = account.seconds();
    if (seconds <= 0) return;
    constexpr double kFull = 0.9, kLong = 0.7;
    const auto share = [&](double part_s) { return 100 * part_s / seconds; };
    const double others_s = std::max({account.idle_s, account.exposed_s, account.nothing_s});
    if (account.work_s >= others_s) {
      reasons_.push_back(fmt::format("kernels set the pace: they fill {:.0f} % of the cores' time",
                                     share(account.work_s)));
    } else if (best_.link_s >= kFull * seconds) {
      reasons_.push_back(fmt::format("the link sets the pace: it is busy {:.0f} % of the time",
                                     share(best_.link_s)));
    } else if (account.exposed_s == others_s) {
      reasons_.push_back(
          fmt::format("copies set the pace: for {:.0f} % of the time no kernel hides them",
                      share(account.exposed_s)));
    } else if (best_.critical_s >= kLong * seconds) {
      reasons_.push_back(fmt::format(
          "the longest chain of dependent actions sets the pace: it is {:.0f} % of the time",
          share(best_.critical_s)));
    } else if (account.idle_s == others_s) {
      reasons_.push_back(fmt::format(
          "idle cores set the pace: {:.0f} % of the cores' time, while others have kernels",
          share(account.idle_s)));
    } else {
      reasons_.push_back(
          fmt::format("starting actions sets the pace: nothing runs for {:.0f} % of the time",
                      share(account.nothing_s)));
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
    if (space_.most_places == 1) return;
    const std::size_t places = best_.point.places;
    std::string text = counted(places, "place") + " of each domain";
    const Evaluation* const other =
        rival([&](const Evaluation& each) { return each.point.places != places; });
    if (other != nullptr) {
      text += fmt::format("; the best with another number, {}, takes {}", other->point.places,
                          slower(*other));
    }
    reasons_.push_back(text);
  }

  void explain_tiles() {
    std::string text = counted(best_.tiles, "tile");
    const auto add = [&](const Evaluation* other) {
      if (other == nullptr) return;
      text += fmt::format("; {} {} {}", other->tiles, takes(other->tiles), slower(*other));
    };
    add(rival([&](const Evaluation& each) { return 3 * each.tiles <= 2 * best_.tiles; }));
    add(rival([&](const Evaluation& each) { return 2 * each.tiles >= 3 * best_.tiles; }));
    reasons_.push_back(text);
  }

  void explain_streams() {
    const Evaluation* const other = rival([&](const Evaluation& each) {
      return each.point.streams != best_.point.streams && each.point.places == best_.point.places &&
             each.tiles == best_.tiles;
    });
    if (other == nullptr) return;
    reasons_.push_back(fmt::format("{} of each place; {} {} {}",
                                   counted(best_.point.streams, "stream"), other->point.streams,
                                   takes(other->point.streams), slower(*other)));
  }

  static const char* takes(std::size_t count) { return count == 1 ? "takes" : "take"; }

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

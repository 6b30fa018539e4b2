// How long tasks take: measured while they run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::rt {

/// Times of kernels by kind of place and bytes of operands: the history of a size that was seen,
/// else a power law through the others. One thread at a time.
class PerformanceModel {
 public:
  static constexpr std::size_t kMostBytes = 64 << 10;  ///< of text

  /// What an estimate comes from.
  enum class Source : std::uint8_t {
    nothing,
    guess,    ///< times of other sizes
    earlier,  ///< times that were read
    measured,
  };

  /// Times of one kernel on one kind of place. Sizes that are almost the same share their times.
  ///
  /// A time that is more than twice the mean of those before it, or less than half, counts as twice
  /// or half of it, until several in a row are. What was read counts as one time.
  class Curve {
   public:
    static constexpr std::size_t kMostSizes = 32;  ///< of more, those that are closest become one

    /// Learns a time. The first of a size is forgotten when the second is shorter: it had to pay
    /// for what only first calls do.
    void note(std::uint64_t bytes, std::int64_t ns);
    /// Returns -1 when nothing was measured.
    std::int64_t estimate(std::uint64_t bytes) const;
    /// What estimate() says comes from.
    Source source(std::uint64_t bytes) const;

   private:
    friend class PerformanceModel;
    struct Sample {
      std::uint64_t bytes = 0;
      std::uint64_t count = 0;
      double mean_ns = 0;
      double x = 0, y = 0;    ///< logarithms of size and mean
      bool replaced = false;  ///< the first time was forgotten
      bool earlier = false;   ///< it was read, and none was noted since
      int outliers = 0;       ///< in a row: that were much longer, or if negative, much shorter

      static Sample of(std::uint64_t bytes, double mean_ns, std::uint64_t count);
      void set_mean(double ns);
      void note(double ns);
      double bounded(double time);
      void absorb(const Sample& other, double slope);
    };
    /// The power law: a line of slope `slope` through (x, y).
    struct Line {
      double x = 0, y = 0, slope = 1;
    };
    static constexpr std::uint64_t kMemory = 32;  ///< older times fade
    /// What is known of the size that was asked for last: tasks come in series, and each is asked
    /// for before it runs and noted after that.
    struct LastQuery {
      std::uint64_t bytes = 0;
      std::size_t sample = 0;          ///< of the sample whose times it shares; the end: of none
      std::int64_t power_law_ns = -1;  ///< by the power law
      bool valid = false;              ///< nothing was learnt since, or only of this size
    };

    std::size_t place_of(std::uint64_t bytes) const;
    std::size_t find(std::uint64_t bytes) const;
    std::size_t find_similar(double x) const;
    double measured_mean(std::uint64_t bytes) const;
    void learn(const Sample& sample);
    void add(const Sample& sample);
    void merge_closest();
    Line line() const;
    std::int64_t by_power_law(std::uint64_t bytes) const;

    std::vector<Sample> samples_;  ///< by size
    mutable LastQuery last_query_;
    std::size_t age_ = 0;  ///< 0: was used; else its turn in what was read
  };

  /// Returns the curve of a kernel on a kind of place, which stays where it is.
  Curve& curve(std::string_view kernel, std::string_view kind);

  /// Returns how many times as fast as the first each kind of place is, by the mean of what all of
  /// them have run. Empty when there is no such thing.
  std::vector<double> speeds(std::span<const std::string> kinds) const;

  /// As lines of text, for machine `machine`: first those that were used, then what was read, in
  /// its order, as long as there is room. Kernels with tabs or ends of lines in their names are
  /// left out.
  std::string text(std::string_view machine) const;
  /// Adds what text() made. Throws Error naming `file` when it is not of this form, or was measured
  /// on another machine; nothing is added then.
  void read(std::string_view text, std::string_view machine, std::string_view file);

  /// Adds what store_cached() has put into the user's cache on this machine. What is there and
  /// cannot be used is left alone, with a warning in the log.
  void load_cached(const std::string& machine);
  /// Puts what was used into the user's cache, before what others have kept there.
  void store_cached(const std::string& machine) const;

  /// Calls visit(kernel, kind, bytes, count, mean_ns) for all that was measured.
  template <class Visit>
  void each(Visit&& visit) const {
    for (const auto& [key, curve] : curves_) {
      for (const Curve::Sample& sample : curve.samples_) {
        visit(key.first, key.second, sample.bytes, sample.count, sample.mean_ns);
      }
    }
  }

 private:
  /// The mean time of a kernel, 0: it has not run so.
  double mean_of(const std::string& kernel, const std::string& kind, std::uint64_t bytes) const;

  std::map<std::pair<std::string, std::string>, Curve, std::less<>> curves_;
};

}  // namespace weir::rt

// The performance model: measured times of tasks.
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

/// Times of kernels by kind of place and bytes of operands: the history of a measured size, else a
/// power law through the other sizes. One thread at a time.
class PerformanceModel {
 public:
  static constexpr std::size_t kMostBytes = 64 << 10;  ///< bytes of text()

  /// The origin of an estimate.
  enum class Source : std::uint8_t {
    nothing,
    guess,    ///< extrapolated from other sizes
    earlier,  ///< read from a file
    measured,
  };

  /// Times of one kernel on one kind of place. Sizes that are almost equal share their times.
  ///
  /// A time that differs from the mean by more than a factor of two counts as twice or half of the
  /// mean, until several in a row differ so. Times that were read count as one time.
  class Curve {
   public:
    static constexpr std::size_t kMostSizes = 32;  ///< beyond that the two closest are merged

    /// Adds a time. Drops the first time of a size if the second is shorter, because first calls
    /// include one-time costs.
    void note(std::uint64_t bytes, std::int64_t ns);
    /// Returns the estimate in nanoseconds, -1 if nothing was measured.
    std::int64_t estimate(std::uint64_t bytes) const;
    /// Returns the origin of estimate().
    Source source(std::uint64_t bytes) const;

   private:
    friend class PerformanceModel;
    struct Sample {
      std::uint64_t bytes = 0;
      std::uint64_t count = 0;
      double mean_ns = 0;
      double x = 0, y = 0;    ///< logarithms of size and mean
      bool replaced = false;  ///< the first time was dropped
      bool earlier = false;   ///< was read, and no time was added since
      int outliers = 0;       ///< successive outliers: above the mean, below it if negative

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
    static constexpr std::uint64_t kMemory = 32;  ///< limit of `count`: older times fade
    /// The result for the last queried size: tasks come in series, and each size is queried before
    /// the task and noted after it.
    struct LastQuery {
      std::uint64_t bytes = 0;
      std::size_t sample = 0;          ///< index of the sample that covers the size, or the end
      std::int64_t power_law_ns = -1;  ///< estimate by the power law
      bool valid = false;              ///< no time was added since, or only of this size
    };

    std::size_t sample_of(std::uint64_t bytes) const;
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
    std::size_t age_ = 0;  ///< 0: used in this process; else its position in the file
  };

  /// Returns the curve of a kernel on a kind of place. The reference stays valid.
  Curve& curve(std::string_view kernel, std::string_view kind);

  /// Returns the speed of each kind of place relative to the first, by the mean over the kernels
  /// that all of them have run. Empty if there are none.
  std::vector<double> speeds(std::span<const std::string> kinds) const;

  /// Returns the model as text for `machine`: first the curves that were used, then those that were
  /// read, in their order, up to kMostBytes. Omits kernels with tabs or line ends in their names.
  std::string text(std::string_view machine) const;
  /// Adds the curves of a text(). Throws Error naming `file`, and adds nothing, if the text is
  /// invalid or from another machine.
  void read(std::string_view text, std::string_view machine, std::string_view file);

  /// Adds the curves that store_cached() put into the user's cache on this machine. Ignores
  /// unusable contents, with a warning in the log.
  void load_cached(const std::string& machine);
  /// Writes the used curves into the user's cache, before those that other processes wrote there.
  void store_cached(const std::string& machine) const;

  /// Calls visit(kernel, kind, bytes, count, mean_ns) for all measured times.
  template <class Visit>
  void each(Visit&& visit) const {
    for (const auto& [key, curve] : curves_) {
      for (const Curve::Sample& sample : curve.samples_) {
        visit(key.first, key.second, sample.bytes, sample.count, sample.mean_ns);
      }
    }
  }

 private:
  std::map<std::pair<std::string, std::string>, Curve, std::less<>> curves_;
};

}  // namespace weir::rt

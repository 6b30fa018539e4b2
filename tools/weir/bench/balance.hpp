// Figures 9 to 12 of Cardellini and Fanfarillo, "Heterogeneous CAF-based Load Balancing on Intel
// Xeon Phi" (paper 004), on any platform.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "terminal.hpp"

namespace CLI {
class App;
}

namespace weir::cli::bench {

/// Prices the same options several times, each time in a process of its own: on each domain alone
/// in both shapes (figure 9), in chunks of ever more options (10), on ranks with and without a
/// master (11), and on all domains together against their sum (12).
class Balance {
 public:
  void add_options(CLI::App& app);
  /// Throws weir::Error, or Interrupted.
  void run();

 private:
  using Json = nlohmann::ordered_json;
  using Words = std::vector<std::string>;

  void measure_alone();
  void measure_chunks();
  void measure_ranks();
  void measure_together();
  Json point(const Words& labels, const Words& options);
  std::string text() const;

  std::string domains_ = "host";
  std::vector<std::size_t> chunks_ = {1, 2, 3, 4, 6, 8, 12, 16};
  std::size_t options_ = 64, repeat_ = 3;
  unsigned ranks_ = 3;
  bool json_ = false;
  Json figures_ = Json::array();
  std::size_t measured_ = 0, points_ = 0;
  Progress progress_;
};

}  // namespace weir::cli::bench

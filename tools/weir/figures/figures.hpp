// The experiments with applications of Fang et al., "Evaluating Multiple Streams on Heterogeneous
// Platforms", figures 6 to 9, on any platform.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "application_run.hpp"
#include "terminal.hpp"
#include "tuner/tuning.hpp"

namespace CLI {
class App;
}

namespace weir::cli::figures {

using Json = nlohmann::ordered_json;

/// Runs applications without streams, on more and more places (figure 7), with more and more tiles
/// (figure 8) and on two devices (figure 9); compares the best of these with the first (figure 6).
/// Writes each time to a file as soon as it is known, and does not measure it again; failed
/// measurements are repeated.
class Figures {
 public:
  void add_options(CLI::App& app);
  /// Throws weir::Error, or Interrupted.
  void run();

 private:
  struct Shape {
    std::vector<std::size_t> places, tiles;
    std::size_t few_places = 1;
  };

  std::vector<apps::Application*> chosen() const;
  void check(const apps::Application& application) const;
  bool serve(const std::vector<apps::Application*>& applications) const;
  void recall();
  void keep() const;
  void run(apps::Application& application);
  Shape shape_of(apps::Application& application);
  std::optional<double> seconds(apps::Application& application, const std::string& domains,
                                const tuner::Point& point);
  RunReport measure(apps::Application& application, const std::string& domains,
                    const tuner::Point& point, std::size_t repeat) const;
  void add(int number, const std::string& application, const char* x_name, std::vector<Json> x,
           const std::vector<std::optional<double>>& seconds);
  Json head() const;
  std::string text() const;

  RunOptions options_;
  const CLI::App* command_ = nullptr;
  std::vector<std::string> names_;
  std::string output_ = "figures";
  bool fresh_ = false, json_ = false;
  std::vector<std::unique_ptr<apps::Application>> applications_ = apps::make_applications();
  Json times_ = Json::object();  ///< by what was measured; null: it failed
  Json figures_ = Json::array();
  Json machine_;
  std::size_t measured_ = 0;
  Progress progress_;
};

}  // namespace weir::cli::figures

// Options that the acoustic applications share.
#pragma once

#include <string>

#include "common/command_options.hpp"
#include "common/input_error.hpp"
#include "common/workload.hpp"

namespace weir::apps {

struct WaveOptions {
  std::size_t steps = 0;  ///< 0: the application's own number
  bool overlap = true;

  void add_to(CommandOptions& options, const std::string& usual_steps) {
    options.add("--steps", steps, "Number of time steps [" + usual_steps + "]")
        .within(std::size_t{1}, std::size_t{1000000});
    options
        .add(
            "--overlap", [this](const std::string& word) { overlap = word == "on"; },
            "on or off: whether edges travel while the interior is computed [on]")
        .one_of({"on", "off"});
  }

  /// Throws InputError for an --input, which these applications do not read.
  static void refuse_input(const Parameters& parameters, const char* application) {
    if (parameters.input.empty()) return;
    fail_input("'{}': {} generates its layers: use --n and --steps", parameters.input, application);
  }
};

}  // namespace weir::apps

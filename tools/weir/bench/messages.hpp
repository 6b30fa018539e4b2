// Figure 2 of paper 003: the bandwidth between two ranks by the size of a message.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "command.hpp"
#include "terminal.hpp"

namespace CLI {
class App;
}

namespace weir::cli::bench {

/// Sends data of each size from rank 0 to rank 1: as messages that a handler receives, as puts into
/// a window, and as items of a conveyor, which joins them. Also measures one message there and
/// back, and one put until it is complete.
class Messages {
 public:
  void add_options(CLI::App& app);
  /// All ranks call it; rank 0 prints. Throws weir::Error, or Interrupted.
  ExitCode run();

 private:
  using Json = nlohmann::ordered_json;

  Json measure();
  std::string text(const Json& results) const;

  std::vector<std::size_t> sizes_ = {8, 64, 256, 1024, 8192, 65'536, 524'288, 4'194'304};
  std::size_t repeat_ = 5;
  unsigned ranks_ = 0;  ///< to start; 0: those of the launcher
  bool json_ = false;
  Progress progress_;
};

}  // namespace weir::cli::bench

// The environment variables of the layer; docs/guide/environment.md describes them.
#pragma once

#include <string>

namespace weir::hs {

struct Environment {
  std::string domains;       ///< of weir, the host among them
  unsigned simulated_cards;  ///< beside these
  unsigned threads;          ///< that a card says it has
  std::size_t memory;        ///< bytes of each simulated card; 0: what suits the machine
  unsigned host_cpus;        ///< that the host says it has; 0: its own, but some at least
  std::string checksums;
  std::string sink_path, mic_path, host_sink_path;
  std::size_t huge_from;  ///< bytes of instances that want huge pages
};

/// Reads them. Throws Error{OUT_OF_RANGE} naming a value that nobody could use.
Environment read_environment();

}  // namespace weir::hs

// The environment variables of the layer; docs/reference/environment.md describes them.
#pragma once

#include <string>

namespace weir::hs {

struct Environment {
  std::string domains;       ///< domains of weir, the host included
  unsigned simulated_cards;  ///< in addition to these
  unsigned threads;          ///< that a device reports
  std::size_t memory;        ///< bytes of each simulated card; 0: chosen by the machine's memory
  unsigned host_cpus;        ///< that the host reports; 0: its own, with a minimum
  std::string checksums;
  std::string sink_path, mic_path, host_sink_path;
  std::size_t huge_from;  ///< size in bytes from which instances use huge pages
};

/// Reads the variables. Throws Error{OUT_OF_RANGE} naming an invalid value.
Environment read_environment();

}  // namespace weir::hs

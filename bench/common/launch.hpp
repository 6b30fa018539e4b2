// Programs that run as several processes of this machine.
#pragma once

#include <vector>

#include <weir/weir.hpp>

namespace weir_bench {

/// Starts this program again, as so many ranks. Returns their status.
inline int launch(unsigned ranks, int count, char** values) {
  std::vector<const char*> words(values, values + count);
  words[0] = "/proc/self/exe";
  words.push_back(nullptr);
  int status = 0;
  weir::check(weir_fabric_launch(nullptr, ranks, words.data(), &status));
  return status;
}

}  // namespace weir_bench

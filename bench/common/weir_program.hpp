// A benchmark program of weir on a device that may not be there.
#pragma once

#include <weir/weir.hpp>

#include "common/program.hpp"

namespace weir_bench {

/// run_program() for measurements with weir: a domain that is unavailable is Unavailable.
template <class Measure>
int run_weir_program(int count, char** values, Measure&& measure) {
  return run_program(count, values, [&](const Arguments& arguments) {
    try {
      return measure(arguments);
    } catch (const weir::Error& error) {
      if (error.status() == WEIR_STATUS_UNAVAILABLE) throw Unavailable(error.what());
      throw;
    }
  });
}

}  // namespace weir_bench

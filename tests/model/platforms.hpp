// What random programs run on.
#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "program.hpp"

namespace weir::model {

struct Case {
  Platform platform;
  unsigned share;  ///< of each thousand programs
};

inline std::string many(int times, const std::string& text) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

/// All platforms; the shares add up to 1000.
inline const std::array<Case, 11>& cases() {
  static const std::array<Case, 11> all = {{
      {{"host_one_core", "host:cores=1", {0}, {1}, {true}}, 150},
      {{"host_two_places", "host:cores=2", {0, 0}, {1, 1}, {true}}, 150},
      {{"host_team", "host:cores=2", {0}, {2}, {true}}, 120},
      {{"host_crowded", "host:cores=2", {0, 0, 0}, {2, 1, 1}, {true}}, 70},
      {{"sim", "sim:cores=1,gbps=1000,latency_us=0", {0, 0}, {1, 1}, {false}}, 130},
      {{"sim_small_memory", "sim:cores=1,gbps=1000,latency_us=0,memory=1536B", {0}, {1}, {false}},
       70},
      {{"host_and_two_sims",
        "host:cores=1,sim:cores=1,gbps=1000,latency_us=0,duplex=half,"
        "sim:cores=1,gbps=1000,latency_us=0",
        {0, 1, 2},
        {1, 1, 1},
        {true, false, false}},
       130},
      {{"eight_domains",
        "host:cores=1" + many(3, ",sim:cores=1,gbps=1000,latency_us=0,duplex=half") +
            many(4, ",sim:cores=1,gbps=1000,latency_us=0,memory=1536B,duplex=half"),
        {0, 1, 2, 3, 4, 5, 6, 7},
        {1, 1, 1, 1, 1, 1, 1, 1},
        {true, false, false, false, false, false, false, false}},
       20},
      {{"virtual_time",
        "sim:cores=3,clock=virtual,gbps=6,sim:cores=2,clock=virtual,duplex=half",
        {0, 0, 1},
        {2, 1, 2},
        {false, false}},
       90},
      {{"sim_queued", "sim:cores=1,gbps=1000,latency_us=0,order=device", {0, 0}, {1, 1}, {false}},
       40},
      {{"virtual_queued",
        "sim:cores=3,clock=virtual,order=device,memory=1536B,sim:cores=2,clock=virtual",
        {0, 0, 1},
        {2, 1, 2},
        {false, false}},
       30},
  }};
  return all;
}

/// Platforms with threads of their own: for real threads only, where there is such a device.
inline const std::array<Case, 8>& device_cases() {
  static const std::array<Case, 8> all = {{
      {{"host_and_opencl", "host:cores=1,opencl:0,alias=off", {0, 1, 1}, {1, 1, 1}, {true, false}},
       20},
      {{"host_and_opencl_gpu",
        "host:cores=1,opencl:0,native=off",
        {0, 1, 1},
        {1, 1, 1},
        {true, false}},
       5},
      {{"host_and_opencl_buffers",
        "host:cores=1,opencl:0,native=off,svm=off,memory=1536B",
        {0, 1, 1},
        {1, 1, 1},
        {true, false}},
       5},
      // The next three are asked for by name, with Mesa's driver: tests/model/CMakeLists.txt.
      {{"host_and_rusticl", "host:cores=1,opencl:0", {0, 1, 1}, {1, 1, 1}, {true, false}}, 0},
      {{"host_and_two_drivers", "host:cores=1,opencl:0,opencl:1", {0, 1, 2}, {1, 1, 1}, {}}, 0},
      {{"host_and_two_drivers_apart",
        "host:cores=1,opencl:0,alias=off,opencl:1,alias=off",
        {0, 1, 2},
        {1, 1, 1},
        {true, false, false},
        false},
       0},
      {{"host_and_cuda", "host:cores=1,cuda:0", {0, 1, 1}, {1, 1, 1}, {true, false}}, 20},
      {{"host_and_ranks",
        "host:cores=1,rank:1/host:cores=2,rank:2/host:cores=1,"
        "rank:1/sim:cores=1,gbps=1000,latency_us=0,memory=1536B",
        {0, 1, 1, 2, 3},
        {1, 2, 1, 1, 1},
        {true, false, false, false}},
       20},
  }};
  return all;
}

inline bool has_threads_of_its_own(const Platform& platform) {
  return std::any_of(device_cases().begin(), device_cases().end(),
                     [&](const Case& each) { return each.platform.name == platform.name; });
}

inline const Platform& platform_named(std::string_view name) {
  for (const Case& each : cases()) {
    if (each.platform.name == name) return each.platform;
  }
  for (const Case& each : device_cases()) {
    if (each.platform.name == name) return each.platform;
  }
  throw std::runtime_error("no platform is called '" + std::string(name) + "'");
}

}  // namespace weir::model

#include "suite.hpp"

namespace weir::conformance {
namespace {

constexpr char kRefuses[] = "it has no cores and no memory, and refuses all work";

const Registration null({
    .name = "null",
    .domain = "null",
    .small = "",
    .kernels = host_code,
    .exceptions = {{"Memory.*", kRefuses},
                   {"Copies.*", kRefuses},
                   {"Compute.*", kRefuses},
                   {"Ordering.*", kRefuses},
                   {"Overlap.*", kRefuses},
                   {"Events.*", kRefuses},
                   {"Places.*", kRefuses},
                   {"Capacity.*", kRefuses},
                   {"Portable.*", kRefuses},
                   {"Errors.*", kRefuses},
                   {"Threads.*", kRefuses},
                   {"Shutdown.*", kRefuses}},
});

}  // namespace
}  // namespace weir::conformance

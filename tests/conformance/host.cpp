#include "suite.hpp"

namespace weir::conformance {
namespace {

const Registration host({
    .name = "host",
    .domain = "host:cores=2",
    .small = "",
    .kernels = host_code,
    .exceptions = {{"Capacity.*", "the host's memory is the program's: nothing limits instances"},
                   {"Copies.BetweenTwoDevices", "domains of the host have no link to each other"},
                   {"Ordering.BarriersNeedNoHost", "workers take what is ready"},
                   {"Ordering.DependentActionsNeedNoHost", "workers take what is ready"}},
});

}  // namespace
}  // namespace weir::conformance

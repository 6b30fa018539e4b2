#include "suite.hpp"

namespace weir::conformance {
namespace {

const Registration host({
    .name = "host",
    .domain = "host:cores=2",
    .small = "",
    .kernels = host_code,
    .exceptions = {{"Capacity.*", "the host's memory is the program's: nothing limits instances"},
                   {"Copies.TransferToAPeerDevice_ArrivesAndLeavesTheSourceUnchanged",
                    "domains of the host have no link to each other"},
                   {"Ordering.KernelsSeparatedByBarriers_AreSubmittedBeforeTheFirstEnds",
                    "workers take what is ready"},
                   {"Ordering.DependentKernels_AreSubmittedBeforeTheFirstEnds",
                    "workers take what is ready"}},
});

}  // namespace
}  // namespace weir::conformance

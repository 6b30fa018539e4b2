#include "suite.hpp"

namespace weir::conformance {
namespace {

constexpr char kHostOrders[] = "the host hands over what depends on nothing that has not ended";
constexpr char kRealTime[] = "sim:cores=2,gbps=100,latency_us=0";
constexpr char kVirtual[] = "sim:cores=2,clock=virtual";

const Registration real({
    .name = "sim",
    .domain = kRealTime,
    .small = std::string(kRealTime) + ",memory=32KiB",
    .kernels = host_code,
    .exceptions = {{"Ordering.KernelsSeparatedByBarriers_AreSubmittedBeforeTheFirstEnds",
                    kHostOrders},
                   {"Ordering.DependentKernels_AreSubmittedBeforeTheFirstEnds", kHostOrders}},
});

constexpr char kQueued[] = "sim:cores=2,gbps=100,latency_us=0,order=device";

const Registration queued({
    .name = "sim_queued",
    .domain = kQueued,
    .small = std::string(kQueued) + ",memory=32KiB",
    .kernels = host_code,
    .exceptions = {},
});

constexpr char kAlone[] = "no core of the host can hold it back: its time passes in another clock";

const Registration in_virtual_time({
    .name = "virtual",
    .domain = kVirtual,
    .small = std::string(kVirtual) + ",memory=32KiB",
    .kernels =
        [](const Runtime& runtime) { return host_code(runtime, std::chrono::milliseconds(100)); },
    .exceptions = {{"Overlap.*", "one thread runs all kernels, one after the other"},
                   {"Errors.StreamCancelled_PendingActionIsCancelledAndLaterOneRuns", kAlone},
                   {"Events.OneOfTwoEventsComplete_WaitAnyReturnsItAndWaitAllTimesOut", kAlone},
                   {"Events.EventOfAPendingAction_TimesOutThenCompletesWithTheAction", kAlone},
                   {"Events.MarkerBehindAPendingWait_CompletesAfterItButBlocksNothing", kAlone},
                   {"Events.DeviceAndHostStreamsLinkedByEvents_ComputeTheSequentialResult", kAlone},
                   {"Ordering.KernelsSeparatedByBarriers_AreSubmittedBeforeTheFirstEnds",
                    kHostOrders},
                   {"Ordering.DependentKernels_AreSubmittedBeforeTheFirstEnds", kHostOrders},
                   {"Ordering.FifoPolicy_IndependentActionWaitsForEarlierOnes", kAlone},
                   {"Ordering.IndependentActionsBehindAPendingOne_CompleteFirst", kAlone},
                   {"Ordering.InterleavedTiles_AreIndependentAndAnOverlappingActionWaits", kAlone},
                   {"Ordering.WaitWithoutOperands_ActsAsABarrierOfItsStreamOnly", kAlone}},
});

}  // namespace
}  // namespace weir::conformance

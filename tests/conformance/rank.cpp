#include "fleet.hpp"
#include "suite.hpp"

namespace weir::conformance {
namespace {

weir_fabric* fabric() {
  static const Fleet fleet(3, [](const Runtime& runtime) { host_code(runtime); });
  return fleet.fabric();
}

constexpr char kUnknown[] = "the test registers a kernel on rank 0 only";

/// What such a domain does not pass, and other reasons.
constexpr char kAdopts[] = "Memory.AdoptedDeviceMemory_IsUsedInPlaceAndOverlapIsRejected";
constexpr char kElsewhere[] = "the memory of a rank is that of another process";

std::vector<Exception> with_unknown_kernels(std::vector<Exception> exceptions) {
  for (const char* const test : {"PartialAndFullGroups_RunEveryItemExactlyOnce",
                                 "LaunchWithZeroGroups_SucceedsWithoutEffect",
                                 "StencilThroughSharedMemory_SumsAllNeighbours",
                                 "GroupsWith96KiBOfSharedMemory_ReverseTheirElements",
                                 "SumAndMaximumBySharedMemoryAndAtomics_AreExact",
                                 "MatrixMultiplyInDoubles_IsExactAndWritesOnlyItsTile",
                                 "PrivateValuesIn3DGroups_PersistAcrossPhases",
                                 "ReverseItemOrderRequested_ResultIsUnchanged",
                                 "ContendedAtomicsOnAllTypes_GiveExactResults",
                                 "Float4AndDouble4_LoadComputeAndStoreEachElement",
                                 "ScalarArguments_ConvertToParameterTypesWithoutLoss",
                                 "ArgumentsThatDoNotFitTheParameters_AreRejectedWithReason",
                                 "TooLargeGridOrThrowingGridFunction_FailsTheActionWithReason",
                                 "CompileError_NamesKernelFileAndLineAndOtherKernelsRun",
                                 "KernelsAsPipelineStages_ProduceEachExpectedItemOnce",
                                 "KernelAsPipelineStencil_ThreeSweepsMatchTheReference"}) {
    exceptions.push_back({std::string("Portable.") + test, kUnknown});
  }
  return exceptions;
}

const Registration cores({
    .name = "rank",
    .domain = "rank:1/host:cores=2",
    .small = "",
    .kernels = host_code,
    .exceptions = with_unknown_kernels({{"Capacity.*", "the memory of a host is not limited"},
                                        {kAdopts, kElsewhere}}),
    .fabric = fabric,
});

constexpr char kRemoteDevice[] = "rank:2/sim:cores=2,gbps=100,latency_us=0";

const Registration remote_device({
    .name = "rank_sim",
    .domain = kRemoteDevice,
    .small = std::string(kRemoteDevice) + ",memory=32KiB",
    .kernels = host_code,
    .exceptions =
        with_unknown_kernels({{"Copies.TransferToAPeerDevice_ArrivesAndLeavesTheSourceUnchanged",
                               "memory that no other rank reaches goes by way of a host"},
                              {kAdopts, kElsewhere}}),
    .fabric = fabric,
});

}  // namespace
}  // namespace weir::conformance

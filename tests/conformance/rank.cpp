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
constexpr char kAdopts[] = "Memory.MayBeTheProgramsThere";
constexpr char kElsewhere[] = "the memory of a rank is that of another process";

std::vector<Exception> with_unknown_kernels(std::vector<Exception> exceptions) {
  for (const char* const test :
       {"RunsEveryItemOnce", "RunsNothingInNoGroups", "SharesMemoryInAGroup", "SharesMuchMemory",
        "ReducesInGroupsAndByAtomics", "MultipliesTiles", "KeepsPrivateValuesOverPhases",
        "GivesTheSameBackwards", "HasAtomicsForAllTypes", "HasVectorsOfFour", "ConvertsItsScalars",
        "RefusesWhatItsParametersCannotHold", "FailsWithItsGrid", "SaysWhereItDoesNotCompile",
        "WorksAsAStage", "WorksAsAStencil"}) {
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

constexpr char kRemoteCard[] = "rank:2/sim:cores=2,gbps=100,latency_us=0";

const Registration remote_card({
    .name = "rank_sim",
    .domain = kRemoteCard,
    .small = std::string(kRemoteCard) + ",memory=32KiB",
    .kernels = host_code,
    .exceptions = with_unknown_kernels({{"Copies.BetweenTwoDevices",
                                         "memory that no other rank reaches goes by way of a host"},
                                        {kAdopts, kElsewhere}}),
    .fabric = fabric,
});

}  // namespace
}  // namespace weir::conformance

#include "base/topology.hpp"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.hpp"
#include "surroundings.hpp"

namespace weir::rt {
namespace {

/// One core with two NUMA nodes, of which the second, number 3, is what `mark` says.
std::string machine_with(const std::string& attribute, const std::string& info) {
  const auto object = [](const std::string& type, const std::string& nodes) {
    return "<object type=\"" + type +
           "\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
           "nodeset=\"" +
           nodes + "\" complete_nodeset=\"" + nodes + "\" ";
  };
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
         "<topology version=\"2.0\">" +
         object("Machine", "0x9") +
         "allowed_cpuset=\"0x1\" allowed_nodeset=\"0x9\" gp_index=\"1\">" +
         object("NUMANode", "0x1") + "gp_index=\"2\" local_memory=\"4096\"/>" +
         "<object type=\"NUMANode\" os_index=\"3\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
         "nodeset=\"0x8\" complete_nodeset=\"0x8\" gp_index=\"3\" local_memory=\"4096\" " +
         attribute + ">" + info + "</object>" + object("Core", "0x9") + "gp_index=\"4\">" +
         object("PU", "0x9") + "gp_index=\"5\"/></object></object></topology>\n";
}

std::vector<unsigned> fast_nodes_of(const std::string& machine) {
  const TemporaryFolder folder;
  const EnvironmentVariable variable("HWLOC_XMLFILE", folder.path("machine.xml"));
  std::ofstream(folder.path("machine.xml")) << machine;
  const Machine found = read_machine();
  EXPECT_FALSE(found.real);
  EXPECT_EQ(found.cores.size(), 1U);
  return found.fast_nodes;
}

TEST(Topology, FindsHighBandwidthMemory) {
  const std::vector<unsigned> none, third{3};
  EXPECT_EQ(fast_nodes_of(machine_with("", "")), none);
  EXPECT_EQ(fast_nodes_of(machine_with("subtype=\"MCDRAM\"", "")), third);
  EXPECT_EQ(fast_nodes_of(machine_with("subtype=\"HBM\"", "")), third);
  EXPECT_EQ(fast_nodes_of(machine_with("", "<info name=\"MemoryTier\" value=\"HBM\"/>")), third);
  EXPECT_EQ(fast_nodes_of(machine_with("", "<info name=\"MemoryTier\" value=\"NVM\"/>")), none);
}

using Environment = std::map<std::string, std::string>;

/// A machine with so many cores, as a process sees it in an environment.
Machine read_machine_in(Environment environment, unsigned cores) {
  environment["HWLOC_SYNTHETIC"] = "core:" + std::to_string(cores) + " pu:1";
  std::deque<EnvironmentVariable> variables;
  for (const auto& [name, value] : environment) variables.emplace_back(name, value);
  return read_machine();
}

/// The first core of a process of a machine with so many, in an environment.
unsigned first_core(unsigned cores, const Environment& environment) {
  const Machine found = read_machine_in(environment, cores);
  std::set<unsigned> all;
  for (const Core& core : found.cores) all.insert(core.processor);
  EXPECT_EQ(all.size(), cores);
  return found.cores.front().processor;
}

TEST(Topology, RanksOfAMachineBeginAtDifferentCores) {
  EXPECT_EQ(first_core(8, {}), 0U);
  for (const unsigned rank : {0U, 1U, 2U}) {
    const std::string own = std::to_string(rank);
    EXPECT_EQ(first_core(6, {{"WEIR_RANK", own}, {"WEIR_RANKS", "3"}}), 2 * rank);
    EXPECT_EQ(first_core(2, {{"WEIR_RANK", own}, {"WEIR_RANKS", "3"}}), rank == 2 ? 1U : 0U);
    EXPECT_EQ(
        first_core(3, {{"OMPI_COMM_WORLD_LOCAL_RANK", own}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}}),
        rank);
    EXPECT_EQ(first_core(3, {{"MPI_LOCALRANKID", own}, {"MPI_LOCALNRANKS", "3"}}), rank);
    for (const char* const tasks : {"3", "1,3(x2)", "2(x0),4,3", "1(x1),3"}) {
      EXPECT_EQ(first_core(3, {{"SLURM_LOCALID", own},
                               {"SLURM_NODEID", tasks[0] == '3' ? "0" : "1"},
                               {"SLURM_STEP_TASKS_PER_NODE", tasks}}),
                rank)
          << tasks;
    }
  }
  for (const char* const tasks : {"", "x", "2(x", "2(x)", "2(x1", "0", "2,", ",2"}) {
    EXPECT_EQ(first_core(2, {{"SLURM_LOCALID", "1"},
                             {"SLURM_NODEID", "1"},
                             {"SLURM_STEP_TASKS_PER_NODE", tasks}}),
              0U)
        << tasks;
  }
  EXPECT_EQ(first_core(4, {{"WEIR_RANK", "4"}, {"WEIR_RANKS", "4"}}), 0U);
  EXPECT_EQ(first_core(4, {{"WEIR_RANK", "one"}, {"WEIR_RANKS", "4"}}), 0U);
}

/// How many cores are for a process of a machine with so many, in an environment.
std::size_t own_cores(unsigned cores, const Environment& environment) {
  const Machine found = read_machine_in(environment, cores);
  EXPECT_EQ(found.cores.size(), cores);
  return found.own_cores;
}

TEST(Topology, RanksOfAMachineDivideItsCores) {
  EXPECT_EQ(own_cores(8, {}), 8U);
  EXPECT_EQ(own_cores(8, {{"WEIR_RANK", "0"}, {"WEIR_RANKS", "1"}}), 8U);
  const std::size_t parts[] = {2, 3, 3};
  for (const unsigned rank : {0U, 1U, 2U}) {
    const std::string own = std::to_string(rank);
    const Environment started[] = {
        {{"WEIR_RANK", own}, {"WEIR_RANKS", "3"}},
        {{"OMPI_COMM_WORLD_LOCAL_RANK", own}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}},
        {{"MPI_LOCALRANKID", own}, {"MPI_LOCALNRANKS", "3"}},
        {{"SLURM_LOCALID", own}, {"SLURM_NODEID", "0"}, {"SLURM_STEP_TASKS_PER_NODE", "3"}}};
    for (auto environment : started) {
      EXPECT_EQ(own_cores(8, environment), parts[rank]);
      EXPECT_EQ(own_cores(2, environment), 1U);
      environment["WEIR_RANK_CORES"] = "divided";
      EXPECT_EQ(own_cores(8, environment), parts[rank]);
      environment["WEIR_RANK_CORES"] = "all";
      EXPECT_EQ(own_cores(8, environment), 8U);
    }
  }
}

/// What mpirun has bound to a core has that one; what weir starts divides what weir may use.
TEST(Topology, RanksBoundByMpi_KeepTheirCoresAndWeirRanksDivideThem) {
  cpu_set_t before, some;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&some);
  int bound = 0;
  for (int processor = 0; processor < CPU_SETSIZE && bound < CPU_COUNT(&before) - 1; ++processor) {
    if (!CPU_ISSET(processor, &before)) continue;
    CPU_SET(processor, &some);
    ++bound;
  }
  if (bound == 0) GTEST_SKIP() << "there is one processor";
  const auto read = [](const char* rank, const char* ranks) {
    const EnvironmentVariable number(rank, "0"), count(ranks, "2");
    return read_machine();
  };
  ASSERT_EQ(sched_setaffinity(0, sizeof some, &some), 0);
  const Machine by_mpi = read("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
  const Machine by_weir = read("WEIR_RANK", "WEIR_RANKS");
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(by_mpi.own_cores, by_mpi.cores.size());
  EXPECT_EQ(by_weir.own_cores, std::max<std::size_t>(1, by_weir.cores.size() / 2));
}

TEST(Topology, BindMemory_SetsBindPolicyIfStrictElsePreferred) {
  constexpr std::size_t kBytes = 1 << 16;
  void* const memory =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  if (!sys::bind_memory(memory, kBytes, {0}, true)) {
    ASSERT_TRUE(errno == EPERM || errno == ENOSYS);
    GTEST_SKIP() << "the system does not permit binding memory";
  }
  const auto policy_of = [&] {
    int mode = -1;
    EXPECT_EQ(syscall(SYS_get_mempolicy, &mode, nullptr, 0, memory, MPOL_F_ADDR), 0);
    return mode;
  };
  EXPECT_EQ(policy_of(), MPOL_BIND);
  EXPECT_TRUE(sys::bind_memory(memory, kBytes, {0}, false));
  EXPECT_EQ(policy_of(), MPOL_PREFERRED);
  EXPECT_FALSE(sys::bind_memory(memory, kBytes, {1000}, true));
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace weir::rt

// Programs that run as processes under mpirun.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include "common/program.hpp"

namespace weir_bench {

/// Whether mpirun has started this process.
inline bool under_mpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

/// Whether --network asks for ranks that mpirun starts.
inline bool wants_mpirun(const Arguments& arguments) {
  const std::string network = arguments.text("--network", "shm");
  return network == "tcp" || network == "mpirun";
}

/// Becomes mpirun with processes of this program, over shared memory or TCP alone.
[[noreturn]] inline void become_mpirun(const Arguments& arguments, int count, char** values,
                                       std::size_t processes = 2) {
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
  const bool tcp = arguments.text("--network", "shm") == "tcp";
  std::vector<std::string> words = {"mpirun.openmpi",
                                    "--oversubscribe",
                                    "-n",
                                    std::to_string(processes),
                                    "--mca",
                                    "pml",
                                    "ob1",
                                    "--mca",
                                    "btl",
                                    tcp ? "tcp,self" : "vader,self"};
  if (tcp) {  // one-sided operations would go through shared memory whatever the btl
    setenv("WEIR_NODE_SIZE", "1", 1);
    words.insert(words.end(),
                 {"--mca", "btl_tcp_if_include", "lo", "--mca", "osc", "^sm,ucx,monitoring"});
  }
  words.emplace_back("/proc/self/exe");
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length > 0) words.back().assign(path, static_cast<std::size_t>(length));
  words.insert(words.end(), values + 1, values + count);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  throw std::runtime_error("mpirun.openmpi cannot be started");
}

}  // namespace weir_bench

// Portable kernels in NVRTC, which compiles for devices that are not there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "backend/portable_text.hpp"
#include "base/text.hpp"

namespace weir::rt {
namespace {

/// What the test needs of the library's interface, which has been the same since CUDA 7.
struct Nvrtc {
  using Program = struct ProgramOfNvrtc*;
  int (*create)(Program* out, const char* text, const char* name, int headers,
                const char* const* contents, const char* const* names);
  int (*compile)(Program program, int count, const char* const* options);
  int (*log_size)(Program program, std::size_t* out_bytes);
  int (*log)(Program program, char* out_text);
  int (*binary_size)(Program program, std::size_t* out_bytes);
  int (*assembly_size)(Program program, std::size_t* out_bytes);
  int (*assembly)(Program program, char* out_text);
  int (*destroy)(Program* program);
};

/// Opens what NVRTC wants to find beside itself and does not look for there.
void open_builtins(const std::filesystem::path& library) {
  if (!library.has_parent_path()) return;
  for (const auto& entry : std::filesystem::directory_iterator(library.parent_path())) {
    const std::string name = entry.path().filename();
    if (name.starts_with("libnvrtc-builtins.so.")) {
      dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
    }
  }
}

void* open_nvrtc() {
  const char* const given = std::getenv("WEIR_NVRTC");
  for (const std::string name :
       {given != nullptr ? given : "", "libnvrtc.so.13", "libnvrtc.so", WEIR_NVRTC_LIBRARY}) {
    void* const library = name.empty() ? nullptr : dlopen(name.c_str(), RTLD_NOW);
    if (library == nullptr) continue;
    open_builtins(name);
    return library;
  }
  return nullptr;
}

class PortableNvrtc : public testing::Test {
 protected:
  void SetUp() override {
    void* const library = open_nvrtc();
    if (library == nullptr) GTEST_SKIP() << "there is no libnvrtc.so: set WEIR_NVRTC to its path";
    find(nvrtc_.create, library, "nvrtcCreateProgram");
    find(nvrtc_.compile, library, "nvrtcCompileProgram");
    find(nvrtc_.log_size, library, "nvrtcGetProgramLogSize");
    find(nvrtc_.log, library, "nvrtcGetProgramLog");
    find(nvrtc_.binary_size, library, "nvrtcGetCUBINSize");
    find(nvrtc_.assembly_size, library, "nvrtcGetPTXSize");
    find(nvrtc_.assembly, library, "nvrtcGetPTX");
    find(nvrtc_.destroy, library, "nvrtcDestroyProgram");
  }

  /// What the compiler says of a text, "" when it is content.
  std::string verdict(const std::string& text) const {
    KernelSource source;
    source.text = text;
    source.file = "test.wk";
    return verdict_of(portable_text(source), {}, {});
  }
  /// The same of a text in CUDA, with the headers it includes.
  std::string verdict_of(const std::string& text, const std::vector<const char*>& names,
                         const std::vector<const char*>& headers) const {
    Nvrtc::Program program = nullptr;
    EXPECT_EQ(nvrtc_.create(&program, text.c_str(), "test", static_cast<int>(headers.size()),
                            headers.data(), names.data()),
              0);
    const char* const options[] = {"--gpu-architecture=sm_90", "--std=c++17"};
    const int result = nvrtc_.compile(program, 2, options);
    std::size_t bytes = 0;
    EXPECT_EQ(nvrtc_.log_size(program, &bytes), 0);
    std::string log(bytes, '\0');
    EXPECT_EQ(nvrtc_.log(program, log.data()), 0);
    std::size_t binary = 0;
    nvrtc_.binary_size(program, &binary);
    EXPECT_EQ(result == 0, binary > 0);
    nvrtc_.destroy(&program);
    while (!log.empty() && log.back() == '\0') log.pop_back();
    return log;
  }
  /// The assembly that it compiles a text to.
  std::string assembly_of(const std::string& text) const {
    KernelSource source;
    source.text = text;
    source.file = "test.wk";
    const std::string whole = portable_text(source);
    Nvrtc::Program program = nullptr;
    EXPECT_EQ(nvrtc_.create(&program, whole.c_str(), "test", 0, nullptr, nullptr), 0);
    const char* const options[] = {"--gpu-architecture=compute_90", "--std=c++17"};
    EXPECT_EQ(nvrtc_.compile(program, 2, options), 0);
    std::size_t bytes = 0;
    EXPECT_EQ(nvrtc_.assembly_size(program, &bytes), 0);
    std::string assembly(bytes, '\0');
    EXPECT_EQ(nvrtc_.assembly(program, assembly.data()), 0);
    nvrtc_.destroy(&program);
    return assembly;
  }

 private:
  template <class Function>
  static void find(Function& function, void* library, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    ASSERT_NE(function, nullptr) << name;
  }

  Nvrtc nvrtc_{};
};

std::string content_of(std::string_view path) {
  std::ostringstream text;
  text << std::ifstream(std::string(path)).rdbuf();
  std::string content = text.str();
  const std::string include = "#include <weir/portable.h>";
  const std::size_t found = content.find(include);
  return found == std::string::npos ? content : content.replace(found, include.size(), "");
}

/// How many files of portable kernels the tree has.
std::size_t files_in_the_tree() {
  std::size_t count = 0;
  for (const char* folder : {"/apps", "/bench", "/examples", "/tests", "/tools"}) {
    const std::filesystem::recursive_directory_iterator files(WEIR_SOURCE_DIR +
                                                              std::string(folder));
    for (const auto& file : files) count += file.path().extension() == ".wk" ? 1u : 0u;
  }
  return count;
}

TEST_F(PortableNvrtc, AllPortableKernels_CompileForCuda) {
  const std::vector<std::string_view> files = split(WEIR_KERNEL_FILES, ':');
  EXPECT_EQ(files.size(), files_in_the_tree());
  for (const std::string_view file : files) EXPECT_EQ(verdict(content_of(file)), "") << file;
}

TEST_F(PortableNvrtc, BitExactKernels_ContainNoFusedMultiplyAdd) {
  const std::string folder = WEIR_SOURCE_DIR;
  for (const char* file :
       {"/apps/laplacian/jacobi.wk", "/apps/raster/bins.wk", "/apps/reyes/dice.wk"}) {
    const std::string assembly = assembly_of(content_of(folder + file));
    EXPECT_NE(assembly.find(".entry"), std::string::npos) << file;
    EXPECT_EQ(assembly.find("fma.rn"), std::string::npos) << file;
  }
}

TEST_F(PortableNvrtc, DeviceTunnelKernels_CompileForCuda) {
  const std::string folder = WEIR_SOURCE_DIR;
  const std::string header = content_of(folder + "/include/weir/device_tunnel.hpp");
  const std::string tree = content_of(folder + "/tests/portable/tunnel_tree.hpp");
  const std::string kernels = content_of(folder + "/tests/portable/tunnel_tree.cu");
  EXPECT_NE(kernels.find("climb_by_blocks"), std::string::npos);
  EXPECT_EQ(verdict_of(kernels, {"weir/device_tunnel.hpp", "tunnel_tree.hpp"},
                       {header.c_str(), tree.c_str()}),
            "");
}

TEST_F(PortableNvrtc, ReyesSplitKernel_CompilesForCuda) {
  const std::string folder = WEIR_SOURCE_DIR;
  const std::string header = content_of(folder + "/include/weir/device_tunnel.hpp");
  const std::string walk = content_of(folder + "/apps/reyes/split_walk.hpp");
  EXPECT_NE(walk.find("__global__ void reyes_split"), std::string::npos);
  EXPECT_EQ(
      verdict_of("#include \"split_walk.hpp\"\n", {"weir/device_tunnel.hpp", "split_walk.hpp"},
                 {header.c_str(), walk.c_str()}),
      "");
}

TEST_F(PortableNvrtc, CompileError_NamesLineOfTheKernelFile) {
  const std::string said = verdict(
      "WEIR_KERNEL(broken, 64, 1, 1, WEIR_GLOBAL float* x) {\n"
      "  WEIR_ITEMS { x[0] = nonsense; }\n"
      "}\n");
  EXPECT_NE(said.find("test.wk(2): error"), std::string::npos) << said;
}

TEST_F(PortableNvrtc, AtomicAddOnLong_Compiles) {
  EXPECT_EQ(verdict("WEIR_KERNEL(count, 64, 1, 1, WEIR_GLOBAL long* x, WEIR_GLOBAL unsigned long* "
                    "y) {\n"
                    "  WEIR_ITEMS { weir_atomic_add(x, 1); weir_atomic_add(y, 1); }\n"
                    "}\n"),
            "");
}

}  // namespace
}  // namespace weir::rt

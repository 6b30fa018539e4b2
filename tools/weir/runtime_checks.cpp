#include "runtime_checks.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <weir/portable.h>

#include <trial.wk.h>
#include "description.hpp"
#include "terminal.hpp"
#include "trial.wk"

namespace weir::cli {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kDeadline{5}, kToCompile{60};
constexpr const char* kInstallBlas =
    "apt install libopenblas0-pthread, dnf install openblas, or pip install scipy-openblas32";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Returns the test kernel of the tool, y = 2 x + 1, registered once in a runtime. It is portable
/// because GPUs do not run host code.
Kernel trial_kernel(const Runtime& runtime) {
  weir_kernel* found = nullptr;
  if (weir_kernel_find(runtime.handle(), "doctor.trial", &found) == WEIR_STATUS_OK) {
    return Kernel(found);
  }
  return runtime.portable_kernel(
      {.kernel = &doctor_trial,
       .source = trial_wk,
       .source_name = "trial.wk",
       .name = "doctor.trial"},
      [](const Call& call) {
        return Groups{group_count(call.scalar<std::size_t>(0), TRIAL_ITEMS)};
      });
}

/// Returns how many of the numbers computed on the domain are wrong.
std::size_t try_domain(const Runtime& runtime, const Domain& domain) {
  constexpr std::size_t kCount = 4096;
  const Buffer x = runtime.buffer(kCount * sizeof(float), "x");
  const Buffer y = runtime.buffer(kCount * sizeof(float), "y");
  for (std::size_t i = 0; i < kCount; ++i) x.data<float>()[i] = static_cast<float>(i);
  const Place place = domain.place(1);
  const Stream stream = place.stream();
  stream.upload(x.all());
  stream.compute(trial_kernel(runtime), {write(y.all()), read(x.all())}, {kCount});
  stream.download(y.all());
  stream.synchronize(kToCompile);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    if (y.data<float>()[i] != 2 * static_cast<float>(i) + 1) ++wrong;
  }
  return wrong;
}

Finding check_domain(const Runtime& runtime, const Domain& domain) {
  const std::string check = "domain " + domain.name();
  if (domain.info().cores == 0 || domain.info().skips_kernels) {
    return {Level::ok, check, fmt::format("opens; {}", domain.info().description)};
  }
  try {
    const auto start = Clock::now();
    const std::size_t wrong = try_domain(runtime, domain);
    if (wrong > 0) {
      return {Level::problem, check, fmt::format("{} of 4096 numbers come back wrong", wrong),
              "report it with the output of weir info --json"};
    }
    return {Level::ok, check,
            fmt::format("upload, kernel, download verified in {}",
                        format_seconds(seconds_since(start)))};
  } catch (const Error& error) {
    return {Level::problem, check, error.what(),
            "weir info --json shows the properties of the domain"};
  }
}

/// A square column-major matrix with ones around a dominant diagonal.
Buffer make_matrix(const Runtime& runtime, std::size_t n, const char* name) {
  Buffer matrix = runtime.buffer(n * n * sizeof(double), name);
  std::fill_n(matrix.data<double>(), n * n, 1.0);
  for (std::size_t i = 0; i < n; ++i)
    matrix.data<double>()[i * n + i] = 2.0 * static_cast<double>(n);
  return matrix;
}

Region whole(const Buffer& matrix, std::size_t n) { return matrix.tile<double>(0, 0, n, n, n); }

/// Returns the GFLOP/s of one core in products of 256 x 256 tiles, the best of several.
double gemm_rate(const Runtime& runtime, const Stream& stream) {
  constexpr std::size_t kTile = 256;
  constexpr double kFlops = 2.0 * kTile * kTile * kTile;
  const Buffer a = make_matrix(runtime, kTile, "a"), c = make_matrix(runtime, kTile, "c");
  double best = 0;
  for (int i = 0; i < 6; ++i) {
    const auto start = Clock::now();
    stream.compute(runtime.kernel("blas.dgemm"),
                   {read(whole(a, kTile)), read(whole(a, kTile)), readwrite(whole(c, kTile))},
                   {'N', 'N', 1.0, 0.0});
    stream.synchronize(kDeadline);
    best = std::max(best, kFlops / seconds_since(start) / 1e9);
  }
  return best;
}

Finding check_lapack(const Runtime& runtime, const Stream& stream) {
  constexpr std::size_t kTile = 64;
  const Buffer a = make_matrix(runtime, kTile, "a");
  try {
    stream.compute(runtime.kernel("lapack.dpotrf"), {readwrite(whole(a, kTile))}, {'L', 0});
    stream.synchronize(kDeadline);
    return {Level::ok, "LAPACK", "factors a tile"};
  } catch (const Error& error) {
    return {Level::problem, "LAPACK", error.what(), kInstallBlas};
  }
}

Finding check_gemm(const Runtime& runtime, const Stream& stream) {
  try {
    const double rate = gemm_rate(runtime, stream);
    const auto blas = describe(runtime).value("blas", nlohmann::ordered_json::object());
    const std::string kernels = blas.value("kernels", "");
    const std::string found =
        fmt::format("{} {} of {}{}, {:.1f} GFLOP/s on one core", blas.value("name", ""),
                    blas.value("version", ""), blas.value("library", ""),
                    kernels.empty() ? "" : ", kernels for " + kernels, rate);
    const std::string slower = blas.value("problem", "");
    if (slower.empty()) return {Level::ok, "BLAS", found};
    const bool plain = blas.value("name", "") == "plain";
    return {Level::warning, "BLAS", fmt::format("{}; {}", found, slower),
            plain ? kInstallBlas : "do so before weir starts"};
  } catch (const Error& error) {
    return {Level::problem, "BLAS", error.what(), kInstallBlas};
  }
}

/// A folder of its own next to WEIR_TRACE, or in the folder for temporary files. Throws
/// weir::Error.
std::filesystem::path trial_folder() {
  const char* wanted = std::getenv("WEIR_TRACE");
  std::error_code missing;
  const bool named = wanted != nullptr && *wanted != '\0';
  const std::filesystem::path folder =
      named ? std::filesystem::absolute(wanted, missing).parent_path()
            : std::filesystem::temp_directory_path(missing);
  if (missing) {
    throw Error(WEIR_STATUS_UNAVAILABLE,
                fmt::format("there is no folder for a trace: {}", missing.message()));
  }
  std::string made = folder / "weir-doctor-XXXXXX";
  if (mkdtemp(made.data()) == nullptr) {
    throw Error(WEIR_STATUS_UNAVAILABLE,
                fmt::format("cannot write in '{}': {}", folder.string(), std::strerror(errno)));
  }
  return made;
}

}  // namespace

Findings check_domains(const Runtime& runtime) {
  Findings findings;
  for (std::size_t i = 0; i < runtime.domain_count(); ++i) {
    findings.push_back(check_domain(runtime, runtime.domain(i)));
  }
  return findings;
}

Finding check_backend(const std::string& kind) {
  try {
    const Runtime runtime(kind);
    Finding finding = check_domain(runtime, runtime.domain(0));
    finding.check = "backend " + kind;
    return finding;
  } catch (const Error& error) {
    return {Level::warning, "backend " + kind, error.what(),
            fmt::format("needed only for --domains {}", kind)};
  }
}

Findings check_blas(const std::string& choice) {
  try {
    const Runtime runtime = open_runtime({.domains = "host", .blas = choice});
    const Place place = runtime.domain("host").place(1);
    const Stream stream = place.stream();
    const Finding gemm = check_gemm(runtime, stream);
    if (gemm.level == Level::problem) return {gemm};
    return {gemm, check_lapack(runtime, stream)};
  } catch (const Error& error) {
    return {{Level::problem, "BLAS", error.what(), kInstallBlas}};
  }
}

Finding check_trace(const Runtime& runtime) {
  std::filesystem::path folder;
  std::error_code ignored;
  try {
    folder = trial_folder();
    const std::filesystem::path path = folder / "trace.json";
    runtime.start_trace();
    check_domains(runtime);
    runtime.stop_trace();
    runtime.write_trace(path.string());
    const auto bytes = std::filesystem::file_size(path, ignored);
    std::filesystem::remove_all(folder, ignored);
    return {Level::ok, "trace",
            fmt::format("{} written to {}", format_bytes(bytes), folder.parent_path().string())};
  } catch (const Error& error) {
    if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
    return {Level::warning, "trace", error.what(),
            "name a folder that can be written in WEIR_TRACE or TMPDIR"};
  }
}

}  // namespace weir::cli

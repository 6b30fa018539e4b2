#include "rates.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "common/file.hpp"
#include "common/input_error.hpp"
#include "interruption.hpp"
#include "terminal.hpp"
#include "user_cache.hpp"

namespace weir::cli {

namespace {

using Json = nlohmann::ordered_json;

// ---- Measuring ---------------------------------------------------------------------------------

constexpr double kEnoughSeconds = 0.02;  // for a size to be large
constexpr double kFewestSeconds = 1e-7;  // in virtual time things that are not modelled take none
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr int kRepeats = 3;

/// Three digits are more than repeats agree on; null for what takes no time.
Json rounded(double value) {
  if (value <= 0) return {};
  const double digit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / digit) * digit;
}

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

/// One domain, of which all cores are free.
class Probe {
 public:
  Probe(const Runtime& runtime, const Domain& domain)
      : runtime_(runtime),
        room_(domain.info().memory_bytes),
        place_(domain.place()),
        in_(place_.stream()),
        out_(place_.stream()) {}

  // Returns the rate of all cores; 0 when the product takes no time.
  double gemm_gflops() const {
    const Kernel gemm = runtime_.kernel("blas.dgemm.team");
    const auto flops = [](double n) { return 2 * n * n * n; };
    const auto largest = static_cast<std::size_t>(std::sqrt(static_cast<double>(room_) / 24));
    double best = 0;
    for (std::size_t n = std::min<std::size_t>(256, largest); n > 0;) {
      const Buffer a = matrix(n), b = matrix(n), c = matrix(n);
      const auto part = [&](const Buffer& x) { return x.tile<double>(0, 0, n, n, n); };
      const double seconds = fastest([&] {
        in_.compute(gemm, {read(part(a)), read(part(b)), readwrite(part(c))}, {'N', 'N', 1.0, 0.0});
      });
      if (seconds < kFewestSeconds) return 0;
      best = std::max(best, flops(static_cast<double>(n)) / seconds);
      n = seconds < kEnoughSeconds && n <= 1024 && 2 * n <= largest ? 2 * n : 0;
    }
    return best / 1e9;
  }

  double copy_gbps() const {
    const Kernel copy = runtime_.kernel("mem.copy.team");
    return rate(2, [&](const Buffer& x, const Buffer& y) {
      in_.compute(copy, {read(x.all()), write(y.all())});
    });
  }
  double h2d_gbps() const {
    return rate(1, [&](const Buffer& x, const Buffer&) { in_.upload(x.all()); });
  }
  double d2h_gbps() const {
    return rate(1, [&](const Buffer& x, const Buffer&) { in_.download(x.all()); });
  }
  double both_gbps() const {
    return rate(2, [&](const Buffer& x, const Buffer& y) {
      in_.upload(x.all());
      out_.download(y.all());
    });
  }

  double latency_us() const {
    const Buffer x = runtime_.buffer(64);
    double best = fastest([&] { in_.upload(x.all()); });
    for (int i = 0; i < 20; ++i) best = std::min(best, time([&] { in_.upload(x.all()); }));
    return best * 1e6;
  }

 private:
  Buffer matrix(std::size_t n) const {
    Buffer made = runtime_.buffer(n * n * sizeof(double));
    std::fill_n(made.data<double>(), n * n, 1.0 / static_cast<double>(n));
    in_.upload(made.all());
    return made;
  }

  template <class Enqueue>
  double time(const Enqueue& enqueue) const {
    const auto start = runtime_.now();
    enqueue();
    runtime_.synchronize();
    Interruption::check();
    return std::chrono::duration<double>(runtime_.now() - start).count();
  }
  /// The first run warms up pages and threads; it is the only one when it is slow.
  template <class Enqueue>
  double fastest(const Enqueue& enqueue) const {
    double best = time(enqueue);
    if (best > 10 * kEnoughSeconds) return best;
    for (int i = 0; i < kRepeats; ++i) best = std::min(best, time(enqueue));
    return best;
  }

  /// Returns the GB/s of moving two buffers, `times` their size in total, for the first size that
  /// takes long enough.
  template <class Move>
  double rate(double times, const Move& move) const {
    const std::size_t most = std::min<std::uint64_t>(kMostBytes, room_ / 2);
    for (std::size_t bytes = std::min<std::size_t>(64 << 10, most);;) {
      const Buffer x = runtime_.buffer(bytes), y = runtime_.buffer(bytes);
      const double seconds = fastest([&] { move(x, y); });
      if (seconds < kEnoughSeconds && bytes <= most / 4) {
        bytes *= 4;
        continue;
      }
      return seconds < kFewestSeconds ? 0 : times * static_cast<double>(bytes) / seconds / 1e9;
    }
  }

  const Runtime& runtime_;
  const std::uint64_t room_;
  const Place place_;
  const Stream in_, out_;
};

Json measure(const Runtime& runtime, const Domain& domain, bool linked) {
  Json rates;
  try {
    const Probe probe(runtime, domain);
    const double gemm = probe.gemm_gflops(), copy = probe.copy_gbps();
    for (const char* first : {"gemm_gflops", "copy_gbps"}) rates[first] = Json();
    const auto of_link = [&](double (Probe::*what)() const) {
      return linked ? rounded((probe.*what)()) : Json();
    };
    rates["h2d_gbps"] = of_link(&Probe::h2d_gbps);
    rates["d2h_gbps"] = of_link(&Probe::d2h_gbps);
    rates["both_gbps"] = of_link(&Probe::both_gbps);
    rates["latency_us"] = of_link(&Probe::latency_us);
    rates["gemm_gflops"] = rounded(std::max(gemm, probe.gemm_gflops()));
    rates["copy_gbps"] = rounded(std::max(copy, probe.copy_gbps()));
    rates["date"] = today();
  } catch (const Error& error) {
    return {{"problem", error.what()}};
  }
  return rates;
}

// ---- Keeping -----------------------------------------------------------------------------------

/// The file "weir/rates.json" in the user's cache folder; "": there is none.
std::filesystem::path cache_file() {
  const std::filesystem::path folder = user_cache();
  return folder.empty() ? folder : folder / "rates.json";
}

/// Rates by what they depend on.
class RateBook {
 public:
  RateBook() : path_(cache_file()) {
    if (path_.empty()) return;
    std::ifstream file(path_);
    Json read = Json::parse(file, nullptr, false);
    if (!read.is_object() || read["schema"] != kSchema || !read["rates"].is_array()) return;
    for (Json& entry : read["rates"]) {
      if (is_entry(entry)) entries_.push_back(std::move(entry));
    }
  }

  /// nullptr: they are not known.
  const Json* find(const Json& of) const {
    for (const Json& entry : entries_) {
      if (entry.at("of") == of) return &entry.at("measured");
    }
    return nullptr;
  }

  void add(const Json& of, const Json& measured) {
    std::erase_if(entries_, [&](const Json& entry) { return entry.at("of") == of; });
    entries_.push_back({{"of", of}, {"measured", measured}});
    if (entries_.size() > kMost) entries_.erase(entries_.begin());
    changed_ = true;
  }

  /// Writes new rates to the cache file. Without a cache folder the next call measures again.
  void save() const {
    if (!changed_ || path_.empty()) return;
    try {
      std::filesystem::create_directories(path_.parent_path());
      apps::OutputFile file(path_.string());
      file.append(Json{{"schema", kSchema}, {"rates", entries_}}.dump(1) + "\n");
      file.flush();
      file.commit();
    } catch (const std::exception& error) {
      print_message(Tone::warning,
                    fmt::format("cannot store the measured rates: {}", error.what()));
    }
  }

 private:
  static constexpr const char* kSchema = "weir.rates/1";
  static constexpr std::size_t kMost = 64;

  static bool is_entry(const Json& entry) {
    if (!entry.is_object() || !entry.contains("of")) return false;
    const Json measured = entry.value("measured", Json());
    return measured.is_object() && measured.value("date", Json()).is_string();
  }

  const std::filesystem::path path_;
  std::vector<Json> entries_;
  bool changed_ = false;
};

/// Returns the properties that the rates of a domain depend on.
Json key_of(const Json& description, const Json& domain) {
  const Json& machine = description.at("machine");
  Json key = {{"weir", description.at("version")}};
  for (const char* fact : {"processor", "system", "cores", "cpu_quota", "from"}) {
    if (machine.contains(fact)) key[fact] = machine.at(fact);
  }
  key["blas"] = description.value("blas", Json());
  key["domain"] = domain;
  key["domain"].erase("memory_used");
  return key;
}

}  // namespace

void add_rates(Json& description, const Runtime& runtime, bool refresh) {
  RateBook book;
  Progress progress;
  Json& domains = description.at("domains");
  for (std::size_t i = 0; i < domains.size(); ++i) {
    Json& domain = domains[i];
    if (domain.at("cores") == 0) continue;
    const Json key = key_of(description, domain);
    const Json* const known = refresh ? nullptr : book.find(key);
    if (known != nullptr) {
      domain["measured"] = *known;
      continue;
    }
    progress.update(i, domains.size(), "measuring " + domain.at("name").get<std::string>());
    const bool linked = !domain.value("aliases_host", false);
    domain["measured"] = measure(runtime, runtime.domain(i), linked);
    const bool modelled = domain.value("virtual_time", false);  // the model is not in the key
    if (!modelled && !domain["measured"].contains("problem")) book.add(key, domain["measured"]);
  }
  progress.clear();
  book.save();
}

}  // namespace weir::cli

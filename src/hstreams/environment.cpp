#include "hstreams/environment.hpp"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "hstreams/error.hpp"

namespace weir::hs {

namespace {

constexpr unsigned kMostThreads = 1024;  // bits of a mask
constexpr unsigned kMostCards = 32;
constexpr unsigned kCoprocessorThreads = 244;  // of the coprocessors that programs were written for
constexpr std::size_t kLeastMemory = 1 << 20;

std::string text_of(const char* name) {
  const char* const value = secure_getenv(name);
  return value != nullptr ? value : "";
}

unsigned number_of(const char* name, unsigned otherwise, unsigned least, unsigned most) {
  const std::string text = text_of(name);
  if (text.empty()) return otherwise;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "{} is '{}': expected a number from {} to {}", name, text, least,
         most);
  }
  return value;
}

/// Parses a number of bytes with a suffix, "2M", clamped to the range of the type. nullopt for any
/// other text.
std::optional<std::size_t> parse_size(const std::string& text) {
  constexpr std::string_view kSuffixes = "BKMGT";
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const std::size_t suffix = rest.empty() ? 0 : kSuffixes.find(rest.front());
  const bool good_rest = rest.size() <= 1 || (suffix > 0 && rest.substr(1) == "iB");
  if (error != std::errc() || !good_rest || suffix == kSuffixes.npos) return std::nullopt;
  const auto shift = static_cast<unsigned>(10 * suffix);
  return value > SIZE_MAX >> shift ? SIZE_MAX : value << shift;
}

std::size_t size_of(const char* name, std::size_t otherwise, std::size_t least) {
  const std::string text = text_of(name);
  if (text.empty()) return otherwise;
  const std::optional<std::size_t> size = parse_size(text);
  if (!size || *size < least) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "{} is '{}': expected a size such as 512M or 16G", name, text);
  }
  return *size;
}

struct Kinds {
  bool host = false, device = false;
};

Kinds kinds_in(std::string_view domains) {
  Kinds kinds;
  while (!domains.empty()) {
    const std::size_t comma = domains.find(',');
    const std::string_view part = domains.substr(0, comma);
    const std::string_view kind = part.substr(0, part.find(':'));
    const bool setting = kind.find('=') != kind.npos;
    if (!setting && !kind.empty()) (kind == "host" ? kinds.host : kinds.device) = true;
    domains = comma == domains.npos ? "" : domains.substr(comma + 1);
  }
  return kinds;
}

/// Reads the domains to open, and adds the host and a device, which every program needs.
void read_domains(Environment& read) {
  if (!text_of("WEIR_SIM_CARDS").empty()) {
    read.domains = "host";
    read.simulated_cards = number_of("WEIR_SIM_CARDS", 0, 0, kMostCards);
    return;
  }
  read.domains = text_of("WEIR_DOMAINS");
  const Kinds kinds = kinds_in(read.domains);
  if (!kinds.host) read.domains = read.domains.empty() ? "host" : "host," + read.domains;
  read.simulated_cards = kinds.device ? 0 : 1;
}

}  // namespace

Environment read_environment() {
  Environment read;
  read_domains(read);
  read.threads = number_of("WEIR_HSTREAMS_THREADS", kCoprocessorThreads, 1, kMostThreads);
  read.memory = size_of("WEIR_HSTREAMS_MEMORY", 0, kLeastMemory);
  read.host_cpus = number_of("WEIR_HSTREAMS_HOST_CPUS", 0, 1, kMostThreads);
  read.checksums = text_of("WEIR_HSTREAMS_CHECKSUMS");
  read.sink_path = text_of("SINK_LD_LIBRARY_PATH");
  read.mic_path = text_of("MIC_LD_LIBRARY_PATH");
  read.host_sink_path = text_of("HOST_SINK_LD_LIBRARY_PATH");
  read.huge_from = parse_size(text_of("MIC_USE_2MB_BUFFERS")).value_or(SIZE_MAX);
  return read;
}

}  // namespace weir::hs

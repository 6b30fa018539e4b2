#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "available.hpp"
#include "command.hpp"
#include "common/counted.hpp"
#include "description.hpp"
#include "rank_links.hpp"
#include "ranks.hpp"
#include "rates.hpp"
#include "terminal.hpp"

namespace weir::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string heading(std::string_view text) { return "\n" + paint(text, Tone::strong) + "\n"; }

std::string text_of(const Json& json, const char* key) { return json.value(key, std::string()); }
std::uint64_t count_of(const Json& json, const char* key) {
  return json.value(key, std::uint64_t{0});
}

/// Words joined to lines of at most 98 columns, all but the first after `indent` blanks.
std::string wrap(const std::vector<std::string>& words, std::size_t indent) {
  std::string text;
  std::size_t column = indent;
  for (const std::string& word : words) {
    if (column > indent && column + 1 + word.size() > 98) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      text += " ";
      ++column;
    }
    text += word;
    column += word.size();
  }
  return text;
}

std::string caches(const Json& machine) {
  std::vector<std::string> all;
  const Json sizes = machine.value("caches", Json::object());
  for (const auto& [name, bytes] : sizes.items()) {
    all.push_back(fmt::format("{} {}", name, format_bytes(bytes.get<std::uint64_t>())));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string machine_page(const Json& machine) {
  Table table;
  table.add({"processor", text_of(machine, "processor")});
  table.add(
      {"cores", fmt::format("{} ({}, {}, {})", count_of(machine, "cores"),
                            apps::counted(count_of(machine, "hardware_threads"), "hardware thread"),
                            apps::counted(count_of(machine, "packages"), "package"),
                            apps::counted(count_of(machine, "numa_nodes"), "NUMA node"))});
  if (machine.contains("cpu_quota")) {
    table.add({"quota", fmt::format("{:g} cores", machine.at("cpu_quota").get<double>())});
  }
  if (machine.contains("caches")) table.add({"caches", caches(machine)});
  table.add({"memory", format_bytes(count_of(machine, "memory_bytes"))});
  table.add({"system", text_of(machine, "system")});
  if (machine.contains("from")) table.add({"read from", text_of(machine, "from")});
  return heading("Machine") + table.text(2);
}

std::string link_of(const Json& domain) {
  if (domain.value("aliases_host", false)) return "shares the host's memory";
  if (!domain.contains("link")) return "none";
  const Json& link = domain.at("link");
  return fmt::format("{:g} GB/s {} duplex, {:g} us", link.at("gbps").get<double>(),
                     text_of(link, "duplex"), link.at("latency_us").get<double>());
}

std::string places_of(const Json& domain) {
  const std::uint64_t cores = count_of(domain, "cores");
  return cores == 0 ? "none" : cores == 1 ? "1" : fmt::format("1 to {}", cores);
}

std::string domains_page(const Json& domains) {
  Table table;
  table.add({"name", "cores", "places", "memory", "link", "portable kernels", "device"});
  for (const Json& domain : domains) {
    table.add({text_of(domain, "name"), std::to_string(count_of(domain, "cores")),
               places_of(domain), format_bytes(count_of(domain, "memory_bytes")), link_of(domain),
               text_of(domain, "portable_kernels"), text_of(domain, "description")});
  }
  return heading("Domains") + table.text(2, {1, 3});
}

std::string devices_page(const Json& devices) {
  if (devices.empty()) return {};
  Table table;
  table.add({"domain", "cores", "memory", "portable kernels", "device"});
  std::string problems;
  for (const Json& device : devices) {
    if (device.contains("problem")) {
      problems +=
          fmt::format("  {} {}\n", paint("not usable:", Tone::warning), text_of(device, "problem"));
      continue;
    }
    table.add({text_of(device, "domain"), std::to_string(count_of(device, "cores")),
               format_bytes(count_of(device, "memory_bytes")), text_of(device, "portable_kernels"),
               text_of(device, "description")});
  }
  return heading("Devices") + table.text(2, {1, 2}) + problems;
}

std::string rate_of(const Json& rates, const char* key, const char* unit) {
  const Json value = rates.value(key, Json());
  return value.is_number() ? fmt::format("{:g} {}", value.get<double>(), unit) : "-";
}

std::string rates_page(const Json& domains) {
  const auto measured = [](const Json& domain) { return domain.contains("measured"); };
  if (std::none_of(domains.begin(), domains.end(), measured)) return {};
  Table table;
  table.add({"name", "dgemm", "copy", "to it", "from it", "both ways", "latency", "on"});
  std::string problems;
  for (const Json& domain : domains) {
    if (!measured(domain)) continue;
    const Json& rates = domain.at("measured");
    if (rates.contains("problem")) {
      problems += fmt::format("  {} {}: {}\n", paint("not measured:", Tone::warning),
                              text_of(domain, "name"), text_of(rates, "problem"));
      continue;
    }
    table.add({text_of(domain, "name"), rate_of(rates, "gemm_gflops", "GFLOP/s"),
               rate_of(rates, "copy_gbps", "GB/s"), rate_of(rates, "h2d_gbps", "GB/s"),
               rate_of(rates, "d2h_gbps", "GB/s"), rate_of(rates, "both_gbps", "GB/s"),
               rate_of(rates, "latency_us", "us"), text_of(rates, "date")});
  }
  return heading("Measured") + table.text(2, {1, 2, 3, 4, 5, 6}) + problems +
         "  again with --refresh\n";
}

std::string backends_page(const Json& backends) {
  std::string page =
      heading("Backends") + "  settings follow the name: --domains sim:cores=2,gbps=6\n";
  for (const Json& backend : backends) {
    page += "  " + text_of(backend, "kind") + "\n";
    const std::string settings = text_of(backend, "settings");
    for (std::size_t from = 0; from < settings.size();) {
      const std::size_t end = std::min(settings.find('\n', from), settings.size());
      page += "    " + settings.substr(from, end - from) + "\n";
      from = end + 1;
    }
  }
  return page;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find(' ', from), text.size());
    if (end > from) words.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return words;
}

/// Simulated devices that have a name, with the source of each number.
std::string presets_page(const Json& backends) {
  std::string page;
  for (const Json& backend : backends) {
    for (const Json& preset : backend.value("presets", Json::array())) {
      std::string settings = text_of(preset, "settings");
      for (std::size_t at = 0; (at = settings.find(',', at)) != std::string::npos; at += 2) {
        settings.insert(at + 1, " ");
      }
      page += heading(text_of(preset, "domain"));
      page += "  " + wrap(words_of(settings), 2) + "\n";
      page += "  " + wrap(words_of(text_of(preset, "sources")), 2) + "\n";
    }
  }
  return page +
         "\nEach is in virtual time; settings that follow win: --domains "
         "sim:phi-31sp,gbps=12\n";
}

std::string blas_page(const Json& blas) {
  Table table;
  const auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) table.add({label, text});
  };
  add("library", text_of(blas, "name") + " " + text_of(blas, "version"));
  add("file", text_of(blas, "library"));
  add("kernels", text_of(blas, "kernels"));
  add("problem", text_of(blas, "problem"));
  return heading("BLAS") + table.text(2);
}

std::string kernels_page(const Json& kernels) {
  constexpr std::string_view kTeam = ".team";
  std::map<std::string, std::vector<std::string>> families;
  bool teams = false;
  for (const Json& kernel : kernels) {
    const auto name = kernel.get<std::string>();
    const std::size_t dot = std::min(name.find('.'), name.size() - 1);
    if (name.ends_with(kTeam)) {
      teams = true;
    } else {
      families[name.substr(0, dot)].push_back(name.substr(dot + 1));
    }
  }
  Table table;
  for (const auto& [family, names] : families) table.add({family + ".", wrap(names, 12)});
  const char* note = teams ? "  each also as NAME.team, on all cores of a place\n" : "";
  return heading("Kernels") + table.text(2) + note;
}

std::string environment_page(const Json& description) {
  Table table;
  for (const Json& variable : description.value("environment", Json::array())) {
    const Json& value = variable.at("value");
    table.add({text_of(variable, "name"), value.is_null() ? "-" : value.get<std::string>(),
               text_of(variable, "meaning")});
  }
  std::string page = heading("Environment") + table.text(2);
  for (const Json& unknown : description.value("unknown_environment", Json::array())) {
    page += fmt::format("  {} {}\n", paint("unknown:", Tone::warning), unknown.get<std::string>());
  }
  return page;
}

std::string page_of(const Json& description) {
  std::string page = paint("weir " + text_of(description, "version"), Tone::strong) + "\n";
  page += machine_page(description.at("machine"));
  page += domains_page(description.at("domains"));
  page += devices_page(description.at("available"));
  page += rates_page(description.at("domains"));
  if (description.contains("blas")) page += blas_page(description.at("blas"));
  page += kernels_page(description.at("kernels"));
  page += backends_page(description.at("backends"));
  return page + environment_page(description);
}

class InfoCommand final : public Command {
 public:
  const char* name() const override { return "info"; }
  const char* summary() const override { return "Show the machine as weir sees it"; }
  void add_options(CLI::App& app) override;
  ExitCode run() override;

 private:
  RuntimeChoice choice_;
  bool json_ = false;
  bool refresh_ = false;
  bool presets_ = false;
  bool ranks_ = false;
};

void InfoCommand::add_options(CLI::App& app) {
  app.add_option("--domains", choice_.domains, "Domains to open (default: WEIR_DOMAINS, or host)")
      ->type_name("LIST");
  app.add_option("--blas", choice_.blas, "BLAS to use (default: WEIR_BLAS, or the best installed)")
      ->type_name("NAME|PATH");
  app.add_flag("--refresh", refresh_,
               "Measure links and cores again instead of using stored rates");
  app.add_flag("--presets", presets_, "List simulated devices that have a name, and their sources");
  app.add_flag("--ranks", ranks_,
               "Show what connects the ranks that a launcher has started, instead of the machine");
  app.add_flag("--json", json_, "Print one JSON object");
  app.footer(
      "\nExamples:\n"
      "  weir info\n"
      "  weir info --domains host,sim:cores=2,gbps=6,duplex=half,memory=1GiB\n"
      "  weir info --presets\n"
      "  mpirun -n 4 weir info --ranks\n"
      "  weir info --json | jq .machine.cores\n"
      "  weir info --json | jq '.domains[] | {name, measured}'");
}

ExitCode InfoCommand::run() {
  if (ranks_) {
    const Json ranks = links_of_ranks();
    const Json all = {{"schema", "weir.ranks/1"}, {"ranks", ranks}};
    if (!ranks.is_null()) print(json_ ? all.dump(2) + "\n" : page_of_links(ranks));
    return ExitCode::ok;
  }
  if (serve_ranks(choice_.domains)) return ExitCode::ok;
  const Runtime runtime = open_runtime(choice_);
  Json description = describe(runtime);
  if (presets_) {
    const Json& backends = description.at("backends");
    print(json_ ? backends.dump(2) + "\n" : presets_page(backends).substr(1));
    return ExitCode::ok;
  }
  add_rates(description, runtime, refresh_);
  add_compilers(description, runtime);
  description["available"] = available_devices();
  constexpr auto kReplace = Json::error_handler_t::replace;
  print(json_ ? description.dump(2, ' ', false, kReplace) + "\n" : page_of(description));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_info() { return std::make_unique<InfoCommand>(); }

}  // namespace weir::cli

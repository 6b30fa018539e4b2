#include "tuner/samples.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <weir/weir.h>

#include "common/file.hpp"
#include "common/input_error.hpp"
#include "user_cache.hpp"

namespace weir::cli::tuner {

namespace {

using Json = nlohmann::ordered_json;

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

/// Throws unless the file has a whole number of at least 0: the conversion of another number may be
/// undefined.
std::size_t count_of(const Json& number) {
  if (!number.is_number_unsigned()) throw std::invalid_argument("a number that is not a count");
  return number.get<std::size_t>();
}

Point point_of(const Json& json) {
  return {count_of(json.at("places")), count_of(json.at("streams")),
          count_of(json.at("asked_tiles")), json.value("policy", ""),
          json.contains("aspect") ? count_of(json["aspect"]) : 1};
}

Evaluation evaluation_of(const Json& json) {
  Evaluation evaluation{.point = point_of(json),
                        .tiles = count_of(json.at("tiles")),
                        .samples = json.at("samples").get<std::vector<double>>(),
                        .link_s = json.at("link_s").get<double>(),
                        .compute_s = json.at("compute_s").get<double>(),
                        .critical_s = json.at("critical_s").get<double>(),
                        .account = {.work_s = json.at("work_s").get<double>(),
                                    .idle_s = json.at("idle_s").get<double>(),
                                    .exposed_s = json.at("exposed_s").get<double>(),
                                    .nothing_s = json.at("nothing_s").get<double>(),
                                    .kernels = count_of(json.at("kernels"))}};
  const Point& point = evaluation.point;
  bool good =
      point.places > 0 && point.streams > 0 && point.aspect > 0 && !evaluation.samples.empty();
  for (const double seconds : evaluation.samples) good = good && seconds >= 0;
  if (!good) throw std::invalid_argument("an evaluation that cannot be");
  return evaluation;
}

}  // namespace

Json as_json(const Evaluation& evaluation) {
  Json json = {{"places", evaluation.point.places},
               {"streams", evaluation.point.streams},
               {"asked_tiles", evaluation.point.tiles},
               {"tiles", evaluation.tiles},
               {"seconds", evaluation.seconds()},
               {"samples", evaluation.samples},
               {"link_s", evaluation.link_s},
               {"compute_s", evaluation.compute_s},
               {"critical_s", evaluation.critical_s},
               {"work_s", evaluation.account.work_s},
               {"idle_s", evaluation.account.idle_s},
               {"exposed_s", evaluation.account.exposed_s},
               {"nothing_s", evaluation.account.nothing_s},
               {"kernels", evaluation.account.kernels}};
  if (!evaluation.point.policy.empty()) json["policy"] = evaluation.point.policy;
  if (evaluation.point.aspect > 1) json["aspect"] = evaluation.point.aspect;
  return json;
}

std::string Problem::name() const {
  return fmt::format("weir run {}{}{}", application, options.empty() ? "" : ", ", options);
}

Samples::Samples(Problem problem) : problem_(std::move(problem)) {
  const std::filesystem::path folder = user_cache();
  if (folder.empty()) return;
  path_ = folder / "tuned" /
          fmt::format("{}-{:016x}.json", problem_.application, hash_of(head().dump()));
}

Json Samples::head() const {
  return {{"schema", "weir.samples/1"},
          {"version", weir_version()},
          {"machine", problem_.machine},
          {"domains", problem_.domains},
          {"app", problem_.application},
          {"options", problem_.options},
          {"n", problem_.n}};
}

Json Samples::read() const {
  std::ifstream file(path_);
  Json found = Json::parse(file, nullptr, false);
  if (!file || !found.is_object()) return nullptr;
  const Json expected = head();
  for (const auto& [key, value] : expected.items()) {
    if (!found.contains(key) || found[key] != value) return nullptr;
  }
  return found;
}

std::vector<Evaluation> Samples::evaluations() const {
  std::vector<Evaluation> evaluations;
  try {
    const Json found = read();
    if (found.is_null()) return {};
    for (const Json& each : found.at("evaluations")) evaluations.push_back(evaluation_of(each));
    return evaluations;
  } catch (const std::exception&) {  // then the work is done again
    return {};
  }
}

void Samples::keep(const std::vector<Evaluation>& evaluations) const {
  if (path_.empty()) return;
  Json json = head();
  json["evaluations"] = Json::array();
  for (const Evaluation& each : evaluations) json["evaluations"].push_back(as_json(each));
  try {
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    apps::OutputFile file(path_);
    file.append(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
    file.flush();
    file.commit();
  } catch (const std::filesystem::filesystem_error&) {
  } catch (const apps::InputError&) {  // then it is measured again
  }
}

}  // namespace weir::cli::tuner

#include "corpus.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "corpus_files.hpp"

namespace weir::model {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kKinds[] = {"compute",     "transfer", "sync",     "wait",
                                  "synchronize", "cancel",   "callback", "query"};

Json to_json(const Part& part) {
  return {{"buffer", part.buffer},
          {"memory", part.memory},
          {"offset", part.offset},
          {"extent", {part.row, part.rows, part.planes}},
          {"stride", {part.row_stride, part.plane_stride}},
          {"access", static_cast<int>(part.access)}};
}

Part part_of(const Json& json) {
  Part part;
  part.buffer = json.at("buffer");
  part.memory = json.at("memory");
  part.offset = json.at("offset");
  part.row = json.at("extent").at(0);
  part.rows = json.at("extent").at(1);
  part.planes = json.at("extent").at(2);
  part.row_stride = json.at("stride").at(0);
  part.plane_stride = json.at("stride").at(1);
  part.access = static_cast<weir_access>(json.at("access").get<int>());
  return part;
}

Json to_json(const Step& step) {
  Json json = {{"kind", kKinds[static_cast<int>(step.kind)]}, {"stream", step.stream}};
  for (const Part& part : step.parts) json["operands"].push_back(to_json(part));
  if (!step.events.empty()) json["events"] = step.events;
  if (step.kind == StepKind::sync) json["scope"] = static_cast<int>(step.scope);
  if (step.wait_any) json["any"] = true;
  if (step.fails) json["fails"] = true;
  if (step.parallel) json["parallel"] = true;
  if (step.strict) json["strict"] = true;
  if (step.key != 0) json["key"] = step.key;
  return json;
}

Step step_of(const Json& json) {
  Step step;
  const std::string kind = json.at("kind");
  const auto* const found = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (found == std::end(kKinds)) throw std::runtime_error("no step is a '" + kind + "'");
  step.kind = static_cast<StepKind>(found - kKinds);
  step.stream = json.at("stream");
  for (const Json& part : json.value("operands", Json::array()))
    step.parts.push_back(part_of(part));
  step.events = json.value("events", std::vector<std::size_t>());
  step.scope = static_cast<weir_sync_scope>(json.value("scope", 0));
  step.wait_any = json.value("any", false);
  step.fails = json.value("fails", false);
  step.parallel = json.value("parallel", false);
  step.strict = json.value("strict", false);
  step.key = json.value("key", std::uint64_t{0});
  return step;
}

Json to_json(const Found& found) {
  const Program& plan = found.plan;
  Json json = {{"platform", found.platform}, {"seed", plan.seed}, {"threads", plan.threads}};
  if (!found.strategy.empty()) {
    json["schedule"] = {{"strategy", found.strategy}, {"seed", found.schedule_seed}};
  }
  json["buffer_aliases"] = plan.buffer_aliases;
  for (const StreamPlan& stream : plan.streams) {
    json["streams"].push_back({{"place", stream.place},
                               {"policy", static_cast<int>(stream.policy)},
                               {"priority", stream.priority}});
  }
  json["steps"] = Json::array();
  for (const Step& step : plan.steps) json["steps"].push_back(to_json(step));
  return json;
}

std::string text_of(const Found& found) { return to_json(found).dump(1) + "\n"; }

Found found_of(const Json& json) {
  Found found;
  Program& plan = found.plan;
  found.platform = json.at("platform");
  plan.seed = json.value("seed", std::uint64_t{0});
  plan.threads = json.value("threads", std::size_t{1});
  if (json.contains("schedule")) {
    found.strategy = json["schedule"].at("strategy");
    found.schedule_seed = json["schedule"].at("seed");
  }
  plan.buffer_aliases = json.at("buffer_aliases").get<std::vector<bool>>();
  for (const Json& stream : json.at("streams")) {
    plan.streams.push_back({stream.at("place"),
                            static_cast<weir_dependence_policy>(stream.at("policy").get<int>()),
                            stream.at("priority")});
  }
  for (const Json& step : json.at("steps")) plan.steps.push_back(step_of(step));
  return found;
}

}  // namespace

void save(const Found& found, const fs::path& file) { write_file(file, text_of(found)); }

Found load(const fs::path& file) {
  try {
    std::ifstream in(file);
    return found_of(Json::parse(in));
  } catch (const std::exception& error) {
    throw std::runtime_error("cannot read the program '" + file.string() + "': " + error.what());
  }
}

std::vector<fs::path> corpus() { return files_in_corpus("programs"); }

fs::path keep(const Found& found) {
  return keep_in_corpus("programs", found.platform, text_of(found));
}

}  // namespace weir::model

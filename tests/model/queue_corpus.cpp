#include "queue_corpus.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "corpus_files.hpp"

namespace weir::queue_model {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Json to_json(const Part& part) {
  return {{"buffer", part.buffer},
          {"offset", part.offset},
          {"row", part.row},
          {"rows", part.rows},
          {"stride", part.stride}};
}

Part part_of(const Json& json) {
  return {json.at("buffer"), json.at("offset"), json.at("row"), json.at("rows"), json.at("stride")};
}

Json to_json(const Step& step) {
  Json json = {{"kind", Step::kNames[static_cast<std::size_t>(step.kind)]}};
  if (step.has_part()) json["part"] = step.part;
  if (step.brief) json["brief"] = true;
  if (step.kind != Step::Kind::task) return json;
  json["seed"] = step.task.seed;
  for (const Access& access : step.task.accesses) {
    json["operands"].push_back(
        Json{{"part", access.part}, {"access", static_cast<int>(access.kind)}});
  }
  if (step.task.throws) json["throws"] = true;
  if (step.task.bytewise) json["bytewise"] = true;
  if (step.task.priority != 0) json["priority"] = step.task.priority;
  if (step.task.domain >= 0) json["domain"] = step.task.domain;
  if (step.task.place >= 0) json["place"] = step.task.place;
  if (step.task.init) json["init"] = true;
  return json;
}

Step step_of(const Json& json) {
  Step step;
  const std::string kind = json.at("kind");
  const auto found = std::find(Step::kNames.begin(), Step::kNames.end(), kind);
  if (found == Step::kNames.end()) throw std::runtime_error("no step is a '" + kind + "'");
  step.kind = static_cast<Step::Kind>(found - Step::kNames.begin());
  step.part = json.value("part", std::size_t{0});
  step.brief = json.value("brief", false);
  step.task.seed = json.value("seed", std::uint64_t{0});
  for (const Json& operand : json.value("operands", Json::array())) {
    step.task.accesses.push_back(
        {operand.at("part"), static_cast<weir_access>(operand.at("access").get<int>())});
  }
  step.task.throws = json.value("throws", false);
  step.task.bytewise = json.value("bytewise", false);
  step.task.priority = json.value("priority", 0);
  step.task.domain = json.value("domain", -1);
  step.task.place = json.value("place", -1);
  step.task.init = json.value("init", false);
  return step;
}

Json to_json(const Found& found) {
  const Plan& plan = found.plan;
  Json json = {{"platform", plan.platform->name},
               {"policy", plan.policy},
               {"seed", plan.seed},
               {"fails", plan.fails},
               {"cancels", plan.cancels}};
  if (plan.producers != 1) json["producers"] = plan.producers;
  if (!found.strategy.empty()) {
    json["schedule"] = {{"strategy", found.strategy}, {"seed", found.schedule_seed}};
  }
  json["buffers"] = plan.buffers;
  for (const Part& part : plan.parts) json["parts"].push_back(to_json(part));
  for (const Step& step : plan.steps) json["steps"].push_back(to_json(step));
  return json;
}

std::string text_of(const Found& found) { return to_json(found).dump(1) + "\n"; }

Found found_of(const Json& json) {
  Found found;
  Plan& plan = found.plan;
  plan.platform = &platform_named(json.at("platform").get<std::string>());
  plan.policy = json.at("policy");
  plan.seed = json.value("seed", std::uint64_t{0});
  plan.fails = json.value("fails", false);
  plan.cancels = json.value("cancels", false);
  plan.producers = json.value("producers", std::size_t{1});
  if (json.contains("schedule")) {
    found.strategy = json["schedule"].at("strategy");
    found.schedule_seed = json["schedule"].at("seed");
  }
  plan.buffers = json.at("buffers").get<std::vector<std::size_t>>();
  for (const Json& part : json.at("parts")) plan.parts.push_back(part_of(part));
  for (const Json& step : json.at("steps")) plan.steps.push_back(step_of(step));
  return found;
}

}  // namespace

void save(const Found& found, const fs::path& file) { model::write_file(file, text_of(found)); }

Found load(const fs::path& file) {
  try {
    std::ifstream in(file);
    return found_of(Json::parse(in));
  } catch (const std::exception& error) {
    throw std::runtime_error("cannot read the program '" + file.string() + "': " + error.what());
  }
}

std::vector<fs::path> corpus() { return model::files_in_corpus("queues"); }

fs::path keep(const Found& found) {
  return model::keep_in_corpus("queues", found.plan.platform->name, text_of(found));
}

}  // namespace weir::queue_model

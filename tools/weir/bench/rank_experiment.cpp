#include "bench/rank_experiment.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "command_line.hpp"
#include "description.hpp"
#include "interruption.hpp"
#include "ranks.hpp"

namespace weir::cli::bench {

namespace {

using Json = nlohmann::ordered_json;

std::string cell(const Json& value, const Column& column) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer() && column.scale == 1) return value.dump();
  return fmt::format("{:.{}f}", value.get<double>() * column.scale, column.digits);
}

}  // namespace

void RankExperiment::add_options(CLI::App& app) {
  app.add_option("--ranks", ranks_, "Start so many ranks on this machine [those of mpirun]")
      ->check(CLI::Range(2, 1024));
  add_own_options(app);
  app.add_option("--repeat", repeat_, "Runs of each point; the median counts [5]")
      ->check(CLI::Range(1, 1'000'000));
  app.add_flag("--json", json_, "Print one JSON object");
}

ExitCode RankExperiment::run() {
  if (ranks_ > 0 && !is_rank()) return run_on_ranks(ranks_);
  Fabric fabric;
  if (fabric.ranks() < 2) {
    throw Error(
        WEIR_STATUS_INVALID_ARGUMENT,
        fmt::format("{0} needs two ranks: weir bench {0} --ranks 2, or mpirun -n 2 weir bench {0}",
                    name()));
  }
  prints_ = fabric.rank() == kFrom;
  Json points = measure(fabric);
  progress_.clear();
  if (!prints_) return ExitCode::ok;
  const Json results = {{"schema", "weir.bench/1"},
                        {"benchmark", name()},
                        {"command", command_line()},
                        {"link", fabric.link(kTo)},
                        {"ranks", fabric.ranks()},
                        {"points", std::move(points)},
                        {"machine", describe(open_runtime({"null", ""})).at("machine")}};
  print(json_ ? results.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text(results));
  return ExitCode::ok;
}

void RankExperiment::show_progress(std::size_t done, std::size_t total) {
  Interruption::check();
  if (prints_) progress_.update(done, total, "sending");
}

std::string RankExperiment::text(const Json& results) const {
  Table table;
  std::vector<std::string> row;
  std::vector<std::size_t> right;
  for (const Column& column : columns()) {
    right.push_back(row.size());
    row.emplace_back(column.title);
  }
  table.add(std::move(row));
  for (const Json& point : results.at("points")) {
    row.clear();
    for (const Column& column : columns()) row.push_back(cell(point.at(column.key), column));
    table.add(std::move(row));
  }
  return fmt::format("{} from rank 0 to rank 1 over {}\n", name(),
                     results.at("link").get<std::string>()) +
         table.text(2, right);
}

}  // namespace weir::cli::bench

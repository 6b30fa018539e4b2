// `weir tune`: what was learned on this machine.
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <weir/weir.hpp>

#include "command.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

using Json = nlohmann::ordered_json;

class TuneCommand final : public Command {
 public:
  const char* name() const override { return "tune"; }
  const char* summary() const override { return "Show what was learned on this machine"; }

  void add_options(CLI::App& app) override {
    app.require_subcommand(1);
    CLI::App* const models =
        app.add_subcommand("models", "How long kernels take, measured by task queues");
    models->add_flag("--json", json_, "Print one JSON object");
    app.footer("\nExamples:\n  weir tune models\n  weir tune models --json\n");
  }

  ExitCode run() override {
    const weir::Runtime runtime("null");
    const Json models = Json::parse(runtime.describe()).at("models");
    print(json_ ? as_json(models) : as_text(models));
    return ExitCode::ok;
  }

 private:
  static std::string as_json(const Json& models) {
    const Json all = {{"schema", "weir.models/1"}, {"models", models}};
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  static std::string as_text(const Json& models) {
    if (models.empty()) {
      return "Nothing was measured on this machine yet: weir run cholesky --domains host,sim "
             "--policy finish\n";
    }
    Table table;
    table.add({"kernel", "operands", "calls", "mean time", "place"});
    for (const Json& model : models) {
      table.add({model.at("kernel").get<std::string>(),
                 format_bytes(model.at("bytes").get<std::uint64_t>()),
                 format_count(model.at("calls").get<std::uint64_t>()),
                 format_seconds(model.at("mean_ns").get<double>() / 1e9),
                 model.at("place").get<std::string>()});
    }
    return table.text(0, {1, 2, 3});
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tune() { return std::make_unique<TuneCommand>(); }

}  // namespace weir::cli

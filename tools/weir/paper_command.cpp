// `weir paper`: measures the figures of a paper again, and compares them with the paper's.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "command.hpp"
#include "common/input_error.hpp"
#include "paper/paper.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

class PaperCommand final : public Command {
 public:
  const char* name() const override { return "paper"; }
  const char* summary() const override {
    return "Measure the figures of a paper again, and compare";
  }

  void add_options(CLI::App& app) override {
    app.footer(
        "\nExamples:\n"
        "  weir paper 000\n"
        "  weir paper 002 --quick\n"
        "  weir paper 000 --figures 7a,7b -o partitions\n"
        "  weir paper 003 --launch 'mpirun -n 2 --host a,b'\n");
    app.add_option("number", number_, numbers())->required();
    app.add_flag("--quick", options_.quick, "Fewer points, in less than two minutes");
    app.add_option("--figures", options_.figures, "Figures, as 7a,7b [all]")->delimiter(',');
    app.add_option("-o,--output", options_.output,
                   "Base name of the output files (.json and .html are added) [paper-NUMBER]");
    app.add_option("--launch", options_.launcher,
                   "Command that starts the ranks of papers 003 and 004, as 'mpirun -n 2' [ranks "
                   "of this machine]");
    app.add_flag("--fresh", options_.fresh, "Discard stored results and measure everything again");
    app.add_flag("--json", json_, "Print one JSON object");
  }

  ExitCode run() override {
    if (options_.output.empty()) options_.output = "paper-" + number_;
    paper::Paper paper(number_, options_);
    try {
      paper.measure();
      paper.write();
    } catch (const apps::InputError& error) {
      throw weir::Error(WEIR_STATUS_INVALID_ARGUMENT, error.what());
    }
    print(json_ ? paper.json().dump(2) + "\n" : paper.text());
    return paper.holds() ? ExitCode::ok : ExitCode::mismatch;
  }

 private:
  static std::string numbers() {
    std::string words;
    for (const paper::Description& each : paper::descriptions()) {
      const auto title = paper::Json::parse(each.text).at("title").get<std::string>();
      words += fmt::format("{}{}: {}", words.empty() ? "" : "; ", each.number, title);
    }
    return words;
  }

  std::string number_;
  paper::Options options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_paper() { return std::make_unique<PaperCommand>(); }

}  // namespace weir::cli

// `weir report`: one page that shows where the time went.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <weir/weir.hpp>

#include "command.hpp"
#include "command_line.hpp"
#include "common/input_error.hpp"
#include "report/page.hpp"
#include "report_text.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

class ReportCommand final : public Command {
 public:
  const char* name() const override { return "report"; }
  const char* summary() const override { return "Show where the time went: one page, or text"; }

  void add_options(CLI::App& app) override {
    app.footer(
        "\nExamples:\n"
        "  weir run cholesky --domains sim --trace t.json --json > run.json\n"
        "  weir report run.json -o report.html\n"
        "  weir report t.json\n"
        "  weir report t.json --text\n"
        "  weir run cholesky --domains sim --report report.html\n");
    app.add_option("FILE", inputs_, "JSON output of run, bench or tune, or recordings")
        ->required()
        ->type_name("");
    CLI::Option* const output =
        app.add_option("-o,--output", output_, "File for the page [report.html]");
    app.add_flag("--text", text_, "Print the summary and the findings instead of making a page")
        ->excludes(output);
  }

  ExitCode run() override {
    try {
      const std::vector<report::Part> parts = report::read_parts(inputs_);
      if (text_) {
        print(report_text(parts));
        return ExitCode::ok;
      }
      report::write_page(parts, command_line(), output_);
    } catch (const apps::InputError& error) {
      throw weir::Error(WEIR_STATUS_INVALID_ARGUMENT, error.what());
    }
    print(fmt::format("{}: open it in a browser\n", output_));
    return ExitCode::ok;
  }

 private:
  std::vector<std::string> inputs_;
  std::string output_ = "report.html";
  bool text_ = false;
};

}  // namespace

std::unique_ptr<Command> make_report() { return std::make_unique<ReportCommand>(); }

}  // namespace weir::cli

#include "tool.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>
#include <weir/weir.hpp>

#include "description.hpp"
#include "interruption.hpp"
#include "ranks.hpp"
#include "shell_pages.hpp"
#include "suggest.hpp"
#include "terminal.hpp"

namespace weir::cli {
namespace {

/// Help with the examples before the options.
class ExamplesFirst final : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return make_expanded(app);
    const std::string footer = app->get_footer();
    return make_description(app) + make_usage(app, name) + (footer.empty() ? "" : footer + "\n") +
           make_positionals(app) + make_groups(app, mode) + make_subcommands(app, mode);
  }

  /// A command that starts a program has its arguments last.
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    const std::size_t end = usage.find_last_not_of('\n') + 1;
    return app->get_prefix_command() ? usage.insert(end, " PROGRAM [ARGUMENT...]") : usage;
  }

  /// Names the type of a number once, which a range names as well.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) return text;
    const std::string type = text.substr(1, colon - 1);  // there is a blank before it
    if (text.compare(colon + 1, type.size() + 4, type + " in ") == 0) text.erase(1, colon);
    return text;
  }
};

ExitCode exit_code_of(weir_status status) {
  switch (status) {
    case WEIR_STATUS_INVALID_ARGUMENT:
    case WEIR_STATUS_NOT_FOUND: return ExitCode::bad_input;
    case WEIR_STATUS_UNSUPPORTED:
    case WEIR_STATUS_UNAVAILABLE: return ExitCode::unavailable;
    case WEIR_STATUS_TIMEOUT: return ExitCode::deadline;
    default: return ExitCode::run_failed;
  }
}

/// Shows control characters as \x1b, so that quoted text is one line and cannot control a terminal.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    const bool control = code < ' ' || code == 0x7f;
    result += control ? fmt::format("\\x{:02x}", code) : std::string(1, c);
  }
  return result;
}

ExitCode complain(ExitCode code, std::string_view message) {
  Interruption::note_failure();
  const bool of_command = code == ExitCode::usage || code == ExitCode::bad_input;
  if (of_command && !speaks_for_machine()) return code;
  print_message(Tone::bad, shown(message), of_command ? Speaker::all : Speaker::rank);
  return code;
}

/// Says "from 0 to 1" of "0.000000 to 1.000000", or of "[0.000000 - 1.000000]" as CLI11 has it from
/// 2.4 on, and "above 0" where the end is the largest double.
std::string range_in_words(std::string range) {
  const bool in_brackets = range.starts_with('[') && range.ends_with(']');
  const std::string_view between = in_brackets ? " - " : " to ";
  constexpr std::size_t kDigits = 20;  // no other limit has more
  if (in_brackets) range = range.substr(1, range.size() - 2);
  const std::size_t to = range.find(between);
  if (to == std::string::npos) return "from " + range;
  const auto plain = [](std::string number) {
    if (number.find('.') == std::string::npos) return number;
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
    return number;
  };
  const std::string least = plain(range.substr(0, to)),
                    most = plain(range.substr(to + between.size()));
  return most.size() > kDigits ? "above " + least : fmt::format("from {} to {}", least, most);
}

/// Rewords the parser's error message about a value.
std::string in_words(const std::string& what) {
  const auto position = [&](const char* words) { return what.find(words); };
  const std::size_t colon = std::min(position(": "), what.size());
  const std::string option = what.substr(0, colon);
  const auto from = [&](std::size_t at, const char* words) {
    return what.substr(at + std::string_view(words).size());
  };
  constexpr const char *kMissing = ": 1 required ", *kValue = ": Value ",
                       *kRange = " not in range ", *kChoice = " not in {";
  if (position(kMissing) == colon && what.ends_with(" missing")) return option + " needs a value";
  if (const std::size_t range = position(kRange);
      position(kValue) == colon && range != std::string::npos) {
    const std::size_t value = colon + std::string_view(kValue).size();
    return fmt::format("{}: '{}' is not a number {}", option, what.substr(value, range - value),
                       range_in_words(from(range, kRange)));
  }
  if (const std::size_t choice = position(kChoice); choice != std::string::npos) {
    std::string known = from(choice, kChoice);
    known.pop_back();
    for (std::size_t at = 0; (at = known.find(',', at)) != std::string::npos;) {
      known.replace(at, 1, ", ");
      at += 2;
    }
    return fmt::format("{}: '{}' is not one of {}", option,
                       what.substr(colon + 2, choice - colon - 2), known);
  }
  return what;
}

/// The command of that name below another one.
const CLI::App& command_of(const CLI::App& app, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == name) return *command;
    names.push_back(command->get_name());
  }
  throw CLI::ValidationError(fmt::format("no command '{}'{}", name, did_you_mean(name, names)));
}

/// Refuses "" as the value of an option: a script's variable that is not set must not choose what
/// happens without the option.
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (std::find(values.begin(), values.end(), "") == values.end()) continue;
    throw CLI::ValidationError(option->get_name(), "'' is empty: give it a value or leave it out");
  }
}

class Tool {
 public:
  explicit Tool(Commands commands);
  ExitCode run(int argc, char** argv);

 private:
  void add(std::unique_ptr<Command> command);
  void add_help();
  void add_completion();
  ExitCode answer(const CLI::ParseError& error) const;
  std::string what_is_wrong(const CLI::ParseError& error) const;
  ExitCode usage_error(const CLI::ParseError& error) const;
  std::string unknown_argument() const;
  const CLI::App& selected() const;
  ExitCode perform();
  std::string help() const;
  std::string completion() const;

  CLI::App app_{"One streaming runtime for every processor in a machine.", "weir"};
  std::vector<std::pair<CLI::App*, std::unique_ptr<Command>>> commands_;
  CLI::App* help_ = nullptr;
  std::vector<std::string> topic_;  ///< a command, and one of it
  bool manual_ = false;
  bool prefix_ = false;
  CLI::App* completion_ = nullptr;
  std::string shell_;
};

Tool::Tool(Commands commands) {
  app_.formatter(std::make_shared<ExamplesFirst>());
  app_.require_subcommand(0, 1);
  app_.set_help_flag("-h,--help", "Show this help");
  app_.set_version_flag("-V,--version", version_line, "Show the version and the backends");
  app_.add_flag("--prefix", prefix_, "Show the folder that weir is installed in");
  app_.footer(
      "\nExamples:\n"
      "  weir doctor                              check this machine\n"
      "  weir run cholesky --n 4096 --verify      run an application\n"
      "  weir help run                            options of a command");
  for (auto& command : commands) add(std::move(command));
  add_help();
  add_completion();
}

void Tool::add(std::unique_ptr<Command> command) {
  CLI::App* const app = app_.add_subcommand(command->name(), command->summary());
  command->add_options(*app);
  commands_.emplace_back(app, std::move(command));
}

void Tool::add_help() {
  help_ = app_.add_subcommand("help", "Show the options of a command");
  help_->footer("");
  help_->add_option("COMMAND", topic_, "Command to explain, such as run, or run cholesky")
      ->type_name("");
  help_->add_flag("--man", manual_, "Print the manual page of all commands, for: man -l -");
}

void Tool::add_completion() {
  completion_ = app_.add_subcommand("completion", "Print the completion for a shell");
  completion_->footer(
      "\nExamples:\n"
      "  source <(weir completion bash)\n"
      "  weir completion fish > ~/.config/fish/completions/weir.fish");
  completion_->add_option("SHELL", shell_, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

std::string Tool::completion() const {
  const Shell shell = shell_ == "bash" ? Shell::bash : shell_ == "zsh" ? Shell::zsh : Shell::fish;
  return completion_script(app_, shell);
}

/// The innermost command that the arguments name.
const CLI::App& Tool::selected() const {
  const CLI::App* app = &app_;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return *app;
}

/// Returns the first unknown argument.
std::string Tool::unknown_argument() const {
  const CLI::App& app = selected();
  const std::string wrong = app_.remaining(true).front();
  std::vector<std::string> known;
  if (wrong.starts_with("-")) {
    for (const CLI::Option* option : app.get_options()) {
      if (!is_listed(*option)) continue;
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    const std::string name = wrong.substr(0, wrong.find('='));
    return fmt::format("unknown option '{}'{}", name, did_you_mean(name, known));
  }
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (known.empty()) return fmt::format("unexpected argument '{}'", wrong);
  const char* const kind = app.get_name() == "run" ? "application" : "command";
  return fmt::format("unknown {} '{}'{}", kind, wrong, did_you_mean(wrong, known));
}

std::string Tool::what_is_wrong(const CLI::ParseError& error) const {
  const auto is = [&](CLI::ExitCodes code) {
    return error.get_exit_code() == static_cast<int>(code);
  };
  const bool lacks_command =
      is(CLI::ExitCodes::RequiredError) && selected().get_require_subcommand_min() > 0;
  if (is(CLI::ExitCodes::ExtrasError) || (lacks_command && app_.remaining_size(true) > 0)) {
    return unknown_argument();
  }
  if (!lacks_command) return in_words(error.what());
  std::vector<std::string> names;
  for (const CLI::App* command : selected().get_subcommands({})) {
    names.push_back(command->get_name());
  }
  return fmt::format("choose what to {}: {}", selected().get_name(), fmt::join(names, ", "));
}

ExitCode Tool::usage_error(const CLI::ParseError& error) const {
  std::string what = what_is_wrong(error);
  if (what.size() > 1 && std::islower(what[1]) != 0)
    what[0] = static_cast<char>(std::tolower(what[0]));
  std::string command;
  for (const CLI::App* app = &selected(); app != nullptr; app = app->get_parent()) {
    command.insert(0, app->get_name() + " ");
  }
  return complain(ExitCode::usage, fmt::format("{}; see '{}--help'", what, command));
}

/// Answers --help and --version, which the parser throws, and explains parse errors.
ExitCode Tool::answer(const CLI::ParseError& error) const {
  if (error.get_exit_code() != 0) return usage_error(error);
  const bool version = error.get_name() == "CallForVersion";
  print(version ? std::string(error.what()) + "\n" : app_.help());
  return ExitCode::ok;
}

std::string Tool::help() const {
  if (manual_) return manual_page(app_, weir_version());
  const CLI::App* app = &app_;
  std::string name = app->get_name();
  for (const std::string& word : topic_) {
    app = &command_of(*app, word);
    name += " " + word;
  }
  return app->get_formatter()->make_help(app, name, CLI::AppFormatMode::Normal);
}

ExitCode Tool::perform() {
  for (const auto& [app, command] : commands_) {
    if (app->parsed()) return command->run();
  }
  if (help_->parsed()) {
    print(help());
    return ExitCode::ok;
  }
  if (completion_->parsed()) {
    print(completion());
    return ExitCode::ok;
  }
  if (prefix_) {
    print(installed_prefix() + "\n");
    return ExitCode::ok;
  }
  std::fputs(app_.help().c_str(), stderr);
  return ExitCode::usage;
}

ExitCode Tool::run(int argc, char** argv) {
  ExitCode code = ExitCode::ok;
  try {
    app_.parse(argc, argv);
    refuse_empty_values(selected());
    code = perform();
  } catch (const CLI::ParseError& error) {
    code = answer(error);
  }
  flush();
  return code;
}

}  // namespace

ExitCode run_tool(int argc, char** argv, Commands commands) noexcept {
  try {
    return Tool(std::move(commands)).run(argc, argv);
  } catch (const Interrupted&) {
    return ExitCode::run_failed;  // Interruption::end() replaces it
  } catch (const Error& error) {
    return complain(exit_code_of(error.status()), error.what());
  } catch (const std::bad_alloc&) {
    return complain(ExitCode::run_failed, "out of memory");
  } catch (const std::exception& error) {
    return complain(ExitCode::run_failed, error.what());
  }
}

}  // namespace weir::cli

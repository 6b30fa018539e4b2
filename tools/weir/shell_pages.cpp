#include "shell_pages.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

namespace weir::cli {
namespace {

enum class Value { none, number, choice, text };

struct OptionEntry {
  std::vector<std::string> names;  ///< with their dashes
  std::string description;
  Value value = Value::none;
  std::vector<std::string> choices;
};

struct CommandEntry {
  std::string path;  ///< "weir run cholesky"
  std::string name;
  std::string description;
  std::string examples;
  std::vector<OptionEntry> options;
  std::vector<std::string> words;  ///< that an argument without a name may be
  std::vector<CommandEntry> commands;
};

std::vector<std::string> choices_in(const std::string& type) {
  const std::size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

OptionEntry entry_of(const CLI::Option& option) {
  OptionEntry entry;
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  entry.description = option.get_description();
  if (option.get_items_expected_max() == 0) return entry;
  const std::string type = option.get_type_name();
  entry.choices = choices_in(type);
  const bool counts = type.starts_with("UINT") || type.starts_with("INT") ||
                      type.starts_with("FLOAT") || type.starts_with("NUMBER");
  entry.value = !entry.choices.empty() ? Value::choice : counts ? Value::number : Value::text;
  return entry;
}

CommandEntry entry_of(const CLI::App& app, const std::string& parents) {
  CommandEntry entry;
  entry.name = app.get_name();
  entry.path = parents.empty() ? entry.name : parents + " " + entry.name;
  entry.description = app.get_description();
  entry.examples = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (!is_listed(*option)) continue;
    if (option->nonpositional()) {
      entry.options.push_back(entry_of(*option));
    } else {
      entry.words = choices_in(option->get_type_name());
    }
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    entry.commands.push_back(entry_of(*command, entry.path));
  }
  return entry;
}

template <class Visit>
void for_each_command(const CommandEntry& command, const Visit& visit) {
  visit(command);
  for (const CommandEntry& each : command.commands) for_each_command(each, visit);
}

/// The paths of commands, and "path option" of options that take a value of that kind, as patterns
/// of a shell's case.
std::string command_patterns(const CommandEntry& tool) {
  std::vector<std::string> patterns;
  for_each_command(tool, [&](const CommandEntry& command) {
    if (command.path != tool.path) patterns.push_back('"' + command.path + '"');
  });
  return fmt::format("{}", fmt::join(patterns, "|"));
}

std::string value_patterns(const CommandEntry& tool, Value value) {
  std::vector<std::string> patterns;
  for_each_command(tool, [&](const CommandEntry& command) {
    for (const OptionEntry& option : command.options) {
      if (option.value != value) continue;
      for (const std::string& name : option.names) {
        patterns.push_back(fmt::format("\"{} {}\"", command.path, name));
      }
    }
  });
  return fmt::format("{}", fmt::join(patterns, "|"));
}

/// The lines of a case that offer the choices of options, each by `offer`.
std::string choice_cases(const CommandEntry& tool, const char* offer) {
  std::string cases;
  for_each_command(tool, [&](const CommandEntry& command) {
    for (const OptionEntry& option : command.options) {
      if (option.value != Value::choice) continue;
      for (const std::string& name : option.names) {
        cases += fmt::format("    \"{} {}\") {}; return ;;\n", command.path, name,
                             fmt::format(fmt::runtime(offer), fmt::join(option.choices, " ")));
      }
    }
  });
  return cases;
}

/// One line that a shell takes as it is between single quotes.
std::string plain(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::erase(text, '\'');
  return text;
}

std::string bash_script(const CommandEntry& tool) {
  std::string words;
  for_each_command(tool, [&](const CommandEntry& command) {
    std::vector<std::string> known;
    for (const CommandEntry& each : command.commands) known.push_back(each.name);
    known.insert(known.end(), command.words.begin(), command.words.end());
    for (const OptionEntry& option : command.options) known.push_back(option.names.back());
    words += fmt::format("    \"{}\") words=\"{}\" ;;\n", command.path, fmt::join(known, " "));
  });
  return fmt::format(
      R"(# Completion of weir for bash: source it, or install it as bash-completion/completions/weir.
_weir() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local at=weir word words=
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$at $word" in
    {}) at="$at $word" ;;
    esac
  done
  case "$at $previous" in
{}    {}) compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -- "$current")); return ;;
    {}) return ;;
  esac
  case "$at" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _weir weir
)",
      command_patterns(tool),
      choice_cases(tool, "COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))"),
      value_patterns(tool, Value::text), value_patterns(tool, Value::number), words);
}

std::string zsh_script(const CommandEntry& tool) {
  std::string words;
  for_each_command(tool, [&](const CommandEntry& command) {
    words += fmt::format("    \"{}\") known=(", command.path);
    for (const CommandEntry& each : command.commands) {
      words += fmt::format("\n      '{}:{}'", each.name, plain(each.description));
    }
    for (const std::string& word : command.words) words += " " + word;
    for (const OptionEntry& option : command.options) {
      words += fmt::format("\n      '{}:{}'", option.names.back(), plain(option.description));
    }
    words += ") ;;\n";
  });
  return fmt::format(R"(#compdef weir
# Completion of weir for zsh: install it as site-functions/_weir.
_weir() {{
  local at=weir word
  local -a known
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$at $word" in
    {}) at="$at $word" ;;
    esac
  done
  case "$at ${{words[CURRENT-1]}}" in
{}    {}) _files; return ;;
    {}) _message number; return ;;
  esac
  case "$at" in
{}  esac
  _describe -t weir weir known
}}
compdef _weir weir
)",
                     command_patterns(tool), choice_cases(tool, "compadd {}"),
                     value_patterns(tool, Value::text), value_patterns(tool, Value::number), words);
}

std::string fish_script(const CommandEntry& tool) {
  std::string paths = command_patterns(tool);
  std::replace(paths.begin(), paths.end(), '|', ' ');
  std::string script =
      fmt::format(R"(# Completion of weir for fish: install it as vendor_completions.d/weir.fish.
function __weir_at
  set -l at weir
  for word in (commandline -opc)[2..]
    switch "$at $word"
      case {}
        set at "$at $word"
    end
  end
  echo $at
end
complete -c weir -f
)",
                  paths);
  for_each_command(tool, [&](const CommandEntry& command) {
    const std::string here =
        fmt::format("complete -c weir -n 'test (__weir_at) = \"{}\"'", command.path);
    for (const CommandEntry& each : command.commands) {
      script += fmt::format("{} -a {} -d '{}'\n", here, each.name, plain(each.description));
    }
    for (const std::string& word : command.words) script += fmt::format("{} -a {}\n", here, word);
    for (const OptionEntry& option : command.options) {
      script += here;
      for (const std::string& name : option.names) {
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.value == Value::choice) {
        script += fmt::format(" -xa '{}'", fmt::join(option.choices, " "));
      }
      if (option.value == Value::number) script += " -x";
      if (option.value == Value::text) script += " -rF";
      script += fmt::format(" -d '{}'\n", plain(option.description));
    }
  });
  return script;
}

/// Text for man(7): no line begins with a control character.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) {
      result += fmt::format("\\&{}", c);
    } else {
      result += c;
    }
  }
  return result;
}

void add_options(std::string& page, const CommandEntry& command) {
  for (const OptionEntry& option : command.options) {
    std::string value;
    if (option.value == Value::choice) value = fmt::format(" {}", fmt::join(option.choices, "|"));
    if (option.value == Value::number) value = " NUMBER";
    if (option.value == Value::text) value = " TEXT";
    page += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n",
                        roff(fmt::format("{}", fmt::join(option.names, ", "))), roff(value),
                        roff(option.description));
  }
}

}  // namespace

bool is_listed(const CLI::Option& option) { return !option.get_group().empty(); }

std::string completion_script(const CLI::App& tool, Shell shell) {
  CommandEntry entry = entry_of(tool, "");
  for (CommandEntry& help : entry.commands) {  // explains the others
    if (help.name != "help") continue;
    for (const CommandEntry& each : entry.commands) help.words.push_back(each.name);
  }
  switch (shell) {
    case Shell::bash: return bash_script(entry);
    case Shell::zsh: return zsh_script(entry);
    case Shell::fish: break;
  }
  return fish_script(entry);
}

std::string manual_page(const CLI::App& tool, const std::string& version) {
  const CommandEntry entry = entry_of(tool, "");
  std::string page = fmt::format(
      ".TH WEIR 1 \"\" \"weir {}\" \"User Commands\"\n.SH NAME\nweir \\- {}\n.SH SYNOPSIS\n"
      ".B weir\n[\\fIcommand\\fR [\\fIapplication\\fR] [\\fIoptions\\fR]]\n.SH OPTIONS\n",
      roff(version), roff(entry.description));
  add_options(page, entry);
  for (const CommandEntry& command : entry.commands) {
    page += fmt::format(".SH {}\n{}.\n", roff(command.path), roff(command.description));
    add_options(page, command);
    for (const CommandEntry& each : command.commands) {
      page += fmt::format(".SS {}\n{}.\n", roff(each.path), roff(each.description));
      add_options(page, each);
    }
    if (!command.examples.empty())
      page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(command.examples));
  }
  page +=
      ".SH EXIT STATUS\n.TP\n0\nsuccess\n.TP\n1\nthe run failed\n.TP\n2\nwrong usage\n.TP\n3\nbad "
      "input or configuration\n.TP\n4\na device or library is not there\n.TP\n5\nthe result is "
      "wrong\n.TP\n6\na deadline passed\n";
  return page;
}

}  // namespace weir::cli

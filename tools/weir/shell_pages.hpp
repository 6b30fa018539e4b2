// What shells and man know of the tool, written from the options of its commands.
#pragma once

#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace weir::cli {

enum class Shell { bash, zsh, fish };

/// Whether --help lists an option; the others exist so that a command can say why it refuses them.
bool is_listed(const CLI::Option& option);

/// Returns a script that completes commands, options and their choices; other values of text are
/// completed as files. It asks no program when it runs.
std::string completion_script(const CLI::App& tool, Shell shell);

/// Returns the manual page of all commands, in the macros of man(7).
std::string manual_page(const CLI::App& tool, const std::string& version);

}  // namespace weir::cli

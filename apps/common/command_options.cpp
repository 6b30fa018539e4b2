#include "common/command_options.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include <CLI/CLI.hpp>

namespace weir::apps {

CLI::Validator real_range(double lowest, double highest, const std::string& words) {
  const auto check = [=](const std::string& word) -> std::string {
    double value = 0;
    const bool is_real = CLI::detail::lexical_cast(word, value);
    if (is_real && value >= lowest && value <= highest) return "";
    return "Value " + word + " not in range " + std::to_string(lowest) + " to " +
           std::to_string(highest);
  };
  return {check, words.empty() ? CLI::Range(lowest, highest).get_description() : words};
}

template <class T>
CommandOption CommandOption::within(T lowest, T highest) {
  if constexpr (std::is_floating_point_v<T>) {
    return CommandOption(option_->check(real_range(lowest, highest)));
  } else {
    return CommandOption(option_->check(CLI::Range(lowest, highest)));
  }
}

CommandOption CommandOption::one_of(const std::vector<std::string>& words) {
  return CommandOption(option_->check(CLI::IsMember(words)));
}

CommandOption CommandOption::needs(CommandOption other) {
  return CommandOption(option_->needs(other.option_));
}

template <class T>
CommandOption CommandOptions::add(const char* name, T& value, const std::string& text) {
  return CommandOption(command_.add_option(name, value, text));
}

CommandOption CommandOptions::add(const char* name,
                                  const std::function<void(const std::string& word)>& set,
                                  const std::string& text) {
  return CommandOption(command_.add_option_function<std::string>(name, set, text));
}

CommandOption CommandOptions::flag(const char* name, bool& value, const std::string& text) {
  return CommandOption(command_.add_flag(name, value, text));
}

CommandOption CommandOptions::flag(const char* name, std::function<void()> act,
                                   const std::string& text) {
  return CommandOption(command_.add_flag_callback(name, std::move(act), text));
}

template CommandOption CommandOption::within(int, int);
template CommandOption CommandOption::within(unsigned, unsigned);
template CommandOption CommandOption::within(std::size_t, std::size_t);
template CommandOption CommandOption::within(std::int64_t, std::int64_t);
template CommandOption CommandOption::within(double, double);
template CommandOption CommandOptions::add(const char*, int&, const std::string&);
template CommandOption CommandOptions::add(const char*, unsigned&, const std::string&);
template CommandOption CommandOptions::add(const char*, std::size_t&, const std::string&);
template CommandOption CommandOptions::add(const char*, std::int64_t&, const std::string&);
template CommandOption CommandOptions::add(const char*, double&, const std::string&);
template CommandOption CommandOptions::add(const char*, std::string&, const std::string&);
template CommandOption CommandOptions::add(const char*, std::optional<int>&, const std::string&);

}  // namespace weir::apps

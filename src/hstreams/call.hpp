// One call of an API function: its messages and its result. No exception leaves it.
#pragma once

#include <exception>
#include <new>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

#include "hstreams/library.hpp"
#include "hstreams/log.hpp"

namespace weir::hs {

/// The name of the API function, and its source location.
struct Function {
  Function(const char* given, std::source_location here = std::source_location::current())
      : name(given), where(here) {}
  const char* name;
  std::source_location where;
};

class Call {
 public:
  /// Logs the call with its arguments. `kind` is that of its failures.
  template <class... Arguments>
  Call(HSTR_INFO_TYPE kind, Function function, const Arguments&... arguments) noexcept
      : kind_(kind), function_(function) {
    if (Log::get().wants(HSTR_LOG_LEVEL_DEBUG1, HSTR_INFO_TYPE_TRACE)) announce(arguments...);
  }

  /// Runs code(), and turns an exception into the result.
  template <class Code>
  HSTR_RESULT run(Code&& code) const noexcept {
    try {
      std::forward<Code>(code)();
      return HSTR_RESULT_SUCCESS;
    } catch (const Error& error) {
      return failed(error.result(), error.what(), error.where());
    } catch (const weir::Error& error) {
      return failed(result_of(error.status()), error.what(), function_.where);
    } catch (const std::bad_alloc&) {
      return failed(HSTR_RESULT_OUT_OF_MEMORY, "no memory is left", function_.where);
    } catch (const std::exception& error) {
      return failed(HSTR_RESULT_INTERNAL_ERROR, error.what(), function_.where);
    }
  }

  /// Runs code(session) likewise.
  template <class Code>
  HSTR_RESULT in_session(Code&& code) const noexcept {
    return run([&] { Library::get().with_session(code); });
  }

 private:
  template <class... Arguments>
  void announce(const Arguments&... arguments) const noexcept try {
    write(HSTR_LOG_LEVEL_DEBUG1, function_.name);
    if (!Log::get().wants(HSTR_LOG_LEVEL_DEBUG2, HSTR_INFO_TYPE_TRACE)) return;
    std::string text;
    ((text += (text.empty() ? "" : ", ") + describe(arguments)), ...);
    write(HSTR_LOG_LEVEL_DEBUG2, fmt::format("{}({})", function_.name, text));
  } catch (...) {
  }
  template <class Argument>
  static std::string describe(const Argument& argument) {
    if constexpr (std::is_convertible_v<Argument, const char*>) {
      const char* const text = argument;
      return text != nullptr ? fmt::format("\"{}\"", text) : "NULL";
    } else if constexpr (std::is_pointer_v<Argument>) {
      return fmt::format("{}", fmt::ptr(argument));
    } else {
      return fmt::format("{}", argument);
    }
  }
  void write(HSTR_LOG_LEVEL level, const std::string& text) const noexcept {
    Log::get().write(level, HSTR_INFO_TYPE_TRACE, text, function_.where);
  }
  HSTR_RESULT failed(HSTR_RESULT result, const char* why,
                     const std::source_location& where) const noexcept;

  HSTR_INFO_TYPE kind_;
  Function function_;
};

/// Refuses a pointer that a function needs.
template <class... Pointers>
void check_pointers(Pointers*... pointers) {
  if ((!pointers || ...)) fail(HSTR_RESULT_NULL_PTR, "an argument is NULL");
}

}  // namespace weir::hs

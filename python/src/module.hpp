// What the files that name classes share.
#pragma once

#include <optional>
#include <string>

#include "session.hpp"

namespace weir::py {

using namespace nb::literals;

using Text = std::optional<std::string>;

inline const char* c_str(const Text& text) { return text ? text->c_str() : nullptr; }

/// A runtime as Python has it.
struct Runtime {
  SessionRef session;
};

/// Formats an object by a format of Python.
inline nb::str text_of(nb::handle object, const char* format) {
  return nb::str(nb::object(nb::str(format).attr("format")(object)));
}

void define_pipelines(nb::module_& m);
void define_shares(nb::module_& m);

}  // namespace weir::py

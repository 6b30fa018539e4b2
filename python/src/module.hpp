// Declarations that the files that define classes share.
#pragma once

#include <optional>
#include <string>

#include "session.hpp"

namespace weir::py {

using namespace nb::literals;

using Text = std::optional<std::string>;

inline const char* c_str(const Text& text) { return text ? text->c_str() : nullptr; }

/// The runtime object of the Python module.
struct Runtime {
  SessionRef session;
};

/// Formats an object by a Python format; "closed" if the object has been closed.
inline nb::str text_of(nb::handle object, const char* format) {
  try {
    return nb::str(nb::object(nb::str(format).attr("format")(object)));
  } catch (nb::python_error&) {
    const std::string name = nb::cast<std::string>(nb::type_name(object.type()));
    return nb::str(("<weir." + name.substr(name.rfind('.') + 1) + ", closed>").c_str());
  }
}

/// Returns the HTML that a notebook shows.
inline nb::object html_of(nb::handle object) {
  return nb::module_::import_("weir._html").attr("of")(object);
}
constexpr const char* kHtmlSignature = "def _repr_html_(self) -> str";

void define_fabrics(nb::module_& m);
void define_graphs(nb::module_& m);
void define_pipelines(nb::module_& m);
void define_policies(nb::module_& m);
void define_reports(nb::module_& m);
void define_shares(nb::module_& m);

}  // namespace weir::py

// Recordings as pages: the report of the command line tool.

#include <vector>

#include "common/input_error.hpp"
#include "module.hpp"
#include "report/page.hpp"

namespace weir::py {

namespace {

void write_report(const std::vector<std::string>& recordings, const std::vector<std::string>& names,
                  const std::string& command, const std::string& path) {
  std::string complaint;
  {
    const nb::gil_scoped_release released;
    try {
      std::vector<cli::report::Part> parts = cli::report::read_parts(recordings);
      for (std::size_t i = 0; i < parts.size() && i < names.size(); ++i) parts[i].source = names[i];
      cli::report::write_page(parts, command, path);
      return;
    } catch (const apps::InputError& error) {
      complaint = error.what();
    }
  }
  raise_status(WEIR_STATUS_INVALID_ARGUMENT, complaint);
}

}  // namespace

void define_reports(nb::module_& m) {
  m.def("_write_report", &write_report, "recordings"_a, "names"_a, "command"_a, "path"_a);
}

}  // namespace weir::py

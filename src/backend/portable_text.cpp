#include "backend/portable_text.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace weir::rt {

std::string portable_text(const KernelSource& source) {
  std::string file = source.file;
  const auto ends_it = [](char c) { return c == '"' || c == '\\' || c == '\n' || c == '\r'; };
  std::replace_if(file.begin(), file.end(), ends_it, '_');
  return fmt::format("{}\n#line 1 \"{}\"\n{}", portable_dialect(), file, source.text);
}

}  // namespace weir::rt

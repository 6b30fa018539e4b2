#include "hstreams/call.hpp"

namespace weir::hs {

HSTR_RESULT Call::failed(HSTR_RESULT result, const char* why,
                         const std::source_location& where) const noexcept try {
  Library::get().set_last_error(result);
  if (!Log::get().wants(HSTR_LOG_LEVEL_ERROR, kind_)) return result;
  const std::string text = fmt::format("{} returns {}: {}", function_.name, name_of(result), why);
  Log::get().write(HSTR_LOG_LEVEL_ERROR, kind_, text, where);
  return result;
} catch (...) {
  return result;
}

}  // namespace weir::hs

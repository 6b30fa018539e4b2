#include "base/thread_role.hpp"

namespace weir::rt {

int& NoWaitScope::depth() noexcept {
  thread_local int value = 0;
  return value;
}

}  // namespace weir::rt

#include "base/thread_role.hpp"

namespace weir::rt {

const void* this_thread() noexcept {
  static thread_local const char mark = 0;
  return &mark;
}

int& NoWaitScope::depth() noexcept {
  thread_local int value = 0;
  return value;
}

}  // namespace weir::rt

// The template of a backend: opens a device that has no cores and refuses all work.
//
// To write a backend: copy this folder, replace `null` and `Null`, fill in the methods one by one
// until the conformance suite passes, and name the factory in runtime/backends.cpp.
#pragma once

#include <memory>

#include "backend/backend.hpp"

namespace weir::rt {

std::unique_ptr<Backend> make_null_backend();

}  // namespace weir::rt

// Faces in pictures.
#pragma once

#include <memory>

#include "common/workload.hpp"

namespace weir::apps {

/// Finds faces with a pipeline in which each picture is an epoch.
std::unique_ptr<Application> make_face_detection();

}  // namespace weir::apps

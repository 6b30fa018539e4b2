// Pictures of a film, which the program `ffmpeg` takes out of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/image.hpp"

namespace weir::apps {

/// Returns whether a path has the extension of a film: .mp4, .mkv, .webm, .avi, .mov and others.
bool is_film(std::string_view path);

/// Returns the pictures of a film in their order, `most` of them at most, 0: all. Throws InputError
/// with the path and the reason: there is no ffmpeg on the search path, it does not understand the
/// file, or the pictures take more than the limits all together.
std::vector<ColourImage> read_film(const std::string& path, std::size_t most,
                                   const ReadLimits& limits = {});

}  // namespace weir::apps

// Settings of simulated devices that are like real ones.
#pragma once

#include <span>

#include "backend/backend.hpp"

namespace weir::rt {

/// Devices in virtual time whose settings are from data sheets, measurements and the papers. What
/// is "assumed" in the sources of a preset was chosen to reproduce a published figure, or is usual
/// for the kind of device: fit it before you conclude anything about that device.
std::span<const DomainPreset> simulated_presets() noexcept;

}  // namespace weir::rt

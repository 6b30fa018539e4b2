// Functions of the program that are called when an event is complete.
#pragma once

#include <weir/event.h>

namespace weir::rt {

class Context;

/// Calls a function when an event is complete, which may be now: weir_event_on_complete(). Throws
/// Error.
void on_complete(Context& context, const weir_event& event, weir_event_callback callback,
                 void* payload);

}  // namespace weir::rt

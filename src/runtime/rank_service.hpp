// What a rank serves to rank 0: any backend's devices, and the kernels of a runtime.
#pragma once

namespace weir::rt {

class Port;
class Runtime;

/// Serves rank 0 until it leaves. Throws Error{network_error} when it is lost.
void serve_rank(Runtime& runtime, Port& port);

/// Sees that the ranks whose domains a runtime has know the kernels that it has. On rank 0. Throws
/// Error{not_found}, which names rank and kernel.
void check_ranks_know(Runtime& runtime);

/// Lets the ranks that serve return. On rank 0.
void dismiss_ranks(Port& port) noexcept;

}  // namespace weir::rt

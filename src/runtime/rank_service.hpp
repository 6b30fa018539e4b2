// What a rank serves to rank 0: the devices of its backends, and the kernels of its runtime.
#pragma once

namespace weir::rt {

class Context;
class Port;

/// Serves rank 0 until it leaves. Throws Error{network_error} if rank 0 is lost.
void serve_rank(const Context& runtime, Port& port);

/// Rank 0: checks that the ranks of the runtime's domains know its kernels. Throws Error{not_found}
/// naming the rank and the kernel.
void check_ranks_know(const Context& runtime);

/// Rank 0: makes the serving ranks return from serve_rank().
void dismiss_ranks(Port& port) noexcept;

}  // namespace weir::rt

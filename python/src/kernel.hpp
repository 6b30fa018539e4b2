// Kernels: those that weir knows by name, and Python functions.
#pragma once

#include <string>
#include <vector>

#include "session.hpp"

namespace weir::py {

struct Function;
struct Layout;
struct Part;

/// A kernel of a session.
struct Kernel {
  std::string name;
  weir_kernel* handle;
  /// A Python function, owned by the runtime; null: another kernel. An action passes the layout of
  /// each operand after its own scalars.
  const Function* python = nullptr;
  /// A built-in kernel on column-major tiles.
  bool tiles = false;
};

/// Registers a function: function(*operands, *scalars) is called on host cores, with the GIL.
Kernel& add_function(Session& session, const std::string& name, nb::handle function);

/// Returns the kernel for calls without layouts, all of whose operands have this one; the same
/// kernel unless it is a Python function.
Kernel& on_layout(Session& session, Kernel& kernel, const Layout* layout);

/// Compiled code for languages without structs: of each operand its address, and 5 numbers: bytes
/// of a row, rows, planes, bytes between rows and between planes; scalars as doubles. Returns a
/// status.
using FlatFunction = int (*)(void* const* operands, const std::int64_t* shapes,
                             const double* scalars);

/// Registers compiled code: the address of a weir_host_function or of a FlatFunction.
Kernel& add_native(Session& session, const std::string& name, std::uintptr_t address, bool flat,
                   bool parallel);

/// Registers a portable kernel: addresses of a weir_portable_kernel and of a weir_grid_function.
Kernel& add_portable(Session& session, const std::string& name, std::uintptr_t kernel,
                     std::uintptr_t grid, const std::string& source, bool parallel);

/// Turns a scalar of Python into one of weir: int, bool and letters are i64 (u64 if they must be),
/// float is f64, numpy.float32 is f32.
weir_scalar scalar_of(nb::handle given, std::size_t index);

std::vector<weir_scalar> scalars_of(nb::handle given);

double number_of(const weir_scalar& scalar);

/// Returns the kernel for a Kernel object or a name.
Kernel& find_kernel(Session& session, nb::handle called);

/// Raises unless operand `index` has the dtype of a kernel on tiles.
void check_tile_dtype(const Kernel& kernel, const Part& part, std::size_t index);

}  // namespace weir::py

// Arrays of Python as buffers, and parts of them as regions.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "session.hpp"

namespace weir::py {

/// How the elements of an array lie in a region: each axis runs within the rows of the region, over
/// its rows, or over its planes. Equal layouts are one object, which is never freed: actions carry
/// its address to their kernel.
struct Layout {
  struct Axis {
    std::size_t length;
    std::size_t level;  ///< 0: in a row; 1: rows; 2: planes
    std::size_t step;   ///< in elements of a row, in rows, in planes
    bool operator==(const Axis&) const = default;
  };

  PyObject* dtype;  ///< a numpy.dtype; owned
  std::size_t item_bytes;
  std::vector<Axis> axes;

  /// A numpy.ndarray over an operand in the memory of the domain that runs the kernel.
  nb::object array(const weir_view& view) const;
};

/// Part of a buffer with the layout of its elements.
struct Part {
  std::shared_ptr<Buffer> buffer;
  weir_region region;
  const Layout* layout;
  std::vector<std::size_t> strides;  ///< bytes between elements along each axis
  bool readonly;
};

/// Device memory of an array, which a buffer is to adopt.
struct DeviceMemory {
  std::vector<weir_domain*> domains;  ///< which may have it; empty: the host
  std::uintptr_t address = 0;
  nb::object owner;
};

/// Owns a buffer over the memory of an array, and holds the array.
struct Buffer {
  /// array: a numpy.ndarray whose elements lie in memory without gaps.
  Buffer(SessionRef session, nb::object array, const weir_buffer_options& options,
         DeviceMemory device);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void close();
  void require_open() const;
  std::string name() const;

  SessionRef session;
  weir_buffer* handle = nullptr;
  nb::object array;
  DeviceMemory device;
  Py_buffer memory{};

 private:
  weir_status make(const weir_buffer_options& options);
};

/// Returns an array of the host as a numpy.ndarray over the same memory. Raises when that takes a
/// copy.
nb::object array_of(nb::handle object);

/// Makes a buffer of an array, in the memory of the host, of a domain, or of the GPU that the array
/// names.
std::shared_ptr<Buffer> wrap(const SessionRef& session, nb::handle object, const char* name,
                             bool alias, weir_domain* domain);
/// Returns address, shape, strides in elements, typestr and owner of an array, by DLPack.
nb::tuple open_dlpack(nb::handle object);
/// Makes a buffer of new zeros.
std::shared_ptr<Buffer> make_buffer(const SessionRef& session, nb::handle shape, nb::handle dtype,
                                    const char* order, const char* name, bool alias);

/// Returns the part of `buffer` that is the memory of an array.
Part part_of(const std::shared_ptr<Buffer>& buffer, nb::handle array);
/// Returns the part of `buffer` that a NumPy index selects.
Part part_at(const std::shared_ptr<Buffer>& buffer, nb::handle index);
/// Returns the part for a Buffer, a Part, or an array in a buffer of the session.
Part find_part(Session& session, nb::handle object);

/// Returns the region of a part as a column-major BLAS tile; raises when it is not one.
weir_region tile_of(const Part& part, const std::string& what);

}  // namespace weir::py

#include "array.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <nanobind/ndarray.h>

namespace weir::py {

namespace {

nb::object numpy(const char* name) { return nb::module_::import_("numpy").attr(name); }

/// numpy.ndarray, which is looked up once. With the GIL.
nb::handle ndarray() {
  static PyObject* const found = numpy("ndarray").release().ptr();
  return found;
}

std::string class_of(nb::handle object) {
  return nb::cast<std::string>(object.type().attr("__name__"));
}

/// A view of the memory of an object, for the length of a scope.
class MemoryView {
 public:
  MemoryView(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view, flags) != 0) throw nb::python_error();
  }
  ~MemoryView() { PyBuffer_Release(&view); }
  MemoryView(const MemoryView&) = delete;
  MemoryView& operator=(const MemoryView&) = delete;

  Py_buffer view;
};

/// Axes whose elements are evenly spaced.
struct Level {
  std::size_t length, stride;
  std::vector<std::size_t> axes;  ///< the fastest first
};

/// A tuple as Python shows it: "(512, 512)", "(512,)".
std::string tuple(const Py_ssize_t* values, int count) {
  std::string text = "(";
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  return text + (count == 1 ? ",)" : ")");
}

std::string describe(const Py_buffer& view) {
  return "shape " + tuple(view.shape, view.ndim) + ", strides " + tuple(view.strides, view.ndim);
}

/// The axes of more than one element, by stride.
std::vector<Level> levels_of(const Py_buffer& view) {
  std::vector<Level> levels;
  for (int i = 0; i < view.ndim; ++i) {
    const auto axis = static_cast<std::size_t>(i);
    if (view.shape[i] == 0) raise_value("the array is empty: an operand has at least one element");
    if (view.shape[i] == 1) continue;
    if (view.strides[i] <= 0) {
      raise_value("the array runs backwards or repeats elements (" + describe(view) +
                  "): pass the array that it is a view of");
    }
    levels.push_back({static_cast<std::size_t>(view.shape[i]),
                      static_cast<std::size_t>(view.strides[i]),
                      {axis}});
  }
  std::stable_sort(levels.begin(), levels.end(),
                   [](const Level& a, const Level& b) { return a.stride < b.stride; });
  return levels;
}

/// Joins one level with the next, where that leaves no gap. Returns whether it found one.
bool join_levels(std::vector<Level>& levels) {
  for (std::size_t i = 0; i + 1 < levels.size(); ++i) {
    Level &inner = levels[i], &outer = levels[i + 1];
    if (outer.stride != inner.stride * inner.length) continue;
    inner.length *= outer.length;
    inner.axes.insert(inner.axes.end(), outer.axes.begin(), outer.axes.end());
    levels.erase(levels.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return true;
  }
  return false;
}

/// The levels as rows, rows of a plane, planes: the first is that of the elements of a row.
std::vector<Level> fit_levels(const Py_buffer& view) {
  const auto item = static_cast<std::size_t>(view.itemsize);
  std::vector<Level> levels = levels_of(view);
  if (levels.empty() || levels.front().stride != item) {
    levels.insert(levels.begin(), Level{1, item, {}});
  }
  while (levels.size() > 3) {
    if (!join_levels(levels)) {
      raise_value("a region has rows and planes, but this array has more gaps (" + describe(view) +
                  "): copy it, or pass it in parts");
    }
  }
  return levels;
}

weir_region region_of(const std::vector<Level>& levels, std::size_t offset, std::size_t item) {
  weir_region region = weir_region_range(offset, levels[0].length * item);
  for (std::size_t i = 1; i < levels.size(); ++i) {
    region.extent[i] = levels[i].length;
    region.stride[i - 1] = levels[i].stride;
  }
  return region;
}

std::vector<Layout::Axis> axes_of(const std::vector<Level>& levels, const Py_buffer& view) {
  std::vector<Layout::Axis> axes(static_cast<std::size_t>(view.ndim), {1, 0, 1});
  for (std::size_t level = 0; level < levels.size(); ++level) {
    std::size_t step = 1;
    for (const std::size_t axis : levels[level].axes) {
      const auto length = static_cast<std::size_t>(view.shape[axis]);
      axes[axis] = {length, level, step};
      step *= length;
    }
  }
  return axes;
}

const Layout* intern(nb::handle dtype, std::size_t item, std::vector<Layout::Axis> axes) {
  using Key = std::pair<PyObject*, std::vector<std::tuple<std::size_t, std::size_t, std::size_t>>>;
  static auto* const known = new std::map<Key, Layout>;  // with the GIL; outlives the interpreter
  Key key{dtype.ptr(), {}};
  for (const Layout::Axis& axis : axes) key.second.emplace_back(axis.length, axis.level, axis.step);
  const auto found = known->find(key);
  if (found != known->end()) return &found->second;
  dtype.inc_ref();
  return &known->emplace(std::move(key), Layout{dtype.ptr(), item, std::move(axes)}).first->second;
}

}  // namespace

nb::object Layout::array(const weir_view& view) const {
  const std::size_t strides[3] = {item_bytes, view.stride[0], view.stride[1]};
  nb::object shape = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(axes.size())));
  nb::object steps = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(axes.size())));
  std::size_t span = item_bytes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t stride = strides[axes[i].level] * axes[i].step;
    span += (axes[i].length - 1) * stride;
    const auto at = static_cast<Py_ssize_t>(i);
    PyTuple_SetItem(shape.ptr(), at, PyLong_FromSize_t(axes[i].length));
    PyTuple_SetItem(steps.ptr(), at, PyLong_FromSize_t(stride));
  }
  const int flags = view.access == WEIR_ACCESS_READ ? PyBUF_READ : PyBUF_WRITE;
  const nb::object memory = nb::steal(PyMemoryView_FromMemory(
      static_cast<char*>(view.address), static_cast<Py_ssize_t>(span), flags));
  if (!memory.is_valid()) throw nb::python_error();
  return ndarray()(shape, nb::handle(dtype), memory, 0, steps);
}

// ---- Buffers -----------------------------------------------------------------------------------

Buffer::Buffer(SessionRef of, nb::object given, const weir_buffer_options& options,
               DeviceMemory there)
    : session(std::move(of)), array(std::move(given)), device(std::move(there)) {
  session->require_open();
  if (nb::cast<bool>(array.attr("dtype").attr("hasobject"))) {
    raise_type("a device cannot use an array of Python objects: take a numeric dtype");
  }
  if (PyObject_GetBuffer(array.ptr(), &memory, PyBUF_ANY_CONTIGUOUS) != 0) {
    PyErr_Clear();
    raise_value("the array has gaps: wrap the array that it is a view of, and use parts of that");
  }
  weir_status status = WEIR_STATUS_INVALID_ARGUMENT;
  if (memory.len > 0 && !session->closed()) {
    const Using inside({&session->in_use});
    const Released released;
    status = make(options);
  }
  if (handle == nullptr) {
    const bool empty = memory.len == 0;
    PyBuffer_Release(&memory);
    session->require_open();
    if (empty) raise_value("the array is empty: a buffer has at least one element");
    check(status);
  }
}

weir_status Buffer::make(const weir_buffer_options& options) {
  const auto bytes = static_cast<std::size_t>(memory.len);
  if (device.domains.empty()) {
    return weir_buffer_wrap(session->handle(), memory.buf, bytes, &options, &handle);
  }
  auto* const address = reinterpret_cast<void*>(device.address);
  weir_status status = WEIR_STATUS_NOT_FOUND;
  for (weir_domain* domain : device.domains) {
    status = weir_buffer_adopt(domain, address, memory.buf, bytes, &options, &handle);
    if (status != WEIR_STATUS_NOT_FOUND) break;
  }
  return status;
}

Buffer::~Buffer() { close(); }

void Buffer::close() {
  if (handle == nullptr) return;
  require_no_callback("a buffer");
  weir_buffer* const ended = std::exchange(handle, nullptr);
  session->buffers.erase(ended);
  const auto destroyed = [&] {
    if (interrupted()) return false;
    const Using inside({&session->in_use});
    return call_interruptibly(session->left_calls, [ended] { weir_buffer_destroy(ended); });
  };
  if (session->closed()) {
    session->wait_for_end();  // which may still write there
  } else if (!destroyed()) {
    session->keep(std::exchange(memory, {}));
    session->kept.push_back(device.owner);
  }
  PyBuffer_Release(&memory);
  device.owner.reset();
}

void Buffer::require_open() const {
  session->require_open();
  if (handle == nullptr) raise_status(WEIR_STATUS_INVALID_ARGUMENT, "the buffer has been closed");
}

std::string Buffer::name() const {
  require_open();
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  check(weir_buffer_get_info(handle, &info));
  return info.name;
}

nb::object array_of(nb::handle object) {
  if (nb::isinstance(object, ndarray())) return nb::borrow(object);
  if (PyObject_CheckBuffer(object.ptr())) {
    return numpy("asarray")(nb::steal(PyMemoryView_FromObject(object.ptr())));
  }
  if (nb::hasattr(object, "__dlpack__")) {
    return numpy("from_dlpack")(object);
  }
  raise_type(
      "a " + class_of(object) +
      " shares no memory: pass a NumPy array, or something with the buffer protocol or DLPack");
}

namespace {

std::shared_ptr<Buffer> own(const SessionRef& session, nb::object array, const char* name,
                            bool alias, DeviceMemory device = {}) {
  dispose_late();
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.name = name;
  options.no_alias = !alias;
  options.alignment = 1;
  auto buffer = make_waiting<Buffer>(session, std::move(array), options, std::move(device));
  session->buffers[buffer->handle] = buffer;
  return buffer;
}

/// Returns the CUDA domains.
std::vector<weir_domain*> cuda_domains_of(const Session& session) {
  std::vector<weir_domain*> cards;
  const std::size_t count = weir_runtime_domain_count(session.handle());
  for (std::size_t i = 0; i < count; ++i) {
    weir_domain* const domain = weir_runtime_get_domain(session.handle(), i);
    weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
    check(weir_domain_get_info(domain, &info));
    if (std::string_view(info.backend) == "cuda") cards.push_back(domain);
  }
  return cards;
}

}  // namespace

std::shared_ptr<Buffer> wrap(const SessionRef& session, nb::handle object, const char* name,
                             bool alias, weir_domain* domain) {
  session->require_open();
  const nb::object device = nb::module_::import_("weir._device");
  const bool on_device = nb::cast<bool>(device.attr("is_on_device")(object));
  if (!on_device && domain == nullptr) return own(session, array_of(object), name, alias);
  DeviceMemory memory;
  if (domain != nullptr) {
    memory.domains = {domain};
  } else {
    memory.domains = cuda_domains_of(*session);
    if (memory.domains.empty()) {
      raise_type("the " + class_of(object) +
                 " is in the memory of a GPU: open the runtime with the domain 'cuda'");
    }
  }
  const nb::object found = device.attr("memory_of")(object);
  memory.address = nb::cast<std::uintptr_t>(found[0]);
  memory.owner = found[2];
  return own(session, found[1], name, alias, std::move(memory));
}

nb::tuple open_dlpack(nb::handle object) {
  static constexpr const char* kKinds = "iuf\0\0cb";
  const auto array = nb::cast<nb::ndarray<nb::ro>>(object);
  const nb::dlpack::dtype dtype = array.dtype();
  const char kind = dtype.code < 7 ? kKinds[dtype.code] : '\0';
  if (kind == '\0' || dtype.lanes != 1) {
    raise_type("the elements of the " + class_of(object) + " have no type of NumPy");
  }
  nb::list shape, strides;
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    shape.append(array.shape(i));
    strides.append(array.stride(i));
  }
  auto* const owner = new nb::ndarray<nb::ro>(array);
  return nb::make_tuple(reinterpret_cast<std::uintptr_t>(array.data()), nb::tuple(shape),
                        nb::tuple(strides), kind + std::to_string(dtype.bits / 8),
                        nb::capsule(owner, [](void* held) noexcept {
                          delete static_cast<nb::ndarray<nb::ro>*>(held);
                        }));
}

std::shared_ptr<Buffer> make_buffer(const SessionRef& session, nb::handle shape, nb::handle dtype,
                                    const char* order, const char* name, bool alias) {
  return own(session, numpy("zeros")(shape, dtype, order), name, alias);
}

// ---- Parts -------------------------------------------------------------------------------------

Part part_of(const std::shared_ptr<Buffer>& buffer, nb::handle array) {
  buffer->require_open();
  const MemoryView memory(array, PyBUF_STRIDED_RO);
  const Py_buffer& view = memory.view;
  const std::ptrdiff_t offset =
      static_cast<const char*>(view.buf) - static_cast<const char*>(buffer->memory.buf);
  if (offset < 0 || offset >= buffer->memory.len) {
    raise_value("the index made a copy: parts of a buffer are slices");
  }
  const std::vector<Level> levels = fit_levels(view);
  const auto item = static_cast<std::size_t>(view.itemsize);
  Part part{buffer,
            region_of(levels, static_cast<std::size_t>(offset), item),
            intern(array.attr("dtype"), item, axes_of(levels, view)),
            {},
            view.readonly != 0 || buffer->memory.readonly != 0};
  for (int i = 0; i < view.ndim; ++i) {
    part.strides.push_back(static_cast<std::size_t>(view.strides[i]));
  }
  return part;
}

Part part_at(const std::shared_ptr<Buffer>& buffer, nb::handle index) {
  nb::object part = buffer->array[index];
  if (!nb::isinstance(part, ndarray())) {  // a single element: keep the memory it is in
    const nb::object indices =
        nb::isinstance<nb::tuple>(index) ? nb::borrow(index) : nb::object(nb::make_tuple(index));
    part = buffer->array[indices + nb::make_tuple(nb::ellipsis())];
  }
  return part_of(buffer, part);
}

Part find_part(Session& session, nb::handle object) {
  Part* known = nullptr;
  if (nb::try_cast(object, known)) return *known;
  std::shared_ptr<Buffer> buffer;
  if (nb::try_cast(object, buffer)) return part_of(buffer, buffer->array);
  const nb::object array = array_of(object);
  const void* address = nullptr;
  {
    const MemoryView memory(array, PyBUF_STRIDED_RO);
    address = memory.view.buf;
  }
  return part_of(session.buffer_at(address), array);
}

weir_region tile_of(const Part& part, const std::string& what) {
  const std::vector<Layout::Axis>& axes = part.layout->axes;
  const std::size_t item = part.layout->item_bytes;
  if (axes.size() == 1 && (part.strides[0] == item || axes[0].length == 1)) return part.region;
  if (axes.size() != 2) {
    raise_value(what + " has " + std::to_string(axes.size()) +
                " axes: tile kernels take matrices and vectors");
  }
  if (part.strides[0] != item && axes[0].length > 1) {
    raise_value(what +
                " is not column-major: make the array with order='F', or pass its transpose");
  }
  weir_region region = weir_region_range(part.region.offset, axes[0].length * item);
  region.extent[1] = axes[1].length;
  region.stride[0] = part.strides[1];
  return region;
}

}  // namespace weir::py

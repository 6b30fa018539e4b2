#include "kernel.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "array.hpp"

namespace weir::py {

/// A function of Python, owned by the runtime that has it as a kernel.
struct Function {
  nb::object code;
  std::string name;
  const Layout* layout = nullptr;  ///< of all operands, if calls do not say
};

namespace {

nb::object value_of(const weir_scalar& scalar) {
  switch (scalar.type) {
    case WEIR_SCALAR_TYPE_I64: return nb::int_(scalar.value.i64);
    case WEIR_SCALAR_TYPE_U64: return nb::int_(scalar.value.u64);
    case WEIR_SCALAR_TYPE_F32: return nb::float_(static_cast<double>(scalar.value.f32));
    case WEIR_SCALAR_TYPE_F64: break;
  }
  return nb::float_(scalar.value.f64);
}

/// Raises when a function returns an array that is not part of an operand: its contents would be
/// lost silently.
void check_result(const Function& function, nb::handle result,
                  std::span<PyObject* const> operands) {
  if (result.is_none() ||
      std::find(operands.begin(), operands.end(), result.ptr()) != operands.end())
    return;
  if (!nb::hasattr(result, "__array__")) return;
  const nb::object share = nb::module_::import_("numpy").attr("may_share_memory");
  for (PyObject* const operand : operands) {
    if (nb::cast<bool>(share(result, nb::handle(operand)))) return;
  }
  raise_type("kernel '" + function.name + "' returned a " +
             nb::cast<std::string>(nb::type_name(result.type())) +
             ", which nothing reads: a kernel writes to its operands, as in `out[...] = a * 2` or "
             "`np.multiply(a, 2, out=out)`, and returns nothing");
}

/// Calls the function with arrays over the operands, then the scalars.
void call_function(const Function& function, const weir_call& call) {
  const bool given = function.layout == nullptr;
  const std::size_t scalars = call.scalar_count - (given ? call.operand_count : 0);
  std::vector<nb::object> owned;
  std::vector<PyObject*> arguments(1);  // room that the callee may use
  for (std::size_t i = 0; i < call.operand_count; ++i) {
    const Layout* layout = function.layout;
    if (given) layout = reinterpret_cast<const Layout*>(call.scalars[scalars + i].value.u64);
    owned.push_back(layout->array(call.operands[i]));
  }
  for (std::size_t i = 0; i < scalars; ++i) owned.push_back(value_of(call.scalars[i]));
  for (const nb::object& argument : owned) arguments.push_back(argument.ptr());
  const nb::object result =
      nb::steal(PyObject_Vectorcall(function.code.ptr(), arguments.data() + 1,
                                    owned.size() | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  if (!result.is_valid()) throw nb::python_error();
  check_result(function, result, std::span(arguments).subspan(1, call.operand_count));
}

weir_status run_function(const weir_call* call) {
  const nb::gil_scoped_acquire held;
  const CallbackScope scope;
  const RunningKernel running;
  std::string message;
  try {
    call_function(*static_cast<const Function*>(call->payload), *call);
    return WEIR_STATUS_OK;
  } catch (nb::python_error& error) {
    message = keep_exception(error);
  }
  return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "%s", message.c_str());
}

void release_function(void* payload) {
  const nb::gil_scoped_acquire held;
  const CallbackScope
      scope;  // objects that the function held must not wait at the end of its runtime
  delete static_cast<Function*>(payload);
}

Kernel& add(Session& session, Kernel kernel) {
  return session.add(std::make_unique<Kernel>(std::move(kernel)));
}

Kernel& add(Session& session, const std::string& name, std::unique_ptr<Function> owned) {
  const weir_implementation code = {"host", run_function, owned.get()};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name.c_str();
  options.implementations = &code;
  options.implementation_count = 1;
  options.release = release_function;
  weir_kernel* made = nullptr;
  check(weir_kernel_register(session.handle(), &options, &made));
  return add(session, {.name = name, .handle = made, .python = owned.release()});
}

}  // namespace

Kernel& add_function(Session& session, const std::string& name, nb::handle function) {
  session.require_open();
  if (PyCallable_Check(function.ptr()) == 0) raise_type("a kernel is a function of Python");
  return add(session, name, std::make_unique<Function>(nb::borrow(function), name));
}

Kernel& on_layout(Session& session, Kernel& kernel, const Layout* layout) {
  if (kernel.python == nullptr) return kernel;
  const std::string name =
      kernel.name + "@" + std::to_string(reinterpret_cast<std::uintptr_t>(layout));
  if (Kernel* const known = session.known(name)) return *known;
  return add(session, name,
             std::make_unique<Function>(kernel.python->code, kernel.python->name, layout));
}

double number_of(const weir_scalar& scalar) {
  switch (scalar.type) {
    case WEIR_SCALAR_TYPE_I64: return static_cast<double>(scalar.value.i64);
    case WEIR_SCALAR_TYPE_U64: return static_cast<double>(scalar.value.u64);
    case WEIR_SCALAR_TYPE_F32: return static_cast<double>(scalar.value.f32);
    case WEIR_SCALAR_TYPE_F64: break;
  }
  return scalar.value.f64;
}

namespace {

weir_status run_flat(const weir_call* call) {
  std::vector<void*> operands;
  std::vector<std::int64_t> shapes;
  std::vector<double> scalars;
  for (std::size_t i = 0; i < call->operand_count; ++i) {
    const weir_view& view = call->operands[i];
    operands.push_back(view.address);
    for (const std::size_t extent : view.extent)
      shapes.push_back(static_cast<std::int64_t>(extent));
    for (const std::size_t stride : view.stride)
      shapes.push_back(static_cast<std::int64_t>(stride));
  }
  for (std::size_t i = 0; i < call->scalar_count; ++i) {
    scalars.push_back(number_of(call->scalars[i]));
  }
  const auto function = reinterpret_cast<FlatFunction>(call->payload);
  const int status = function(operands.data(), shapes.data(), scalars.data());
  if (status >= WEIR_STATUS_OK && status <= WEIR_STATUS_INTERNAL && status != WEIR_STATUS_TIMEOUT) {
    return static_cast<weir_status>(status);
  }
  return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "the kernel returned %d", status);
}

}  // namespace

Kernel& add_native(Session& session, const std::string& name, std::uintptr_t address, bool flat,
                   bool parallel) {
  session.require_open();
  weir_implementation code = {"host", run_flat, reinterpret_cast<void*>(address)};
  if (!flat) code = {"host", reinterpret_cast<weir_host_function>(address), nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name.c_str();
  options.shape = parallel ? WEIR_KERNEL_SHAPE_PARALLEL : WEIR_KERNEL_SHAPE_SERIAL;
  options.implementations = &code;
  options.implementation_count = 1;
  weir_kernel* made = nullptr;
  check(weir_kernel_register(session.handle(), &options, &made));
  return add(session, {.name = name, .handle = made});
}

Kernel& add_portable(Session& session, const std::string& name, std::uintptr_t kernel,
                     std::uintptr_t grid, const std::string& source, bool parallel) {
  session.require_open();
  weir_portable_options options = WEIR_PORTABLE_OPTIONS_INIT;
  options.name = name.c_str();
  options.kernel = reinterpret_cast<const weir_portable_kernel*>(kernel);
  options.source = source.c_str();
  options.grid = reinterpret_cast<weir_grid_function>(grid);
  options.shape = parallel ? WEIR_KERNEL_SHAPE_PARALLEL : WEIR_KERNEL_SHAPE_SERIAL;
  weir_kernel* made = nullptr;
  check(weir_kernel_register_portable(session.handle(), &options, &made));
  return add(session, {.name = name, .handle = made});
}

namespace {

bool is_numpy(nb::handle given, const char* name) {
  return nb::isinstance(given, nb::module_::import_("numpy").attr(name));
}

weir_scalar integer_of(nb::handle given) {
  const nb::object number = nb::steal(PyNumber_Index(given.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow == 0) return weir_scalar_i64(small);
  const unsigned long long large = PyLong_AsUnsignedLongLong(number.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return weir_scalar_u64(large);
}

}  // namespace

weir_scalar scalar_of(nb::handle given, std::size_t index) {
  if (PyFloat_Check(given.ptr())) return weir_scalar_f64(PyFloat_AsDouble(given.ptr()));
  if (PyUnicode_Check(given.ptr()) && PyUnicode_GetLength(given.ptr()) == 1) {
    return weir_scalar_i64(static_cast<std::int64_t>(PyUnicode_ReadChar(given.ptr(), 0)));
  }
  if (PyBool_Check(given.ptr())) return weir_scalar_i64(given.ptr() == Py_True ? 1 : 0);
  if (PyLong_Check(given.ptr()) || is_numpy(given, "integer")) return integer_of(given);
  if (is_numpy(given, "float32")) {
    return weir_scalar_f32(static_cast<float>(PyFloat_AsDouble(given.ptr())));
  }
  const std::string type = nb::cast<std::string>(nb::type_name(given.type()));
  raise_type("scalar " + std::to_string(index) + " is a " + type +
             ": scalars are int, float, numpy.float32 or a letter");
}

std::vector<weir_scalar> scalars_of(nb::handle given) {
  const Sequence numbers(given, "scalars are a sequence of numbers");
  std::vector<weir_scalar> scalars;
  for (std::size_t i = 0; i < numbers.size(); ++i) scalars.push_back(scalar_of(numbers[i], i));
  return scalars;
}

Kernel& find_kernel(Session& session, nb::handle called) {
  if (PyUnicode_Check(called.ptr())) return session.kernel(nb::cast<std::string>(called));
  Kernel* known = nullptr;
  if (!nb::try_cast(called, known) || known == nullptr) {
    raise_type("a kernel is what Runtime.kernel() returns, or a name");
  }
  return *known;
}

void check_tile_dtype(const Kernel& kernel, const Part& part, std::size_t index) {
  const char letter = kernel.name[kernel.name.find('.') + 1];
  const bool pivots = index == 1 && kernel.name.find("getrf") != std::string::npos;
  const char* const wanted = pivots ? "int32" : letter == 's' ? "float32" : "float64";
  const std::string found = nb::cast<std::string>(nb::str(nb::handle(part.layout->dtype)));
  if (found == wanted) return;
  raise_type("operand " + std::to_string(index) + " of '" + kernel.name + "' is of dtype " + found +
             ", not " + wanted);
}

}  // namespace weir::py

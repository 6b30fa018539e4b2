#include "policy.hpp"

#include <algorithm>
#include <memory>

#include "module.hpp"

namespace weir::py {

namespace {

/// The Python function of a policy.
struct Policy {
  nb::object choose;
  RaisedByPolicy raised = {};
};

std::string name_of(const weir_place* place) {
  weir_place_info info = WEIR_PLACE_INFO_INIT;
  return weir_place_get_info(place, &info) == WEIR_STATUS_OK ? info.name : "";
}

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

Candidate candidate_of(const weir_candidate& seen) {
  Candidate candidate{name_of(seen.place),
                      seen.cores,
                      seen.tasks,
                      seen.full,
                      seen.weight,
                      seconds(seen.free_ns),
                      seconds(seen.ready_ns),
                      seconds(seen.transfer_ns),
                      {},
                      seen.missing_bytes,
                      seen.owned_bytes};
  if (seen.run_ns >= 0) candidate.run_s = seconds(seen.run_ns);
  return candidate;
}

std::size_t index_of(nb::handle chosen) {
  if (chosen.is_none()) return WEIR_POLICY_LATER;
  const nb::object number = nb::steal(PyNumber_Index(chosen.ptr()));
  if (!number.is_valid()) throw nb::python_error();
  const Py_ssize_t index = PyNumber_AsSsize_t(number.ptr(), PyExc_IndexError);
  if (index == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (index >= 0) return std::min(static_cast<std::size_t>(index), kFarCandidate - 1);
  PyErr_Format(PyExc_IndexError, "candidate %zd: they count from 0", index);
  throw nb::python_error();
}

std::size_t choose(const char* task, const weir_candidate* candidates, std::size_t count,
                   void* payload) {
  const nb::gil_scoped_acquire held;
  const CallbackScope scope;
  auto& policy = *static_cast<Policy*>(payload);
  try {
    nb::list seen;
    for (std::size_t i = 0; i < count; ++i) seen.append(candidate_of(candidates[i]));
    return index_of(policy.choose(nb::str(task), seen));
  } catch (nb::python_error& error) {
    return policy.raised.keep(error);
  }
}

}  // namespace

void add_policy(Session& session, const std::string& name, nb::handle function) {
  session.require_open();
  if (PyCallable_Check(function.ptr()) == 0) raise_type("a policy is a function of Python");
  auto policy = std::make_unique<Policy>(Policy{nb::borrow(function)});
  weir_policy_options options = WEIR_POLICY_OPTIONS_INIT;
  options.name = name.c_str();
  options.summary = "a function of Python";
  options.choose = choose;
  options.payload = policy.get();
  call_released({&session.in_use},
                [&] { return weir_policy_register(session.handle(), &options); });
  session.kept.push_back(nb::capsule(
      policy.release(), [](void* owned) noexcept { delete static_cast<Policy*>(owned); }));
}

void define_policies(nb::module_& m) {
  nb::class_<Candidate>(m, "Candidate",
                        "A place that could run a task, as a policy sees it. Times are estimates, "
                        "in seconds from now.")
      .def_ro("place", &Candidate::place, "Its name.")
      .def_ro("cores", &Candidate::cores)
      .def_ro("tasks", &Candidate::tasks, "That it has and that are not over.")
      .def_ro("full", &Candidate::full, "Has enough for now: choosing it puts the task off.")
      .def_ro("weight", &Candidate::weight)
      .def_ro("free_s", &Candidate::free_s, "Until it is done with them.")
      .def_ro("ready_s", &Candidate::ready_s, "Until the operands have their values, wherever.")
      .def_ro("transfer_s", &Candidate::transfer_s, "To copy what is missing there.")
      .def_ro("run_s", &Candidate::run_s, "Of the task; None: it never ran on a place like this.")
      .def_ro("missing_bytes", &Candidate::missing_bytes, "Of the operands that it reads.")
      .def_ro("owned_bytes", &Candidate::owned_bytes,
              "Of the operands that it writes, last written there.")
      .def("__repr__", [](nb::handle candidate) {
        return text_of(candidate, "<weir.Candidate '{0.place}': free in {0.free_s:g} s>");
      });
}

}  // namespace weir::py

// Classes of the module for programs of several ranks; weir._fabric wraps them for programs.

#include "fabric.hpp"
#include "module.hpp"
#include "stream.hpp"

#include <nanobind/stl/pair.h>

namespace weir::py {

namespace {

weir_fabric_op op_of(const std::string& name) {
  if (name == "sum") return WEIR_FABRIC_OP_SUM;
  if (name == "min") return WEIR_FABRIC_OP_MIN;
  if (name == "max") return WEIR_FABRIC_OP_MAX;
  if (name == "product") return WEIR_FABRIC_OP_PRODUCT;
  if (name == "and") return WEIR_FABRIC_OP_AND;
  if (name == "or") return WEIR_FABRIC_OP_OR;
  if (name == "xor") return WEIR_FABRIC_OP_XOR;
  raise_value("op '" + name + "' is not 'sum', 'min', 'max', 'product', 'and', 'or' or 'xor'");
}

weir_collective_kind collective_of(const std::string& name) {
  if (name == "broadcast") return WEIR_COLLECTIVE_BROADCAST;
  if (name == "reduce") return WEIR_COLLECTIVE_REDUCE;
  if (name == "gather") return WEIR_COLLECTIVE_GATHER;
  if (name == "scatter") return WEIR_COLLECTIVE_SCATTER;
  return WEIR_COLLECTIVE_ALL_TO_ALL;
}

weir_fabric_options options_of(const Text& transport, const Text& progress, double lost_after,
                               std::uint64_t seed) {
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.transport = c_str(transport);
  options.progress = c_str(progress);
  options.lost_after_ns = nanoseconds(lost_after, "lost_after");
  options.seed = seed;
  return options;
}

nb::dict counts_of(Conveyor& conveyor) {
  const weir_conveyor_info found = conveyor.info();
  nb::dict counts;
  counts["items"] = found.items;
  counts["item_bytes"] = found.item_bytes;
  counts["combined"] = found.combined;
  counts["joined"] = found.joined;
  counts["blocks"] = found.blocks;
  counts["wire_bytes"] = found.wire_bytes;
  counts["most_in_flight"] = found.most_in_flight;
  counts["blocks_applied"] = found.blocks_applied;
  return counts;
}

void define_communicators(nb::module_& m) {
  nb::class_<Communicator>(m, "_Communicator")
      .def_prop_ro("rank",
                   [](const Communicator& group) { return weir_communicator_rank(group.open()); })
      .def_prop_ro("size",
                   [](const Communicator& group) { return weir_communicator_size(group.open()); })
      .def_prop_ro("closed", [](const Communicator& group) { return group.handle == nullptr; })
      .def("fabric_rank", &Communicator::fabric_rank, "rank"_a)
      .def("split", &Communicator::split, "color"_a.none(), "key"_a, "timeout"_a.none())
      .def("split_by_node", &Communicator::split_by_node, "timeout"_a.none())
      .def("shrink", &Communicator::shrink, "timeout"_a.none())
      .def("revoke", &Communicator::revoke)
      .def(
          "send",
          [](const Communicator& group, const Stream& stream, nb::handle part, unsigned to,
             std::uint32_t tag) { return stream.send(group.open(), to, tag, part); },
          "stream"_a, "part"_a, "to"_a, "tag"_a)
      .def(
          "receive",
          [](const Communicator& group, const Stream& stream, nb::handle part, unsigned source,
             std::uint32_t tag) { return stream.receive(group.open(), source, tag, part); },
          "stream"_a, "part"_a, "source"_a, "tag"_a)
      .def(
          "_enqueue",
          [](const Communicator& group, const Stream& stream, const std::string& kind,
             Communicator::Root root, nb::handle part, nb::handle all, const std::string& op) {
            return group.enqueue(stream, collective_of(kind), root, part, all, op_of(op));
          },
          "stream"_a, "kind"_a, "root"_a.none(), "part"_a, "all"_a.none(), "op"_a)
      .def("barrier", &Communicator::barrier, "timeout"_a.none())
      .def("broadcast", &Communicator::broadcast, "root"_a, "data"_a, "timeout"_a.none())
      .def("gather", &Communicator::gather, "root"_a.none(), "own"_a, "all"_a.none(),
           "timeout"_a.none())
      .def("scatter", &Communicator::scatter, "root"_a, "all"_a.none(), "own"_a, "timeout"_a.none())
      .def("all_to_all", &Communicator::all_to_all, "parts"_a, "received"_a, "timeout"_a.none())
      .def("all_to_all_v", &Communicator::all_to_all_v, "parts"_a, "sizes"_a, "received"_a,
           "received_sizes"_a, "timeout"_a.none())
      .def(
          "reduce",
          [](Communicator& group, Communicator::Root root, nb::handle values, const std::string& op,
             const Timeout& timeout) { group.reduce(root, values, op_of(op), timeout); },
          "root"_a.none(), "values"_a, "op"_a, "timeout"_a.none())
      .def(
          "scan",
          [](Communicator& group, nb::handle values, const std::string& op, bool exclusive,
             const Timeout& timeout) { group.scan(values, op_of(op), exclusive, timeout); },
          "values"_a, "op"_a, "exclusive"_a, "timeout"_a.none())
      .def("close", &Communicator::close);
}

void define_windows(nb::module_& m) {
  nb::class_<Window>(m, "_Window")
      .def("put", &Window::put, "rank"_a, "offset"_a, "data"_a)
      .def("get", &Window::get, "rank"_a, "offset"_a, "into"_a)
      .def(
          "enqueue_put",
          [](const Window& window, const Stream& stream, nb::handle part, unsigned rank,
             std::size_t offset) { return stream.put(window.open(), rank, offset, part); },
          "stream"_a, "part"_a, "rank"_a, "offset"_a)
      .def(
          "enqueue_get",
          [](const Window& window, const Stream& stream, nb::handle part, unsigned rank,
             std::size_t offset) { return stream.get(window.open(), rank, offset, part); },
          "stream"_a, "part"_a, "rank"_a, "offset"_a)
      .def("fetch_add", &Window::fetch_add, "rank"_a, "offset"_a, "operand"_a)
      .def("compare_swap", &Window::compare_swap, "rank"_a, "offset"_a, "expected"_a, "desired"_a)
      .def("flush", &Window::flush, "rank"_a, "timeout"_a.none())
      .def("close", &Window::close);
}

void define_conveyors(nb::module_& m) {
  nb::class_<Conveyor>(m, "_Conveyor")
      .def("producer",
           [](const std::shared_ptr<Conveyor>& conveyor) {
             return make_waiting<Producer>(conveyor);
           })
      .def("finish", &Conveyor::finish, "timeout"_a.none())
      .def("info", &counts_of)
      .def("close", &Conveyor::close);

  nb::class_<Producer>(m, "_Producer")
      .def("put", &Producer::put, "rank"_a, "offsets"_a, "items"_a)
      .def("add", &Producer::add, "rank"_a, "offsets"_a, "values"_a)
      .def("send", &Producer::send, "rank"_a, "handler"_a, "items"_a, "item_bytes"_a)
      .def("flush", &Producer::flush, "timeout"_a.none())
      .def("close", &Producer::close);
}

}  // namespace

void define_fabrics(nb::module_& m) {
  define_communicators(m);
  define_windows(m);
  define_conveyors(m);
  nb::class_<Fabric>(m, "_Fabric")
      .def_prop_ro("rank", [](const Fabric& fabric) { return weir_fabric_rank(fabric.open()); })
      .def_prop_ro("ranks", [](const Fabric& fabric) { return weir_fabric_ranks(fabric.open()); })
      .def_prop_ro("closed", [](const Fabric& fabric) { return fabric.handle == nullptr; })
      .def(
          "is_alive",
          [](const Fabric& fabric, unsigned rank) {
            return weir_fabric_is_alive(fabric.open(), rank);
          },
          "rank"_a)
      .def(
          "link",
          [](const Fabric& fabric, unsigned rank) { return weir_fabric_link(fabric.open(), rank); },
          "rank"_a)
      .def("communicator",
           [](const FabricRef& fabric) {
             return Communicator::make(fabric, weir_fabric_communicator(fabric->open()));
           })
      .def("barrier", &Fabric::barrier, "timeout"_a.none())
      .def(
          "reduce",
          [](Fabric& fabric, nb::handle values, const std::string& op, const Timeout& timeout) {
            fabric.reduce(values, op_of(op), timeout);
          },
          "values"_a, "op"_a, "timeout"_a.none())
      .def("broadcast", &Fabric::broadcast, "root"_a, "data"_a, "timeout"_a.none())
      .def("send", &Fabric::send, "to"_a, "message"_a)
      .def("listen", &Fabric::listen, "handler"_a.none())
      .def(
          "progress",
          [](Fabric& fabric, const Timeout& timeout) {
            weir_fabric* const opened = fabric.open();
            fabric.wait(timeout, [&](std::int64_t ns) { return weir_fabric_progress(opened, ns); },
                        {&fabric.in_use});
          },
          "timeout"_a.none())
      .def(
          "window",
          [](const FabricRef& fabric, nb::object array, const Timeout& timeout) {
            return Window::make(fabric, std::move(array), timeout);
          },
          "array"_a, "timeout"_a.none())
      .def(
          "conveyor",
          [](const FabricRef& fabric, const Text& name, nb::object memory,
             std::vector<std::pair<nb::object, nb::object>> handlers, std::size_t block_bytes,
             std::size_t block_items, std::size_t blocks_in_flight, double age,
             const Timeout& timeout) {
            return Conveyor::make(
                fabric, {c_str(name), std::move(memory), std::move(handlers), block_bytes,
                         block_items, blocks_in_flight, nanoseconds(age, "age"), timeout});
          },
          "name"_a.none(), "memory"_a.none(), "handlers"_a, "block_bytes"_a, "block_items"_a,
          "blocks_in_flight"_a, "age"_a, "timeout"_a.none())
      .def("close", &Fabric::close);

  m.def(
      "_open_fabric",
      [](const Text& transport, const Text& progress, double lost_after, std::uint64_t seed) {
        return open_fabric(options_of(transport, progress, lost_after, seed));
      },
      "transport"_a.none(), "progress"_a.none(), "lost_after"_a, "seed"_a);
  m.def(
      "_simulate",
      [](unsigned ranks, nb::handle program, const Text& progress, double lost_after,
         std::uint64_t seed) {
        simulate(options_of({}, progress, lost_after, seed), ranks, program);
      },
      "ranks"_a, "program"_a, "progress"_a.none(), "lost_after"_a, "seed"_a);
  m.def(
      "_launch",
      [](unsigned ranks, const std::vector<std::string>& arguments, double lost_after) {
        return launch(ranks, arguments, options_of({}, {}, lost_after, 0));
      },
      "ranks"_a, "arguments"_a, "lost_after"_a);
}

}  // namespace weir::py

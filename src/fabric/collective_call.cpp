#include "fabric/collective_call.hpp"

#include <array>

#include <fmt/format.h>
#include <weir/communicator.h>

namespace weir::rt {

namespace {

std::string numbers_of(const CollectiveCall& call) {
  constexpr std::array kTypes = {"int8",   "int16",  "int32",  "int64", "uint8",
                                 "uint16", "uint32", "uint64", "float", "double"};
  const char* const type = call.type < kTypes.size() ? kTypes[call.type] : "number";
  return fmt::format("{} {}{}", call.count, type, call.count == 1 ? "" : "s");
}

const char* operation_of(const CollectiveCall& call) {
  constexpr std::array kNames = {"sum", "minimum", "maximum", "product",
                                 "and", "or",      "xor",     "reduction by a function"};
  return call.operation < kNames.size() ? kNames[call.operation] : "reduction";
}

std::string bytes_text(const CollectiveCall& call) {
  return fmt::format("{} byte{}", call.count, call.count == 1 ? "" : "s");
}

}  // namespace

std::string text_of(const CollectiveCall& call) {
  const std::string to = call.root == CollectiveCall::kAllRanks ? std::string("all ranks")
                                                                : fmt::format("rank {}", call.root);
  switch (call.what) {
    case Collective::barrier: return "barrier";
    case Collective::broadcast: return fmt::format("broadcast of {} from {}", bytes_text(call), to);
    case Collective::gather: return fmt::format("gather of {} to {}", bytes_text(call), to);
    case Collective::scatter: return fmt::format("scatter of {} from {}", bytes_text(call), to);
    case Collective::all_to_all: return "all-to-all exchange";
    case Collective::reduce:
      return fmt::format("{} of {} to {}", operation_of(call), numbers_of(call), to);
    case Collective::scan:
      return fmt::format("scan ({}) of {}", operation_of(call), numbers_of(call));
    case Collective::exclusive_scan:
      return fmt::format("exclusive scan ({}) of {}", operation_of(call), numbers_of(call));
    case Collective::split: return "split";
    case Collective::shrink: return "shrink";
  }
  return "collective operation";
}

}  // namespace weir::rt

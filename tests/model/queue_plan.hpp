// Random programs of tasks: what they do, as functions of their seeds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weir/weir.h>

namespace weir::queue_model {

/// A region of a buffer: its bytes one after the other are `at(i)`.
struct Part {
  std::size_t buffer, offset, row, rows, stride;

  std::size_t size() const { return row * rows; }
  std::size_t at(std::size_t i) const { return offset + i / row * stride + i % row; }
  weir_region region() const { return {offset, {row, rows, 1}, {rows > 1 ? stride : 0, 0}}; }
};

bool overlap(const Part& a, const Part& b);

struct Access {
  std::size_t part;
  weir_access kind;
};

/// Whether tasks with such an access come in any order: they only add to what is there.
inline bool only_adds(std::uint64_t kind) {
  return kind == WEIR_ACCESS_COMMUTE || kind == WEIR_ACCESS_REDUCE;
}

struct PlannedTask {
  std::vector<Access> accesses;
  std::uint64_t seed = 0;
  bool throws = false;
  bool bytewise = false;  ///< byte i of what it writes depends on bytes i of what it reads only
  int priority = 0;
  int domain = -1;    ///< the only one that may run it
  int place = -1;     ///< the same
  bool init = false;  ///< reduces with an identity of its own
};

struct Step {
  /// `inspect` flushes a part and waits for that; `release` ends the buffer of a part, and wraps
  /// its memory again; `reopen` ends the queue.
  enum class Kind {
    task,
    acquire,
    change,
    flush,
    inspect,
    release,
    cancel,
    synchronize,
    reopen
  } kind = Kind::task;
  /// By kind.
  static constexpr std::array kNames = {"task",    "acquire", "change",      "flush", "inspect",
                                        "release", "cancel",  "synchronize", "reopen"};

  PlannedTask task{};
  std::size_t part = 0;
  bool brief = false;  ///< an acquire, change or synchronize that gives up soon

  bool has_part() const { return kind > Kind::task && kind < Kind::cancel; }
  std::string describe() const;
};

struct Platform {
  const char* name;
  const char* domains;
  std::size_t count;   ///< of domains
  std::size_t places;  ///< of each domain
};

/// Throws std::runtime_error when no platform has that name.
const Platform& platform_named(std::string_view name);

/// A program, of which any steps but the last may be taken out. It ends with a synchronise.
struct Plan {
  std::uint64_t seed = 0;
  const Platform* platform = nullptr;
  std::string policy;
  std::vector<std::size_t> buffers;  ///< bytes
  std::vector<Part> parts;
  std::vector<Step> steps;
  bool fails = false;         ///< some tasks throw
  bool cancels = false;       ///< the queue is cancelled now and then
  std::size_t producers = 1;  ///< threads; each has the buffers whose index modulo that is its own

  /// Which of them takes a step that concerns some buffers only.
  std::size_t producer_of(const Step& step) const {
    const std::size_t part = step.has_part() ? step.part : step.task.accesses[0].part;
    return parts[part].buffer % producers;
  }

  /// Lists it, a step on each line.
  std::string describe() const;
};

Plan plan_of(std::uint64_t seed);

inline std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u;
  return x ^ x >> 29;
}

/// Calls read(column, k, i) for all bytes that a task reads, half_way(), and write(column, k, i)
/// for all that it writes: which depends on all that is read in the same column, in its order.
/// There is one column, or one for each byte of the largest operand. Operands that commute or
/// reduce only add.
template <class Read, class HalfWay, class Write>
void each_dependence(bool bytewise, const std::vector<std::uint64_t>& kinds,
                     const std::vector<std::size_t>& sizes, Read&& read, HalfWay&& half_way,
                     Write&& write) {
  const std::size_t columns = bytewise ? *std::max_element(sizes.begin(), sizes.end()) : 1;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if ((kinds[k] & WEIR_ACCESS_READ) == 0 || only_adds(kinds[k])) continue;
    const std::size_t times = std::max(columns, sizes[k]);
    for (std::size_t i = 0; i < times; ++i) read(i % columns, k, i % sizes[k]);
  }
  half_way();
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    if ((kinds[k] & WEIR_ACCESS_WRITE) == 0) continue;
    for (std::size_t i = 0; i < sizes[k]; ++i) write(i % columns, k, i);
  }
}

/// What a task does, on bytes that get(operand, i) returns a reference to.
template <class Get, class HalfWay>
void mix(std::uint64_t seed, bool bytewise, const std::vector<std::uint64_t>& kinds,
         const std::vector<std::size_t>& sizes, Get&& get, HalfWay&& half_way) {
  std::vector<std::uint64_t> sums(*std::max_element(sizes.begin(), sizes.end()), seed);
  const auto read = [&](std::size_t column, std::size_t k, std::size_t i) {
    sums[column] = mixed(sums[column], get(k, i));
  };
  const auto write = [&](std::size_t column, std::size_t k, std::size_t i) {
    const auto value = static_cast<std::uint8_t>(mixed(sums[column] + k, i));
    std::uint8_t& byte = get(k, i);
    byte = only_adds(kinds[k]) ? static_cast<std::uint8_t>(byte + value) : value;
  };
  each_dependence(bytewise, kinds, sizes, read, half_way, write);
}

}  // namespace weir::queue_model

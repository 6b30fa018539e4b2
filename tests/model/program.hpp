// Random programs: planned first, from a seed, then executed without it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/weir.h>

namespace weir::model {

inline constexpr std::size_t kWords = 64;  ///< 64-bit words of every buffer: a region is a mask

/// What a program runs on. Made once, used by many programs.
struct Platform {
  std::string name;
  std::string domains;              ///< as for WEIR_DOMAINS
  std::vector<std::size_t> places;  ///< domain of each place
  std::vector<std::size_t> cores;   ///< cores of each place
  std::vector<bool> aliases;        ///< whether a domain shares the host's memory; none: as_found()
  bool linked = true;               ///< whether domains with a memory of their own reach each other
};

/// A strided block of words, and the mask of words it covers.
struct Part {
  std::size_t buffer = 0;
  std::size_t memory = 0;  ///< 0: the host's, else 1 + index of the domain
  std::size_t offset = 0;  ///< all in words
  std::size_t row = 1, rows = 1, planes = 1;
  std::size_t row_stride = 0, plane_stride = 0;
  weir_access access = WEIR_ACCESS_READ;

  /// Calls `visit` with each word, in the order in which a kernel or a copy comes to them.
  template <class Visit>
  void each_word(Visit&& visit) const {
    for (std::size_t p = 0; p < planes; ++p) {
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t w = 0; w < row; ++w) visit(offset + p * plane_stride + r * row_stride + w);
      }
    }
  }
  std::vector<std::size_t> words() const;
  std::uint64_t mask() const;
  weir_region region() const;
  bool reads() const { return (access & WEIR_ACCESS_READ) != 0; }
  bool writes() const { return (access & WEIR_ACCESS_WRITE) != 0; }
};

enum class StepKind {
  compute,
  transfer,
  sync,
  host_wait,
  host_synchronize,
  host_cancel,    ///< of a stream
  host_callback,  ///< on an event; it enqueues, too
  host_query      ///< statistics and the state of an event
};

/// One call of the program. Steps that enqueue have an event, named by the step's index.
struct Step {
  StepKind kind = StepKind::compute;
  std::size_t stream = 0;           ///< also of host steps: its thread makes the call
  std::vector<Part> parts;          ///< operands; of a transfer source and target
  std::vector<std::size_t> events;  ///< steps that a sync or host step is about
  weir_sync_scope scope = WEIR_SYNC_SCOPE_STREAM;
  bool wait_any = false;
  bool fails = false;
  bool parallel = false;
  bool strict = false;    ///< is to be ordered after other streams by a barrier
  bool ordering = false;  ///< a sync that is there to order the step after it
  std::uint64_t key = 0;  ///< of the mixing kernel

  bool enqueues() const {
    return kind == StepKind::compute || kind == StepKind::transfer || kind == StepKind::sync;
  }
};

struct StreamPlan {
  std::size_t place = 0;
  weir_dependence_policy policy = WEIR_DEPENDENCE_POLICY_OPERANDS;
  int priority = 0;
};

struct Program {
  std::uint64_t seed = 0;
  std::size_t threads = 1;           ///< of the program; stream i belongs to thread i % threads
  std::vector<bool> buffer_aliases;  ///< one for each buffer
  std::vector<StreamPlan> streams;
  std::vector<Step> steps;

  bool cancels() const;
  std::string describe(std::size_t step, const Platform& platform) const;
  /// All steps, a line each.
  std::string list(const Platform& platform) const;
};

/// Plans a program whose streams are not ordered yet.
Program plan_program(std::uint64_t seed, const Platform& platform);

/// Adds syncs so that conflicting actions of different streams are ordered by events, and by
/// nothing else. Any steps may be taken out of a program before this, which keeps it valid.
Program ordered(const Program& plan, const Platform& platform);

/// The program without some of its steps, and without the events that named them.
Program without(const Program& plan, const std::vector<bool>& taken_out);

/// Memory an instance of a buffer is in.
inline std::size_t memory_of(const Platform& platform, const Program& program, std::size_t domain,
                             std::size_t buffer) {
  return platform.aliases[domain] && program.buffer_aliases[buffer] ? 0 : domain + 1;
}

/// The non-commutative mixing step of the test kernel.
inline std::uint64_t mix(std::uint64_t word, std::uint64_t read, std::uint64_t key) {
  std::uint64_t value = (word ^ (read + 0x9E3779B97F4A7C15u)) * 0xBF58476D1CE4E5B9u + key;
  value ^= value >> 29;
  return value * 0x94D049BB133111EBu;
}

}  // namespace weir::model

// The interface of an application for the tool that runs it.
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weir/weir.hpp>

#include "common/app_streams.hpp"
#include "common/reference_blas.hpp"

namespace weir::apps {

class CommandOptions;

/// A figure that says how good a result is.
struct Verification {
  std::string metric;  ///< in words or as a formula
  double value;
  double limit;
  bool passed() const noexcept { return value <= limit; }  // not for nan
};

/// The larger of two errors, NaN if one of them is: a maximum would lose it.
inline double worse(double a, double b) noexcept { return a >= b || std::isnan(a) ? a : b; }

/// A result that is a number of its own.
struct Figure {
  std::string name;  ///< with its unit, if it has one
  double value;
};

/// The parameters of a run; an application ignores parameters that it does not have.
/// What computes a tile.
enum class TileKernels {
  automatic,  ///< a core, where there are enough tiles for all cores; otherwise a place
  serial,     ///< a core
  team,       ///< all cores of its place
};

struct Parameters {
  std::size_t n = 0;       ///< order of the problem, 0: the application's own or that of the input
  std::size_t tile = 0;    ///< edge of a tile, 0: the application's choice
  std::size_t tiles = 0;   ///< tiles along an edge, instead of their size
  std::size_t aspect = 1;  ///< width of a tile of a grid over its height
  TileKernels kernels = TileKernels::automatic;
  std::size_t iterations = 0;  ///< 0: the application's own number
  bool transform =
      true;             ///< iterations overlap; otherwise a barrier of all streams is between them
  bool single = false;  ///< float instead of double
  std::uint64_t seed = 1;
  bool computed = true;  ///< false: no domain computes, so that generated input may stay zero
  std::string input;     ///< file to read, "": generate
  std::string output;    ///< file to write the result to, "": none
  const weir::Queue* queue = nullptr;  ///< gets tasks, instead of actions in streams
};

/// A named problem size; 0: the application does not have this parameter.
struct Preset {
  const char* name;
  std::size_t n, tile, tiles, iterations;

  /// Fills in missing parameters; the order only when there is no input.
  void fill(Parameters& parameters) const {
    if (parameters.n == 0 && parameters.input.empty()) parameters.n = n;
    if (parameters.iterations == 0) parameters.iterations = iterations;
    if (parameters.tile > 0 || parameters.tiles > 0) return;
    parameters.tile = tile;
    parameters.tiles = tiles;
  }
};

inline Parameters with_usual(Parameters parameters, const Preset& usual) {
  usual.fill(parameters);
  return parameters;
}

/// A problem in memory, ready to be solved repeatedly. One thread calls it. All functions may throw
/// weir::Error, InputError or std::bad_alloc.
class Workload {
 public:
  virtual ~Workload() = default;

  /// Returns the order of the problem, and of its tiles; without tiles, a value that the
  /// application chooses.
  virtual std::size_t n() const = 0;
  virtual std::size_t tile() const = 0;
  virtual std::size_t tiles() const = 0;
  /// How often it repeats its step, 0: it has none.
  virtual std::size_t iterations() const { return 0; }
  /// Floating-point operations of one run.
  virtual double operations() const = 0;
  /// The machine's fastest product in the precision and of the size of the problem, in operations a
  /// second; 0 for a problem without products.
  virtual double gemm_peak(const ReferenceBlas&) const { return 0; }
  /// Bytes that the kernels of one run have to move between processor and memory, 0: not counted.
  virtual double traffic() const { return 0; }

  /// Restores the input in the program's memory.
  virtual void reset() = 0;
  /// Enqueues one run, from the program's memory back to it.
  virtual void enqueue() = 0;
  /// Waits for work that is not an action of the streams. Throws weir::Error{timeout}.
  virtual void await(std::chrono::nanoseconds) {}
  /// Cancels that wait. On any thread.
  virtual void cancel() noexcept {}
  /// Processes the result once, after all runs: solves a system, for example.
  virtual void finish() {}
  /// Writes the requested files, after finish().
  virtual void save() const {}
  /// Returns results that are single numbers, after finish().
  virtual std::vector<Figure> figures() const { return {}; }
  /// Checks the result of the last run, by other means than those that computed it.
  virtual std::vector<Verification> verify(const ReferenceBlas& blas) const = 0;

  /// Returns further facts about the result as lines of text: name and text.
  virtual std::vector<std::pair<std::string, std::string>> remarks() const { return {}; }
  /// The same for programs, as the text of a JSON object, whose members the report takes over.
  virtual std::string details() const { return "{}"; }
  /// Whether another process reports: all have the result, and rank 0 prints it.
  virtual bool silent() const { return false; }
  /// Returns which input was skipped, and why: a line each.
  virtual std::vector<std::string> complaints() const { return {}; }
};

/// A kind of problem.
class Application {
 public:
  virtual ~Application() = default;
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;
  /// A command that runs it, for --help.
  virtual const char* example() const = 0;
  /// Whether it can submit its work to a task queue.
  virtual bool has_tasks() const { return false; }
  /// Whether it repeats a step, so that it has --iterations and --transform.
  virtual bool iterates() const { return false; }
  /// Whether it divides a problem into tiles whose size can be chosen, so that it has --tile and
  /// --tiles.
  virtual bool has_tiles() const { return true; }
  /// Whether its tiles can have another shape than a square, so that it has --aspect.
  virtual bool has_shapes() const { return false; }
  /// Whether a tile can be computed by a core or by all cores of a place, so that it has --kernels.
  virtual bool has_team_kernels() const { return false; }
  /// Whether it computes with numbers of a type that can be chosen, so that it has --precision.
  virtual bool has_precision() const { return true; }
  /// Whether it runs on domains of other ranks, "rank:1".
  virtual bool runs_on_ranks() const { return true; }
  /// Whether each of several ranks does a part of the problem, with domains of its own.
  virtual bool has_parts() const { return false; }
  /// Whether it runs a pipeline that can be watched, so that it has --live.
  virtual bool has_pipeline() const { return false; }
  /// Whether it has a use for an option that most applications have, with those that it was given:
  /// "--n", "--seed", "--input", "--output", "--places" or "--streams". The others are refused.
  virtual bool uses(std::string_view) const { return true; }
  /// Whether it uses streams only in its baseline, --baseline.
  virtual bool streams_in_baseline() const { return false; }
  /// Sizes that have names, from small to large.
  virtual std::span<const Preset> presets() const { return {}; }
  /// Returns the default order of the problem and edge of a tile, for --help: those of the second
  /// size. 0: chosen for the problem.
  virtual std::size_t usual_n() const { return presets().empty() ? 0 : presets()[1].n; }
  virtual std::size_t usual_tile() const { return presets().empty() ? 0 : presets()[1].tile; }
  /// Returns the formats of files that it reads and writes, for --help.
  virtual const char* input_help() const { return "Matrix to read: Matrix Market or .npy"; }
  virtual const char* output_help() const { return "File for the result: .mtx or .npy"; }
  /// Returns the text that the user asked for instead of a run; "": none.
  virtual std::string help() const { return ""; }
  /// Adds the options that only this application has.
  virtual void add_options(CommandOptions&) {}
  /// Registers its own kernels that a run calls, so that a rank can serve those of another process.
  /// A rank can serve only kernels that access nothing but their operands.
  virtual void register_kernels(const Parameters&, const weir::Runtime&) const {}
  /// Reads or generates a problem. Throws InputError for a file that cannot be used.
  virtual std::unique_ptr<Workload> prepare(const Parameters& parameters,
                                            const weir::Runtime& runtime,
                                            const AppStreams& app_streams) = 0;
};

/// All applications.
std::vector<std::unique_ptr<Application>> make_applications();

}  // namespace weir::apps

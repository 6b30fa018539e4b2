// The figures of a paper, measured again: its description names the commands, what the paper says
// and what must hold.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "paper/expectation.hpp"
#include "terminal.hpp"

namespace weir::cli::paper {

/// The number of a paper, and its description: the text of NUMBER.json.
struct Description {
  const char* number;
  const char* text;
};

/// Returns the papers that are known.
const std::vector<Description>& descriptions();

struct Options {
  bool quick = false;                ///< fewer points, smaller problems
  bool fresh = false;                ///< measure again what is in the file
  std::vector<std::string> figures;  ///< empty: all
  std::string output;                ///< of the files, without .json and .html
  std::string launcher;              ///< command that starts ranks, as "mpirun -n 2"; "": weir
};

/// Measures the figures of a paper. Writes each value to a file as soon as it is known, and does
/// not measure it again.
class Paper {
 public:
  /// Throws weir::Error if there is no such paper or figure.
  Paper(const std::string& number, Options options);

  /// Measures; throws weir::Error, or Interrupted.
  void measure();
  /// Writes OUTPUT.json and OUTPUT.html.
  void write() const;
  /// One object, schema "weir.paper/1".
  Json json() const;
  std::string text() const;
  /// Whether every expectation that does not hold has a known reason.
  bool holds() const;

 private:
  void recall();
  bool selected(const Json& figure) const;
  Json measured(const Json& figure);
  Json run_series(const Json& figure, const Json& series);
  Json bench_series(const Json& figure, const Json& series);
  Json point(const Json& figure, const Json& series, const std::string& command);
  Json values_of_run(const std::string& command, bool reported);
  Json results_of(const std::string& command);

  const Options options_;
  const std::string number_;
  const Json description_;
  Json figures_ = Json::array();
  std::vector<std::string> pointers_;    ///< to values of reports that figures have
  std::map<std::string, Json> known_;    ///< command -> its values, by name or pointer
  std::map<std::string, Json> benches_;  ///< command -> its results
  std::size_t measured_ = 0;
  Progress progress_;
};

}  // namespace weir::cli::paper

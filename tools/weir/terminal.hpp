// The output functions of the tool: colours, aligned tables, formatted numbers, progress.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace weir::cli {

/// Writes text to standard output. Throws std::system_error when it cannot be written.
void print(std::string_view text);
/// Flushes the buffer of print(). Throws as print() does.
void flush();

enum class Tone { plain, strong, faint, good, warning, bad };

/// Returns whether escape sequences may go to a stream: never with NO_COLOR, always with
/// CLICOLOR_FORCE, otherwise on a terminal whose TERM is not "dumb". A process that mpirun has
/// started has no terminal: see is_terminal().
bool has_color(std::FILE* stream);

/// Returns text in a tone if `stream` has colour, unchanged otherwise.
std::string paint(std::string_view text, Tone tone, std::FILE* stream = stdout);

/// Whether a message is of one rank or of all ranks of a launch.
enum class Speaker { rank, all };

/// Writes a line to standard error, after "weir:" in a tone, and after "rank 1:" if one of several
/// ranks writes it for itself. When the write fails, the line is dropped without an error.
void print_message(Tone tone, std::string_view message, Speaker speaker = Speaker::rank) noexcept;

/// Rows of cells printed in columns that line up. Cells may be painted.
class Table {
 public:
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Cells of columns in `right` are aligned to the right. Each row starts with `indent` blanks.
  std::string text(std::size_t indent = 0, const std::vector<std::size_t>& right = {}) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// "1.5 GiB", "64 KiB", "17 B".
std::string format_bytes(std::uint64_t bytes);
/// "2.35 s", "14.1 ms", "3.20 us", "85 ns".
std::string format_seconds(double seconds);
/// "1,234,567".
std::string format_count(std::uint64_t count);

/// A progress line on standard error, redrawn at most ten times a second; the destructor removes
/// the line. Other output gets a new line every `line_ns`, the first one after that time.
class Progress {
 public:
  explicit Progress(std::int64_t line_ns = 30'000'000'000);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows `text` and how much of `total` is done; total 0 shows the text alone.
  void update(std::uint64_t done, std::uint64_t total, std::string_view text);
  /// Removes the line, so that other text may follow.
  void clear();

 private:
  bool on_terminal_;
  std::int64_t every_ns_;
  bool drawn_ = false;
  std::int64_t next_ns_ = 0;
};

}  // namespace weir::cli

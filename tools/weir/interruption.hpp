// SIGINT, SIGTERM and SIGHUP end the tool in order: within a second, with the trace recorded so
// far, without temporary files left behind.
#pragma once

#include <string>

namespace weir::cli {

/// Work that another thread can end.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  /// Makes the work end soon. Another thread calls it repeatedly until the work has ended.
  virtual void stop() noexcept = 0;
  /// Saves the results so far and returns in a few words what was stopped. Any thread.
  virtual std::string save() noexcept = 0;
  /// Returns whether the work has taken a signal for itself: nothing is stopped then, and the next
  /// signal is offered as well. `from_terminal`: all processes of the terminal got it. Another
  /// thread calls it.
  virtual bool take_signal(int /*signal*/, bool /*from_terminal*/) noexcept { return false; }
};

/// Thrown where work ends because a signal came.
struct Interrupted {};

/// Watches for the signals while it exists; there is one, in main().
///
/// The constructor blocks them for the calling thread and all threads that it starts later; a
/// watching thread waits for them. The first signal stops the work, which then unwinds as after an
/// error. When it has not unwound within half a second, the watching thread saves the results so
/// far and ends the process. A second signal ends the process at once, except a signal that a rank
/// gets from its launcher: the launcher passes on its own signal, and ends after its ranks. Signals
/// that were ignored when the program started stay ignored.
class Interruption {
 public:
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  /// Returns the exit status of a program that would end with `status`: 128 + the number of the
  /// signal when one came; then it has said so on standard error.
  int end(int status);

  /// Whether a signal came.
  static bool requested() noexcept;
  /// Throws Interrupted when one did.
  static void check();
  /// Notes that the program has reported why it ends, so that later signals are not reported.
  static void note_failure() noexcept;

  /// Registers `work` as the work to stop, until the end of the scope.
  class Scope {
   public:
    explicit Scope(Stoppable& work);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();
    /// Makes the work save its results so far, on the calling thread.
    void save() noexcept;

   private:
    Stoppable& work_;
  };
};

}  // namespace weir::cli

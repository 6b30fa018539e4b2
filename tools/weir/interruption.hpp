// SIGINT, SIGTERM and SIGHUP end the tool in order: within a second, with what there is of a trace,
// without leaving anything behind.
#pragma once

#include <string>

namespace weir::cli {

/// Work that another thread can end.
class Stoppable {
 public:
  virtual ~Stoppable() = default;
  /// Makes the work end soon. Called again and again, from another thread, until it has.
  virtual void stop() noexcept = 0;
  /// Saves what there is and says in a few words what was stopped. Any thread.
  virtual std::string save() noexcept = 0;
};

/// Thrown where work ends because a signal came.
struct Interrupted {};

/// Watches for the signals while it exists; there is one, in main().
///
/// They are blocked for the calling thread and all that it starts later; a thread of its own waits
/// for them. The first one stops the work, which then unwinds as it does after an error. What has
/// not within half a second is left as it is: the thread saves what there is and ends the process.
/// A second signal ends the process at once, but for what a rank hears from who has started it:
/// that passes on what it was told, and ends after its ranks. Signals that the program was started
/// with as ignored stay so.
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
  /// Notes that the program has said why it ends, so that a signal is no news any more.
  static void note_failure() noexcept;

  /// Makes `work` what is to be stopped, until the end of the scope.
  class Scope {
   public:
    explicit Scope(Stoppable& work);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();
    /// Lets the work save what there is, now, on its own thread.
    void save() noexcept;

   private:
    Stoppable& work_;
  };
};

}  // namespace weir::cli

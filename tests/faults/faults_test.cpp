// Every way to memory, threads, mappings and files fails once, and from there on.
//
// A walk of each part of the C interface (walk*.cpp) is counted first: how often does it ask for
// memory, start a thread, map, or touch a file? Then a child process walks for each position, with
// that call failing ("once"), or that one and all after it ("on"). Each must end in a clean error
// or in the right result; the same process then does a correct job, destroys everything and holds
// no memory.
//
//   fault_injection                the first position of each distinct stack of calls: the gate;
//                                  where threads make calls in another order each time, the stack
//   fault_injection --all          every position
//   fault_injection --part PART    of one part only
//   fault_injection --replay PART KIND POSITION once|on    one, with stacks of what leaks
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <dirent.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <weir/weir.hpp>

#include "child.hpp"
#include "injector.hpp"
#include "walk.hpp"
#include "walk_fabric.hpp"
#include "walk_flows.hpp"
#include "walk_ranks.hpp"

namespace faults {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostPositions = 1 << 16;
constexpr std::chrono::seconds kHang{20};

/// A part of the interface, walked by itself.
struct Part {
  const char* name;
  const Route& route;
  void (*walk)(const Route& route, const char* folder, Report& report);
  void (*finish)(const Route& route, Report& report);
  std::size_t at_once = 2;  ///< walks: more of those that wait more than they compute
  /// That tell positions apart: fewer where any thread does what comes, inside of whatever it waits
  /// for.
  std::size_t frames = kFrames;
  /// Whether its threads make their calls in another order each time, so that a stack tells more
  /// than a position.
  bool by_stack = false;
};
constexpr Part kParts[] = {
    {"real", kRoutes[0], walk, finish},
    {"virtual", kRoutes[1], walk, finish},
    {"flows", kRoutes[0], walk_flows, finish_anew},
    {"virtual-flows", kRoutes[1], walk_flows, finish_anew},
    {"fabric", kRoutes[0], walk_fabric, finish_anew, 8, kFrames, true},
    {"ranks", kRankRoute, walk_ranks, finish_anew, 8, 4, true},
};

struct Case {
  const Part* part;
  Plan plan;
};

/// How a child ended.
enum class End : unsigned { clean, absorbed, wrong, leak, crash, hang, unreached };
constexpr const char* kEndNames[] = {"clean error", "absorbed", "WRONG",    "LEAK",
                                     "CRASH",       "HANG",     "unreached"};
constexpr std::size_t kEnds = std::size(kEndNames);

/// What a child tells its parent.
struct Board {
  Report report;
  Stack failed, crashed;
  std::uint64_t calls, failures;
  std::size_t leaked;
  bool finished;
  char folder[64];
};

template <class T>
T* share(std::size_t count = 1) {
  void* const room = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) std::abort();
  return static_cast<T*>(room);
}

void print_stack(const Stack& stack) {
  int count = 0;
  while (count < static_cast<int>(kFrames) && stack.frames[count] != nullptr) ++count;
  std::fflush(stdout);
  backtrace_symbols_fd(const_cast<void**>(stack.frames), count, STDOUT_FILENO);
}

void print_leak(std::size_t bytes, const Stack& stack) {
  std::printf("  leaked: %zu bytes\n", bytes);
  print_stack(stack);
}

Board* current = nullptr;

void note_crash(int signal) {
  void* frames[kFrames + 2] = {};
  backtrace(frames, kFrames + 2);
  std::memcpy(current->crashed.frames, frames + 2, sizeof current->crashed.frames);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  DIR* const directory = opendir(folder);
  while (directory != nullptr && readdir(directory) != nullptr) ++count;
  if (directory != nullptr) closedir(directory);
  return count;
}

/// One walk in this process.
void go(const Case& wanted, Board& board, std::uint64_t* sites, bool verbose) {
  current = &board;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE}) std::signal(signal, note_crash);
  const std::size_t files = entries_of(board.folder), descriptors = entries_of("/proc/self/fd");
  if (intercepts_memory()) watch_memory(verbose);
  const Part& part = *wanted.part;
  arm(wanted.plan, {&board.failed, sites, sites != nullptr ? kMostPositions : 0, part.frames});
  part.walk(part.route, board.folder, board.report);
  board.calls = calls();
  board.failures = failures();
  disarm();
  part.finish(part.route, board.report);
  if (entries_of(board.folder) != files) board.report.blame("a file is left behind");
  if (entries_of("/proc/self/fd") != descriptors) board.report.blame("a file is left open");
  board.leaked = intercepts_memory() ? live_allocations(verbose ? print_leak : nullptr) : 0;
  board.finished = true;
}

pid_t start(const Case& wanted, Board& board, std::uint64_t* sites = nullptr,
            bool verbose = false) {
  std::fflush(nullptr);
  char folder[sizeof board.folder];
  std::memcpy(folder, board.folder, sizeof folder);
  board = {};
  std::memcpy(board.folder, folder, sizeof folder);
  const pid_t child = fork();
  if (child != 0) return child;
  go(wanted, board, sites, verbose);
  std::fflush(nullptr);
  _exit(0);
}

End end_of(int status, const Board& board) {
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGKILL ? End::hang : End::crash;
  if (!board.finished) return End::crash;
  if (board.report.wrong > 0) return End::wrong;
  if (board.leaked > 0) return End::leak;
  if (board.failures == 0) return End::unreached;
  return board.report.errors > 0 ? End::clean : End::absorbed;
}

bool bad(End end) { return end != End::clean && end != End::absorbed && end != End::unreached; }

struct Table {
  std::size_t counts[kKinds][2][kEnds] = {};
  std::size_t bad = 0;
};

class Runner {
 public:
  Runner(const char* program, std::string folder) : program_(program) {
    for (Slot& slot : slots_) {
      slot.board = share<Board>();
      std::snprintf(slot.board->folder, sizeof slot.board->folder, "%s/%td", folder.c_str(),
                    &slot - slots_);
      mkdir(slot.board->folder, 0700);
    }
  }
  ~Runner() {
    for (const Slot& slot : slots_) rmdir(slot.board->folder);
  }

  void run(const Case& wanted) {
    Slot* const slot = free_slot(*wanted.part);
    slot->wanted = wanted;
    slot->since = Clock::now();
    slot->child = start(wanted, *slot->board);
  }
  void finish() {
    for (Slot& slot : slots_) {
      while (slot.child != 0) collect();
    }
  }
  const Table& table() const { return table_; }

 private:
  struct Slot {
    Board* board = nullptr;
    pid_t child = 0;
    Case wanted{};
    Clock::time_point since;
  };

  Slot* free_slot(const Part& part) {
    for (;;) {
      for (Slot& slot : std::span(slots_).first(part.at_once)) {
        if (slot.child == 0) return &slot;
      }
      collect();
    }
  }

  void collect() {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended <= 0) {
      for (Slot& slot : slots_) {
        if (slot.child != 0 && Clock::now() - slot.since > kHang) kill(slot.child, SIGKILL);
      }
      weir::await_end_of_any(running(), std::chrono::seconds(1));
      return;
    }
    for (Slot& slot : slots_) {
      if (slot.child != ended) continue;
      slot.child = 0;
      classify(slot, status);
    }
  }

  std::vector<pid_t> running() const {
    std::vector<pid_t> children;
    for (const Slot& slot : slots_) {
      if (slot.child != 0) children.push_back(slot.child);
    }
    return children;
  }

  void classify(const Slot& slot, int status) {
    const End end = end_of(status, *slot.board);
    const Plan& plan = slot.wanted.plan;
    ++table_.counts[static_cast<unsigned>(plan.kind)][plan.lasting][static_cast<unsigned>(end)];
    if (!bad(end)) return;
    if (++table_.bad > 40) return;
    std::printf("%s: %s call %llu (%s), part %s", kEndNames[static_cast<unsigned>(end)],
                kind_name(plan.kind), static_cast<unsigned long long>(plan.position),
                plan.lasting ? "and all later" : "alone", slot.wanted.part->name);
    if (end == End::crash && WIFSIGNALED(status)) std::printf(": %s", strsignal(WTERMSIG(status)));
    if (end == End::leak) std::printf(": %zu allocations", slot.board->leaked);
    std::printf("\n%s", slot.board->report.text);
    print_stack(slot.board->failed);
    if (end == End::crash) {
      std::printf("crashed at\n");
      print_stack(slot.board->crashed);
    }
    if (plan.site != 0) {
      std::printf("again: %s --part %s\n\n", program_, slot.wanted.part->name);
      return;
    }
    std::printf("again: %s --replay %s %s %llu %s\n\n", program_, slot.wanted.part->name,
                kind_name(plan.kind), static_cast<unsigned long long>(plan.position),
                plan.lasting ? "on" : "once");
  }

  const char* program_;
  Slot slots_[8];
  Table table_;
};

using Parts = std::vector<const Part*>;

/// Fills the caches that live as long as the process, so that a walk returns all it takes.
/// Handles rest, a few hundred of a kind, before their memory is used again: from then on a walk
/// takes no more of it.
void tire_handles(const Parts& parts, Report& report) {
  const bool fabric = std::any_of(parts.begin(), parts.end(), [](const Part* part) {
    return part->walk == walk_fabric || part->walk == walk_ranks;
  });
  for (int i = 0; i < 260; ++i) {
    walk_flows(kRoutes[0], "", report);
    if (fabric) walk_fabric(kRoutes[0], "", report);
  }
  const weir::Runtime runtime("host:cores=1");
  std::vector<weir::Buffer> buffers;  // a fault may make a queue use more of them at once
  for (int i = 0; i < 400; ++i) buffers.push_back(runtime.buffer(64));
}

void warm_up(const Parts& parts, const std::string& folder, int rounds) {
  static Report report;
  tire_handles(parts, report);
  for (int i = 0; i < rounds; ++i) {
    for (const Part* const part : parts) {
      part->walk(part->route, folder.c_str(), report);
      part->finish(part->route, report);
    }
  }
  if (report.wrong == 0 && report.errors == 0) return;
  std::printf("the walk fails without any fault:\n%s%s\n", report.text, report.first_error);
  std::exit(1);
}

/// The positions to try: all, or the first of each distinct stack.
std::vector<std::uint64_t> positions_of(const std::uint64_t* sites, std::uint64_t calls, bool all) {
  std::vector<std::uint64_t> positions;
  std::set<std::uint64_t> seen;
  for (std::uint64_t at = 0; at < std::min<std::uint64_t>(calls, kMostPositions); ++at) {
    if (seen.insert(sites[at]).second || all) positions.push_back(at + 1);
  }
  return positions;
}

void await(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
}

std::size_t run_all(Runner& runner, const Parts& parts, const std::string& folder, bool all) {
  Board& board = *share<Board>();
  std::snprintf(board.folder, sizeof board.folder, "%s", folder.c_str());
  auto* const sites = share<std::uint64_t>(kMostPositions);
  std::size_t total = 0;
  for (const Part* const part : parts) {
    for (unsigned kind = 0; kind < kKinds; ++kind) {
      const Case counting{part, {static_cast<Kind>(kind), 0, false}};
      await(start(counting, board, sites));
      const auto positions = positions_of(sites, board.calls, all);
      if (board.calls > kMostPositions) std::printf("too many calls to try them all\n");
      std::printf("%s, %s: %llu calls, %zu tried\n", part->name, kind_name(static_cast<Kind>(kind)),
                  static_cast<unsigned long long>(board.calls), positions.size());
      for (const std::uint64_t position : positions) {
        for (const bool lasting : {false, true}) {
          const std::uint64_t site = part->by_stack && !all ? sites[position - 1] : 0;
          runner.run({part, {static_cast<Kind>(kind), position, lasting, site}});
          ++total;
        }
      }
    }
  }
  runner.finish();
  return total;
}

void print_table(const Table& table) {
  std::printf("\n%-8s %-6s", "call", "fails");
  for (const char* name : kEndNames) std::printf(" %11s", name);
  std::printf("\n");
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    for (const bool lasting : {false, true}) {
      std::printf("%-8s %-6s", kind_name(static_cast<Kind>(kind)), lasting ? "on" : "once");
      for (const std::size_t count : table.counts[kind][lasting]) std::printf(" %11zu", count);
      std::printf("\n");
    }
  }
}

/// The part of this name, or all for none.
Parts parts_of(const char* name) {
  Parts found;
  for (const Part& part : kParts) {
    if (name == nullptr || std::strcmp(name, part.name) == 0) found.push_back(&part);
  }
  return found;
}

int replay(const Part& part, char** arguments, const std::string& folder) {
  Case wanted{&part,
              {Kind::memory, std::strtoull(arguments[1], nullptr, 10),
               std::strcmp(arguments[2], "on") == 0}};
  for (unsigned kind = 0; kind < kKinds; ++kind) {
    if (std::strcmp(arguments[0], kind_name(static_cast<Kind>(kind))) == 0) {
      wanted.plan.kind = static_cast<Kind>(kind);
    }
  }
  static Board board;
  std::snprintf(board.folder, sizeof board.folder, "%s", folder.c_str());
  go(wanted, board, nullptr, true);
  std::printf(
      "%llu calls, %llu failed; %u errors, first: %s\n%u wrong:\n%s%zu leaked\nfailed at:\n",
      static_cast<unsigned long long>(board.calls), static_cast<unsigned long long>(board.failures),
      board.report.errors, board.report.first_error, board.report.wrong, board.report.text,
      board.leaked);
  print_stack(board.failed);
  return board.report.wrong > 0 || board.leaked > 0 ? 1 : 0;
}

int run(const char* program, const Parts& parts, const std::string& folder, bool all) {
  const auto begin = Clock::now();
  Runner runner(program, folder);
  const std::size_t total = run_all(runner, parts, folder, all);
  const Table& table = runner.table();
  print_table(table);
  std::size_t clean = 0, absorbed = 0;
  for (const auto& kind : table.counts) {
    for (const auto& mode : kind) {
      clean += mode[static_cast<unsigned>(End::clean)];
      absorbed += mode[static_cast<unsigned>(End::absorbed)];
    }
  }
  std::printf("%zu bad of %zu, %.1f s\n", table.bad, total,
              std::chrono::duration<double>(Clock::now() - begin).count());
  if (table.bad > 0) return 1;
  std::printf("proof: %zu positions: %zu clean errors, %zu absorbed\n", total, clean, absorbed);
  return 0;
}

}  // namespace
}  // namespace faults

int main(int count, char** arguments) {
  using namespace faults;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const bool all = !words.empty() && words[0] == "--all";
  const bool replays = words.size() == 5 && words[0] == "--replay";
  const bool one = replays || (words.size() == 2 && words[0] == "--part");
  const Parts parts = parts_of(one ? arguments[2] : nullptr);
  if (parts.empty()) {
    std::printf("no part is called '%s'\n", arguments[2]);
    return 2;
  }
  const char* temporary = std::getenv("TMPDIR");
  std::string folder = std::string(temporary != nullptr ? temporary : "/tmp") + "/weir-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  void* frames[4];
  backtrace(frames, 4);  // loads what it needs
  warm_up(parts, folder, 46);
  const int result =
      replays ? replay(*parts[0], arguments + 3, folder) : run(arguments[0], parts, folder, all);
  rmdir(folder.c_str());
  return result;
}

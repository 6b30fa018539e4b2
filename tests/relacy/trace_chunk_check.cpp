// Chunk: a thread that reads while another records sees whole items.
#include "trace/chunk.hpp"

#include "base/plain.hpp"
#include "parts.hpp"

namespace weir::rt::checker {
namespace {

struct Item {
  sys::Plain<int> value = 0;
};

template <int kReaders>
struct Read : Check<Read<kReaders>, kReaders + 1> {
  trace::Chunk<Item, 3> chunk;

  void thread(unsigned index) {
    if (index == 0) {
      for (int i = 1; chunk.has_room(); ++i) chunk.append({i});
      return;
    }
    for (int pass = 0; pass < 2; ++pass) {
      int expected = 1;
      for (const Item& item : chunk.items()) CHECK_THAT(item.value == expected++);
    }
  }
  void after() { CHECK_THAT(chunk.items().size() == 3); }
};

}  // namespace

void check_trace_chunk(Run& run) {
  run.full<Read<1>>("one reads");
  run.random<Read<2>>("two read");
}

}  // namespace weir::rt::checker

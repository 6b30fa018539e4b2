/* Transfers both ways: parts of buffers, buffers side by side in one allocation, odd addresses, and
   a copy back that a later action of the stream must not overtake. */
#include <hStreams_app_api.h>
#include <hStreams_sink.h>

#include "check.h"

enum { BYTES = 1 << 18 };

HSTREAMS_EXPORT void add_one(uint64_t bytes, unsigned char* data) {
  for (uint64_t i = 0; i < bytes; ++i) data[i] = (unsigned char)(data[i] + 1);
}

HSTREAMS_EXPORT void residue(uint64_t* out, char* odd) { *out = (uint64_t)odd % 64; }

static void fill(unsigned char* data, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) data[i] = (unsigned char)i;
}

static void round_trip_of_a_part(unsigned char* data) {
  uint64_t args[2];
  fill(data, BYTES);
  args[0] = 1000;
  args[1] = (uint64_t)(data + 500);
  OK(hStreams_app_xfer_memory(0, data + 500, data + 500, 1000, HSTR_SRC_TO_SINK, NULL));
  OK(hStreams_app_invoke(0, "add_one", 1, 1, args, NULL, NULL, 0));
  OK(hStreams_app_xfer_memory(0, data + 500, data + 500, 1000, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_stream_sync(0));
  for (int i = 0; i < 2000; ++i) {
    CHECK(data[i] == (unsigned char)(i + (i >= 500 && i < 1500)));
  }
}

static void to_another_place(unsigned char* data) {
  fill(data, 100);
  OK(hStreams_app_xfer_memory(0, data, data, 100, HSTR_SRC_TO_SINK, NULL));
  OK(hStreams_app_xfer_memory(0, data + 300, data, 100, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_stream_sync(0));
  CHECK(memcmp(data, data + 300, 100) == 0);
}

static void not_overtaken(unsigned char* data) {
  for (int round = 1; round <= 20; ++round) {
    OK(hStreams_app_memset(0, data, round, BYTES, NULL));
    OK(hStreams_app_xfer_memory(0, data, data, BYTES, HSTR_SINK_TO_SRC, NULL));
    OK(hStreams_app_memset(0, data, 0, BYTES, NULL));
    OK(hStreams_app_stream_sync(0));
    for (int i = 0; i < BYTES; ++i) CHECK(data[i] == round);
  }
}

static void side_by_side(void) {
  char* const memory = (char*)malloc(3001 + 16);
  uint64_t* const word = (uint64_t*)(void*)memory;
  char* const odd = memory + 16 + 1;
  uint64_t args[2];
  OK(hStreams_app_create_buf(word, 16));
  OK(hStreams_app_create_buf(odd, 1000));
  OK(hStreams_app_create_buf(odd + 1000, 2000));
  for (int at = 0; at < 1000; at += 333) {
    args[0] = (uint64_t)word;
    args[1] = (uint64_t)(odd + at);
    OK(hStreams_app_invoke(0, "residue", 0, 2, args, NULL, NULL, 0));
    OK(hStreams_app_xfer_memory(0, word, word, 8, HSTR_SINK_TO_SRC, NULL));
    OK(hStreams_app_stream_sync(0));
    CHECK(*word == (uint64_t)(odd + at) % 64);
  }
  memset(odd, 7, 3000);
  OK(hStreams_app_xfer_memory(0, odd + 1000, odd + 1000, 2000, HSTR_SRC_TO_SINK, NULL));
  OK(hStreams_app_stream_sync(0));
  memset(odd, 0, 3000);
  OK(hStreams_app_xfer_memory(0, odd + 1000, odd + 1000, 2000, HSTR_SINK_TO_SRC, NULL));
  OK(hStreams_app_stream_sync(0));
  CHECK(odd[999] == 0 && odd[1000] == 7 && odd[2999] == 7);
  free(memory); /* while it is wrapped, as many programs do */
}

int main(void) {
  unsigned char* const data = (unsigned char*)_mm_malloc(BYTES, 4096);
  OK(hStreams_app_init(2, 1));
  OK(hStreams_app_create_buf(data, BYTES));
  round_trip_of_a_part(data);
  to_another_place(data);
  not_overtaken(data);
  side_by_side();
  OK(hStreams_app_fini());
  _mm_free(data);
  return 0;
}

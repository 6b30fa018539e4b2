/* Checksums of what streams bring back are the same under each policy that keeps results right. */
#include <hStreams_app_api.h>
#include <unistd.h>

#include "check.h"

enum { BYTES = 5000, ROUNDS = 10, LINE = 200 };

static char data[2][BYTES];
static char lines[2][2 * ROUNDS][LINE];

static int compare(const void* a, const void* b) { return strcmp((const char*)a, (const char*)b); }

static void life(HSTR_DEP_POLICY policy, const char* path) {
  HSTR_OPTIONS options;
  unlink(path);
  setenv("WEIR_HSTREAMS_CHECKSUMS", path, 1);
  OK(hStreams_GetCurrentOptions(&options, sizeof options));
  options.dep_policy = policy;
  OK(hStreams_SetOptions(&options));
  OK(hStreams_app_init(2, 1));
  for (int i = 0; i < 2; ++i) OK(hStreams_app_create_buf(data[i], BYTES));
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < 2; ++i) {
      const HSTR_LOG_STR stream = (HSTR_LOG_STR)i;
      OK(hStreams_app_memset(stream, data[i], round + i, BYTES, NULL));
      OK(hStreams_app_xfer_memory(stream, data[i], data[i], BYTES, HSTR_SINK_TO_SRC, NULL));
    }
  }
  OK(hStreams_app_thread_sync());
  OK(hStreams_app_fini());
}

static void read_lines(const char* path, char (*into)[LINE]) {
  FILE* const file = fopen(path, "r");
  int count = 0;
  CHECK(file != NULL);
  while (count < 2 * ROUNDS && fgets(into[count], LINE, file) != NULL) ++count;
  fclose(file);
  CHECK(count == 2 * ROUNDS);
  qsort(into, 2 * ROUNDS, LINE, compare);
}

int main(void) {
  life(HSTR_DEP_POLICY_BUFFERS, "buffers.txt");
  life(HSTR_DEP_POLICY_CONSERVATIVE, "conservative.txt");
  read_lines("buffers.txt", lines[0]);
  read_lines("conservative.txt", lines[1]);
  CHECK(memcmp(lines[0], lines[1], sizeof lines[0]) == 0);
  CHECK(strncmp(lines[0][0], "stream 0 transfer 0: 5000 bytes, checksum ", 42) == 0);
  CHECK(strcmp(lines[0][0] + 42, lines[0][1] + 42) != 0);
  return 0;
}
